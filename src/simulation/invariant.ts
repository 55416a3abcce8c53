import type { KubeObject } from '../api/meta.ts';
import type { SaidLines } from '../hypervisor/model/model-guest.ts';
import type { Observation, State } from './observer.ts';

/**
 * Something that must hold, whatever fails. Each lives in a file of its own under `invariants/`, and each has a planted
 * bug (`planted-bugs.ts`) that shows that it can fail.
 */
export interface Invariant {
  readonly name: string;
  /** Judges a durable change; says what is wrong with it. The state already has it. */
  observe?(observation: Observation, state: State): string | undefined;
  /** Judges what machines execute, whenever that has changed on some host, at so many milliseconds of the run. */
  executed?(machines: readonly ObservedMachine[], state: State, atMs: number): string | undefined;
  /** Judges what a server has loaded from its disk. */
  reloaded?(load: Load): string | undefined;
  /** What is not yet where it has to be when nothing fails any more. */
  unsettled?(scene: Scene): readonly Unsettled[];
}

/**
 * Something that must hold for all clusters of a run together, of which there may be one. Its questions have names of their own,
 * since each is about all of them.
 */
export interface InvariantAcross {
  readonly name: string;
  /** Judges a durable change in one of them. */
  observeAcross?(observation: Observation, state: State, cluster: string): string | undefined;
  /** Judges what machines execute, wherever they are. */
  executedAcross?(machines: readonly ObservedMachine[]): string | undefined;
  /** What is not yet where it has to be when nothing fails any more, given each of them. */
  unsettledAcross?(scenes: readonly Scene[]): readonly Unsettled[];
}

/**
 * What every run is asked, whatever its scenario: whether something was thrown that no careful code throws, or a loop
 * ended by itself; and whether everything comes back in the end.
 */
export const BUILT_IN_CHECKS = ['no-bugs', 'everything-runs'] as const;

/** What a server came back with. */
export interface Load {
  readonly revision: number;
  /** The newest that had been durable before. */
  readonly knownRevision: number;
}

/** Something that has not settled. */
export interface Unsettled {
  /** By which the lines of the trace about it are found: a key, as paths and commits have it. */
  readonly key: string;
  readonly what: string;
  /** Whether it took longer than it may, so that nothing that comes later mends it. */
  readonly isLate?: boolean;
}

/** A cache of some process, to be compared with what is durable. */
export interface ObservedCache {
  readonly owner: string;
  readonly bucket: string;
  /** Whether it should have all objects of the bucket. */
  readonly isWhole: boolean;
  get(key: string): KubeObject | undefined;
  list(): Iterable<KubeObject>;
}

/** A model of a machine, as nobody but an onlooker sees it. */
export interface ObservedMachine {
  /** Empty where there is one. */
  readonly cluster: string;
  readonly node: string;
  /** `namespace/name` of its guest. */
  readonly guest: string;
  /** UID of the launcher pod that it was started for. */
  readonly podUID: string;
  readonly isAlive: boolean;
  readonly isExecuting: boolean;
  /** Whether its guest is being copied from here, at the moment of the question. */
  isSending(): boolean;
  /** What tells this boot of its guest from all others, wherever it goes. */
  readonly bootId: string;
  /** For how long it was executed since it booted, here and before. */
  readonly executedMs: number;
  /** Whether something from outside has ended it. */
  readonly isStruck: boolean;
  /** Whether its guest has turned itself off, or could not go on. */
  readonly hasGuestEnded: boolean;
  /** All that its guest has said. */
  readonly said: readonly SaidLines[];
}

/** All that an invariant may look at when everything should have settled. */
export interface Scene {
  readonly state: State;
  readonly buckets: readonly string[];
  readonly caches: readonly ObservedCache[];
  /** All that there ever were. */
  readonly machines: readonly ObservedMachine[];
  /** Milliseconds since the start of the run. */
  readonly elapsedMs: number;
}
