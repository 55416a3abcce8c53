import type { Env, Timer } from '../env/ports.ts';
import { errorText } from './error-text.ts';
import type { LeaderElector } from './leader-election.ts';
import type { Service } from './service.ts';
import { ServiceGroup } from './service-group.ts';

export interface ManagerOptions {
  readonly env: Env;
  readonly name?: string;
  /** Where given, what needs leadership runs only while this process is the leader. */
  readonly elector?: Pick<LeaderElector, 'lead'>;
  /** How long services may take to end, all together. */
  readonly stopTimeoutMs?: number;
}

/** Services still ran when the time to stop them was over. */
export class StopTimeoutError extends Error {
  constructor(services: readonly Service[], timeoutMs: number, cause?: unknown) {
    super(`${services.map(({ name }) => name).join(', ')} did not end within ${timeoutMs} ms`, { cause });
    this.name = 'StopTimeoutError';
  }
}

/** controller-runtime's. */
const STOP_TIMEOUT_MS = 30_000;
const SYNC_REMINDER_MS = 30_000;

/**
 * Holds the services of a process together: what needs no leadership starts first, in the order in which it was added;
 * when all that has to sync has synced, and this process is the leader, so does the rest. It stops the other way round:
 * what needs leadership first, then the lease is given back, then the others. In each half the last is told first.
 *
 * One that fails, or ends by itself, or the loss of leadership, stops all; `run` then rejects with that cause. It also
 * rejects when services do not end in time: the process should then exit, since the lease is kept for as long as what
 * it guards may still be at work.
 */
export class Manager implements Service {
  readonly name: string;
  /** Resolves when all that needs no leadership has started and synced. */
  readonly synced: Promise<void>;
  readonly #env: Env;
  readonly #elector: ManagerOptions['elector'];
  readonly #stopTimeoutMs: number;
  readonly #services: Service[] = [];
  readonly #halt = new AbortController();
  readonly #groups = { always: this.#newGroup(), leading: this.#newGroup() };
  #resolveSynced: () => void = () => undefined;
  /** Why it stops before it is told to. */
  #cause: unknown;
  #hasStarted = false;

  constructor(options: ManagerOptions) {
    this.name = options.name ?? 'manager';
    this.#env = options.env;
    this.#elector = options.elector;
    this.#stopTimeoutMs = options.stopTimeoutMs ?? STOP_TIMEOUT_MS;
    this.synced = new Promise((resolve) => (this.#resolveSynced = resolve));
  }

  /** Adds services, in the order in which they start. Not possible any more once it runs. */
  add(...services: readonly Service[]): this {
    if (this.#hasStarted) throw new Error('the manager runs already');
    this.#services.push(...services);
    return this;
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#hasStarted) throw new Error('the manager can run only once');
    this.#hasStarted = true;
    const unlink = onAbort(signal, () => this.#halt.abort(signal.reason));
    try {
      await this.#withDeadline(this.#runAll());
    } finally {
      unlink();
    }
    if (this.#cause !== undefined) throw this.#cause;
  }

  /** Never rejects: what goes wrong is the cause of its end. */
  async #runAll(): Promise<void> {
    const halt = this.#halt.signal;
    if (halt.aborted) return;
    for (const service of this.#services) if (!needsLeadership(service)) this.#start(this.#groups.always, service);
    try {
      await this.#waitForSync();
      if (halt.aborted) return;
      this.#resolveSynced();
      if (this.#elector) await this.#elector.lead(halt, (leadership) => this.#runLeading(leadership));
      else await this.#runLeading(halt);
    } catch (error) {
      this.#fail(error);
    } finally {
      await this.#groups.always.stop(halt.reason);
    }
  }

  /** Services are told to end in the very moment in which the signal aborts: the lease may soon be another one's. */
  #runLeading(signal: AbortSignal): Promise<void> {
    const { leading } = this.#groups;
    for (const service of this.#services) {
      if (needsLeadership(service) && !signal.aborted) this.#start(leading, service);
    }
    return new Promise((resolve) => {
      onAbort(signal, () => {
        resolve(leading.stop(signal.reason));
        if (!this.#halt.signal.aborted) this.#fail(signal.reason);
      });
    });
  }

  async #waitForSync(): Promise<void> {
    const waiting = new Set(this.#services.filter((service) => service.synced && !needsLeadership(service)));
    const waits = [...waiting].map(async (service) => {
      await service.synced;
      waiting.delete(service);
    });
    let timer: Timer | undefined;
    const remind = (): void => {
      timer = this.#env.clock.setTimer(() => {
        this.#env.log.warn('still waiting for services to sync', { services: [...waiting].map(({ name }) => name) });
        remind();
      }, SYNC_REMINDER_MS);
    };
    remind();
    try {
      await Promise.race([Promise.all(waits), new Promise<void>((resolve) => onAbort(this.#halt.signal, resolve))]);
    } finally {
      timer?.cancel();
    }
  }

  #newGroup(): ServiceGroup {
    return new ServiceGroup((error) => this.#fail(error));
  }

  #start(group: ServiceGroup, service: Service): void {
    this.#env.log.info('starting', { service: service.name });
    group.start(service);
  }

  /** The first cause counts; what fails while all is being stopped is its consequence, but must be seen. */
  #fail(error: unknown): void {
    if (this.#halt.signal.aborted) {
      if (error !== this.#cause) this.#env.log.error('failed while stopping', { error: errorText(error) });
      return;
    }
    this.#cause = error;
    this.#env.log.error('stopping', { error: errorText(error) });
    this.#halt.abort(error);
  }

  /** Settles with the work, or rejects when that takes too long from the moment in which it was told to end. */
  #withDeadline(work: Promise<void>): Promise<void> {
    let timer: Timer | undefined;
    return new Promise<void>((resolve, reject) => {
      const onTimeout = (): void => {
        const running = [...this.#groups.leading.running, ...this.#groups.always.running];
        reject(new StopTimeoutError(running, this.#stopTimeoutMs, this.#cause));
      };
      const unlink = onAbort(this.#halt.signal, () => {
        timer = this.#env.clock.setTimer(onTimeout, this.#stopTimeoutMs);
      });
      work.then(resolve, reject).finally(() => {
        unlink();
        timer?.cancel();
      });
    });
  }
}

function needsLeadership(service: Service): boolean {
  return service.needsLeadership ?? service.synced === undefined;
}

/** Calls back when the signal aborts, or at once if it has; answers how to take that back. */
function onAbort(signal: AbortSignal, callback: () => void): () => void {
  const listener = (): void => callback();
  signal.addEventListener('abort', listener, { once: true });
  if (signal.aborted) callback();
  return () => signal.removeEventListener('abort', listener);
}
