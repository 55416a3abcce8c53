import type { EventReason } from '../../api/event-reasons.ts';
import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { UserIdentity } from '../../env/ports.ts';
import type { DiskSpec, KernelSpec } from '../../hypervisor/machine.ts';

/** For whom volumes are wanted, and where what belongs to this one run may be put. */
export interface VolumeRequest {
  readonly guest: VirtualMachineInstance;
  readonly podUID: string;
  /** A private directory of this launcher pod, removed when the pod is gone. */
  readonly directory: string;
  /** Who has to be able to open the files; this process's own user where absent. */
  readonly user: UserIdentity | undefined;
  /** What is known of the guest's disks; where absent, their images are taken as they are. */
  readonly disks?: KnownDisks;
}

/** What is known of a guest's disks, besides what they say themselves. */
export interface KnownDisks {
  /** UID of the virtual machine. */
  readonly vm: string;
  /** Which claims had the contents of its volumes, as anybody remembers it. */
  readonly records: readonly RightToRun['volumes'][];
  /** Volumes that are filled by a migration: what was in them does not matter. */
  readonly filled: ReadonlySet<string>;
  /** Those of them that come from elsewhere, with their sizes: nothing but room is made for them. */
  readonly sizesBytes?: ReadonlyMap<string, number>;
}

/** A volume as the hypervisor opens it. */
export type PreparedDisk = Pick<
  DiskSpec,
  'path' | 'claim' | 'format' | 'isDevice' | 'sizeBytes' | 'cache' | 'isReadOnly'
>;

/** What a guest's volumes came to. */
export interface PreparedVolumes {
  /** By the volume's name. */
  readonly disks: ReadonlyMap<string, PreparedDisk>;
  /** The kernel of `firmware.kernelBoot`, where the guest has one. */
  readonly kernel: KernelSpec | undefined;
  /** Stamps in spite of which images are used, by the UID of their claims. */
  readonly accepted?: ReadonlyMap<string, string>;
  /** What people should know of images that are used in spite of their stamps. */
  readonly notices?: readonly string[];
}

/** What the volumes of guests are on this node. Preparing twice is as good as once, also after a crash in between. */
export interface GuestVolumes {
  /** Rejects with a VolumeError that names the volume which cannot be had. */
  prepare(request: VolumeRequest, signal: AbortSignal): Promise<PreparedVolumes>;
}

/** A volume cannot be had now; whether it can later is up to whoever reads the reason. */
export class VolumeError extends Error {
  readonly volume: string;
  /** A word for conditions and events, such as `ErrImagePull`. */
  readonly reason: EventReason;

  constructor(volume: string, reason: EventReason, message: string, cause?: unknown) {
    super(`volume ${volume}: ${message}`, { cause });
    this.name = 'VolumeError';
    this.volume = volume;
    this.reason = reason;
  }
}
