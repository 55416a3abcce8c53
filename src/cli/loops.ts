import type { Env } from '../env/ports.ts';
import { errorText } from '../kube/error-text.ts';
import { Manager } from '../kube/manager.ts';
import type { Service } from '../kube/service.ts';

/** A loop of the control plane failed in a way that it cannot mend by itself. */
export class LoopsError extends Error {
  constructor(cause: unknown) {
    super(`the control plane's loops have failed (${cause instanceof Error ? cause.message : errorText(cause)})`, {
      cause,
    });
    this.name = 'LoopsError';
  }
}

/** `godwit down` has to see the whole process end within 30 s. */
const STOP_TIMEOUT_MS = 10_000;

/** What runs beside the API server, at work from the moment it is made until it is stopped. */
export class Loops {
  /** Resolves when they have failed before they were told to end; the process has to end then. */
  readonly failed: Promise<LoopsError>;
  /** Resolves when they have all that they need to begin. */
  readonly synced: Promise<void>;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;

  constructor(env: Env, services: readonly Service[]) {
    const manager = new Manager({ env, name: 'control plane', stopTimeoutMs: STOP_TIMEOUT_MS }).add(...services);
    this.synced = manager.synced;
    const running = manager.run(this.#stopping.signal);
    this.failed = new Promise((resolve) => {
      running.catch((error: unknown) => resolve(new LoopsError(error)));
    });
    // What goes wrong is told by `failed`, and the manager has logged it: stopping is what remains to be done.
    this.#ended = running.catch(() => undefined);
  }

  /** Resolves when nothing of them is under way any more, or the manager has lost patience. */
  async stop(): Promise<void> {
    this.#stopping.abort(new Error('the process ends'));
    await this.#ended;
  }
}
