import { errorMessage } from '../../../api/error-message.ts';
import type { KubeObject } from '../../../api/meta.ts';
import { ApiError, badRequest, internalError } from '../../../api/status.ts';
import type { Env } from '../../../env/ports.ts';
import type { AdmissionAttributes, Registry } from '../../registry/contract.ts';
import { EndpointError, findEndpoint } from './endpoint.ts';
import { chooseVersion, denial, readReview, type ReviewResponse, reviewBody, reviewRequest } from './review.ts';
import type { Invocation } from './source.ts';
import { TransportError, type WebhookRequest, type WebhookTransport } from './transport.ts';
import { describeAnswer } from './unexpected-answer.ts';
import { addWarnings } from './warnings.ts';

/** What became of one call, for metrics. */
export interface WebhookObservation {
  readonly name: string;
  readonly type: 'admit' | 'validating';
  readonly operation: AdmissionAttributes['operation'];
  readonly outcome: 'allowed' | 'denied' | 'failed-open' | 'failed-closed' | 'error';
  readonly durationMs: number;
}

/** What calling webhooks needs. */
export interface WebhookOptions {
  readonly registry: Registry;
  readonly env: Env;
  readonly transport: WebhookTransport;
  readonly observer?: (observation: WebhookObservation) => void;
}

/** A webhook that could not be asked, or did not answer properly: its failure policy decides what that means. */
export class CallError extends Error {
  constructor(webhookName: string, reason: string, cause?: unknown) {
    super(`failed calling webhook ${JSON.stringify(webhookName)}: ${reason}`, { cause });
    this.name = 'CallError';
  }
}

/** The objects in the version that the webhook asked for. */
export interface ReviewedObjects {
  readonly object: KubeObject | undefined;
  readonly oldObject: KubeObject | undefined;
}

type Handle<T> = (response: ReviewResponse) => T;

/** Asks webhooks, one at a time, and applies their failure policy. */
export class WebhookCaller {
  readonly #options: WebhookOptions;
  readonly #type: WebhookObservation['type'];

  constructor(type: WebhookObservation['type'], options: WebhookOptions) {
    this.#options = options;
    this.#type = type;
  }

  /**
   * Asks a webhook and answers what `handle` makes of a positive answer; undefined when the webhook failed and its
   * policy is to ignore that. Throws the denial, or 500 when it failed and its policy is to fail.
   */
  async call<T>(
    invocation: Invocation,
    attributes: AdmissionAttributes,
    objects: ReviewedObjects,
    handle: Handle<T>,
  ): Promise<T | undefined> {
    const { clock, log } = this.#options.env;
    const { compiled } = invocation;
    const { name } = compiled.webhook;
    const startMs = clock.now();
    const observe = (outcome: WebhookObservation['outcome']): void =>
      this.#options.observer?.({
        name,
        type: this.#type,
        operation: attributes.operation,
        outcome,
        durationMs: clock.now() - startMs,
      });
    try {
      const response = await this.#ask(invocation, attributes, objects);
      addWarnings(attributes.context, response.warnings);
      if (!response.allowed) throw new Denied(denial(name, response.result));
      const answer = handle(response);
      observe('allowed');
      return answer;
    } catch (error) {
      if (error instanceof Denied) {
        observe('denied');
        throw error.answer;
      }
      if (!(error instanceof CallError)) {
        observe('error');
        throw ApiError.from(error);
      }
      if (attributes.context.signal.aborted) throw requestTimeout(error);
      observe(compiled.failsOpen ? 'failed-open' : 'failed-closed');
      const outcome = compiled.failsOpen ? 'failing open' : 'failing closed';
      log.warn(`Failed calling webhook, ${outcome}`, { webhook: name, error: error.message });
      if (!compiled.failsOpen) throw internalError(error.message, error);
      return undefined;
    }
  }

  async #ask(
    invocation: Invocation,
    attributes: AdmissionAttributes,
    objects: ReviewedObjects,
  ): Promise<ReviewResponse> {
    const { webhook } = invocation.compiled;
    if (attributes.context.dryRun) checkSideEffects(webhook.name, webhook.sideEffects);
    const version = chooseVersion(webhook.admissionReviewVersions);
    if (!version) {
      const reason = 'webhook does not accept known AdmissionReview versions (v1, v1beta1)';
      throw new CallError(webhook.name, `could not create admission objects: ${reason}`);
    }
    const uid = this.#options.env.random.uuid();
    const body = reviewBody(version, uid, reviewRequest(invocation, attributes), objects);
    const bytes = await this.#post(invocation, body, attributes.context.signal);
    try {
      return readReview(bytes, { version, uid, isMutating: this.#type === 'admit' });
    } catch (error) {
      throw new CallError(webhook.name, `received invalid webhook response: ${(error as Error).message}`, error);
    }
  }

  async #post({ compiled }: Invocation, body: string, signal: AbortSignal): Promise<Uint8Array> {
    const { webhook, timeoutMs } = compiled;
    const { registry, env, transport } = this.#options;
    let shownUrl = '';
    try {
      const endpoint = findEndpoint(webhook.clientConfig, timeoutMs, registry, env.random);
      shownUrl = endpoint.shownUrl;
      const { caBundle } = webhook.clientConfig;
      const request: WebhookRequest = {
        url: endpoint.url,
        ...(endpoint.serverName === undefined ? {} : { serverName: endpoint.serverName }),
        ...(caBundle ? { caBundle: Buffer.from(caBundle, 'base64').toString('utf8') } : {}),
        body,
        timeoutMs,
        signal,
      };
      const response = await transport.call(request);
      if (response.status >= 200 && response.status <= 299) return response.body;
      throw new CallError(webhook.name, `failed to call webhook: ${describeAnswer(response)}`);
    } catch (error) {
      throw callError(webhook.name, shownUrl, error);
    }
  }
}

/** Carries a denial past the handling of failures. */
class Denied extends Error {
  readonly answer: ApiError;

  constructor(answer: ApiError) {
    super(answer.message);
    this.answer = answer;
  }
}

function callError(name: string, shownUrl: string, error: unknown): CallError {
  if (error instanceof CallError) return error;
  const message = errorMessage(error);
  if (error instanceof EndpointError && error.shownUrl === '') {
    return new CallError(name, `could not get REST client: ${message}`, error);
  }
  if (error instanceof TransportError && error.duringBody) {
    const reading = 'unexpected error when reading response body. Please retry. Original error';
    return new CallError(name, `failed to call webhook: ${reading}: ${message}`, error);
  }
  const url = error instanceof EndpointError ? error.shownUrl : shownUrl;
  return new CallError(name, `failed to call webhook: Post ${JSON.stringify(url)}: ${message}`, error);
}

/** A dry run must not leave traces anywhere, so a webhook that may leave some cannot be asked. */
function checkSideEffects(name: string, sideEffects: string | undefined): void {
  if (sideEffects === undefined) throw new CallError(name, 'Webhook SideEffects is nil');
  if (sideEffects === 'None' || sideEffects === 'NoneOnDryRun') return;
  throw badRequest(`admission webhook ${JSON.stringify(name)} does not support dry run`);
}

/** 504: whoever asked is gone, and there is no point in asking further webhooks. */
function requestTimeout(cause: unknown): ApiError {
  return new ApiError(504, 'Timeout', 'Timeout: request did not complete within requested timeout', undefined, cause);
}
