import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { LauncherPod } from '../resources.ts';
import { guestOf as plainGuest, machineOf } from './machines.fixture.ts';
import { uncopiedMessage, uncopiedVolumes, volumeUpdateState } from './volume-migration.ts';

const volumesOn = (claimName: string) => [{ name: 'data', persistentVolumeClaim: { claimName } }];
const change = (source: string, destination: string) => [{ volumeName: 'data', source, destination }];

/** A machine whose template names a claim, and which remembers that its data is on another one. */
function machineOn(claimName: string, remembered?: string, strategy: 'Migration' | 'Replacement' = 'Migration') {
  const template = { spec: { domain: { devices: {} }, volumes: volumesOn(claimName) } };
  const state = remembered === undefined ? undefined : volumeUpdateState(change(remembered, claimName));
  const spec: Partial<VirtualMachine['spec']> = { template, updateVolumesStrategy: strategy };
  return machineOf(spec, state ? { volumeUpdateState: state } : {});
}

function guestOn(claimName: string, migrationState?: MigrationState): VirtualMachineInstance {
  const guest = plainGuest('Running', migrationState ? { status: { migrationState } } : {});
  return { ...guest, spec: { ...guest.spec, volumes: volumesOn(claimName) } };
}

const podOn = (claimName: string): LauncherPod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {},
  spec: { volumes: [{ name: 'ephemeral-disks' }, ...volumesOn(claimName)] },
});

const MOVED: MigrationState = {
  completed: true,
  migratedVolumes: [{ volumeName: 'data', sourceClaim: 'old', targetClaim: 'new' }],
};

const AHEAD: MigrationState = { ...MOVED, completed: false, mode: 'PostCopy', targetNodeDomainDetected: true };

describe('volumes that are not copied yet', () => {
  it.each<readonly [string, readonly object[], Parameters<typeof uncopiedVolumes>]>([
    ['none where all is as it was', [], [machineOn('old'), guestOn('old'), podOn('old')]],
    ['those that the guest has not heard of', change('old', 'new'), [machineOn('new'), guestOn('old'), podOn('old')]],
    ['those that the guest has heard of', change('old', 'new'), [machineOn('new'), guestOn('new'), podOn('old')]],
    ['none once the guest is in a pod that has them', [], [machineOn('new', 'old'), guestOn('new'), podOn('new')]],
    ['none where the change was taken back', [], [machineOn('old', 'old'), guestOn('new'), podOn('old')]],
    ['those of a guest in no pod', change('old', 'new'), [machineOn('new', 'old'), guestOn('new'), undefined]],
    ['those of a guest that nobody has looked at', change('old', 'new'), [machineOn('new'), guestOn('old'), undefined]],
    ['none of a guest that has arrived', [], [machineOn('new', 'old'), guestOn('new', MOVED), undefined]],
    [
      'none of a guest that was lost there before its memory came',
      [],
      [machineOn('new', 'old'), guestOn('new', AHEAD), undefined],
    ],
    [
      'those of a guest whose memory follows where it does not run yet',
      change('old', 'new'),
      [machineOn('new', 'old'), guestOn('new', { ...AHEAD, targetNodeDomainDetected: false }), undefined],
    ],
    [
      'those of a guest that has not arrived',
      change('old', 'new'),
      [machineOn('new', 'old'), guestOn('new', { ...MOVED, failed: true }), undefined],
    ],
    ['those of a guest that is gone', change('old', 'new'), [machineOn('new', 'old'), undefined, undefined]],
    ['none where a machine that does not run is given others', [], [machineOn('new'), undefined, undefined]],
    ['none where volumes may be replaced', [], [machineOn('new', 'old', 'Replacement'), guestOn('new'), undefined]],
  ])('are %s', (_what, expected, facts) => {
    expect(uncopiedVolumes(...facts)).toEqual(expected);
  });

  it('are remembered, and named with what can be done', () => {
    expect(volumeUpdateState([])).toBeUndefined();
    expect(uncopiedMessage([{ volumeName: 'data', source: 'old', destination: 'new' }])).toMatch(
      /data \(old to new\); name the claims that have their contents/,
    );
  });
});
