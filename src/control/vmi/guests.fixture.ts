import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import type { LauncherPod } from '../resources.ts';

/** A guest, as small as one can be. */
export function guestOf(
  spec: Partial<VirtualMachineInstanceSpec> = {},
  status: VirtualMachineInstanceStatus = {},
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'web', namespace: 'shop', uid: 'guest-1' },
    spec: { domain: { devices: {}, memory: { guest: '128Mi' } }, ...spec },
    status,
  };
}

/** A launcher pod of it. */
export function podOf(status: LauncherPod['status'] = {}, nodeName?: string): LauncherPod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'virt-launcher-web-x', namespace: 'shop', uid: 'pod-1' },
    spec: { containers: [{ name: 'compute', image: 'launcher:1' }], ...(nodeName ? { nodeName } : {}) },
    status,
  };
}
