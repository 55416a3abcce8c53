import { setMaxListeners } from 'node:events';
import { ApiError } from '../api/status.ts';
import { type Env, sleep } from '../env/ports.ts';
import { sharedAbortController } from './abort.ts';
import { errorText } from './error-text.ts';
import type { PriorityOf } from './key-schedule.ts';
import { type ControllerMetrics, KubeMetrics } from './metrics.ts';
import type { RateLimits } from './rate-limits.ts';
import type { Service } from './service.ts';
import { SteadyTime } from './steady-time.ts';
import { WorkQueue } from './work-queue.ts';

/** What a reconcile asks for. */
export interface Result {
  /**
   * To be called again once this time has passed, or earlier where something else asks for it. Nought or less is at
   * once: a deadline that has passed meanwhile is not forgotten. Infinity is not at all.
   */
  readonly requeueAfterMs?: number | undefined;
}

/**
 * Brings one object to where it should be. It is given the key alone, never what happened: it observes the world as it
 * is, decides, acts, and writes what it has to say in one patch. It may be called at any time, any number of times, but
 * never twice at once for the same key.
 *
 * What it rejects with is logged, and the key is tried again with growing delays; a TerminalError is not tried again.
 * A result takes effect only where it does not reject. When the signal aborts it should end soon: either it took too
 * long, or the controller stops; `signal.reason` says which.
 */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<Result | void>;

/** Trying again would not help: the key is left alone until something changes. */
export class TerminalError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'TerminalError';
  }
}

/** Why a reconcile's signal aborts when it took too long. */
export class ReconcileTimeoutError extends Error {
  constructor(timeoutMs: number, cause?: unknown) {
    super(`the reconcile took longer than ${timeoutMs} ms`, { cause });
    this.name = 'ReconcileTimeoutError';
  }
}

export interface ControllerOptions {
  readonly name: string;
  readonly env: Env;
  readonly reconcile: Reconcile;
  /** How many keys are worked on at once. */
  readonly workers?: number;
  /** What a key's priority is now; see WorkQueueOptions. */
  readonly priorityOf?: PriorityOf;
  readonly rateLimits?: Partial<RateLimits>;
  readonly reconcileTimeoutMs?: number;
  readonly metrics?: KubeMetrics;
}

/** Requests have shorter timeouts of their own: what takes longer than this is stuck. */
const RECONCILE_TIMEOUT_MS = 60_000;
/** After so much work in a row the process does other things. Reconciles that never wait would else starve its sockets. */
const BURST_MS_MAX = 20;

/** Workers that reconcile keys until they are stopped. */
export class Controller implements Service {
  readonly name: string;
  readonly queue: WorkQueue;
  readonly #env: Env;
  readonly #workers: number;
  readonly #reconcile: Reconcile;
  readonly #timeoutMs: number;
  readonly #metrics: ControllerMetrics;
  readonly #time: SteadyTime;
  readonly #underWay = new Set<AbortController>();
  /** Why keys failed when they were last tried: nobody is told the same again and again. */
  readonly #complaints = new Map<string, string>();
  #isRunning = false;

  constructor(options: ControllerOptions) {
    const { name, env, priorityOf, rateLimits, workers = 1 } = options;
    const metrics = options.metrics ?? new KubeMetrics(env.clock);
    this.name = name;
    this.#env = { ...env, log: env.log.child({ controller: name }) };
    this.#workers = workers;
    this.#reconcile = options.reconcile;
    this.#timeoutMs = options.reconcileTimeoutMs ?? RECONCILE_TIMEOUT_MS;
    this.#metrics = metrics.controller(name, workers);
    this.#time = new SteadyTime(env.clock);
    this.queue = new WorkQueue({ env: this.#env, name, priorityOf, rateLimits, stats: metrics.queue(name) });
  }

  /** Asks for a key to be reconciled, now or after a while. Can be called before the controller runs. */
  enqueue(key: string, options: { readonly afterMs?: number } = {}): void {
    this.queue.addAfter(key, options.afterMs ?? 0);
  }

  /** Says that the priority of a key may have changed, without asking for it to be reconciled. */
  touch(key: string): void {
    this.queue.touch(key);
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#isRunning) throw new Error(`the controller ${this.name} runs already`);
    this.#isRunning = true;
    const stop = (): void => {
      for (const reconcile of this.#underWay) reconcile.abort(signal.reason);
    };
    // Each worker that waits for a key listens.
    setMaxListeners(0, signal);
    signal.addEventListener('abort', stop, { once: true });
    try {
      await Promise.all(Array.from({ length: this.#workers }, () => this.#work(signal)));
    } finally {
      signal.removeEventListener('abort', stop);
      this.#isRunning = false;
    }
  }

  async #work(signal: AbortSignal): Promise<void> {
    let burstSinceMs = this.#time.now();
    for (;;) {
      const isBurst = this.queue.size > 0;
      const key = await this.queue.next(signal);
      if (key === undefined) return;
      if (!isBurst) burstSinceMs = this.#time.now();
      try {
        await this.#handle(key, signal);
      } finally {
        this.queue.done(key);
      }
      if (this.#time.now() - burstSinceMs < BURST_MS_MAX) continue;
      await sleep(this.#env.clock, 0, signal);
      burstSinceMs = this.#time.now();
    }
  }

  async #handle(key: string, signal: AbortSignal): Promise<void> {
    const startMs = this.#time.now();
    const abort = sharedAbortController();
    const timer = this.#env.clock.setTimer(() => {
      this.#env.log.warn('reconcile takes too long', { key, timeoutMs: this.#timeoutMs });
      abort.abort(new ReconcileTimeoutError(this.#timeoutMs));
    }, this.#timeoutMs);
    this.#underWay.add(abort);
    this.#metrics.began();
    try {
      const result = await this.#reconcile(key, abort.signal);
      this.#metrics.ended(this.#succeeded(key, result), this.#time.now() - startMs);
    } catch (error) {
      if (signal.aborted) this.#stopped(key, error);
      else this.#failed(key, isTimeout(abort.signal) ? new ReconcileTimeoutError(this.#timeoutMs, error) : error);
      this.#metrics.ended(signal.aborted ? 'stopped' : 'error', this.#time.now() - startMs);
    } finally {
      timer.cancel();
      this.#underWay.delete(abort);
    }
  }

  #succeeded(key: string, result: Result | void): 'success' | 'requeue_after' {
    const { requeueAfterMs = Number.POSITIVE_INFINITY } = result ?? {};
    if (Number.isNaN(requeueAfterMs)) throw new TypeError('the result asks for a delay that is no number');
    this.queue.forget(key);
    this.#complaints.delete(key);
    if (requeueAfterMs === Number.POSITIVE_INFINITY) return 'success';
    this.queue.addAfter(key, requeueAfterMs);
    return 'requeue_after';
  }

  #failed(key: string, error: unknown): void {
    if (error instanceof TerminalError) {
      this.#metrics.terminalError();
      this.queue.forget(key);
      this.#complaints.delete(key);
      this.#env.log.error('reconcile failed for good', { key, error: errorText(error) });
      return;
    }
    this.queue.addRateLimited(key);
    const text = errorText(error);
    const failures = this.queue.failuresOf(key);
    const fields = { key, failures, error: text };
    // Somebody else was faster, as happens all the time: the next try knows what they have written.
    if (failures === 1 && error instanceof ApiError && error.reason === 'Conflict')
      return this.#env.log.debug('reconcile was overtaken', fields);
    const isNews = this.#complaints.get(key) !== text;
    this.#complaints.set(key, text);
    if (!isPanic(error)) return this.#env.log[isNews ? 'warn' : 'debug']('reconcile failed', fields);
    this.#metrics.panicked();
    this.#env.log.error('reconcile has a bug', { ...fields, stack: error instanceof Error ? error.stack : undefined });
  }

  /** The work was cut short, so it stays to be done, by whoever runs this next. */
  #stopped(key: string, error: unknown): void {
    this.queue.add(key);
    this.#env.log.debug('reconcile stopped', { key, error: errorText(error) });
  }
}

/** The soonest of several results. */
export function soonest(results: Iterable<Result | void>): Result {
  let requeueAfterMs: number | undefined;
  for (const result of results) {
    const afterMs = result?.requeueAfterMs;
    if (afterMs !== undefined && !(afterMs >= (requeueAfterMs ?? Number.POSITIVE_INFINITY))) requeueAfterMs = afterMs;
  }
  return requeueAfterMs === undefined ? {} : { requeueAfterMs };
}

function isTimeout(signal: AbortSignal): boolean {
  return signal.reason instanceof ReconcileTimeoutError;
}

/** What no careful code throws: it is a bug here, not a failure elsewhere. */
function isPanic(error: unknown): boolean {
  if (!(error instanceof Error)) return true;
  if (error instanceof TypeError || error instanceof RangeError || error instanceof ReferenceError) return true;
  return 'code' in error && error.code === 'ERR_ASSERTION';
}
