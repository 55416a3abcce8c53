// Makes the image of all components without Docker: an OCI archive of Debian's packages, as this machine's apt has them, this
// machine's Node, and this package with what it depends on. Made again from the same packages it is the same, byte by byte.
// `--directory` leaves the files of the image there instead, which is what the Containerfile does with them.
import { execFileSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { makeRoot } from './debian-packages.mjs';
import { digestOf, layerOf, ociArchive, usualName } from './oci-archive.mjs';
import { root, run } from './setup.mjs';

const PACKAGES = ['base-files', 'dash', 'coreutils', 'iproute2', 'libstdc++6', 'qemu-system-x86', 'tzdata'];
const HOME = 'usr/lib/godwit';
/** The Containerfile has the same. */
const CONFIG = {
  Env: ['PATH=/usr/sbin:/usr/bin', 'NODE_ENV=production'],
  Cmd: ['godwit', '--help'],
  WorkingDir: '/',
};

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: { name: { type: 'string' }, directory: { type: 'string' } },
});
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const [output = `godwit-v${version}.tar`] = positionals;
const name = options.name ?? usualName(version);

process.umask(0o022);
const work = mkdtempSync(join(tmpdir(), 'godwit-image-'));
try {
  run(process.execPath, [join(root, 'scripts', 'setup.mjs')]);
  const layers = [systemLayer(join(work, 'system')), packageLayer(join(work, 'package'))];
  if (options.directory === undefined) pack(layers);
  else unpack(layers, directory(options.directory));
} finally {
  rmSync(work, { recursive: true, force: true });
}

function directory(...parts) {
  const path = join(...parts);
  mkdirSync(path, { recursive: true });
  return path;
}

function pack(layers) {
  const archive = ociArchive(join(work, 'image'), { name, layers, config: CONFIG, createdBy: 'scripts/image.mjs' });
  writeFileSync(resolve(output), archive);
  console.log(`${output}: ${name}, sha256:${digestOf(archive)}`);
}

/** Through the layers, whose times, modes and owners are the same whoever made them, and when. */
function unpack(layers, place) {
  for (const { contents } of layers) execFileSync('tar', ['-xzp', '-C', place], { input: contents });
}

/** Debian, with Node. */
function systemLayer(place) {
  const packages = makeRoot(place, PACKAGES);
  // Who has which packages can say which holes they have.
  writeFileSync(join(place, 'etc/godwit-packages'), `${packages.join('\n')}\n`);
  cpSync(process.execPath, join(place, 'usr/bin/node'));
  chmodSync(join(place, 'usr/bin/node'), 0o755);
  return layerOf(place);
}

/** This package, and what of its dependencies is there at run time. */
function packageLayer(place) {
  const home = directory(place, HOME);
  const { files } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  for (const each of ['package.json', ...files]) cpSync(join(root, each), join(home, each), { recursive: true });
  const listed = execFileSync('npm', ['ls', '--omit=dev', '--all', '--parseable'], { cwd: root, encoding: 'utf8' });
  for (const path of listed
    .trim()
    .split('\n')
    .filter((each) => resolve(each) !== resolve(root))
    .toSorted()) {
    const target = join(home, relative(root, path));
    // What is nested in a dependency is listed by itself, if it is one at run time.
    cpSync(path, target, {
      recursive: true,
      filter: (from) => !relative(path, from).split('/').includes('node_modules'),
    });
  }
  directory(place, 'usr/bin');
  for (const command of ['godwit', 'kubectl-godwit'])
    symlinkSync(`../lib/${relative('usr/lib', HOME)}/dist/cli/main.js`, join(place, 'usr/bin', command));
  // Whatever the umask was of whoever built it.
  return layerOf(place, ['--mode=u=rwX,go=rX']);
}
