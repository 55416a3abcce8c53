/**
 * A virtual machine as a hypervisor is asked to run it. Whatever the guest can see is said here explicitly, down to the
 * place of each device, so that a machine started today has the same shape on the host that it moves to tomorrow.
 */

/** How guest code is run: by the processor itself, or translated. */
export type Accelerator = 'kvm' | 'tcg';

export interface CpuSpec {
  /** A model of the hypervisor's, such as `qemu64` or `Skylake-Server`. */
  readonly model: string;
  readonly features?: readonly { readonly name: string; readonly isEnabled: boolean }[];
  readonly sockets: number;
  /** How many sockets there may be once more are plugged in; no more than there are where it is left out. */
  readonly socketsMax?: number;
  readonly cores: number;
  readonly threads: number;
}

/**
 * Where a device sits:
 * - `virtio`: on the PCI bus, in slot `at`;
 * - `sata`: on port `at` of the one controller;
 * - `virtio-mmio`: on transport `at` of a machine without PCI.
 */
export interface DevicePlace {
  readonly bus: 'virtio' | 'sata' | 'virtio-mmio';
  readonly at: number;
}

export interface DiskSpec {
  /** What its owner calls it, for messages about it. */
  readonly volume?: string;
  readonly place: DevicePlace;
  readonly path: string;
  /** The claim that it is on, where it is on one: on another, it is another disk. */
  readonly claim?: { readonly name: string; readonly uid: string };
  readonly format: 'raw' | 'qcow2';
  /** Whether it is a device of the host, and no file. */
  readonly isDevice?: boolean;
  /** How much of it the guest sees, where there is more; of raw ones alone. */
  readonly sizeBytes?: number;
  /** `none` goes past the host's page cache, as storage that several hosts share demands. */
  readonly cache: 'none' | 'writeback' | 'writethrough';
  readonly isReadOnly?: boolean;
  /** What the guest sees as the disk's serial number. */
  readonly serial?: string;
  /** The firmware tries lower numbers first, and disks without one never. */
  readonly bootOrder?: number;
}

export interface CdromSpec {
  /** What its owner calls it, for messages about it. */
  readonly volume?: string;
  /** The port of the SATA controller. */
  readonly port: number;
  readonly path: string;
  /** What the file is; `raw` by default. */
  readonly format?: 'raw' | 'qcow2';
  readonly isDevice?: boolean;
  readonly sizeBytes?: number;
  readonly bootOrder?: number;
}

/** Where a drive is, among the places of disks. */
export function cdromPlace({ port }: Pick<CdromSpec, 'port'>): DevicePlace {
  return { bus: 'sata', at: port };
}

/** A kernel that is started without a boot loader. */
export interface KernelSpec {
  readonly path: string;
  readonly initrdPath?: string;
  readonly commandLine?: string;
}

export interface PortForward {
  readonly protocol: 'tcp' | 'udp';
  readonly hostAddress: string;
  readonly hostPort: number;
  readonly guestPort: number;
}

export interface NetworkSpec {
  readonly place: DevicePlace & { readonly bus: 'virtio' | 'virtio-mmio' };
  readonly mac: string;
  readonly backend:
    | { readonly kind: 'user'; readonly forwards: readonly PortForward[] }
    /** A tap device that exists already and belongs to the user whom the hypervisor runs as. */
    | { readonly kind: 'tap'; readonly interfaceName: string };
}

export interface MachineSpec {
  readonly name: string;
  readonly uuid: string;
  /** What the guest sees as the machine's serial number. */
  readonly serial?: string;
  /** `microvm`, or a versioned `pc-q35-…` or `pc-i440fx-…`: an alias means something else on the next host. */
  readonly machineType: string;
  readonly accelerator: Accelerator;
  readonly cpu: CpuSpec;
  /** At least this much memory; a hypervisor may need to give a little more. */
  readonly memoryBytes: number;
  /** Room for memory that is plugged in while the guest runs, in pieces of one size, and how many of them there are. */
  readonly memoryRoom?: { readonly unitBytes: number; readonly slots: number; readonly plugged: number };
  readonly disks?: readonly DiskSpec[];
  readonly cdroms?: readonly CdromSpec[];
  readonly networks?: readonly NetworkSpec[];
  readonly kernel?: KernelSpec;
  /** Where the guest finds the port on which its agent speaks with the host; without it there is none. */
  readonly agentPlace?: DevicePlace & { readonly bus: 'virtio' | 'virtio-mmio' };
  /** Present on a machine that waits for the state of another one. */
  readonly incoming?: {
    /** The exact size that the other one has. */
    readonly ramBytes: number;
  };
}

/** The machine cannot be run as it is described. */
export class MachineSpecError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'MachineSpecError';
  }
}
