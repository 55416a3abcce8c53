import { type DevicePlace, MachineSpecError } from '../../hypervisor/machine.ts';

/**
 * Which place each device of a guest gets. A place follows from the order of the description alone: a guest has the
 * same on the node that it moves to, and what is added at the end of a list moves nothing that was there.
 */

/** A machine, as far as its buses go. */
export type BusFamily = 'pci' | 'mmio';

/** First place, and how many there are. The rest of a PCI bus is left to devices that are not lists. */
const RANGES = {
  pci: { network: [5, 7], virtio: [12, 19] },
  mmio: { network: [5, 3], virtio: [0, 5] },
} as const;
const SATA_PORTS = 6;
/** Free on every kind of PCI machine. Without PCI all places are for disks and networks. */
const AGENT_SLOT = 4;

/** Hands out places in the order in which it is asked. Throws a MachineSpecError once there are no more. */
export class DevicePlaces {
  readonly #family: BusFamily;
  #networks = 0;
  #virtioDisks = 0;
  #sataPorts = 0;

  constructor(family: BusFamily) {
    this.#family = family;
  }

  network(field: string): { readonly bus: 'virtio' | 'virtio-mmio'; readonly at: number } {
    return { bus: this.#virtioBus(), at: this.#take(RANGES[this.#family].network, this.#networks++, field) };
  }

  virtioDisk(field: string): DevicePlace {
    return { bus: this.#virtioBus(), at: this.#take(RANGES[this.#family].virtio, this.#virtioDisks++, field) };
  }

  sataPort(field: string): number {
    if (this.#family === 'mmio')
      throw new MachineSpecError(`${field}: a machine of type microvm has no sata; use the bus virtio`);
    return this.#take([0, SATA_PORTS], this.#sataPorts++, field);
  }

  agent(): { readonly bus: 'virtio'; readonly at: number } | undefined {
    return this.#family === 'pci' ? { bus: 'virtio', at: AGENT_SLOT } : undefined;
  }

  #virtioBus(): 'virtio' | 'virtio-mmio' {
    return this.#family === 'pci' ? 'virtio' : 'virtio-mmio';
  }

  #take([first, count]: readonly [first: number, count: number], taken: number, field: string): number {
    if (taken >= count)
      throw new MachineSpecError(`${field}: this machine has room for no more than ${count} of these`);
    return first + taken;
  }
}
