import type { JsonObject } from '../../api/meta.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { mergeDifference } from '../../machinery/patch/merge-difference.ts';
import { type OfferedHalf, Refusal, type Role } from '../channel.ts';
import { violation } from './codec.ts';
import { CONTENT_BYTES_MAX, type Frame, type Resume, type Update, WINDOW } from './frame.ts';

/**
 * What one cluster has to say to a peer: the newest half of each key, and how much of that the peer has heard. It knows
 * neither streams nor time. A half waits until it is sent, and one that waits is replaced by a newer one of its key. It
 * stays until the peer has acknowledged that it is gone, because a peer that starts anew has to hear all of them again.
 */

/** How many updates of one key may be under way: a second one need not wait until the first is answered. */
const UNDER_WAY_PER_KEY_MAX = 2;
/** How much of all keys may be under way. One half, however large, always may. */
const WINDOW_BYTES = 1024 * 1024;

interface Sent {
  readonly seq: number;
  readonly bytes: number;
  readonly update: OfferedHalf;
  readonly entry: Entry;
}

interface Entry {
  /** The newest. */
  update: OfferedHalf;
  /** The same as plain JSON; undefined where it is gone. */
  value: JsonObject | undefined;
  json: string;
  /** What the peer has of it, if everything that was sent arrives; undefined where only a whole half helps. */
  base: JsonObject | undefined;
  /** Whether the newest one has still to be sent. */
  isUnsent: boolean;
  /** Whether the peer has refused the newest one. */
  isRefused: boolean;
  underWay: number;
}

/** How the peer took an update. */
export interface Outcome {
  readonly update: OfferedHalf;
  readonly refusal?: Refusal;
}

/** With this a peer asks for all of a half: it has nothing that a delta could be applied to. */
export const SNAPSHOT_WANTED = 'SnapshotWanted';

export class Outbox {
  readonly #entries = new Map<string, Entry>();
  /** Those that could be sent next, in the order of their turn. */
  readonly #ready = new Set<Entry>();
  readonly #sent = new Map<number, Sent>();
  #seq = 0;
  #bytesUnderWay = 0;

  /** True when there is nothing that a peer has to be told now or later. */
  get isEmpty(): boolean {
    return this.#entries.size === 0;
  }

  /** Makes this the newest half of its key. Answers why it cannot be, where it cannot. */
  offer(update: OfferedHalf): Refusal | undefined {
    const json = update.half === undefined ? '' : JSON.stringify(update.half);
    if (Buffer.byteLength(json) > CONTENT_BYTES_MAX)
      return new Refusal(
        'TooLarge',
        `a half of more than ${CONTENT_BYTES_MAX} bytes cannot be sent to another cluster`,
      );
    const value = update.half === undefined ? undefined : (JSON.parse(json) as JsonObject);
    const id = idOf(update.key, update.role);
    const known = this.#entries.get(id);
    if (known && !known.isRefused && deepEqual(known.value, value)) return undefined;
    const entry = known ?? { update, value, json, base: undefined, isUnsent: true, isRefused: false, underWay: 0 };
    Object.assign(entry, { update, value, json, isUnsent: true, isRefused: false } satisfies Partial<Entry>);
    this.#entries.set(id, entry);
    this.#ready.add(entry);
    return undefined;
  }

  /** Says nothing of a key any more. */
  withdraw(key: string, role: Role): void {
    const entry = this.#entries.get(idOf(key, role));
    if (entry) this.#forget(entry);
  }

  /** What to send next; undefined while nothing may be. */
  next(): Extract<Frame, { kind: 'update' | 'gone' }> | undefined {
    for (const entry of this.#ready) {
      if (entry.underWay >= UNDER_WAY_PER_KEY_MAX) {
        // Its turn comes when one of those is answered.
        this.#ready.delete(entry);
        continue;
      }
      if (this.#sent.size >= WINDOW) return undefined;
      const content = entry.value && contentOf(entry.value, entry.json, entry.base);
      const bytes = content?.json.length ?? 0;
      if (this.#sent.size > 0 && this.#bytesUnderWay + bytes > WINDOW_BYTES) return undefined;
      return this.#send(entry, content, bytes);
    }
    return undefined;
  }

  #send(
    entry: Entry,
    content: Update['content'] | undefined,
    bytes: number,
  ): Extract<Frame, { kind: 'update' | 'gone' }> {
    const seq = ++this.#seq;
    this.#ready.delete(entry);
    this.#sent.set(seq, { seq, bytes, update: entry.update, entry });
    this.#bytesUnderWay += bytes;
    Object.assign(entry, { base: entry.value, isUnsent: false, underWay: entry.underWay + 1 } satisfies Partial<Entry>);
    const { key, role } = entry.update;
    return content ? { kind: 'update', seq, key, role, content } : { kind: 'gone', seq, key, role };
  }

  /** The peer has answered an update; undefined where nobody needs to know. */
  answered(seq: number, refusal?: Refusal): Outcome | undefined {
    if (seq > this.#seq) throw violation(`it answers ${seq}, which nobody has sent`);
    const sent = this.#sent.get(seq);
    // A refusal is told again after a cut, whether it had arrived or not.
    if (!sent) return undefined;
    this.#settle(sent);
    const { entry, update } = sent;
    if (!this.#has(entry)) return undefined;
    if (refusal) return this.#refused(entry, update, refusal);
    if (entry.update === update && update.half === undefined) this.#forget(entry);
    else if (entry.isUnsent) this.#ready.add(entry);
    return { update };
  }

  #refused(entry: Entry, update: OfferedHalf, refusal: Refusal): Outcome | undefined {
    entry.base = undefined;
    const isNewest = entry.update === update && !entry.isUnsent;
    const isSnapshotWanted = refusal.reason === SNAPSHOT_WANTED;
    if (isNewest && isSnapshotWanted) entry.isUnsent = true;
    else if (isNewest) entry.isRefused = true;
    if (entry.isUnsent) this.#ready.add(entry);
    return isSnapshotWanted ? undefined : { update, refusal };
  }

  /**
   * A new stream begins. `heard` is where the peer stands with what this incarnation has said; undefined where it knows
   * nothing of it. Answers what it has acknowledged without this side having heard.
   */
  resume(heard: Pick<Resume, 'seq' | 'unanswered'> | undefined): OfferedHalf[] {
    if (!heard) {
      for (const sent of this.#sent.values()) this.#settle(sent);
      for (const entry of this.#entries.values()) this.#sayAgain(entry);
      return [];
    }
    if (heard.seq > this.#seq) throw violation(`it has heard ${heard.seq}, which nobody has sent`);
    const unanswered = new Set(heard.unanswered);
    const acknowledged: OfferedHalf[] = [];
    for (const sent of this.#sent.values()) {
      if (sent.seq > heard.seq) {
        this.#settle(sent);
        if (this.#has(sent.entry)) this.#sayAgain(sent.entry);
      } else if (!unanswered.has(sent.seq)) {
        const outcome = this.answered(sent.seq);
        if (outcome) acknowledged.push(outcome.update);
      }
    }
    return acknowledged;
  }

  #sayAgain(entry: Entry): void {
    Object.assign(entry, { base: undefined, isUnsent: true, isRefused: false } satisfies Partial<Entry>);
    this.#ready.add(entry);
  }

  #settle(sent: Sent): void {
    this.#sent.delete(sent.seq);
    this.#bytesUnderWay -= sent.bytes;
    sent.entry.underWay--;
  }

  #has(entry: Entry): boolean {
    return this.#entries.get(idOf(entry.update.key, entry.update.role)) === entry;
  }

  #forget(entry: Entry): void {
    this.#entries.delete(idOf(entry.update.key, entry.update.role));
    this.#ready.delete(entry);
  }
}

/** Keys are free text; the role in front has a fixed alphabet. */
export function idOf(key: string, role: Role): string {
  return `${role}/${key}`;
}

/** The shorter of the two ways to say it. */
function contentOf(value: JsonObject, json: string, base: JsonObject | undefined): Update['content'] {
  const difference = base && mergeDifference(base, value);
  const delta = difference && JSON.stringify(difference);
  if (delta !== undefined && delta.length < json.length) return { kind: 'delta', json: Buffer.from(delta) };
  return { kind: 'snapshot', json: Buffer.from(json) };
}
