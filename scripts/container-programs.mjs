// What runs containers for kubelets: containerd, runc and plug-ins for pods' networks, as Debian has them, kept in the user's cache.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unpackPackages } from './debian-packages.mjs';
import { cacheHome } from './go-programs.mjs';

const PACKAGES = ['containerd', 'runc', 'containernetworking-plugins'];
/** One of each, by which they are known to be there. */
const PROGRAMS = ['usr/bin/containerd', 'usr/sbin/runc', 'usr/lib/cni/bridge'];

function fail(reason) {
  console.error(`godwit: there can be no kubelets here: ${reason}`);
  process.exit(1);
}

/** One directory for each release of the distribution, whose libraries they need. */
function programsDirectory() {
  const release = readFileSync('/etc/os-release', 'utf8');
  const valueOf = (name) => new RegExp(`^${name}="?([^"\\n]*)"?$`, 'm').exec(release)?.[1] ?? 'unknown';
  return join(cacheHome(), 'godwit', 'containers', `${valueOf('ID')}-${valueOf('VERSION_ID')}`);
}

/** Sees to it that all of it is there, and answers the directory below which it is. Ends the process where it cannot be. */
export function ensureContainers() {
  const directory = programsDirectory();
  if (PROGRAMS.every((name) => existsSync(join(directory, name)))) return directory;
  mkdirSync(dirname(directory), { recursive: true });
  const unfinished = `${directory}.unfinished`;
  unpackPackages(PACKAGES, unfinished, fail);
  for (const name of PROGRAMS) if (!existsSync(join(unfinished, name))) fail(`${PACKAGES.join(', ')} have no ${name}`);
  rmSync(directory, { recursive: true, force: true });
  renameSync(unfinished, directory);
  return directory;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log(ensureContainers());
