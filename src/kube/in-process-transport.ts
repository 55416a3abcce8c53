import { type Transport, TransportError, type TransportRequest, type TransportResponse } from './transport.ts';

/** Calls an API server inside this process: no sockets, no copies of the body, no time passing. */

/** A request as the embedded API server takes it; its own types say the same, but no room may import the other. */
export interface LocalRequest {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  body(): Promise<Uint8Array>;
  readonly certificate: {
    readonly commonName: string;
    readonly organizations: readonly string[];
    readonly fingerprint: string;
  };
  readonly remoteAddress: string;
  readonly signal: AbortSignal;
}

export interface LocalResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  readonly body: string | Uint8Array | AsyncIterable<string | Uint8Array>;
}

/** Answers a request; never rejects. */
export type LocalHandler = (request: LocalRequest) => Promise<LocalResponse>;

/** Who the calls come from: taken for a verified client certificate. */
export interface LocalIdentity {
  readonly user: string;
  readonly groups: readonly string[];
}

export class InProcessTransport implements Transport {
  readonly #handle: LocalHandler;
  readonly #certificate: LocalRequest['certificate'];

  constructor(handle: LocalHandler, identity: LocalIdentity) {
    this.#handle = handle;
    this.#certificate = { commonName: identity.user, organizations: identity.groups, fingerprint: 'in-process' };
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    if (request.signal.aborted) throw new TransportError('the request was cancelled', request.signal.reason);
    const mark = request.path.indexOf('?');
    const response = await this.#handle({
      method: request.method,
      path: mark < 0 ? request.path : request.path.slice(0, mark),
      query: new URLSearchParams(mark < 0 ? '' : request.path.slice(mark + 1)),
      headers: request.headers,
      body: async () => Buffer.from(request.body ?? ''),
      certificate: this.#certificate,
      remoteAddress: '127.0.0.1',
      signal: request.signal,
    });
    return { status: response.status, headers: flatten(response.headers), body: textsOf(response.body) };
  }

  close(): void {
    // There is nothing to close.
  }
}

function flatten(headers: LocalResponse['headers']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : value.join(', ')]),
  );
}

async function* textsOf(body: LocalResponse['body']): AsyncGenerator<string> {
  if (typeof body === 'string') yield body;
  else if (body instanceof Uint8Array) yield Buffer.from(body).toString('utf8');
  else for await (const piece of body) yield typeof piece === 'string' ? piece : Buffer.from(piece).toString('utf8');
}
