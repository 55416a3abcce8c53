/**
 * What a work queue counts. Plain numbers, since a queue is busier than a metrics library is quick: they are turned
 * into series only when somebody reads the metrics.
 */

/** Upper bounds of the buckets, as client-go has them. */
export const QUEUE_SECONDS_BUCKETS: readonly number[] = Array.from({ length: 12 }, (_, index) => 10 ** (index - 8));

/** Priorities whose depth is still told once it is nought; past it they are dropped, so that values cannot pile up. */
const IDLE_PRIORITIES_MAX = 100;

/** How many durations fell below each bound, kept per bucket and summed up when read. */
export class DurationCounts {
  readonly #counts = new Float64Array(QUEUE_SECONDS_BUCKETS.length + 1);
  #sum = 0;
  #count = 0;

  observe(seconds: number): void {
    let bucket = 0;
    while (bucket < QUEUE_SECONDS_BUCKETS.length && seconds > (QUEUE_SECONDS_BUCKETS[bucket] as number)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
    this.#sum += seconds;
    this.#count++;
  }

  get sum(): number {
    return this.#sum;
  }

  get count(): number {
    return this.#count;
  }

  /** Per bound, how many were at most that long; the last one is how many there were at all. */
  cumulative(): number[] {
    let total = 0;
    return Array.from(this.#counts, (count) => (total += count));
  }
}

/** A key that is being worked on, since when. `workedIndex` belongs to the stats. */
export interface Worked {
  workedSinceMs: number;
  workedIndex: number;
}

export class QueueStats {
  readonly queueDurations = new DurationCounts();
  readonly workDurations = new DurationCounts();
  /** Ready keys by priority. */
  readonly depths = new Map<number, number>([[0, 0]]);
  adds = 0;
  retries = 0;
  /** What is being worked on, in no order. */
  readonly worked: Worked[] = [];

  entered(priority: number): void {
    this.adds++;
    this.depths.set(priority, (this.depths.get(priority) ?? 0) + 1);
  }

  moved(from: number, to: number): void {
    this.#left(from);
    this.depths.set(to, (this.depths.get(to) ?? 0) + 1);
  }

  taken(worked: Worked, priority: number, queuedMs: number, nowMs: number): void {
    this.#left(priority);
    this.queueDurations.observe(queuedMs / 1000);
    worked.workedSinceMs = nowMs;
    worked.workedIndex = this.worked.length;
    this.worked.push(worked);
  }

  done(worked: Worked, nowMs: number): void {
    this.workDurations.observe((nowMs - worked.workedSinceMs) / 1000);
    const last = this.worked.pop() as Worked;
    if (last === worked) return;
    last.workedIndex = worked.workedIndex;
    this.worked[worked.workedIndex] = last;
  }

  #left(priority: number): void {
    const depth = (this.depths.get(priority) ?? 0) - 1;
    if (depth === 0 && this.depths.size > IDLE_PRIORITIES_MAX) this.depths.delete(priority);
    else this.depths.set(priority, depth);
  }
}
