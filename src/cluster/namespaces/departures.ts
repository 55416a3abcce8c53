import { setMaxListeners } from 'node:events';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { errorText } from '../../kube/error-text.ts';
import type { Resource } from '../../kube/resource.ts';

/** Objects of one resource that are to go. */
export interface Leaving {
  readonly resource: Resource;
  readonly count: number;
  /** The resourceVersion as of which there were that many. */
  readonly version: string;
}

export interface DeparturesOptions {
  readonly env: Env;
  /** Needs the metadata alone. */
  readonly client: Client;
  /** Called when all that was left in a namespace has gone. */
  readonly onEmpty: (namespace: string) => void;
}

/** Kinds that are watched at once in one namespace; where more are left, it takes a while anyway. */
const WATCHES_MAX = 20;
const WATCH_SECONDS = 600;

/**
 * Watches what is left in namespaces that are being emptied, so that nobody has to look again and again. It promises
 * nothing: a watch that breaks off is not begun again, since somebody looks again in any case, if later.
 */
export class Departures {
  readonly #options: DeparturesOptions;
  readonly #expected = new Map<string, AbortController>();
  readonly #watches = new Set<Promise<void>>();

  constructor(options: DeparturesOptions) {
    this.#options = options;
  }

  /** Watches these, and no longer what was left in the namespace before. */
  expect(namespace: string, leaving: readonly Leaving[]): void {
    this.forget(namespace);
    if (leaving.length === 0 || leaving.length > WATCHES_MAX) return;
    const stop = new AbortController();
    setMaxListeners(0, stop.signal);
    this.#expected.set(namespace, stop);
    let left = leaving.reduce((sum, { count }) => sum + count, 0);
    const onDeparture = (): void => {
      if (--left > 0 || stop.signal.aborted) return;
      this.forget(namespace);
      this.#options.onEmpty(namespace);
    };
    for (const each of leaving) {
      const watch = this.#watch(namespace, each, onDeparture, stop.signal).finally(() => this.#watches.delete(watch));
      this.#watches.add(watch);
    }
  }

  forget(namespace: string): void {
    this.#expected.get(namespace)?.abort();
    this.#expected.delete(namespace);
  }

  /** Ends all watches. */
  async stop(): Promise<void> {
    for (const namespace of this.#expected.keys()) this.forget(namespace);
    await Promise.all(this.#watches);
  }

  async #watch(
    namespace: string,
    { resource, version }: Leaving,
    onDeparture: () => void,
    signal: AbortSignal,
  ): Promise<void> {
    const { client, env } = this.#options;
    const options = { namespace, resourceVersion: version, timeoutSeconds: WATCH_SECONDS };
    try {
      for await (const { type } of await client.watch(resource, options, signal)) {
        if (type === 'DELETED') onDeparture();
        if (signal.aborted) return;
      }
    } catch (error) {
      if (!signal.aborted) env.log.debug('not watched any more', { namespace, error: errorText(error) });
    }
  }
}
