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
}

/** A volume as the hypervisor opens it. */
export type PreparedDisk = Pick<DiskSpec, 'path' | 'claim' | 'format' | 'cache' | 'isReadOnly'>;

/** What a guest's volumes came to. */
export interface PreparedVolumes {
  /** By the volume's name. */
  readonly disks: ReadonlyMap<string, PreparedDisk>;
  /** The kernel of `firmware.kernelBoot`, where the guest has one. */
  readonly kernel: KernelSpec | undefined;
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
  readonly reason: string;

  constructor(volume: string, reason: string, message: string, cause?: unknown) {
    super(`volume ${volume}: ${message}`, { cause });
    this.name = 'VolumeError';
    this.volume = volume;
    this.reason = reason;
  }
}
