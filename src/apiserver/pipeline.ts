import { ApiError, internalError, serviceUnavailable, tooManyRequests } from '../api/status.ts';
import type { Env } from '../env/ports.ts';
import type { Authenticator } from './auth/authenticate.ts';
import { forbiddenError } from './auth/forbidden.ts';
import { impersonate } from './auth/impersonation.ts';
import type { Authorizer, Decision } from './auth/rbac.ts';
import { ANONYMOUS } from './auth/users.ts';
import { HEALTH_PATHS } from './health.ts';
import { REQUESTS_IN_FLIGHT_MAX, REQUESTS_OF_ONE_USER_MAX, WATCHES_MAX } from './http/limits.ts';
import type { ApiRequest, ApiResponse, RequestInfo, UserInfo } from './http/message.ts';
import { parseRequestInfo } from './http/request-info.ts';
import { errorResponse } from './http/outgoing.ts';
import type { AuditLog } from './observability/audit.ts';
import type { ApiServerMetrics, RequestMeasurement } from './observability/metrics.ts';
import { StorageError } from './storage/port.ts';

/**
 * What every request goes through, whatever it is for: who asks, may they, is there room, and afterwards the books
 * (metrics, audit). The order is kube-apiserver's: nobody learns what exists before they are known and allowed.
 */

export interface PipelineOptions {
  readonly env: Env;
  readonly authenticator: Authenticator;
  readonly authorizer: Authorizer;
  /** Whether the resource of a request exists; metrics have no labels for what does not. */
  readonly serves: (info: RequestInfo) => boolean;
  /** Answers an authorized request, or throws. */
  readonly route: (request: ApiRequest, info: RequestInfo, user: UserInfo) => Promise<ApiResponse>;
  readonly metrics: ApiServerMetrics;
  readonly audit?: AuditLog;
}

/** A request on its way, as far as it came. */
interface Passage {
  readonly request: ApiRequest;
  readonly info: RequestInfo;
  readonly receivedMs: number;
  readonly measurement: RequestMeasurement;
  /** Who asks, and as whom. */
  real: UserInfo;
  user: UserInfo;
  decision: Decision;
  failure: ApiError | undefined;
}

const REFUSED: Decision = { allowed: false, reason: '' };

export class Pipeline {
  readonly #options: PipelineOptions;
  #requests = 0;
  /** By the name of who asks. */
  readonly #requestsOf = new Map<string, number>();
  #watches = 0;

  constructor(options: PipelineOptions) {
    this.#options = options;
  }

  /** Answers a request; never rejects. */
  async handle(request: ApiRequest): Promise<ApiResponse> {
    let passage: Passage;
    try {
      passage = this.#begin(request);
    } catch (error) {
      return errorResponse(this.#toApiError(error, request), request.headers['accept']);
    }
    const response = await this.#answer(passage);
    if (typeof response.body === 'string' || response.body instanceof Uint8Array) {
      this.#end(passage, response.status);
      return response;
    }
    return { ...response, body: this.#follow(response.body, passage, response.status) };
  }

  /** Admits a request that takes its connection over. Throws the ApiError that refuses it. */
  async admit(request: ApiRequest): Promise<UserInfo> {
    const passage = this.#begin(request);
    try {
      await this.#pass(passage);
      this.#end(passage, 101);
      return passage.user;
    } catch (error) {
      passage.failure = this.#toApiError(error, request);
      this.#end(passage, passage.failure.code);
      throw passage.failure;
    }
  }

  #begin(request: ApiRequest): Passage {
    const { env, metrics, serves } = this.#options;
    const info = parseRequestInfo(request.method, request.path, request.query);
    const measurement = metrics.begin(info, serves(info), info.verb === 'watch');
    return {
      request,
      info,
      receivedMs: env.clock.now(),
      measurement,
      real: ANONYMOUS,
      user: ANONYMOUS,
      decision: REFUSED,
      failure: undefined,
    };
  }

  #end(passage: Passage, code: number): void {
    passage.measurement.end(code);
    const { real, user, decision, failure } = passage;
    this.#options.audit?.record({
      ...passage,
      ...(real === user ? {} : { impersonator: real }),
      code,
      decision: decision.allowed ? 'allow' : 'forbid',
      reason: decision.reason,
      ...(failure ? { failure: failure.toStatus() } : {}),
    });
  }

  async #answer(passage: Passage): Promise<ApiResponse> {
    const isWatch = passage.info.verb === 'watch';
    this.#requests++;
    let requester: string | undefined;
    try {
      // A server that is busy is not dead: whoever restarts it for its silence makes it all worse.
      if (this.#requests > REQUESTS_IN_FLIGHT_MAX && !HEALTH_PATHS.includes(passage.info.path))
        throw tooManyRequests('too many requests, please try again later', 1);
      await this.#pass(passage);
      requester = passage.real.username;
      this.#count(requester, 1);
      if ((this.#requestsOf.get(requester) ?? 0) > REQUESTS_OF_ONE_USER_MAX)
        throw tooManyRequests('too many requests of one user, please try again later', 1);
      if (isWatch && this.#watches >= WATCHES_MAX) throw tooManyRequests('too many watches, please try again later', 5);
      return await this.#options.route(passage.request, passage.info, passage.user);
    } catch (error) {
      passage.failure = this.#toApiError(error, passage.request);
      return errorResponse(passage.failure, passage.request.headers['accept']);
    } finally {
      this.#requests--;
      if (requester !== undefined) this.#count(requester, -1);
    }
  }

  #count(requester: string, change: 1 | -1): void {
    const count = (this.#requestsOf.get(requester) ?? 0) + change;
    if (count === 0) this.#requestsOf.delete(requester);
    else this.#requestsOf.set(requester, count);
  }

  async #pass(passage: Passage): Promise<void> {
    const { authenticator, authorizer } = this.#options;
    const { request, info } = passage;
    passage.real = await authenticator.identify(request);
    passage.user = impersonate(authorizer, passage.real, request.headers);
    passage.decision = authorizer.authorize(passage.user, info);
    if (!passage.decision.allowed) throw forbiddenError(passage.user, info, passage.decision.reason);
  }

  #toApiError(error: unknown, request: ApiRequest): ApiError {
    const { log } = this.#options.env;
    if (error instanceof ApiError) {
      if (error.code === 500)
        log.warn('request failed', { path: request.path, error: error.message, cause: causeOf(error) });
      return error;
    }
    if (error instanceof StorageError) {
      return error.fatal
        ? serviceUnavailable('the storage has failed; the server is stopping', error)
        : internalError(error.message, error);
    }
    const stack = error instanceof Error ? error.stack : String(error);
    log.error('request failed unexpectedly', { method: request.method, path: request.path, error: stack });
    return ApiError.from(error);
  }

  /** Passes a stream on and closes the books when it ends, however it ends, and even if nobody ever reads it. */
  #follow(
    body: AsyncIterable<string | Uint8Array>,
    passage: Passage,
    status: number,
  ): AsyncIterableIterator<string | Uint8Array> {
    const isWatch = passage.info.verb === 'watch';
    const chunks = body[Symbol.asyncIterator]();
    let isOpen = true;
    if (isWatch) this.#watches++;
    const close = (): void => {
      if (!isOpen) return;
      isOpen = false;
      if (isWatch) this.#watches--;
      this.#end(passage, status);
    };
    const passOn = (result: IteratorResult<string | Uint8Array>): IteratorResult<string | Uint8Array> => {
      if (result.done === true) close();
      return result;
    };
    const fail = (error: unknown): never => {
      close();
      throw error;
    };
    return {
      [Symbol.asyncIterator]() {
        return this;
      },
      next: () => chunks.next().then(passOn, fail),
      async return() {
        close();
        await chunks.return?.();
        return { done: true, value: undefined };
      },
    };
  }
}

function causeOf({ cause }: ApiError): string | undefined {
  return cause instanceof Error ? `${cause.name}: ${cause.message}` : undefined;
}
