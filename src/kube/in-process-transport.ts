import { StringDecoder } from 'node:string_decoder';
import { cancelled, unlessAborted } from './abort.ts';
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
    if (request.signal.aborted) throw cancelled(request.signal);
    const answer = this.#answer(request);
    try {
      return await unlessAborted(answer, request.signal);
    } catch (error) {
      // It may be answered all the same, when nobody listens any more.
      answer.then(discard).catch(() => undefined);
      throw error instanceof TransportError ? error : new TransportError('the server failed to answer', error);
    }
  }

  close(): void {
    // There is nothing to close.
  }

  async #answer(request: TransportRequest): Promise<TransportResponse> {
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
}

/** Lets a body end that nobody reads: one that was never begun would not know that it has ended. */
async function discard(response: TransportResponse): Promise<void> {
  const body = response.body[Symbol.asyncIterator]();
  await body.next();
  await body.return?.();
}

function flatten(headers: LocalResponse['headers']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).map(([name, value]) => [name, typeof value === 'string' ? value : value.join(', ')]),
  );
}

async function* textsOf(body: LocalResponse['body']): AsyncGenerator<string> {
  if (typeof body === 'string') {
    yield body;
  } else if (body instanceof Uint8Array) {
    yield Buffer.from(body).toString('utf8');
  } else {
    yield* decoded(body);
  }
}

/** A character may be cut in two by the border of two pieces. What the server breaks off is a broken connection. */
async function* decoded(pieces: AsyncIterable<string | Uint8Array>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  try {
    for await (const piece of pieces) {
      const text = typeof piece === 'string' ? piece : decoder.write(Buffer.from(piece));
      if (text !== '') yield text;
    }
  } catch (error) {
    throw new TransportError('the server broke off its answer', error);
  }
}
