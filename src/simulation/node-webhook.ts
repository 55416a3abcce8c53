import {
  TransportError,
  type WebhookRequest,
  type WebhookResponse,
  type WebhookTransport,
} from '../apiserver/admission/webhooks/transport.ts';
import { restrictNodes } from '../extension/webhooks/node-restriction.ts';
import { readReview, reviewOf } from '../extension/webhooks/review.ts';
import { NODE_WEBHOOK } from './webhook-registration.ts';

export interface NodeWebhookOptions {
  /** Nodes that are to be heard since the API's data was restored. */
  readonly unheard: () => readonly string[];
  /** Told of each write that is refused. */
  readonly onRefusal?: (message: string) => void;
  /** The way to all other webhooks, where there are any. */
  readonly others?: WebhookTransport | undefined;
}

/**
 * The webhook that judges what nodes write: the real one, reached without HTTPS, and always there, since without it agents
 * would only wait.
 */
export class NodeWebhook implements WebhookTransport {
  readonly #options: NodeWebhookOptions;
  readonly #judge: ReturnType<typeof restrictNodes>;

  constructor(options: NodeWebhookOptions) {
    this.#options = options;
    this.#judge = restrictNodes(options);
  }

  async call(request: WebhookRequest): Promise<WebhookResponse> {
    const { onRefusal, others } = this.#options;
    if (new URL(request.url).pathname !== NODE_WEBHOOK.path) {
      if (!others) throw new TransportError('connect: connection refused');
      return others.call(request);
    }
    const review = readReview(new TextEncoder().encode(request.body));
    const verdict = await this.#judge(review, request.signal);
    if (!verdict.allowed)
      onRefusal?.(`${review.namespace ?? ''}/${review.name ?? ''}: ${verdict.status.message ?? ''}`);
    return { status: 200, body: new TextEncoder().encode(JSON.stringify(reviewOf(review.uid, verdict))) };
  }
}
