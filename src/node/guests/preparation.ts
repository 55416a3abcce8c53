import { errorMessage } from '../../api/error-message.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Clock, DiskFiles, UserIdentity } from '../../env/ports.ts';
import { type MachineSpec, MachineSpecError } from '../../hypervisor/machine.ts';
import { type GuestVolumes, type PreparedVolumes, VolumeError } from '../volumes/guest-volumes.ts';
import type { Cause } from './pod-status.ts';

/** What a guest's machine is like, with the volumes and whatever else it has on this node. */
export type SpecOf = (
  guest: VirtualMachineInstance,
  volumes: PreparedVolumes,
  signal: AbortSignal,
) => Promise<MachineSpec> | MachineSpec;

/**
 * What came of preparing a machine: all is there; something is missing that may come yet; or the machine cannot be, on
 * this node at least.
 */
export type Prepared =
  | { readonly kind: 'ready'; readonly spec: MachineSpec }
  | { readonly kind: 'missing'; readonly cause: Cause; readonly retryAfterMs: number }
  | { readonly kind: 'impossible'; readonly cause: Cause };

export interface PreparationOptions {
  readonly clock: Clock;
  readonly volumes: GuestVolumes;
  readonly specOf: SpecOf;
  readonly files: Pick<DiskFiles, 'makeDirectory' | 'remove'>;
  /** Holds one directory for each pod. */
  readonly directory: string;
  readonly user: UserIdentity | undefined;
}

const RETRY_MS_MIN = 1000;
/** Nobody tells when an image has been imported. */
const RETRY_MS_MAX = 15_000;

/** For so long a machine that is not started yet may be started as it was described: its ports may be taken by others. */
const FRESH_MS = 60_000;

/** Prepares what the machines of launcher pods need; what is there already is found, not made anew. */
export class Preparation {
  readonly #options: PreparationOptions;
  readonly #specs = new Map<string, { readonly spec: MachineSpec; readonly atMs: number }>();
  readonly #failureCounts = new Map<string, number>();

  constructor(options: PreparationOptions) {
    this.#options = options;
  }

  async prepare(podUID: string, guest: VirtualMachineInstance, signal: AbortSignal): Promise<Prepared> {
    const known = this.#specs.get(podUID);
    const nowMs = this.#options.clock.now();
    if (known && nowMs - known.atMs < FRESH_MS) return { kind: 'ready', spec: known.spec };
    try {
      const spec = await this.#specFor(podUID, guest, signal);
      this.#specs.set(podUID, { spec, atMs: nowMs });
      this.#failureCounts.delete(podUID);
      return { kind: 'ready', spec };
    } catch (error) {
      if (error instanceof VolumeError) {
        const { reason, message } = error;
        return { kind: 'missing', cause: { reason, message }, retryAfterMs: this.#retryAfterMs(podUID) };
      }
      if (error instanceof MachineSpecError)
        return { kind: 'impossible', cause: { reason: 'InvalidMachine', message: errorMessage(error) } };
      throw error;
    }
  }

  /** Removes what was prepared for a pod that is gone. */
  async forget(podUID: string): Promise<void> {
    this.#specs.delete(podUID);
    this.#failureCounts.delete(podUID);
    await this.#options.files.remove(this.directoryOf(podUID));
  }

  async #specFor(podUID: string, guest: VirtualMachineInstance, signal: AbortSignal): Promise<MachineSpec> {
    const { volumes, specOf, files, user } = this.#options;
    const directory = this.directoryOf(podUID);
    await files.makeDirectory(directory, { mode: 0o700, owner: user });
    return specOf(guest, await volumes.prepare({ guest, podUID, directory, user }, signal), signal);
  }

  #retryAfterMs(podUID: string): number {
    const count = this.#failureCounts.get(podUID) ?? 0;
    this.#failureCounts.set(podUID, count + 1);
    return Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** count);
  }

  /** Where what belongs to a pod alone is kept. */
  directoryOf(podUID: string): string {
    return `${this.#options.directory}/${podUID}`;
  }
}
