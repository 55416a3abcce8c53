import { bootstrapTokenEndMs } from '../../api/bootstrap-token.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { secrets } from '../resources.ts';
import type { Secret } from '../service-accounts/objects.ts';

export interface TokenCleanerOptions {
  readonly env: Env;
  readonly client: Client;
  readonly metrics: KubeMetrics;
  /** Those that hold bootstrap tokens, and no others. */
  readonly tokens: Pick<Informer<Secret>, 'get' | 'onChange'>;
}

/** Deletes bootstrap tokens whose time is over. Nobody accepts them any more; this keeps them from piling up. */
export class TokenCleaner implements Service {
  readonly name = 'token_cleaner';
  readonly #options: TokenCleanerOptions;
  readonly #controller: Controller;

  constructor(options: TokenCleanerOptions) {
    this.#options = options;
    const { env, metrics, tokens } = options;
    const reconcile = (key: string, signal: AbortSignal): Promise<Result> => this.#reconcile(key, signal);
    this.#controller = new Controller({ name: this.name, env, metrics, reconcile });
    tokens.onChange(({ object }) => this.#controller.enqueue(keyOf(object)));
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const { env, client, tokens } = this.#options;
    const token = tokens.get(key);
    if (!token) return {};
    const expiration = Buffer.from(token.data?.['expiration'] ?? '', 'base64').toString('utf8');
    const leftMs = bootstrapTokenEndMs(expiration) - env.clock.now();
    if (leftMs > 0) return { requeueAfterMs: leftMs };
    const { namespace = '', name = '', uid, resourceVersion } = token.metadata;
    try {
      // What was prolonged meanwhile, or made anew, is another version than the one that has ended.
      await client.delete(secrets, namespace, name, signal, { preconditions: { uid, resourceVersion } });
    } catch (error) {
      if (!(error instanceof ApiError && (error.code === 404 || error.code === 409))) throw error;
    }
    return {};
  }
}
