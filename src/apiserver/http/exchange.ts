import { ApiError, badRequest, entityTooLarge, tooManyRequests } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { BodyMemory } from './body-memory.ts';
import type { Carrier } from './carrier.ts';
import type { HttpLimits } from './limits.ts';
import type { ApiRequest } from './message.ts';
import type { Peer } from './peer.ts';

export interface ExchangeOptions {
  readonly carrier: Carrier;
  readonly peer: Peer;
  readonly clock: Clock;
  readonly limits: HttpLimits;
  /** Where the body finds room, until all has been said. */
  readonly memory: BodyMemory;
  /** Called once, when all has been said or the client has gone. */
  readonly onClose: (exchange: Exchange) => void;
}

/** Given as the reason, since an error with a stack for each client that leaves would be a waste. */
const GONE = 'the client has gone, or the server stops';

/**
 * One request on its way to its answer. What most requests never look at (the query, the signal) is made when it is
 * first looked at; the body is read only when asked for, and once.
 */
export class Exchange implements ApiRequest {
  readonly method: string;
  readonly path: string;
  readonly carrier: Carrier;
  readonly peer: Peer;
  readonly clock: Clock;
  readonly limits: HttpLimits;
  readonly #memory: BodyMemory;
  #bodyBytes = 0;
  readonly #queryText: string;
  #query: URLSearchParams | undefined;
  #body: Promise<Uint8Array> | undefined;
  #gone: AbortController | undefined;
  #isGone = false;

  constructor({ carrier, peer, clock, limits, memory, onClose }: ExchangeOptions) {
    const { url, readable, writable } = carrier;
    const mark = url.indexOf('?');
    this.method = carrier.method;
    this.path = mark < 0 ? url : url.slice(0, mark);
    this.carrier = carrier;
    this.peer = peer;
    this.clock = clock;
    this.limits = limits;
    this.#memory = memory;
    this.#queryText = mark < 0 ? '' : url.slice(mark + 1);
    const abort = (): void => this.abort();
    writable.on('error', abort);
    writable.on('close', () => {
      this.abort();
      memory.release(this.#bodyBytes);
      this.#bodyBytes = 0;
      onClose(this);
    });
    if ((readable as unknown) !== writable) readable.on('error', abort);
  }

  get headers(): ApiRequest['headers'] {
    return this.carrier.headers as ApiRequest['headers'];
  }

  get query(): URLSearchParams {
    this.#query ??= new URLSearchParams(this.#queryText);
    return this.#query;
  }

  get certificate(): ApiRequest['certificate'] {
    return this.peer.certificate;
  }

  get isCertificateRefused(): boolean {
    return this.peer.isCertificateRefused ?? false;
  }

  get remoteAddress(): string {
    return this.peer.remoteAddress;
  }

  get signal(): AbortSignal {
    this.#gone ??= new AbortController();
    if (this.#isGone) this.#gone.abort(GONE);
    return this.#gone.signal;
  }

  /** Tells whoever works on this request that nobody waits for it any more. */
  abort(): void {
    this.#isGone = true;
    this.#gone?.abort(GONE);
  }

  body(): Promise<Uint8Array> {
    this.#body ??= readBody(this.carrier, this.clock, this.limits, (bytes) => this.#hold(bytes));
    return this.#body;
  }

  #hold(bytes: number): boolean {
    if (this.#isGone || !this.#memory.take(bytes)) return false;
    this.#bodyBytes += bytes;
    return true;
  }
}

const EMPTY = new Uint8Array();

/** The whole body. Leaves the connection alone when it refuses one, so that the refusal can still be sent. */
function readBody(
  { readable, headers, isComplete }: Carrier,
  clock: Clock,
  limits: HttpLimits,
  hold: (bytes: number) => boolean,
): Promise<Uint8Array> {
  const { bodyBytesMax, bodyTimeoutMs } = limits;
  if (Number(headers['content-length'] ?? 0) > bodyBytesMax) return Promise.reject(entityTooLarge(bodyBytesMax));
  if (isComplete && readable.readableLength === 0) return Promise.resolve(EMPTY);
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    const settle = (): void => {
      timer.cancel();
      readable.off('data', take).off('end', done).off('error', broken).off('close', broken);
    };
    const refuse = (error: ApiError): void => {
      settle();
      readable.pause();
      reject(error);
    };
    const take = (chunk: Buffer): void => {
      length += chunk.length;
      if (length > bodyBytesMax) refuse(entityTooLarge(bodyBytesMax));
      else if (hold(chunk.length)) chunks.push(chunk);
      else refuse(tooManyRequests('too many large requests at once, please try again later', 1));
    };
    const done = (): void => {
      settle();
      resolve(chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks, length));
    };
    const broken = (error?: Error): void => refuse(badRequest('the body ended early', error));
    const timer = clock.setTimer(
      () => refuse(new ApiError(408, 'Timeout', `the body did not arrive within ${bodyTimeoutMs / 1000} s`)),
      bodyTimeoutMs,
    );
    readable.on('data', take).on('end', done).on('error', broken).on('close', broken);
  });
}
