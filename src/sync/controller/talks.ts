import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { Env } from '../../env/ports.ts';
import { keyOf } from '../../kube/resource.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { Channel, OfferedHalf, Refusal, Role } from '../channel.ts';
import type { Half } from './halves.ts';
import { type Side, sideId } from './side.ts';

/** What we have said of a migration, to whom, and how that was taken. */
export interface Talk {
  /** UID of the migration. */
  readonly uid: string;
  readonly side: Side;
  /** The cluster that the migration is bound to. */
  peer?: string | undefined;
  /** Where it was last said. */
  channel?: Channel;
  offered?: Half;
  offeredMs?: number;
  /** Why the other side does not want to hear it. */
  refusal?: { readonly cause: Refusal; readonly atMs: number };
  /** Whether the other side knows for good how ours ended. */
  isEndKnown: boolean;
  /** Since when something is in the way. */
  problemSinceMs?: number;
}

export interface TalksOptions {
  readonly env: Env;
  /** Nothing is left to say about a migration, by its key. */
  readonly onSilence: (migration: string, side: Side) => void;
}

/** How soon a cluster that had no room for us is asked again. */
const TRY_AGAIN_MS = 10_000;
/**
 * How soon a half is told again to a cluster that could not make anything of it; and a source to one in which nobody
 * receives yet: that one keeps it for as long as it thinks right, which may be less than we wait.
 */
const SAY_AGAIN_MS = 60_000;
/** Refusals by which a cluster says that it has no half that ours could be the other one of, now or later. */
const FINAL_REFUSALS: ReadonlySet<string> = new Set(['Gone', 'KeyTaken', 'NotTrusted']);
/** Who was told anew has so long to refuse again before what it said first counts no more. */
const REFUSAL_GRACE_MS = 3000;
/** How long we go on trying to tell how a migration ended that we do not have any more. */
const LEFTOVER_MS = 10 * 60_000;

/** What was said, for each migration that we speak for, and what has still to be heard of those that we no longer have. */
export class Talks {
  readonly #options: TalksOptions;
  /** By the key of the migration. */
  readonly #talks = new Map<string, Talk>();
  /** Which of them are about a half, by its part and key. */
  readonly #bySide = new Map<string, Set<string>>();
  /** How to stop telling what is left of a half. */
  readonly #leftovers = new Map<string, () => void>();

  constructor(options: TalksOptions) {
    this.#options = options;
  }

  get(migration: string): Talk | undefined {
    return this.#talks.get(migration);
  }

  /** The cluster that we speak to of a migration. */
  peerOf(migration: VirtualMachineInstanceMigration): string | undefined {
    const talk = this.#talks.get(keyOf(migration));
    return talk?.uid === migration.metadata.uid ? talk?.peer : undefined;
  }

  /** The keys of all migrations that we speak for. */
  migrations(): Iterable<string> {
    return this.#talks.keys();
  }

  begin(migration: string, uid: string, side: Side): Talk {
    const known = this.#talks.get(migration);
    if (known) return known;
    const talk: Talk = { uid, side, isEndKnown: false };
    this.#talks.set(migration, talk);
    const id = sideId(side.role, side.key);
    this.#bySide.set(id, (this.#bySide.get(id) ?? new Set()).add(migration));
    return talk;
  }

  /** Says what our side is. What has been said is said again only to somebody else, or where it is time to try again. */
  offer(talk: Talk, channel: Channel, half: Half): void {
    const { role, key } = talk.side;
    const isSaid = talk.channel === channel && talk.offered !== undefined && isSameNews(role, talk.offered, half);
    if (isSaid && this.tryAgainMs(talk) > 0) return;
    if (isSaid) channel.withdraw(key, role);
    this.#leftovers.get(sideId(role, key))?.();
    Object.assign(talk, { channel, offered: half, offeredMs: this.#nowMs() } satisfies Partial<Talk>);
    channel.offer({ key, role, half });
  }

  /** The other side has taken what was offered, or has refused it. Answers the migrations that this concerns. */
  answered({ key, role, half }: OfferedHalf, refusal?: Refusal): readonly string[] {
    const { uid, verdict } = (half ?? {}) as Partial<Half>;
    const id = sideId(role, key);
    this.#leftovers.get(id)?.();
    return [...(this.#bySide.get(id) ?? [])].filter((migration) => {
      const talk = this.#talks.get(migration);
      if (!talk || talk.uid !== uid) return false;
      if (refusal) talk.refusal = { cause: refusal, atMs: this.#nowMs() };
      else delete talk.refusal;
      // Whoever has no half at all has none that could end otherwise. Any other refusal leaves the end unheard.
      const isHeard = refusal === undefined || FINAL_REFUSALS.has(refusal.reason);
      if (verdict !== undefined && isHeard) talk.isEndKnown = true;
      return true;
    });
  }

  /** After which time it is said again, to a cluster that could not take it, or in which nobody has answered yet. */
  tryAgainMs({ side, refusal, offered, offeredMs = 0 }: Talk): number {
    if (refusal !== undefined && refusal.atMs >= offeredMs) {
      const { cause, atMs } = refusal;
      if (FINAL_REFUSALS.has(cause.reason)) return Number.POSITIVE_INFINITY;
      const pauseMs = cause.reason === 'TooManyEarly' ? TRY_AGAIN_MS : SAY_AGAIN_MS;
      return Math.max(0, atMs + pauseMs - this.#nowMs());
    }
    const isEarly = offered !== undefined && offered.otherUID === undefined && offered.verdict === undefined;
    if (side.role === 'target' || !isEarly) return Number.POSITIVE_INFINITY;
    return Math.max(0, offeredMs + SAY_AGAIN_MS - this.#nowMs());
  }

  /** Why the other side does not want our half. */
  refusalOf(talk: Talk): Refusal | undefined {
    const { refusal, offeredMs = 0 } = talk;
    const isOld = refusal !== undefined && refusal.atMs < offeredMs;
    if (isOld && offeredMs + REFUSAL_GRACE_MS <= this.#nowMs()) delete talk.refusal;
    return talk.refusal?.cause;
  }

  /** We do not speak for this migration any more. What the other side has yet to hear of it stays offered for a while. */
  end(migration: string): void {
    const talk = this.#talks.get(migration);
    if (!talk) return;
    this.#talks.delete(migration);
    const { side, channel, offered } = talk;
    const { role, key } = side;
    const id = sideId(role, key);
    const those = this.#bySide.get(id);
    those?.delete(migration);
    if (those?.size === 0) this.#bySide.delete(id);
    const silence = (): void => {
      if (!this.#isOffered(id)) channel?.withdraw(key, role);
      if (!this.#talks.has(migration)) this.#options.onSilence(migration, side);
    };
    if (talk.isEndKnown || !offered || !channel) return silence();
    if (offered.verdict === undefined) channel.offer({ key, role, half: undefined });
    const timer = this.#options.env.clock.setTimer(() => this.#leftovers.get(id)?.(), LEFTOVER_MS);
    this.#leftovers.set(id, () => {
      timer.cancel();
      this.#leftovers.delete(id);
      silence();
    });
  }

  /** Leaves everything as it is. */
  stop(): void {
    for (const end of this.#leftovers.values()) end();
  }

  #isOffered(id: string): boolean {
    return [...(this.#bySide.get(id) ?? [])].some((migration) => this.#talks.get(migration)?.offered !== undefined);
  }

  #nowMs(): number {
    return this.#options.env.clock.now();
  }
}

/**
 * Whom a target belongs to its source need not be told at once. Whom a source belongs to has to be known there before the
 * target can be gone: else it would be taken for one that waits for another.
 */
function isSameNews(role: Role, { otherUID: before, ...rest }: Half, { otherUID: now, ...restNow }: Half): boolean {
  return (role === 'target' || before === now) && deepEqual(rest, restNow);
}
