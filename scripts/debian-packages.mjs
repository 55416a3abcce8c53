// Debian's packages as files: taken apart and never installed, so that nothing of them is run or started, nor found by others.
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Where Debian has one directory under two names. */
const MERGED = ['bin', 'sbin', 'lib', 'lib64'];
/** What nobody reads in a container. */
const UNREAD = ['doc', 'man', 'locale', 'info', 'lintian'];
/** What dpkg knows where nothing is installed. */
const NOTHING = '/dev/null';
const RESOLVE = ['-qq', '-y', '--no-install-recommends', '--reinstall', '--download-only'];

/** Fails with what the command said, where it fails. */
const run = (command, args, options) => execFileSync(command, args, { stdio: 'pipe', maxBuffer: 2 ** 31, ...options });

/** Gets packages into a directory. */
const getAlone = (packages, archives) => run('apt-get', ['download', '-qq', ...packages], { cwd: archives });

/** Gets packages and what they depend on into a directory, apart from what is installed, here or by dpkg's `status`. */
function getWhole(packages, archives, status) {
  mkdirSync(join(archives, 'partial'));
  const settings = {
    ...(status === undefined ? {} : { 'Dir::State::status': status }),
    'Dir::Cache::archives': `${archives}/`,
    'Debug::NoLocking': 'true',
    'APT::Sandbox::User': '',
  };
  const flags = Object.entries(settings).flatMap(([key, value]) => ['-o', `${key}=${value}`]);
  run('apt-get', [...RESOLVE, ...flags, 'install', ...packages]);
}

/** Has packages put into a directory, and gives each to `unpack`. Answers their names. */
function eachPackage(get, unpack) {
  const archives = mkdtempSync(join(tmpdir(), 'godwit-packages-'));
  try {
    get(archives);
    const names = readdirSync(archives).filter((name) => name.endsWith('.deb'));
    for (const name of names.toSorted()) unpack(join(archives, name));
    return names.toSorted();
  } finally {
    rmSync(archives, { recursive: true });
  }
}

/**
 * Puts all files of packages below a directory; `withMissing` also those of packages that they depend on and this machine lacks. `fail`
 * ends the process, with the reason.
 */
export function unpackPackages(packages, directory, fail, { withMissing = false } = {}) {
  console.log(`== getting ${packages.join(', ')} from Debian`);
  const get = withMissing ? getWhole : getAlone;
  try {
    eachPackage(
      (archives) => get(packages, archives),
      (archive) => run('dpkg-deb', ['-x', archive, directory]),
    );
  } catch (error) {
    fail(error.message.slice(-2000));
  }
}

/** Makes the root of a system, of packages and all that they depend on; dash has to be among them. Answers the names of all. */
export function makeRoot(place, packages) {
  for (const each of MERGED) {
    mkdirSync(join(place, 'usr', each), { recursive: true });
    symlinkSync(`usr/${each}`, join(place, each));
  }
  const names = eachPackage(
    (archives) => getWhole(packages, archives, NOTHING),
    (archive) => {
      const input = run('dpkg-deb', ['--fsys-tarfile', archive]);
      run('tar', ['-xp', '--keep-directory-symlink', '--no-same-owner', '-C', place], { input });
    },
  );
  for (const unread of UNREAD) rmSync(join(place, 'usr/share', unread), { recursive: true, force: true });
  rmSync(join(place, 'usr/bin/sh'), { force: true });
  symlinkSync('dash', join(place, 'usr/bin/sh'));
  writeFileSync(
    join(place, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n',
  );
  writeFileSync(join(place, 'etc/group'), 'root:x:0:\nnogroup:x:65534:\n');
  return names;
}
