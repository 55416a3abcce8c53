import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { DiskSpec, MachineSpec } from '../../hypervisor/machine.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { ImageStamps } from '../volumes/image-stamp-files.ts';
import { comingSizes, filledImages, filledVolumes, leftImages, seenImages } from './moved-images.ts';

const runner = (node: string) => ({ node, nodeUID: `uid-${node}`, podUID: `pod-${node}` });
const ATTEMPT: Attempt = {
  epoch: 4,
  source: runner('a'),
  target: runner('b'),
  sourceMigrationUID: 'move',
  targetMigrationUID: 'move',
};
const disk = (volume: string, at: number, claim: string | undefined, more: Partial<DiskSpec> = {}): DiskSpec => ({
  volume,
  place: { bus: 'virtio', at },
  path: `/${claim ?? 'pods/1'}/disk.img`,
  ...(claim === undefined ? {} : { claim: { name: claim, uid: `uid-${claim}` } }),
  format: 'raw',
  cache: 'none',
  ...more,
});
const machine = (...disks: readonly DiskSpec[]): MachineSpec => ({ ...SMALL_MACHINE, disks });
const HERE = machine(
  disk('own', 1, undefined),
  disk('root', 2, 'first'),
  disk('shared', 3, 'shared'),
  disk('golden', 4, 'golden', { isReadOnly: true }),
);
const THERE = machine(
  disk('own', 1, undefined),
  disk('root', 2, 'second'),
  disk('shared', 3, 'shared'),
  disk('golden', 4, 'copper', { isReadOnly: true }),
);
const STATE: MigrationState = {
  migrationUid: 'move',
  sourceNode: 'a',
  sourcePod: 'web-1',
  targetNode: 'b',
  targetPod: 'web-2',
  migratedVolumes: [{ volumeName: 'root', sourceClaim: 'first', targetClaim: 'second' }],
};
const stamps: Pick<ImageStamps, 'look'> = {
  look: async ({ claim }) => ({ stamp: 'blank', isBeside: claim.name !== 'shared' }),
};
const place = (volume: string, claim: string) => ({
  volume,
  claim: { name: claim, uid: `uid-${claim}` },
  path: `/${claim}/disk.img`,
});

describe('images', () => {
  it('stay behind where their volumes are on other claims', () => {
    expect(leftImages(HERE, THERE, ATTEMPT)).toEqual({
      images: [{ ...place('root', 'first'), wentTo: 'claim second on node b' }],
    });
    expect(leftImages(HERE, HERE, ATTEMPT)).toEqual({});
    const across = { ...ATTEMPT, across: { targetEpoch: 9 } };
    expect(leftImages(HERE, machine(disk('root', 2, 'second')), across)).toEqual({
      images: [
        { ...place('root', 'first'), wentTo: 'claim second on node b, in another cluster or namespace' },
        { ...place('shared', 'shared'), wentTo: 'node b, in another cluster or namespace' },
      ],
    });
  });

  it('are filled at the other end, and on record from then on', async () => {
    const recorded = [
      { name: 'root', claimUID: 'uid-first', imageEpoch: 3 },
      { name: 'shared', claimUID: 'uid-shared', imageEpoch: 2 },
    ];
    expect(await filledImages(THERE, stamps, STATE, recorded, ATTEMPT)).toEqual({
      images: [place('root', 'second')],
      volumes: [
        { name: 'root', claimUID: 'uid-second', imageEpoch: 5 },
        { name: 'shared', claimUID: 'uid-shared', imageEpoch: 2 },
      ],
    });
    expect(await filledImages(THERE, stamps, {}, recorded, ATTEMPT)).toEqual({});
  });

  it('are never filled where they are what the guest has', async () => {
    const recorded = [{ name: 'root', claimUID: 'uid-second', imageEpoch: 3 }];
    expect(await filledImages(THERE, stamps, STATE, recorded, ATTEMPT)).toEqual({});
  });

  it('are looked at with what their owners accept', async () => {
    const images = await seenImages(HERE, stamps, new Map([['uid-first', 'stale@4-x']]));
    expect(images).toEqual([
      { ...place('root', 'first'), stamp: 'blank', isBeside: true, accepted: 'stale@4-x' },
      { ...place('shared', 'shared'), stamp: 'blank', isBeside: false, accepted: undefined },
      { ...place('golden', 'golden'), stamp: 'blank', isBeside: true, isReadOnly: true, accepted: undefined },
    ]);
  });

  it('are all filled that a guest brings with it from elsewhere, before it is said to which pod', () => {
    const sourceState = {
      virtualMachineInstanceUID: 'there',
      volumes: [{ name: 'root', sizeBytes: 7, isBlock: false }],
    };
    const spec = { volumes: [{ name: 'root' }, { name: 'init' }] };
    const waiting = { metadata: { uid: 'here' }, spec, status: { migrationState: { sourceState } } };
    const guest = waiting as unknown as VirtualMachineInstance;
    const filled = (of: VirtualMachineInstance): string[] => [
      ...filledVolumes({ self: runner('b'), guest: of, pod: undefined }),
    ];
    expect(filled(guest)).toEqual(['root', 'init']);
    expect([...comingSizes(guest)]).toEqual([['root', 7]]);
    const here = { ...guest, status: { ...guest.status, rightToRun: { epoch: 9, holder: runner('b') } } };
    expect([filled(here), [...comingSizes(here)]]).toEqual([[], []]);
    const source = { ...guest, metadata: { name: 'web', uid: 'there' } };
    expect([filled(source), [...comingSizes(source)]]).toEqual([[], []]);
  });

  it('are filled in a pod that can only be a target, also before anybody has said so', () => {
    const volumes = [{ volumeName: 'root' }];
    const rightToRun = { epoch: 4, holder: runner('a') };
    const guest = { metadata: { name: 'web' }, status: { rightToRun, migratedVolumes: volumes } };
    const filled = (node: string): string[] => {
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: `web-${node}` } };
      return [...filledVolumes({ self: runner(node), guest: guest as unknown as VirtualMachineInstance, pod })];
    };
    expect([filled('a'), filled('b')]).toEqual([[], ['root']]);
  });

  it.each([
    ['b', 'web-2', ['root']],
    ['a', 'web-1', []],
    ['b', 'web-3', []],
  ])('are filled on node %s in pod %s: %j', (node, name, volumes) => {
    const guest = { metadata: { name: 'web' }, status: { migrationState: STATE } } as VirtualMachineInstance;
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name } };
    expect([...filledVolumes({ self: runner(node), guest, pod })]).toEqual(volumes);
  });
});
