// Makes the image of all components without Docker: an OCI archive of Debian's packages, as this machine's apt has them, this
// machine's Node, and this package with what it depends on. Packages are unpacked, never installed: nothing of them is
// run. Made again from the same packages it is the same, byte by byte.
import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, relative, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { digestOf, layerOf, ociArchive } from './oci-archive.mjs';
import { root, run } from './setup.mjs';

/** The Containerfile has the same. */
const PACKAGES = ['base-files', 'dash', 'coreutils', 'iproute2', 'libstdc++6', 'qemu-system-x86', 'tzdata'];
/** Where Debian has one directory under two names. */
const MERGED = ['bin', 'sbin', 'lib', 'lib64'];
const HOME = 'usr/lib/godwit';

const { values: options, positionals } = parseArgs({ allowPositionals: true, options: { name: { type: 'string' } } });
const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const [output = `godwit-v${version}.tar`] = positionals;
const name = options.name ?? `godwit/godwit:v${version}`;

process.umask(0o022);
const work = mkdtempSync(join(tmpdir(), 'godwit-image-'));
try {
  run(process.execPath, [join(root, 'scripts', 'setup.mjs')]);
  const layers = [systemLayer(join(work, 'system')), packageLayer(join(work, 'package'))];
  const config = {
    Env: ['PATH=/usr/sbin:/usr/bin', 'NODE_ENV=production'],
    Cmd: ['godwit', '--help'],
    WorkingDir: '/',
  };
  const archive = ociArchive(join(work, 'image'), { name, layers, config, createdBy: 'scripts/image.mjs' });
  writeFileSync(resolve(output), archive);
  console.log(`${output}: ${name}, sha256:${digestOf(archive)}`);
} finally {
  rmSync(work, { recursive: true, force: true });
}

function directory(...parts) {
  const path = join(...parts);
  mkdirSync(path, { recursive: true });
  return path;
}

/** Debian, with Node. */
function systemLayer(place) {
  const archives = directory(work, 'debs');
  directory(archives, 'partial');
  const status = join(work, 'status');
  writeFileSync(status, '');
  const settings = {
    'Dir::State::status': status,
    'Dir::Cache::archives': `${archives}/`,
    'Debug::NoLocking': 'true',
    'APT::Sandbox::User': '',
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  // As if nothing were installed here: apt then fetches all that they depend on.
  run('apt-get', ['-qq', '-y', '--no-install-recommends', '--download-only', ...flags, 'install', ...PACKAGES]);
  directory(place, 'usr');
  for (const each of MERGED) {
    directory(place, 'usr', each);
    symlinkSync(`usr/${each}`, join(place, each));
  }
  const files = readdirSync(archives).filter((file) => file.endsWith('.deb'));
  for (const file of files.toSorted()) {
    const contents = execFileSync('dpkg-deb', ['--fsys-tarfile', join(archives, file)], { maxBuffer: 2 ** 31 });
    execFileSync('tar', ['-xp', '--keep-directory-symlink', '--no-same-owner', '-C', place], { input: contents });
  }
  for (const unused of ['usr/share/doc', 'usr/share/man', 'usr/share/locale', 'usr/share/info', 'usr/share/lintian'])
    rmSync(join(place, unused), { recursive: true, force: true });
  rmSync(join(place, 'usr/bin/sh'), { force: true });
  symlinkSync('dash', join(place, 'usr/bin/sh'));
  writeFileSync(
    join(place, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  );
  writeFileSync(join(place, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n');
  // Who has which packages can say which holes they have.
  writeFileSync(join(place, 'etc/godwit-packages'), `${files.toSorted().join('\n')}\n`);
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
