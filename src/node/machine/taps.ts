import { createHash } from 'node:crypto';
import { errorMessage } from '../../api/error-message.ts';
import type { Clock, DiskFiles, Processes, UserIdentity } from '../../env/ports.ts';
import { MachineSpecError } from '../../hypervisor/machine.ts';

/**
 * Tap devices, by which guests are on bridges of the node. They are made for the user that QEMU runs as, and go once
 * nobody has them open any more: the next guest that needs one takes away what others have left behind.
 */

export interface TapsOptions {
  readonly clock: Clock;
  readonly processes: Pick<Processes, 'isRoot' | 'run'>;
  readonly files: Pick<DiskFiles, 'describe'>;
  readonly nodeName: string;
  /** The bridges that guests may be put on. */
  readonly bridges: readonly string[];
  readonly user: UserIdentity | undefined;
}

/** For so long a device is not taken for left behind: its machine is about to start. */
const KEPT_MS = 120_000;

const TUNNEL = '/dev/net/tun';
/** Reading and writing, for others than the owner. */
const EVERYBODY = 0o006;

interface Link {
  readonly ifname?: string;
  readonly operstate?: string;
}

export class Taps {
  readonly #options: TapsOptions;
  /** Until when, by name. */
  readonly #kept = new Map<string, number>();

  constructor(options: TapsOptions) {
    this.#options = options;
  }

  /** Makes a device on a bridge, or finds it made. Throws a MachineSpecError that begins with the field. */
  async connect(guestUID: string, interfaceName: string, bridge: string, field: string): Promise<string> {
    const { bridges, processes, clock } = this.#options;
    const refuse = (message: string): MachineSpecError => new MachineSpecError(`${field}: ${message}`);
    if (!bridges.includes(bridge))
      throw refuse(`guests of this node may not be on a bridge ${bridge}; its agent lists those that they may`);
    if (!processes.isRoot || !(await this.#canOpenTunnel()))
      throw refuse(`a bridge needs an agent that is root, and guests that may open ${TUNNEL}; use masquerade`);
    const name = this.#prefix() + hashOf(guestUID, interfaceName).slice(0, 8);
    this.#kept.set(name, clock.now() + KEPT_MS);
    try {
      const links = await this.#links();
      await this.#removeAbandoned(links);
      await this.#make(name, bridge, links);
    } catch (error) {
      throw refuse(`cannot be connected to ${bridge}: ${errorMessage(error)}`);
    }
    return name;
  }

  async #canOpenTunnel(): Promise<boolean> {
    const tunnel = await this.#options.files.describe(TUNNEL);
    return tunnel !== undefined && (!this.#options.user || (tunnel.mode & EVERYBODY) === EVERYBODY);
  }

  async #make(name: string, bridge: string, links: readonly Link[]): Promise<void> {
    const { processes, user } = this.#options;
    if (!links.some(({ ifname }) => ifname === name)) {
      const owner = user ? ['user', String(user.uid), 'group', String(user.gid)] : [];
      await processes.run('ip', ['tuntap', 'add', 'dev', name, 'mode', 'tap', ...owner]);
    }
    await processes.run('ip', ['link', 'set', 'dev', name, 'master', bridge, 'up']);
  }

  async #removeAbandoned(links: readonly Link[]): Promise<void> {
    const { processes, clock } = this.#options;
    for (const { ifname = '', operstate } of links) {
      const isOurs = ifname.startsWith(this.#prefix());
      if (!isOurs || operstate === 'UP' || (this.#kept.get(ifname) ?? 0) > clock.now()) continue;
      await processes.run('ip', ['tuntap', 'del', 'dev', ifname, 'mode', 'tap']);
      this.#kept.delete(ifname);
    }
  }

  async #links(): Promise<readonly Link[]> {
    return JSON.parse(await this.#options.processes.run('ip', ['-json', 'link', 'show'])) as Link[];
  }

  /** Tells the devices of this node from those of others on the same host. Names have 15 characters at most. */
  #prefix(): string {
    return `gw${hashOf(this.#options.nodeName).slice(0, 4)}-`;
  }
}

function hashOf(...parts: readonly string[]): string {
  return createHash('sha256').update(parts.join('\0')).digest('hex');
}
