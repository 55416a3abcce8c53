// What the nodes of this machine need from its distribution. Plain JavaScript: it runs before anything is built.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';

/** A command, and the package that brings it on Debian and Ubuntu. */
const COMMON = [
  ['qemu-system-x86_64', 'qemu-system-x86'],
  // Of which the small Linux guest is built.
  ['gcc', 'gcc libc6-dev'],
  ['ld', 'binutils'],
];
/** What the modules of their kernels are packed with. */
const UNPACKERS = { ubuntu: ['zstd', 'zstd'], debian: ['xz', 'xz-utils'] };
/** Until then Debian did not pack them. */
const DEBIAN_WITHOUT = 12;

/** What is needed where os-release says this. */
export function neededOn(osRelease) {
  const valueOf = (name) => new RegExp(`^${name}="?([^"\\n]*)"?$`, 'm').exec(osRelease)?.[1] ?? '';
  const like = [valueOf('ID'), ...valueOf('ID_LIKE').split(' ')];
  const family = like.find((id) => Object.hasOwn(UNPACKERS, id));
  const isUnpacked = family === 'debian' && Number.parseInt(valueOf('VERSION_ID'), 10) <= DEBIAN_WITHOUT;
  return family === undefined || isUnpacked ? COMMON : [...COMMON, UNPACKERS[family]];
}

const OS_RELEASE = '/etc/os-release';
const NEEDED = neededOn(existsSync(OS_RELEASE) ? readFileSync(OS_RELEASE, 'utf8') : '');
const INSTALL = 'apt-get install -y --no-install-recommends';
const QUIET = '-qq -o DPkg::Lock::Timeout=120';

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' }).status === 0;
const missing = () => NEEDED.filter(([command]) => !has(command)).map(([, name]) => name);
const isRoot = process.getuid?.() === 0;
const prefix = isRoot ? '' : 'sudo ';
const UPDATE = `${prefix}apt-get update ${QUIET}`;

/** Whether packages can be installed: as root, or through sudo, which may ask for a password where somebody can type it. */
function mayInstall() {
  if (!has('apt-get')) return false;
  if (isRoot) return true;
  if (!has('sudo')) return false;
  return process.stdin.isTTY === true || spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0;
}

/** Returns whether it went well. */
function shell(script) {
  // sudo asks for a password on the terminal itself.
  const { status } = spawnSync('sh', ['-c', script], {
    stdio: ['inherit', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  return status === 0;
}

/** Installs what is missing, or says the one command that does, and what to do then. Returns whether all is there. */
export function ensureHostPackages(then) {
  const packages = missing();
  if (packages.length === 0) return true;
  const command = `${prefix}${INSTALL} ${packages.join(' ')}`;
  if (mayInstall()) {
    console.error(`godwit: installing ${packages.join(', ')} (${command})`);
    // One of the sources may be out of order, and another have all of it.
    if (!shell(UPDATE))
      console.error(`godwit: the lists of packages could not all be got (${UPDATE}): trying with those that there are`);
    shell(`${prefix}${INSTALL} ${QUIET} ${packages.join(' ')}`);
  }
  if (missing().length === 0) return true;
  console.error(`godwit: nodes need ${missing().join(', ')}: run '${command}' and ${then}`);
  return false;
}

/** All that tests and benchmarks with real guests need; ends this process where it is not to be had. */
export function ensureGuestsCanRun() {
  if (!ensureHostPackages('run this again')) process.exit(1);
  const [[, known]] = NEEDED;
  if (spawnSync('apt-cache', ['show', known], { stdio: 'ignore' }).status !== 0) updatePackageLists();
}

/** Gets the distribution's lists of packages, where the guest's kernel is looked up. Returns whether it could try to. */
export function updatePackageLists() {
  if (!mayInstall()) return false;
  console.error(`godwit: getting the lists of packages (${prefix}apt-get update)`);
  shell(UPDATE);
  return true;
}
