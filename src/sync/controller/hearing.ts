import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { Clock } from '../../env/ports.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { type ReceivedHalf, Refusal, type Role } from '../channel.ts';
import { EarlyHalves, type EarlyLimits, keyTaken } from './early-halves.ts';
import { type Half, parseHalf } from './halves.ts';
import { otherRole, type Side, sideId } from './side.ts';

/** The newest half of the other side of one of our migrations, and how to tell that side what becomes of it. */
export interface Heard {
  readonly peer: string;
  /** Undefined: the migration of that side is gone. */
  readonly half: Half | undefined;
  /** Whether that side was told. */
  isSettled: boolean;
  readonly resolve: () => void;
  readonly reject: (refusal: Refusal) => void;
}

export interface HearingOptions {
  readonly clock: Clock;
  /** How long a source that is early waits for its target. */
  readonly patienceMs: () => number;
  readonly limits?: EarlyLimits | undefined;
  /** The migration that we have under a key, in this part. */
  readonly meant: (role: Role, key: string) => VirtualMachineInstanceMigration | undefined;
  /** The cluster that a migration of ours is bound to, from before the first word to it. */
  readonly peerOf: (migration: VirtualMachineInstanceMigration) => string | undefined;
  /** Whether nothing new may begin with a cluster. */
  readonly isRevoked: (peer: string) => boolean;
  /** Something was heard that concerns this migration of ours. */
  readonly onNews: (migration: VirtualMachineInstanceMigration) => void;
}

/**
 * What other clusters tell, and who may tell it. A cluster is heard only about the half that is not ours, under the key of
 * a migration that we have, and only if that migration is bound to this very cluster. A source may be early; a target never
 * is, since it speaks only when it is spoken to.
 */
export class Hearing {
  readonly #options: HearingOptions;
  readonly #early: EarlyHalves<Half>;
  /** By the part of the other side, and the key. */
  readonly #heard = new Map<string, Heard>();

  constructor(options: HearingOptions) {
    this.#options = options;
    this.#early = new EarlyHalves(options.clock, options.patienceMs, options.limits);
  }

  /** See `ChannelListener.received`. */
  async received(peer: string, { key, role, half: json }: ReceivedHalf): Promise<void> {
    const own = this.#options.meant(otherRole(role), key);
    const bound = own && this.#options.peerOf(own);
    if (bound !== undefined && bound !== peer) throw keyTaken();
    if (role === 'target' && bound === undefined) throw isGone();
    if (json === undefined) {
      if (own && bound !== undefined) return this.#hear(own, peer, role, key, undefined);
      return this.#early.drop(peer, key);
    }
    const half = parseHalf(role, json);
    if (own && half.otherUID !== undefined && half.otherUID !== own.metadata.uid)
      throw role === 'source' ? isOver() : pairedOtherwise();
    if (own && bound !== undefined) return this.#hear(own, peer, role, key, half);
    // What is over before it has begun is no counterpart to anybody.
    if (half.verdict !== undefined || half.isGone === true) return this.#early.drop(peer, key);
    if (!own && half.otherUID !== undefined) throw isOver();
    if (this.#options.isRevoked(peer)) throw new Refusal('NotTrusted', 'trust in this cluster was revoked');
    this.#early.keep(peer, key, half);
    if (own) this.#options.onNews(own);
  }

  /** The cluster that has sent under the key of a target that is bound to none yet. */
  callerOf({ role, key }: Side): string | undefined {
    return role === 'target' ? this.#early.peek(key)?.peer : undefined;
  }

  /** What was heard of the other side of a migration that is bound to this cluster. */
  of(side: Side, peer: string): Heard | undefined {
    const id = sideId(otherRole(side.role), side.key);
    const early = side.role === 'target' ? this.#early.peek(side.key) : undefined;
    if (early?.peer === peer) {
      this.#early.drop(peer, side.key);
      if (!this.#heard.has(id)) this.#heard.set(id, { ...early, isSettled: false, resolve: nothing, reject: nothing });
    }
    return this.#heard.get(id);
  }

  /** The other side is told that we know its half for good. */
  settle(heard: Heard): void {
    heard.isSettled = true;
    heard.resolve();
  }

  /** The other side is told that we do not want its half. */
  refuse({ role, key }: Side, heard: Heard, refusal: Refusal): void {
    const id = sideId(otherRole(role), key);
    if (this.#heard.get(id) === heard) this.#heard.delete(id);
    heard.isSettled = true;
    heard.reject(refusal);
  }

  /** We have this migration no more. What its source has to say that nobody has heard yet may be for another one. */
  forget({ role, key }: Side): void {
    const id = sideId(otherRole(role), key);
    const heard = this.#heard.get(id);
    this.#heard.delete(id);
    if (!heard || heard.isSettled) return;
    const { half } = heard;
    const isForOthers = role === 'target' && half !== undefined && half.verdict === undefined;
    try {
      if (isForOthers && half.otherUID !== undefined) throw isOver();
      if (isForOthers) this.#early.keep(heard.peer, key, half);
      heard.resolve();
    } catch (error) {
      heard.reject(error as Refusal);
    }
  }

  #hear(
    own: VirtualMachineInstanceMigration,
    peer: string,
    role: Role,
    key: string,
    half: Half | undefined,
  ): Promise<void> {
    const id = sideId(role, key);
    const older = this.#heard.get(id);
    if (older?.isSettled === true && older.half !== undefined && deepEqual(older.half, half)) return Promise.resolve();
    // Only the newest one counts: what becomes of the older one is of no interest to its sender.
    if (older?.isSettled === false) this.settle(older);
    return new Promise((resolve, reject) => {
      this.#heard.set(id, { peer, half, isSettled: false, resolve, reject });
      this.#options.onNews(own);
    });
  }
}

/** Who was early was told already. */
const nothing = (): void => undefined;

/** What a target is told that belongs to an earlier migration of ours. */
function pairedOtherwise(): Refusal {
  return new Refusal('KeyTaken', 'this target belongs to an earlier migration under the same key, which is gone');
}

/** What a source is told that has met a target of ours which is no more: it waits for nobody. */
function isOver(): Refusal {
  return new Refusal('Gone', 'the migration that received under this key is no more');
}

/** What a target is told whose source is no more. */
function isGone(): Refusal {
  return new Refusal('Gone', 'there is no migration here that sends under this key');
}
