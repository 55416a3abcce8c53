/** How webhooks are reached. A port: production speaks HTTPS, the simulation calls its webhooks directly. */

export interface WebhookRequest {
  /** Where to connect to, path and query included. */
  readonly url: string;
  /** The name that the server's certificate must bear, where that is not the URL's host. */
  readonly serverName?: string;
  /** PEM of the authorities to trust instead of the system's. */
  readonly caBundle?: string;
  /** JSON. */
  readonly body: string;
  /** For the whole exchange, connecting and reading included. */
  readonly timeoutMs: number;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal;
}

export interface WebhookResponse {
  readonly status: number;
  readonly body: Uint8Array;
}

export interface WebhookTransport {
  /** Posts and answers whatever came back; rejects with a TransportError when nothing whole did. */
  call(request: WebhookRequest): Promise<WebhookResponse>;
}

/** Why no answer came, in the words that Go's HTTP client has for it: administrators search for them. */
export class TransportError extends Error {
  /** Whether the headers of an answer had arrived. */
  readonly duringBody: boolean;

  constructor(message: string, options: { readonly duringBody?: boolean; readonly cause?: unknown } = {}) {
    super(message, { cause: options.cause });
    this.name = 'TransportError';
    this.duringBody = options.duringBody ?? false;
  }
}

export const DEADLINE_EXCEEDED = 'context deadline exceeded';
export const CANCELED = 'context canceled';
