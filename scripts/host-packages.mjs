// What the nodes of this machine need from its distribution. Plain JavaScript: it runs before anything is built.
import { spawnSync } from 'node:child_process';

/** A command, and the package that brings it on Debian and Ubuntu. */
const NEEDED = [
  ['qemu-system-x86_64', 'qemu-system-x86'],
  // Of which the small Linux guest is built.
  ['gcc', 'gcc libc6-dev'],
  ['ld', 'binutils'],
];
const INSTALL = 'apt-get install -y --no-install-recommends';
const QUIET = '-qq -o DPkg::Lock::Timeout=120';

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' }).status === 0;
const missing = () => NEEDED.filter(([command]) => !has(command)).map(([, name]) => name);
const isRoot = process.getuid?.() === 0;
const prefix = isRoot ? '' : 'sudo ';

/** Whether packages can be installed: as root, or through sudo, which may ask for a password where somebody can type it. */
function mayInstall() {
  if (!has('apt-get')) return false;
  if (isRoot) return true;
  if (!has('sudo')) return false;
  return process.stdin.isTTY === true || spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0;
}

function shell(script) {
  // sudo asks for a password on the terminal itself.
  spawnSync('sh', ['-c', script], {
    stdio: ['inherit', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
}

/** Installs what is missing, or says the one command that does. Returns whether all is there. */
export function ensureHostPackages() {
  const packages = missing();
  if (packages.length === 0) return true;
  const command = `${prefix}${INSTALL} ${packages.join(' ')}`;
  if (mayInstall()) {
    console.error(`godwit: installing ${packages.join(', ')} (${command})`);
    shell(`${prefix}apt-get update ${QUIET} && ${prefix}${INSTALL} ${QUIET} ${packages.join(' ')}`);
  }
  if (missing().length === 0) return true;
  console.error(
    `godwit: nodes need ${missing().join(', ')}: run '${command}' and start again, or start without nodes: npm start -- --nodes 0`,
  );
  return false;
}

/** Sees to it that the distribution's lists of packages are there, where the guest's kernel is looked up. */
export function ensurePackageLists() {
  const [[, known]] = NEEDED;
  if (spawnSync('apt-cache', ['show', known], { stdio: 'ignore' }).status === 0 || !mayInstall()) return;
  console.error(`godwit: getting the lists of packages (${prefix}apt-get update)`);
  shell(`${prefix}apt-get update ${QUIET}`);
}
