import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { Env } from '../../env/ports.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import type { DevicePlace } from '../../hypervisor/machine.ts';
import type { MigrationAddress, MigrationTls } from '../../hypervisor/migration.ts';
import type { GiveUpReason } from '../../migration/monitor/decision.ts';
import type { MigrationOptions } from '../../migration/policies/options.ts';
import type { Road } from './copy-relays.ts';
import type { Opened, WantedMethod } from './peer.ts';

/**
 * Why there will be no copy, besides what the monitor gives up for:
 * - `TargetUnreachable`: it could not even begin;
 * - `CopyFailed`: the hypervisor says so;
 * - `MirrorFailed`: a disk could not be copied;
 * - `MachineGone`: the source's machine ended;
 * - `AgentRestarted`: it had not begun when its agent was started anew;
 * - `Cancelled`: somebody wanted that.
 */
export type CopyFailureReason =
  | GiveUpReason
  | 'TargetUnreachable'
  | 'CopyFailed'
  | 'MirrorFailed'
  | 'MachineGone'
  | 'AgentRestarted'
  | 'Cancelled';

export interface CopyFailure {
  readonly reason: CopyFailureReason;
  readonly message: string;
}

export interface CopyHooks {
  /** Something of what the copy says of itself has changed. */
  onNews(): void;
  /** The guest stands still from now on. */
  onStill(): void;
  /** Whether the agent of the target answers, asked where nobody else could tell, before all of the guest goes there. */
  isTargetThere?(): Promise<boolean>;
  /** Asks the target of a post-copy to let go of its link, which broke or may be dead, and to wait for another. */
  listenAgain(signal: AbortSignal): Promise<MigrationAddress>;
}

/** Credentials that the machine reads, until it has. */
export interface CredentialFiles {
  readonly tls: MigrationTls;
  /** Nobody needs them any more. */
  remove(): Promise<void>;
}

/** What any copy is driven with. */
export interface CopyContext {
  readonly env: Env;
  readonly machine: Machine;
  /** As they were frozen when the migration began. */
  readonly options: MigrationOptions;
  /** The disks that are copied. */
  readonly disks: readonly DevicePlace[];
  readonly hooks: CopyHooks;
  /** By when the guest must have gone over, since it will not be here any longer; may appear, change and go. Never where absent. */
  readonly deadlineMs?: (() => number | undefined) | undefined;
}

export interface CopyOptions extends CopyContext {
  readonly opened: Pick<Opened, 'host' | 'memoryPort' | 'disksPort' | 'isPostCopyPossible'>;
  /** As it was asked for when it was opened. */
  readonly method: WantedMethod;
  readonly credentials: CredentialFiles | undefined;
  /** The way there, where it leads through the agents. */
  readonly road?: Road | undefined;
}

export interface AdoptOptions extends CopyContext {
  /** What the status of the guest says of its migration. */
  readonly known: Pick<MigrationState, 'mode' | 'progress' | 'decisions' | 'channel'>;
  /** When the copy began; undefined where nobody knows. */
  readonly startedAtMs: number | undefined;
}

/** A guest that has to be gone soon is rather slowed down than shut down, whatever its options say. */
export function inHurry(options: CopyOptions): CopyOptions {
  if (options.deadlineMs?.() === undefined) return options;
  return { ...options, options: { ...options.options, allowAutoConverge: true } };
}
