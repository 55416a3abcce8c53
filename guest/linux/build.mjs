// Builds the Linux guest: the kernel that Debian or Ubuntu has for virtual machines, as an ELF file where it can be unpacked,
// which starts faster than the compressed one, and an initramfs with the few modules that it needs and one program of ours.
//
//   node guest/linux/build.mjs [--out DIR]
//
// leaves `vmlinux` and `initramfs` in DIR (dist/guest/linux unless said otherwise) and prints DIR. It is done in seconds,
// and does nothing when the same was built there before.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { homedir, tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { initramfs } from './initramfs.mjs';
import { currentKernelPackages, kernelOfCache, modulesBelow, NoKernel } from './kernel-packages.mjs';
import { modulesInOrder } from './modules.mjs';
import { vmlinuxOf } from './vmlinux.mjs';

const here = fileURLToPath(new URL('.', import.meta.url));
/** Disks, network, the channel of the guest agent, ISO volumes, and the power button. */
const MODULES = 'virtio_pci virtio_mmio virtio_blk virtio_net virtio_console virtio_rng isofs button evdev';
const COMPILER_OPTIONS = [
  '-static',
  '-O2',
  '-s',
  '-std=gnu11',
  '-D_GNU_SOURCE',
  '-Wall',
  '-Wextra',
  '-Werror',
  // Names that are too long are cut off, and then not found.
  '-Wno-format-truncation',
  // Vector instructions are slow where they are translated.
  '-fno-tree-vectorize',
];

class BuildError extends Error {}

function run(command, args, options = {}) {
  const result = spawnSync(command, args, { encoding: 'utf8', ...options });
  if (result.error?.code === 'ENOENT') throw new BuildError(`there is no ${command}${remedyFor(command)}`);
  if (result.status !== 0)
    throw new BuildError(`${command} ${args[0]} failed:\n${result.stderr ?? result.error?.message}`);
  return result.stdout;
}

function remedyFor(command) {
  const packages = { gcc: 'gcc libc6-dev', ld: 'binutils' }[command];
  return packages
    ? `: apt-get install -y --no-install-recommends ${packages}`
    : '; the guest is made of packages of Debian or Ubuntu';
}

function sources() {
  return [join(here, 'init'), join(here, '..', 'common')].flatMap((directory) =>
    readdirSync(directory)
      .sort()
      .map((name) => join(directory, name)),
  );
}

function cacheDirectory() {
  const directory = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'godwit');
  mkdirSync(directory, { recursive: true });
  return directory;
}

/** The packages of the current kernel: from the cache, else from the archive; without an archive the newest in the cache. */
function kernelPackages() {
  const cache = cacheDirectory();
  const files = readdirSync(cache)
    .filter((name) => /^linux-(image|modules)-.*\.deb$/.test(name))
    .sort((a, b) => statSync(join(cache, b)).mtimeMs - statSync(join(cache, a)).mtimeMs);
  const cached = kernelOfCache(files)?.map((file) => join(cache, file));
  let wanted;
  try {
    wanted = currentKernelPackages((args) => run('apt-cache', args));
  } catch (error) {
    if (cached) return cached;
    throw error instanceof NoKernel ? new BuildError(error.message) : error;
  }
  try {
    return wanted.map(({ name, file }) => (files.includes(file) ? join(cache, file) : download(name, cache, file)));
  } catch (error) {
    if (!cached) throw error;
    process.stderr.write(`the kernel ${wanted[0].name} cannot be had now: taking ${basename(cached[0])}\n`);
    return cached;
  }
}

function download(name, cache, wanted) {
  const path = join(cache, wanted);
  const work = mkdtempSync(join(cache, '.download-'));
  try {
    // Who is root is asked to give the right to write here to somebody else; there is no need.
    run('apt-get', ['download', '-q', '-o', 'APT::Sandbox::User=root', name], { cwd: work });
    const [file] = readdirSync(work);
    if (!file) throw new BuildError(`apt-get download ${name} left nothing`);
    renameSync(join(work, file), path);
    return path;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

/** What the guest is made of, but for the kernel: a newer one is no reason to build again. */
function stampOf() {
  const digest = createHash('sha256');
  const scripts = readdirSync(here)
    .filter((name) => name.endsWith('.mjs'))
    .sort()
    .map((name) => join(here, name));
  for (const file of [...scripts, ...sources()]) digest.update(readFileSync(file));
  return digest.digest('hex');
}

/** In one step, so that nobody starts half a guest. */
function put(out, name, bytes) {
  const temporary = join(out, `.${name}.${process.pid}`);
  writeFileSync(temporary, bytes);
  renameSync(temporary, join(out, name));
}

function modulesOf(work) {
  try {
    return modulesInOrder(modulesBelow(work), MODULES.split(' '));
  } catch (error) {
    throw new BuildError(error.message);
  }
}

function build(out) {
  const stamp = stampOf();
  const isDone = ['vmlinux', 'initramfs'].every((name) => existsSync(join(out, name)));
  if (isDone && existsSync(join(out, 'stamp')) && readFileSync(join(out, 'stamp'), 'utf8') === stamp) return;
  const packages = kernelPackages();
  mkdirSync(out, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'godwit-linux-guest-'));
  try {
    for (const each of packages) run('dpkg-deb', ['-x', each, work]);
    const program = join(work, 'init');
    const files = sources().filter((file) => file.endsWith('.c'));
    run('gcc', [...COMPILER_OPTIONS, '-I', join(here, '..', 'common'), '-o', program, ...files]);
    const image = readdirSync(join(work, 'boot')).find((name) => name.startsWith('vmlinuz-'));
    if (!image) throw new BuildError(`${basename(packages[0])} holds no kernel`);
    const modules = modulesOf(work);
    put(out, 'vmlinux', vmlinuxOf(readFileSync(join(work, 'boot', image))));
    put(out, 'initramfs', initramfs(readFileSync(program), modules));
    put(out, 'stamp', stamp);
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const { values } = parseArgs({
  options: { out: { type: 'string', default: join(here, '..', '..', 'dist', 'guest', 'linux') } },
});
try {
  build(values.out);
  process.stdout.write(`${values.out}\n`);
} catch (error) {
  if (!(error instanceof BuildError)) throw error;
  process.stderr.write(`the Linux guest cannot be built: ${error.message}\n`);
  process.exitCode = 1;
}
