import type { VirtualMachine, VirtualMachineStatus } from '../../api/kubevirt/virtual-machine.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstancePhase,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';

/** A machine, as small as one can be. */
export function machineOf(spec: Partial<VirtualMachine['spec']>, status: VirtualMachineStatus = {}): VirtualMachine {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name: 'web', namespace: 'shop', uid: 'machine-1', generation: 3 },
    spec: { template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } }, ...spec },
    status,
  };
}

/** Its guest. */
export function guestOf(
  phase: VirtualMachineInstancePhase,
  more: { readonly isGoing?: boolean; readonly status?: VirtualMachineInstanceStatus } = {},
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: {
      name: 'web',
      namespace: 'shop',
      uid: 'guest-1',
      ...(more.isGoing ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {}),
    },
    spec: { domain: { devices: {} } },
    status: { phase, ...more.status },
  };
}
