import { ApiError, pathNotFound } from '../api/status.ts';
import type { ServiceAccountTokens } from './auth/tokens.ts';
import { answerHealth, HEALTH_PATHS, type HealthCheck } from './health.ts';
import type { ApiRequest, ApiResponse } from './http/message.ts';
import type { ApiServerMetrics } from './observability/metrics.ts';
import { KUBERNETES_VERSION } from './version.ts';

/** Paths that are no resources: health, version, metrics, and the keys that tokens are signed with. */

export interface NonResourceOptions {
  readonly metrics: ApiServerMetrics;
  /** What others in this process count, in the same format. */
  readonly moreMetrics?: (() => Promise<string>) | undefined;
  readonly tokens: ServiceAccountTokens;
  readonly isReady: () => boolean;
  /** Every group and version that is served, as paths; for whoever asks for `/`. */
  readonly groupPaths: () => readonly string[];
}

const PATHS = [
  '/.well-known/openid-configuration',
  '/api',
  '/apis',
  ...HEALTH_PATHS,
  '/metrics',
  '/openapi/v2',
  '/openapi/v3',
  '/openid/v1/jwks',
  '/version',
];

function json(value: unknown): ApiResponse {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(value, undefined, 2) };
}

export class NonResources {
  readonly #options: NonResourceOptions;
  readonly #checks: readonly HealthCheck[];

  constructor(options: NonResourceOptions) {
    this.#options = options;
    this.#checks = [
      { name: 'ping', isLiveness: true, isHealthy: () => true },
      { name: 'bootstrap', isLiveness: false, isHealthy: options.isReady },
    ];
  }

  /** Answers, or throws 404 and 405. */
  async handle(request: ApiRequest, path: string): Promise<ApiResponse> {
    const health = answerHealth(this.#checks, path, request.query);
    if (!health && !PATHS.includes(path) && path !== '/') throw pathNotFound();
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new ApiError(
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
        {},
      );
    if (health) return health;
    const { tokens, groupPaths } = this.#options;
    switch (path) {
      case '/version':
        return json(KUBERNETES_VERSION);
      case '/metrics':
        return this.#metrics();
      case '/openid/v1/jwks':
        return { ...json(await tokens.keySet()), headers: { 'content-type': 'application/jwk-set+json' } };
      case '/.well-known/openid-configuration':
        return json(tokens.discoveryDocument(`${tokens.audiences[0]}/openid/v1/jwks`));
      default:
        return json({ paths: [...PATHS, ...groupPaths()].sort() });
    }
  }

  async #metrics(): Promise<ApiResponse> {
    const { metrics, moreMetrics } = this.#options;
    const parts = [await metrics.render(), (await moreMetrics?.()) ?? ''];
    return { status: 200, headers: { 'content-type': metrics.contentType }, body: parts.join('') };
  }
}
