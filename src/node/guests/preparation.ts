import { errorMessage } from '../../api/error-message.ts';
import type { EventReason } from '../../api/event-reasons.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Clock, DiskFiles, UserIdentity } from '../../env/ports.ts';
import { type MachineSpec, MachineSpecError } from '../../hypervisor/machine.ts';
import type { StartWish } from '../../migration/right-to-run/view.ts';
import { type GuestVolumes, type KnownDisks, type PreparedVolumes, VolumeError } from '../volumes/guest-volumes.ts';
import type { Cause } from './pod-status.ts';
import { machineUidOf } from './surroundings.ts';

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
  | ({ readonly kind: 'ready'; readonly spec: MachineSpec } & Pick<PreparedVolumes, 'accepted' | 'notices'>)
  | { readonly kind: 'missing'; readonly cause: Obstacle; readonly retryAfterMs: number }
  | { readonly kind: 'impossible'; readonly cause: Obstacle };

/** Why a machine is not prepared; people hear of it by an event. */
export interface Obstacle extends Cause {
  readonly reason: EventReason;
}

/** What a migration fills. */
type ComingDisks = Pick<KnownDisks, 'filled' | 'sizesBytes'>;

type Ready = Prepared & { readonly kind: 'ready' };

export interface PreparationOptions {
  readonly clock: Clock;
  readonly volumes: GuestVolumes;
  /** What is remembered of a guest's disks from those before it. */
  readonly remembered: (guest: VirtualMachineInstance, signal: AbortSignal) => Promise<StartWish['remembered']>;
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
  readonly #ready = new Map<string, { readonly prepared: Ready; readonly atMs: number }>();
  readonly #failureCounts = new Map<string, number>();

  constructor(options: PreparationOptions) {
    this.#options = options;
  }

  /** `coming` are the volumes that a migration brings with it. */
  async prepare(
    podUID: string,
    guest: VirtualMachineInstance,
    coming: ComingDisks,
    signal: AbortSignal,
  ): Promise<Prepared> {
    const known = this.#ready.get(podUID);
    const nowMs = this.#options.clock.now();
    if (known && nowMs - known.atMs < FRESH_MS) return known.prepared;
    try {
      const prepared = await this.#prepare(podUID, guest, coming, signal);
      this.#ready.set(podUID, { prepared, atMs: nowMs });
      this.#failureCounts.delete(podUID);
      return prepared;
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
    this.#ready.delete(podUID);
    this.#failureCounts.delete(podUID);
    await this.#options.files.remove(this.directoryOf(podUID));
  }

  async #prepare(
    podUID: string,
    guest: VirtualMachineInstance,
    coming: ComingDisks,
    signal: AbortSignal,
  ): Promise<Ready> {
    const { volumes, specOf, files, user } = this.#options;
    const directory = this.directoryOf(podUID);
    await files.makeDirectory(directory, { mode: 0o700, owner: user });
    const disks = { vm: machineUidOf(guest), records: await this.#records(guest, signal), ...coming };
    const prepared = await volumes.prepare({ guest, podUID, directory, user, disks }, signal);
    const { accepted = new Map<string, string>(), notices = [] } = prepared;
    return { kind: 'ready', spec: await specOf(guest, prepared, signal), accepted, notices };
  }

  /** Where the contents of the guest's volumes were, as it says itself, or as its machine remembers it. */
  async #records(
    { spec, status, ...guest }: VirtualMachineInstance,
    signal: AbortSignal,
  ): Promise<KnownDisks['records']> {
    if (status?.rightToRun) return [status.rightToRun.volumes];
    const hasClaims = spec.volumes?.some((each) => each.persistentVolumeClaim ?? each.dataVolume ?? each.ephemeral);
    return hasClaims ? [(await this.#options.remembered({ spec, ...guest }, signal))?.volumes] : [];
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
