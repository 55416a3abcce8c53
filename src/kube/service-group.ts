import { sharedAbortController } from './abort.ts';
import { errorText } from './error-text.ts';
import type { Service } from './service.ts';

/** A service did not do what services do. */
export class ServiceError extends Error {
  constructor(service: Service, what: string, cause?: unknown) {
    super(`${service.name} ${what}${cause === undefined ? '' : `: ${errorText(cause)}`}`, { cause });
    this.name = 'ServiceError';
  }
}

interface Started {
  readonly service: Service;
  readonly stop: AbortController;
  readonly ended: Promise<void>;
}

/** Services that are started in order and stopped together, the last one first. */
export class ServiceGroup {
  readonly #onFailure: (error: ServiceError) => void;
  readonly #started: Started[] = [];
  readonly #running = new Set<Service>();

  /** `onFailure` is called for every service that fails, or ends without having been told to. */
  constructor(onFailure: (error: ServiceError) => void) {
    this.#onFailure = onFailure;
  }

  /** The services that have not ended. */
  get running(): readonly Service[] {
    return [...this.#running];
  }

  start(service: Service): void {
    const stop = sharedAbortController();
    this.#running.add(service);
    this.#started.push({ service, stop, ended: this.#run(service, stop.signal) });
  }

  /** Tells all to end, and resolves when all have. */
  async stop(reason: unknown): Promise<void> {
    for (const { stop } of this.#started.toReversed()) stop.abort(reason);
    await Promise.all(this.#started.map(({ ended }) => ended));
  }

  async #run(service: Service, signal: AbortSignal): Promise<void> {
    try {
      await service.run(signal);
      if (!signal.aborted) this.#onFailure(new ServiceError(service, 'ended by itself'));
    } catch (error) {
      this.#onFailure(new ServiceError(service, 'failed', error));
    } finally {
      this.#running.delete(service);
    }
  }
}
