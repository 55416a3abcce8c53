import { type Before, IndexedHeap } from './indexed-heap.ts';
import { LinkedList } from './linked-list.ts';
import { type LineItem, PriorityLines } from './priority-lines.ts';
import { QueueStats, type Worked } from './queue-stats.ts';

/**
 * Which key is worked on next: the pure half of the work queue, told what time it is by its caller.
 *
 * Delayed keys are in a heap, by when they fall due; ready ones in lines, by priority, then by when they became ready. A
 * key that has fallen due is moved from one to the other before anything is taken, so that a ready key can never be
 * hidden behind a delayed one of higher priority, as it would be in one order of both.
 *
 * Priorities are not given by whoever adds a key, and not merged: that is how they leak upwards (a key once added as
 * urgent stays so) or go stale. The queue asks what a key's priority is now: whenever the key is added, touched, falls
 * due, or comes back from a worker.
 *
 * A key that is added while it is worked on is held: it counts as ready, but enters its line only once it is done.
 *
 * Keys that are neither queued nor worked on are remembered for a while, as many as there are others: the same keys come
 * again and again, and a map of a million that loses and gains one each time is busy with little else.
 *
 * Invariants: a key has one entry at most; an entry is in the heap while it is delayed, in a line while it is ready, in
 * the list of idle ones while nobody works on it either, and else in none of them.
 */

/** Larger numbers go first. */
export type PriorityOf = (key: string) => number;

type State = 'idle' | 'delayed' | 'ready' | 'held';

/** Its priority means something while it is ready or held; its sequence says when it was made ready, or delayed. */
interface Entry extends LineItem, Worked {
  readonly key: string;
  state: State;
  isWorked: boolean;
  /** When it falls, or fell, due. */
  dueMs: number;
}

/** Idle keys that are remembered however few others there are. */
const IDLE_COUNT_MIN = 1000;

export interface KeyScheduleOptions {
  readonly stats?: QueueStats;
  /** How numbers are compared; for counting comparisons. */
  readonly isBefore?: Before;
  readonly idleCountMin?: number;
}

export class KeySchedule {
  readonly #priorityOf: PriorityOf;
  readonly #stats: QueueStats;
  readonly #idleCountMin: number;
  readonly #entries = new Map<string, Entry>();
  /** Those that are neither queued nor worked on, longest first. */
  readonly #idle = new LinkedList<Entry>();
  readonly #ready: PriorityLines<Entry>;
  readonly #delayed: IndexedHeap<Entry>;
  #heldCount = 0;
  #workedCount = 0;
  #sequence = 0;

  constructor(priorityOf: PriorityOf, options: KeyScheduleOptions = {}) {
    this.#priorityOf = priorityOf;
    this.#stats = options.stats ?? new QueueStats();
    this.#idleCountMin = options.idleCountMin ?? IDLE_COUNT_MIN;
    this.#ready = new PriorityLines(options.isBefore);
    this.#delayed = new IndexedHeap(options.isBefore);
  }

  /** Keys that are due, those that are held included. */
  get readyCount(): number {
    return this.#ready.size + this.#heldCount;
  }

  get delayedCount(): number {
    return this.#delayed.size;
  }

  get workedCount(): number {
    return this.#workedCount;
  }

  /** Keys that take up memory, idle ones included. */
  get knownCount(): number {
    return this.#entries.size;
  }

  /** True when `take` would answer a key. */
  get hasNext(): boolean {
    return this.#ready.size > 0;
  }

  /** When the next delayed key falls due. */
  get nextDueMs(): number | undefined {
    return this.#delayed.firstMajor;
  }

  /** Queues a key, at the earlier of `dueMs` and when it would have been due anyway. */
  add(key: string, dueMs: number, nowMs: number): void {
    if (Number.isNaN(dueMs)) throw new Error(`the key ${key} was added with a delay that is no number`);
    const entry = this.#entries.get(key);
    if (entry && isDue(entry)) this.#reprioritize(entry);
    else if (dueMs <= nowMs) this.#makeReady(key, entry, nowMs);
    else if (entry?.state === 'delayed') this.#hasten(entry, dueMs);
    else this.#delay(this.#awaken(key, entry), dueMs);
  }

  /** Asks for a key's priority again, because its object has changed. Keys that are not queued are left alone. */
  touch(key: string): void {
    const entry = this.#entries.get(key);
    if (entry && isDue(entry)) this.#reprioritize(entry);
  }

  /** Makes ready what has fallen due. */
  promote(nowMs: number): void {
    for (let first = this.#delayed.first; first && first.dueMs <= nowMs; first = this.#delayed.first) {
      this.#makeReady(first.key, first, first.dueMs);
    }
  }

  /** The key to work on now, until `done`; undefined when none is ready. */
  take(nowMs: number): string | undefined {
    this.promote(nowMs);
    const entry = this.#ready.pop();
    if (!entry) return undefined;
    if (entry.isWorked) throw new Error(`the key ${entry.key} is worked on already`);
    entry.state = 'idle';
    entry.isWorked = true;
    this.#workedCount++;
    this.#stats.taken(entry, entry.priority, Math.max(0, nowMs - entry.dueMs), nowMs);
    return entry.key;
  }

  /** Ends the work on a key that `take` answered. */
  done(key: string, nowMs: number): void {
    const entry = this.#entries.get(key);
    if (!entry?.isWorked) throw new Error(`the key ${key} is not worked on`);
    if (entry.state === 'held') this.#reprioritize(entry);
    entry.isWorked = false;
    this.#workedCount--;
    this.#stats.done(entry, nowMs);
    if (entry.state === 'idle') this.#rest(entry);
    if (entry.state === 'held') this.#release(entry);
  }

  /** The entry of a key that is about to be queued. */
  #awaken(key: string, known: Entry | undefined): Entry {
    if (known?.state === 'idle' && !known.isWorked) this.#idle.remove(known);
    const entry = known ?? newEntry(key);
    if (!known) this.#entries.set(key, entry);
    return entry;
  }

  #rest(entry: Entry): void {
    this.#idle.append(entry);
    const idleMax = Math.max(this.#idleCountMin, this.#entries.size / 2);
    for (let oldest = this.#idle.first; oldest && this.#idle.size > idleMax; oldest = this.#idle.first) {
      this.#idle.remove(oldest);
      this.#entries.delete(oldest.key);
    }
  }

  #delay(entry: Entry, dueMs: number): void {
    entry.state = 'delayed';
    entry.dueMs = dueMs;
    entry.sequence = this.#sequence++;
    this.#delayed.push(entry, dueMs, entry.sequence);
  }

  #hasten(entry: Entry, dueMs: number): void {
    if (dueMs >= entry.dueMs) return;
    entry.dueMs = dueMs;
    this.#delayed.update(entry, dueMs, entry.sequence);
  }

  /** Asks before it changes anything, so that a priority function that throws leaves no key half queued. */
  #makeReady(key: string, known: Entry | undefined, dueMs: number): void {
    const priority = this.#ask(key);
    const entry = this.#awaken(key, known);
    if (entry.state === 'delayed') this.#delayed.remove(entry);
    entry.priority = priority;
    entry.sequence = this.#sequence++;
    entry.dueMs = dueMs;
    this.#stats.entered(priority);
    entry.state = 'held';
    this.#heldCount++;
    if (!entry.isWorked) this.#release(entry);
  }

  /** Lets a key that is due be taken. */
  #release(entry: Entry): void {
    entry.state = 'ready';
    this.#heldCount--;
    this.#ready.push(entry);
  }

  #reprioritize(entry: Entry): void {
    const priority = this.#ask(entry.key);
    if (priority === entry.priority) return;
    this.#stats.moved(entry.priority, priority);
    if (entry.state === 'ready') this.#ready.remove(entry);
    entry.priority = priority;
    if (entry.state === 'ready') this.#ready.push(entry);
  }

  #ask(key: string): number {
    const priority = this.#priorityOf(key);
    if (Number.isNaN(priority)) throw new Error(`the priority of ${key} is no number`);
    return priority;
  }
}

function isDue(entry: Entry): boolean {
  return entry.state === 'ready' || entry.state === 'held';
}

function newEntry(key: string): Entry {
  return {
    key,
    state: 'idle',
    isWorked: false,
    priority: 0,
    sequence: 0,
    dueMs: 0,
    position: -1,
    previous: undefined,
    next: undefined,
    workedSinceMs: 0,
    workedIndex: -1,
  };
}
