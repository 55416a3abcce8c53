// What runs containers for kubelets, and what builds images of a Containerfile, as Debian has them, kept in the user's cache.
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { unpackPackages } from './debian-packages.mjs';
import { cacheHome } from './go-programs.mjs';

/** One directory for each release of the distribution, whose libraries they need. */
function programsDirectory(name) {
  const release = readFileSync('/etc/os-release', 'utf8');
  const valueOf = (key) => new RegExp(`^${key}="?([^"\\n]*)"?$`, 'm').exec(release)?.[1] ?? 'unknown';
  return join(cacheHome(), 'godwit', name, `${valueOf('ID')}-${valueOf('VERSION_ID')}`);
}

/** Sees to it that all of it is there, and answers the directory below which it is. Ends the process where it cannot be. */
function ensurePrograms({ name, packages, programs, without, withMissing }) {
  const fail = (reason) => {
    console.error(`godwit: ${without}: ${reason}`);
    process.exit(1);
  };
  const directory = programsDirectory(name);
  if (programs.every((program) => existsSync(join(directory, program)))) return directory;
  mkdirSync(dirname(directory), { recursive: true });
  const unfinished = `${directory}.unfinished`;
  unpackPackages(packages, unfinished, fail, { withMissing });
  for (const program of programs)
    if (!existsSync(join(unfinished, program))) fail(`${packages.join(', ')} have no ${program}`);
  rmSync(directory, { recursive: true, force: true });
  renameSync(unfinished, directory);
  return directory;
}

/** containerd, runc and plug-ins for pods' networks. */
export const ensureContainers = () =>
  ensurePrograms({
    name: 'containers',
    packages: ['containerd', 'runc', 'containernetworking-plugins'],
    programs: ['usr/bin/containerd', 'usr/sbin/runc', 'usr/lib/cni/bridge'],
    without: 'there can be no kubelets here',
  });

/** buildah, with libraries that few machines have, apart from what kubelets find on their PATH. */
export const ensureBuildah = () =>
  ensurePrograms({
    name: 'buildah',
    packages: ['buildah', 'runc'],
    programs: ['usr/bin/buildah', 'usr/sbin/runc'],
    without: 'no Containerfile can be built here',
    withMissing: true,
  });

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log([ensureContainers(), ensureBuildah()].join('\n'));
