import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';
import { wantedInterfaces } from './guest-interfaces.ts';

type Told = Pick<VirtualMachineInstanceStatus, 'machine' | 'currentCPUTopology' | 'memory' | 'interfaces'>;
type InterfaceStatus = NonNullable<VirtualMachineInstanceStatus['interfaces']>[number];

/**
 * What a guest's status says of the machine that it was started with. It is written once, when the guest runs: the type
 * of the machine holds for as long as it does, wherever it moves.
 */
export function machineStatus(guest: VirtualMachineInstance, spec: MachineSpec): Told {
  const { sockets, cores, threads } = spec.cpu;
  const memory = guest.spec.domain.memory?.guest;
  const interfaces = interfaceStatuses(guest, spec);
  return {
    machine: { type: spec.machineType },
    currentCPUTopology: { sockets, cores, threads },
    ...(memory === undefined ? {} : { memory: { guestAtBoot: memory, guestCurrent: memory, guestRequested: memory } }),
    ...(interfaces.length > 0 ? { interfaces } : {}),
  };
}

/** Where those who want to reach the guest find it. */
function interfaceStatuses(guest: VirtualMachineInstance, { networks = [] }: MachineSpec): InterfaceStatus[] {
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
