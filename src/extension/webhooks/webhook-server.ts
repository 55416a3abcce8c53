import { methodNotAllowed, unsupportedMediaType } from '../../api/status.ts';
import { type ExtensionRequest, type ExtensionResponse, headerOf, jsonResponse } from '../server/message.ts';
import type { WebhookContext } from './context.ts';
import { WEBHOOKS } from './endpoints.ts';
import { readReview, reviewOf, type Webhook } from './review.ts';

/** Answers the reviews that API servers post. */
export class WebhookServer {
  readonly #webhooks: ReadonlyMap<string, Webhook>;

  constructor(context: WebhookContext) {
    this.#webhooks = new Map(WEBHOOKS.map(({ path, answer }) => [path, answer(context)]));
  }

  /** Whether a path is that of a webhook. */
  owns(path: string): boolean {
    return this.#webhooks.has(path);
  }

  async handle(request: ExtensionRequest): Promise<ExtensionResponse> {
    const webhook = this.#webhooks.get(request.path);
    if (!webhook || request.method !== 'POST') throw methodNotAllowed();
    const type = headerOf(request, 'content-type') ?? '';
    if (!/^application\/json\b/.test(type)) throw unsupportedMediaType(`reviews are JSON, not ${JSON.stringify(type)}`);
    const review = readReview(await request.body());
    return jsonResponse(200, reviewOf(review.uid, await webhook(review, request.signal)));
  }
}
