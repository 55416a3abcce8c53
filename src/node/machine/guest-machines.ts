import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MachineSpec, NetworkSpec } from '../../hypervisor/machine.ts';
import type { PreparedVolumes } from '../volumes/guest-volumes.ts';
import { wantedInterfaces } from './guest-interfaces.ts';
import { type MachineHost, machineSpec } from './machine-spec.ts';
import type { PortForwards } from './port-forwards.ts';
import type { Taps } from './taps.ts';

export interface GuestMachinesOptions {
  readonly host: MachineHost;
  readonly forwards: PortForwards;
  readonly taps: Taps;
}

/** What the machines of guests are on this node. */
export class GuestMachines {
  readonly #options: GuestMachinesOptions;

  constructor(options: GuestMachinesOptions) {
    this.#options = options;
  }

  /** Connects a guest's interfaces, and describes its machine. Rejects with a MachineSpecError that names the field. */
  async specOf(guest: VirtualMachineInstance, volumes: PreparedVolumes): Promise<MachineSpec> {
    const { host, forwards, taps } = this.#options;
    const networks = new Map<string, NetworkSpec['backend']>();
    for (const { name, connection, field } of wantedInterfaces(guest))
      networks.set(
        name,
        connection.kind === 'user'
          ? { kind: 'user', forwards: await forwards.forwardsFor(guest, connection.ports) }
          : {
              kind: 'tap',
              interfaceName: await taps.connect(guest.metadata.uid ?? '', name, connection.bridge, field),
            },
      );
    return machineSpec(guest, volumes, networks, host);
  }
}
