import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';
import { wantedInterfaces } from './guest-interfaces.ts';

type InterfaceStatus = NonNullable<VirtualMachineInstanceStatus['interfaces']>[number];

/** What is said of the interfaces of a guest that runs in such a machine: where those who want to reach it find it. */
export function interfaceStatuses(guest: VirtualMachineInstance, { networks = [] }: MachineSpec): InterfaceStatus[] {
  return wantedInterfaces(guest).flatMap(({ name, mac, connection }, index) => {
    const backend = networks[index]?.backend;
    if (!backend) return [];
    const common: InterfaceStatus = { name, mac, infoSource: 'domain', queueCount: 1, linkState: 'up' };
    if (backend.kind === 'tap') return [{ ...common, podInterfaceName: backend.interfaceName }];
    const [first] = backend.forwards;
    if (!first || connection.kind !== 'user') return [common];
    const forwardedPorts = backend.forwards.map(({ protocol, guestPort, hostAddress, hostPort }, position) => {
      const portName = connection.ports[position]?.name;
      const named = portName ? { name: portName } : {};
      return { ...named, port: guestPort, protocol: protocol.toUpperCase(), hostAddress, hostPort };
    });
    return [{ ...common, ipAddress: first.hostAddress, ipAddresses: [first.hostAddress], forwardedPorts }];
  });
}
