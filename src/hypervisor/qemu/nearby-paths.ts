import { relative } from 'node:path';
import type { MachineSpec } from '../machine.ts';

/**
 * The same machine with its files named as seen from the directory that QEMU starts in. Whoever runs QEMU need not be able
 * to get through the directories above both: a cluster in the home of root works like any other. Files that have nothing
 * above them in common with that directory keep their names.
 */
export function withNearbyPaths(spec: MachineSpec, directory: string): MachineSpec {
  const near = (path: string): string => nearbyPath(path, directory);
  const { disks, cdroms, kernel } = spec;
  return {
    ...spec,
    ...(disks ? { disks: disks.map((disk) => ({ ...disk, path: near(disk.path) })) } : {}),
    ...(cdroms ? { cdroms: cdroms.map((cdrom) => ({ ...cdrom, path: near(cdrom.path) })) } : {}),
    ...(kernel
      ? {
          kernel: {
            ...kernel,
            path: near(kernel.path),
            ...(kernel.initrdPath === undefined ? {} : { initrdPath: near(kernel.initrdPath) }),
          },
        }
      : {}),
  };
}

/** A path as seen from the directory that QEMU starts in, where they have something above them in common. */
export function nearbyPath(path: string, directory: string): string {
  return topOf(path) === topOf(directory) ? relative(directory, path) : path;
}

function topOf(path: string): string | undefined {
  return path.split('/')[1];
}
