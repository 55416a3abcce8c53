import { ExpiredRevision } from './model.ts';
import type { LogEntry } from './port.ts';
import { Queue } from './queue.ts';

/** A change without its text: that is in memory while it is live, and in the engine's log after. */
export interface ChangeRecord {
  readonly revision: number;
  readonly type: 'put' | 'delete';
  readonly bucket: string;
  readonly key: string;
  /** The revision that it superseded; 0 for a creation. */
  readonly previous: number;
  /** Characters of its text. */
  readonly length: number;
}

/** How far back the window may reach: whichever of the two is used up first. */
export interface HistoryLimits {
  readonly changesMax: number;
  readonly charactersMax: number;
}

/**
 * The window of the last changes, and what may leave the log once a change has left the window.
 *
 * The log keeps every entry that a change in the window made or superseded, so that a watch can resume and a list
 * can look back anywhere inside. When a change leaves, the entry that it superseded can go, and a deletion's own
 * entry too. Entries go strictly in this order: were a tombstone dropped before the state that it buries, a crash
 * in between would raise the dead.
 */
export class History {
  readonly #limits: HistoryLimits;
  readonly #all = new Queue<ChangeRecord>();
  readonly #byBucket = new Map<string, Queue<ChangeRecord>>();
  readonly #droppable = new Queue<number>();
  #oldestRevision: number;
  #characters = 0;

  /** An empty window that begins after this revision. */
  constructor(limits: HistoryLimits, oldestRevision: number) {
    this.#limits = limits;
    this.#oldestRevision = oldestRevision;
  }

  /**
   * The window of a log that was loaded. It reaches back as far as the log is complete: every revision is there,
   * with the one that it superseded. Whatever lies before is queued for dropping: what a crash left undone.
   */
  static fromLog(records: readonly ChangeRecord[], limits: HistoryLimits, emptyRevision: number): History {
    const start = windowStart(records, limits.changesMax);
    const first = records[start];
    const history = new History(limits, first === undefined ? emptyRevision : first.revision - 1);
    for (let index = 0; index < start; index++) history.#release(records[index] as ChangeRecord);
    for (let index = start; index < records.length; index++) history.push(records[index] as ChangeRecord);
    return history;
  }

  /** The oldest revision whose state is still known: changes after it are all here. */
  get oldestRevision(): number {
    return this.#oldestRevision;
  }

  push(record: ChangeRecord): void {
    this.#all.push(record);
    const queue = this.#byBucket.get(record.bucket);
    if (queue !== undefined) queue.push(record);
    else {
      const created = new Queue<ChangeRecord>();
      created.push(record);
      this.#byBucket.set(record.bucket, created);
    }
    this.#characters += record.length;
    while (this.#isTooLong()) this.#forgetOldest();
  }

  /** The changes of a bucket after a revision, in order. */
  recordsAfter(bucket: string, revision: number): ChangeRecord[] {
    this.assertKnown(revision);
    const queue = this.#byBucket.get(bucket);
    return queue === undefined ? [] : queue.slice(firstAfter(queue, revision));
  }

  /**
   * The same one by one, for those who take their time: changes that come meanwhile are included. Throws
   * ExpiredRevision when the window overtakes the reader.
   */
  *follow(bucket: string, revision: number): Generator<ChangeRecord> {
    let last = revision;
    for (;;) {
      this.assertKnown(last);
      const queue = this.#byBucket.get(bucket);
      const record = queue?.at(firstAfter(queue, last));
      if (record === undefined) return;
      last = record.revision;
      yield record;
    }
  }

  assertKnown(revision: number): void {
    if (revision < this.#oldestRevision) throw new ExpiredRevision(revision, this.#oldestRevision);
  }

  /** Revisions that the log no longer needs, at most so many, in the order in which they must go. */
  droppable(countMax: number): number[] {
    return this.#droppable.slice(0, countMax);
  }

  /** The first of the droppable revisions have left the log. */
  dropped(count: number): void {
    this.#droppable.drop(count);
  }

  /** The last change stays, however long it is. */
  #isTooLong(): boolean {
    const { changesMax, charactersMax } = this.#limits;
    return this.#all.length > changesMax || (this.#characters > charactersMax && this.#all.length > 1);
  }

  #forgetOldest(): void {
    const record = this.#all.at(0) as ChangeRecord;
    this.#all.drop(1);
    this.#characters -= record.length;
    const queue = this.#byBucket.get(record.bucket) as Queue<ChangeRecord>;
    queue.drop(1);
    if (queue.length === 0) this.#byBucket.delete(record.bucket);
    this.#oldestRevision = record.revision;
    this.#release(record);
  }

  #release(record: ChangeRecord): void {
    if (record.previous !== 0) this.#droppable.push(record.previous);
    if (record.type === 'delete') this.#droppable.push(record.revision);
  }
}

/** What the history keeps of a log entry. */
export function recordOf(entry: LogEntry): ChangeRecord {
  const { revision, type, bucket, key, previous, text } = entry;
  return { revision, type, bucket, key, previous, length: text.length };
}

/** The position of the first record after a revision. */
function firstAfter(
  records: { readonly length: number; at(index: number): ChangeRecord | undefined },
  revision: number,
): number {
  let low = 0;
  let high = records.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((records.at(middle) as ChangeRecord).revision <= revision) low = middle + 1;
    else high = middle;
  }
  return low;
}

function windowStart(records: readonly ChangeRecord[], changesMax: number): number {
  let start = records.length;
  let next: number | undefined;
  while (start > 0 && records.length - start < changesMax) {
    const record = records[start - 1] as ChangeRecord;
    if (next !== undefined && record.revision !== next - 1) break;
    if (record.previous !== 0 && !isPresent(records, record.previous)) break;
    next = record.revision;
    start--;
  }
  return start;
}

function isPresent(records: readonly ChangeRecord[], revision: number): boolean {
  return records[firstAfter(records, revision) - 1]?.revision === revision;
}
