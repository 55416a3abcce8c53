import type { Clock, Env, Timer } from '../env/ports.ts';
import { KeySchedule, type PriorityOf } from './key-schedule.ts';
import { QueueStats } from './queue-stats.ts';
import { DEFAULT_RATE_LIMITS, KeyBackoff, type RateLimits, TokenBucket } from './rate-limits.ts';
import { SteadyTime } from './steady-time.ts';

/**
 * Keys that wait for a worker. Adding a key that is queued already changes nothing but, maybe, makes it due earlier; a
 * key is never worked on twice at once; every operation costs O(log n). `KeySchedule` decides the order; this half adds
 * time, waiting workers and rate limits.
 *
 * There is one timer at most, for the key that falls due first, and only while a worker waits: a queue that nobody
 * reads costs nothing and keeps no process alive.
 */

export interface WorkQueueOptions {
  readonly env: Pick<Env, 'clock' | 'log'>;
  /** Names it in metrics. */
  readonly name: string;
  /**
   * What a key's priority is now, by its object; larger goes first. Asked again whenever it could matter, so it must be
   * quick; it must not call the queue. Where it throws, or is absent, the priority is 0.
   */
  readonly priorityOf?: PriorityOf | undefined;
  readonly rateLimits?: Partial<RateLimits> | undefined;
  readonly stats?: QueueStats | undefined;
}

interface Waiter {
  hand(key: string): void;
}

export class WorkQueue {
  readonly name: string;
  readonly #clock: Clock;
  readonly #time: SteadyTime;
  readonly #stats: QueueStats;
  readonly #schedule: KeySchedule;
  readonly #limits: RateLimits;
  readonly #backoff: KeyBackoff;
  readonly #bucket: TokenBucket;
  /** Workers that wait for a key, longest first. */
  readonly #waiters = new Set<Waiter>();
  #timer: Timer | undefined;
  #timerDueMs = Number.POSITIVE_INFINITY;
  #isHandingOut = false;

  constructor(options: WorkQueueOptions) {
    this.name = options.name;
    this.#clock = options.env.clock;
    this.#time = new SteadyTime(options.env.clock);
    this.#stats = options.stats ?? new QueueStats();
    this.#schedule = new KeySchedule(tolerant(options), { stats: this.#stats });
    this.#limits = { ...DEFAULT_RATE_LIMITS, ...options.rateLimits };
    this.#backoff = new KeyBackoff(this.#limits);
    this.#bucket = new TokenBucket(this.#limits.perSecond, this.#limits.burst, this.#time.now());
  }

  /** Keys that are due and not worked on, or due again once their worker is done. */
  get size(): number {
    this.#schedule.promote(this.#time.now());
    return this.#schedule.readyCount;
  }

  /** Keys that are not due yet. */
  get delayedSize(): number {
    this.#schedule.promote(this.#time.now());
    return this.#schedule.delayedCount;
  }

  /** Keys that are being worked on. */
  get activeSize(): number {
    return this.#schedule.workedCount;
  }

  /** Queues a key to be worked on as soon as possible. */
  add(key: string): void {
    this.#add(key, 0);
  }

  /** Queues a key to be worked on once `delayMs` have passed, or earlier where it was due earlier. Infinity is never. */
  addAfter(key: string, delayMs: number): void {
    if (delayMs === Number.POSITIVE_INFINITY) return;
    if (delayMs > 0) this.#stats.retries++;
    this.#add(key, delayMs);
  }

  /** Queues a key that failed: later, the more often it has failed since it was last forgotten. */
  addRateLimited(key: string): void {
    const ownMs = this.#backoff.delayMs(key);
    this.addAfter(key, Math.max(ownMs, this.#bucket.reserve(this.#time.now(), this.#limits.maxMs)));
  }

  /** Forgets how often a key has failed. */
  forget(key: string): void {
    this.#backoff.forget(key);
  }

  /** How often a key has failed since it was last forgotten. */
  failuresOf(key: string): number {
    return this.#backoff.failuresOf(key);
  }

  /** Asks for the priority of a key again, because what it depends on has changed. Queues nothing. */
  touch(key: string): void {
    this.#schedule.touch(key);
  }

  /**
   * The next key, as soon as there is one; `done` must follow. Undefined once the signal has aborted, even where keys
   * are left.
   */
  next(signal: AbortSignal): Promise<string | undefined> {
    if (signal.aborted) return Promise.resolve(undefined);
    const key = this.#schedule.take(this.#time.now());
    return key === undefined ? this.#wait(signal) : Promise.resolve(key);
  }

  /** The next key if there is one right now; `done` must follow. */
  tryNext(): string | undefined {
    return this.#schedule.take(this.#time.now());
  }

  /** Ends the work on a key. Where it was added meanwhile, it becomes ready again. */
  done(key: string): void {
    this.#schedule.done(key, this.#time.now());
    this.#wake();
  }

  #add(key: string, delayMs: number): void {
    const nowMs = this.#time.now();
    this.#schedule.add(key, nowMs + delayMs, nowMs);
    this.#wake();
  }

  #wait(signal: AbortSignal): Promise<string | undefined> {
    return new Promise((resolve) => {
      const onAbort = (): void => {
        this.#waiters.delete(waiter);
        if (this.#waiters.size === 0) this.#disarm();
        resolve(undefined);
      };
      const waiter: Waiter = {
        hand: (key) => {
          signal.removeEventListener('abort', onAbort);
          resolve(key);
        },
      };
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiters.add(waiter);
      this.#arm();
    });
  }

  #wake(): void {
    if (this.#waiters.size === 0) return;
    if (this.#schedule.hasNext) this.#handOutSoon();
    else this.#arm();
  }

  /** Not at once: of all the keys that are added in one go, the first to be worked on should be the most urgent one. */
  #handOutSoon(): void {
    if (this.#isHandingOut) return;
    this.#isHandingOut = true;
    queueMicrotask(() => {
      this.#isHandingOut = false;
      this.#handOut();
    });
  }

  #handOut(): void {
    for (const waiter of this.#waiters) {
      const key = this.#schedule.take(this.#time.now());
      if (key === undefined) break;
      this.#waiters.delete(waiter);
      waiter.hand(key);
    }
    if (this.#waiters.size === 0) this.#disarm();
    else this.#arm();
  }

  /** A timer that was set for a key that is no longer there fires in vain; that is cheaper than keeping track. */
  #arm(): void {
    const dueMs = this.#schedule.nextDueMs;
    if (dueMs === undefined || dueMs >= this.#timerDueMs) return;
    this.#timer?.cancel();
    this.#timerDueMs = dueMs;
    this.#timer = this.#clock.setTimer(
      () => {
        this.#disarm();
        this.#handOut();
      },
      Math.max(0, dueMs - this.#time.now()),
    );
  }

  #disarm(): void {
    this.#timer?.cancel();
    this.#timer = undefined;
    this.#timerDueMs = Number.POSITIVE_INFINITY;
  }
}

/** One object whose priority cannot be told must not stop the work on all others. */
function tolerant({ priorityOf, env, name }: WorkQueueOptions): PriorityOf {
  if (!priorityOf) return () => 0;
  return (key) => {
    try {
      const priority = priorityOf(key);
      if (!Number.isNaN(priority)) return priority;
      env.log.error('the priority of a key is no number', { queue: name, key });
    } catch (error) {
      env.log.error('the priority of a key cannot be told', { queue: name, key, error: String(error) });
    }
    return 0;
  };
}
