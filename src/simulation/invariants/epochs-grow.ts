import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { VMIS, VMS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';

/** The epoch of a right to run never decreases, neither in a guest's record nor in what its machine remembers. */
export function epochsGrow(): Invariant {
  const epochs = new Map<string, number>();
  return {
    name: 'epochs-grow',
    observe({ bucket, key, object }) {
      if ((bucket !== VMIS && bucket !== VMS) || !object) return undefined;
      const { uid = '' } = object.metadata;
      const epoch = (object as VirtualMachineInstance | VirtualMachine).status?.rightToRun?.epoch ?? 0;
      const before = epochs.get(uid) ?? 0;
      epochs.set(uid, epoch);
      return epoch < before ? `the epoch of ${bucket} ${key} went back from ${before} to ${epoch}` : undefined;
    },
  };
}
