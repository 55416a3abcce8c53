import { type Before, type HeapItem, IndexedHeap } from './indexed-heap.ts';
import { QueueStats } from './queue-stats.ts';

/**
 * Which key is worked on next: the pure half of the work queue, told what time it is by its caller.
 *
 * Two heaps. Delayed keys are ordered by when they fall due; ready ones by priority, then by when they became ready. A
 * key that has fallen due is moved from one to the other before anything is taken, so that a ready key can never be
 * hidden behind a delayed one of higher priority, as it would be in one heap ordered by both.
 *
 * Priorities are not given by whoever adds a key, and not merged: that is how they leak upwards (a key once added as
 * urgent stays so) or go stale. The queue asks what a key's priority is now: whenever the key is added, touched, falls
 * due, or comes back from a worker.
 *
 * A key that is added while it is worked on is held: it counts as ready, but enters the heap only once it is done.
 *
 * Invariants: a key has one entry at most; an entry exists only while its key is queued or worked on; only entries that
 * are ready or delayed are in a heap, and in the one of that name.
 */

/** Larger numbers go first. */
export type PriorityOf = (key: string) => number;

type State = 'idle' | 'delayed' | 'ready' | 'held';

interface Entry extends HeapItem {
  readonly key: string;
  state: State;
  isWorked: boolean;
  /** Meaningful while ready or held. */
  priority: number;
  /** FIFO number: when it became ready; while delayed, when it was added. */
  sequence: number;
  /** When it falls, or fell, due. */
  dueMs: number;
}

export class KeySchedule {
  readonly #priorityOf: PriorityOf;
  readonly #stats: QueueStats;
  readonly #entries = new Map<string, Entry>();
  readonly #ready: IndexedHeap<Entry>;
  readonly #delayed: IndexedHeap<Entry>;
  #heldCount = 0;
  #workedCount = 0;
  #sequence = 0;

  constructor(priorityOf: PriorityOf, stats = new QueueStats(), isBefore?: Before) {
    this.#priorityOf = priorityOf;
    this.#stats = stats;
    this.#ready = new IndexedHeap(isBefore);
    this.#delayed = new IndexedHeap(isBefore);
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
    else this.#delay(entry ?? this.#newEntry(key), dueMs);
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
    this.#stats.taken(entry.key, entry.priority, Math.max(0, nowMs - entry.dueMs), nowMs);
    return entry.key;
  }

  /** Ends the work on a key that `take` answered. */
  done(key: string, nowMs: number): void {
    const entry = this.#entries.get(key);
    if (!entry?.isWorked) throw new Error(`the key ${key} is not worked on`);
    if (entry.state === 'held') this.#reprioritize(entry);
    entry.isWorked = false;
    this.#workedCount--;
    this.#stats.done(key, nowMs);
    if (entry.state === 'idle') this.#entries.delete(key);
    if (entry.state === 'held') this.#release(entry);
  }

  #newEntry(key: string): Entry {
    const entry: Entry = { key, state: 'idle', isWorked: false, priority: 0, sequence: 0, dueMs: 0, position: -1 };
    this.#entries.set(key, entry);
    return entry;
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
    const entry = known ?? this.#newEntry(key);
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
    this.#ready.push(entry, -entry.priority, entry.sequence);
  }

  #reprioritize(entry: Entry): void {
    const priority = this.#ask(entry.key);
    if (priority === entry.priority) return;
    this.#stats.moved(entry.priority, priority);
    entry.priority = priority;
    if (entry.state === 'ready') this.#ready.update(entry, -priority, entry.sequence);
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
