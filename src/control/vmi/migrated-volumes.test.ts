import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { guestOf, podOf } from './guests.fixture.ts';
import { migratedVolumesOf, volumesChange } from './migrated-volumes.ts';

const volumesOn = (claimName: string) => [{ name: 'data', persistentVolumeClaim: { claimName } }];
const claimOf = (name: string): PersistentVolumeClaim | undefined =>
  name === 'old' ? { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name } } : undefined;

function volumes(wanted: string, found: string | undefined, status: VirtualMachineInstanceStatus = {}) {
  const pod = podOf({ phase: 'Running' }, 'node-a');
  const launcher = found === undefined ? undefined : { ...pod, spec: { ...pod.spec, volumes: volumesOn(found) } };
  return migratedVolumesOf(guestOf({ volumes: volumesOn(wanted) }, { phase: 'Running', ...status }), launcher, claimOf);
}

describe('volumes that are to be on other claims', () => {
  const pending = [
    {
      volumeName: 'data',
      sourcePVCInfo: { claimName: 'old', volumeMode: 'Filesystem' },
      destinationPVCInfo: { claimName: 'new' },
    },
  ];

  it('are those that the pod has on another one', () => {
    expect(volumes('new', 'old')).toMatchObject(pending);
    expect(volumesChange(volumes('new', 'old'))).toMatchObject({
      status: 'True',
      message: 'to be copied to other claims: data',
    });
  });

  it('are none once the guest is in a pod that has them, or the change was taken back', () => {
    expect(volumes('new', 'new', { migratedVolumes: pending as never })).toBeUndefined();
    expect(volumes('old', 'old', { migratedVolumes: pending as never })).toBeUndefined();
    expect(volumesChange(undefined)).toBeUndefined();
  });

  it('stay said where the pod is not known, or the guest does not run', () => {
    expect(volumes('new', undefined, { migratedVolumes: pending as never })).toBe(pending);
    expect(volumes('new', 'new', { phase: 'Failed', migratedVolumes: pending as never })).toBe(pending);
  });
});
