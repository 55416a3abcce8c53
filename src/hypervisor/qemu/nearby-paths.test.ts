import { describe, expect, it } from 'vitest';
import { SMALL_MACHINE } from '../machine.fixture.ts';
import { withNearbyPaths } from './nearby-paths.ts';

const place = { bus: 'virtio', at: 4 } as const;

describe('files of a machine', () => {
  it('are named as seen from where QEMU starts, unless they have nothing in common', () => {
    const disk = { place, format: 'raw', cache: 'none' } as const;
    const spec = withNearbyPaths(
      {
        ...SMALL_MACHINE,
        disks: [
          { ...disk, path: '/root/cluster/shared/a/disk.img' },
          { ...disk, path: '/srv/b.img' },
        ],
        cdroms: [{ port: 0, path: '/root/cluster/nodes/n/pods/x/c.iso' }],
        kernel: { path: '/root/cluster/images/k', initrdPath: '/root/cluster/images/i', commandLine: 'a' },
      },
      '/root/cluster/nodes/n/runs/x',
    );
    expect(spec.disks?.map(({ path }) => path)).toEqual(['../../../../shared/a/disk.img', '/srv/b.img']);
    expect(spec.cdroms?.map(({ path }) => path)).toEqual(['../../pods/x/c.iso']);
    expect(spec.kernel).toEqual({
      path: '../../../../images/k',
      initrdPath: '../../../../images/i',
      commandLine: 'a',
    });
  });
});
