import { ApiError, pathNotFound } from '../api/status.ts';
import type { ServiceAccountTokens } from './auth/tokens.ts';
import type { ApiRequest, ApiResponse } from './http/message.ts';
import type { ApiServerMetrics } from './observability/metrics.ts';
import { KUBERNETES_VERSION } from './version.ts';

/** Paths that are no resources: health, version, metrics, and the keys that tokens are signed with. */

export interface NonResourceOptions {
  readonly metrics: ApiServerMetrics;
  readonly tokens: ServiceAccountTokens;
  readonly isReady: () => boolean;
}

const PATHS = [
  '/.well-known/openid-configuration',
  '/api',
  '/apis',
  '/healthz',
  '/livez',
  '/metrics',
  '/openapi/v2',
  '/openapi/v3',
  '/openid/v1/jwks',
  '/readyz',
  '/version',
];

function text(body: string, status = 200): ApiResponse {
  return {
    status,
    headers: { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' },
    body,
  };
}

function json(value: unknown): ApiResponse {
  return { status: 200, headers: { 'content-type': 'application/json' }, body: JSON.stringify(value, undefined, 2) };
}

export class NonResources {
  readonly #options: NonResourceOptions;

  constructor(options: NonResourceOptions) {
    this.#options = options;
  }

  /** Answers, or throws 404 and 405. */
  async handle(request: ApiRequest, path: string): Promise<ApiResponse> {
    if (!PATHS.includes(path) && path !== '/') throw pathNotFound();
    if (request.method !== 'GET' && request.method !== 'HEAD')
      throw new ApiError(
        405,
        'MethodNotAllowed',
        'the server does not allow this method on the requested resource',
        {},
      );
    const { metrics, tokens } = this.#options;
    switch (path) {
      case '/livez':
        return text('ok');
      case '/healthz':
      case '/readyz':
        return this.#options.isReady() ? text('ok') : text('the server is starting or stopping', 500);
      case '/version':
        return json(KUBERNETES_VERSION);
      case '/metrics':
        return {
          ...text(await metrics.render()),
          headers: { 'content-type': metrics.contentType },
        };
      case '/openid/v1/jwks':
        return { ...json(await tokens.keySet()), headers: { 'content-type': 'application/jwk-set+json' } };
      case '/.well-known/openid-configuration':
        return json(tokens.discoveryDocument(`${tokens.audiences[0]}/openid/v1/jwks`));
      default:
        return json({ paths: PATHS });
    }
  }
}
