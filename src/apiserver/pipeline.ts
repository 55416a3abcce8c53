import { ApiError, internalError, serviceUnavailable, tooManyRequests } from '../api/status.ts';
import type { Env } from '../env/ports.ts';
import type { Authenticator } from './auth/authenticate.ts';
import { forbiddenError } from './auth/forbidden.ts';
import type { Authorizer } from './auth/rbac.ts';
import { ANONYMOUS } from './auth/users.ts';
import { REQUESTS_IN_FLIGHT_MAX, WATCHES_MAX } from './http/limits.ts';
import type { ApiRequest, ApiResponse, RequestInfo, UserInfo } from './http/message.ts';
import { parseRequestInfo } from './http/request-info.ts';
import { errorResponse } from './http/server.ts';
import { StorageError } from './storage/port.ts';

/**
 * What every request goes through, whatever it is for: who asks, may they, is there room, and afterwards the books
 * (metrics, audit). The order is kube-apiserver's: nobody learns what exists before they are known and allowed.
 */

/** What became of a request, for the books. */
export interface Outcome {
  readonly request: ApiRequest;
  readonly info: RequestInfo;
  readonly user: UserInfo;
  /** Why it was allowed, or empty. */
  readonly decision: { readonly allowed: boolean; readonly reason: string };
  readonly status: number;
  readonly startedMs: number;
  readonly endedMs: number;
}

export interface PipelineOptions {
  readonly env: Env;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  /** Answers an authorized request, or throws. */
  readonly route: (request: ApiRequest, info: RequestInfo, user: UserInfo) => Promise<ApiResponse>;
  /** Called once per request, when its last byte is ready (a watch: when it ends). */
  readonly onOutcome: (outcome: Outcome) => void;
  /** Called when the number of requests or watches under way changes. */
  readonly onLoad: (load: { readonly requests: number; readonly watches: number }) => void;
}

/** An authorized request, as far as it came. */
interface Passage {
  info: RequestInfo;
  user: UserInfo;
  decision: { allowed: boolean; reason: string };
}

const UNKNOWN: RequestInfo = {
  verb: '',
  isResource: false,
  path: '',
  group: '',
  version: '',
  namespace: '',
  resource: '',
  subresource: '',
  name: '',
  rest: '',
};

export class Pipeline {
  readonly #options: PipelineOptions;
  #requests = 0;
  #watches = 0;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** Answers a request; never rejects. */
  async handle(request: ApiRequest): Promise<ApiResponse> {
    const startedMs = this.#options.env.clock.now();
    const passage: Passage = {
      info: { ...UNKNOWN, path: request.path },
      user: ANONYMOUS,
      decision: { allowed: false, reason: '' },
    };
    const response = await this.#answer(request, passage);
    const finish = (status: number): void =>
      this.#options.onOutcome({ request, ...passage, status, startedMs, endedMs: this.#options.env.clock.now() });
    if (typeof response.body === 'string' || response.body instanceof Uint8Array) {
      finish(response.status);
      return response;
    }
    return {
      ...response,
      body: this.#follow(response.body, passage.info.verb === 'watch', () => finish(response.status)),
    };
  }

  /** Admits a request that takes its connection over. Throws the ApiError that refuses it. */
  async admit(request: ApiRequest): Promise<{ info: RequestInfo; user: UserInfo }> {
    const passage: Passage = { info: UNKNOWN, user: ANONYMOUS, decision: { allowed: false, reason: '' } };
    await this.#pass(request, passage);
    return passage;
  }

  async #answer(request: ApiRequest, passage: Passage): Promise<ApiResponse> {
    if (this.#requests >= REQUESTS_IN_FLIGHT_MAX)
      return errorResponse(tooManyRequests('too many requests, please try again later', 1));
    this.#count(1, 0);
    try {
      await this.#pass(request, passage);
      if (passage.info.verb === 'watch' && this.#watches >= WATCHES_MAX)
        throw tooManyRequests('too many watches, please try again later', 5);
      return await this.#options.route(request, passage.info, passage.user);
    } catch (error) {
      return errorResponse(this.#toApiError(error, request));
    } finally {
      this.#count(-1, 0);
    }
  }

  async #pass(request: ApiRequest, passage: Passage): Promise<void> {
    passage.info = parseRequestInfo(request.method, request.path, request.query);
    passage.user = await this.#options.authenticator.authenticate(request);
    passage.decision = this.#options.authorizer.authorize(passage.user, passage.info);
    if (!passage.decision.allowed) throw forbiddenError(passage.user, passage.info, passage.decision.reason);
  }

  #toApiError(error: unknown, request: ApiRequest): ApiError {
    if (error instanceof ApiError) {
      if (error.code === 500)
        this.#options.env.log.warn('request failed', {
          path: request.path,
          error: error.message,
          cause: String(error.cause ?? ''),
        });
      return error;
    }
    if (error instanceof StorageError)
      return error.fatal
        ? serviceUnavailable('the storage has failed; the server is stopping', error)
        : internalError(error.message, error);
    this.#options.env.log.error('request failed unexpectedly', {
      method: request.method,
      path: request.path,
      error: error instanceof Error ? error.stack : String(error),
    });
    return ApiError.from(error);
  }

  /** Passes a stream on and closes the books when it ends, however it ends. */
  async *#follow(
    body: AsyncIterable<string | Uint8Array>,
    isWatch: boolean,
    finish: () => void,
  ): AsyncGenerator<string | Uint8Array> {
    if (isWatch) this.#count(0, 1);
    try {
      yield* body;
    } finally {
      if (isWatch) this.#count(0, -1);
      finish();
    }
  }

  #count(requests: number, watches: number): void {
    this.#requests += requests;
    this.#watches += watches;
    this.#options.onLoad({ requests: this.#requests, watches: this.#watches });
  }
}
