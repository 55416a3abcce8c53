import { createHash } from 'node:crypto';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Clock, HostPorts } from '../../env/ports.ts';
import { MachineSpecError, type PortForward } from '../../hypervisor/machine.ts';
import type { WantedPort } from './guest-interfaces.ts';

/**
 * Where the ports of guests can be reached. Each port that a guest lists gets a port of the node, from the range that
 * Kubernetes gives to services on nodes and that systems do not use for outgoing connections. A guest of the same name
 * gets the same ports again where they are free: a hash says where to begin to look.
 */

export const FORWARDED_PORTS = { first: 30_000, last: 32_767 };
const PORT_COUNT = FORWARDED_PORTS.last - FORWARDED_PORTS.first + 1;
/** For so long a port is not given to another guest, until the machine is sure to listen there. */
const KEPT_MS = 120_000;

export interface PortForwardsOptions {
  readonly clock: Clock;
  readonly ports: HostPorts;
  /** The node's, at which the ports are; of IPv4. */
  readonly address: string;
}

export class PortForwards {
  readonly #options: PortForwardsOptions;
  /** Until when, by protocol and port. */
  readonly #kept = new Map<string, number>();

  constructor(options: PortForwardsOptions) {
    this.#options = options;
  }

  /** Finds a port of the node for each port of a guest. Throws a MachineSpecError where none is left. */
  async forwardsFor(guest: VirtualMachineInstance, wanted: readonly WantedPort[]): Promise<readonly PortForward[]> {
    const forwards: PortForward[] = [];
    for (const { protocol, port } of wanted) {
      const hostPort = await this.#freePort(guest, protocol, port);
      forwards.push({ protocol, hostAddress: this.#options.address, hostPort, guestPort: port });
    }
    return forwards;
  }

  async #freePort(guest: VirtualMachineInstance, protocol: 'tcp' | 'udp', guestPort: number): Promise<number> {
    const { clock, ports, address } = this.#options;
    const { namespace = '', name = '' } = guest.metadata;
    const start = createHash('sha256')
      .update([namespace, name, protocol, guestPort].join('\0'))
      .digest()
      .readUInt32BE();
    for (let offset = 0; offset < PORT_COUNT; offset++) {
      const port = FORWARDED_PORTS.first + ((start + offset) % PORT_COUNT);
      const key = `${protocol} ${port}`;
      if ((this.#kept.get(key) ?? 0) > clock.now()) continue;
      // Before anything is waited for: another guest may be looking at the same time.
      this.#kept.set(key, clock.now() + KEPT_MS);
      if (await ports.isFree(protocol, address, port)) return port;
    }
    throw new MachineSpecError(`no port of the node is left for port ${guestPort} of the guest`);
  }
}
