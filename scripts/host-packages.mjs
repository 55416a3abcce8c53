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

const has = (command) => spawnSync('sh', ['-c', `command -v ${command}`], { stdio: 'ignore' }).status === 0;
const missing = () => NEEDED.filter(([command]) => !has(command)).map(([, name]) => name);

/** Installs what is missing, or says the one command that does. Returns whether all is there. */
export function ensureHostPackages() {
  const packages = missing();
  if (packages.length === 0) return true;
  const isRoot = process.getuid?.() === 0;
  const prefix = isRoot ? '' : 'sudo ';
  const command = `${prefix}${INSTALL} ${packages.join(' ')}`;
  const mayInstall = has('apt-get') && (isRoot || spawnSync('sudo', ['-n', 'true'], { stdio: 'ignore' }).status === 0);
  if (mayInstall) {
    console.error(`godwit: installing ${packages.join(', ')} (${command})`);
    const quiet = '-qq -o DPkg::Lock::Timeout=120';
    const script = `${prefix}apt-get update ${quiet} && ${prefix}${INSTALL} ${quiet} ${packages.join(' ')}`;
    spawnSync('sh', ['-c', script], { stdio: ['ignore', 'ignore', 'inherit'] });
  }
  if (missing().length === 0) return true;
  console.error(
    `godwit: nodes need ${missing().join(', ')}: run '${command}' and start again, or start without nodes: npm start -- --nodes 0`,
  );
  return false;
}
