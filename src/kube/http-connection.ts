import type { Readable } from 'node:stream';
import { cancelled } from './abort.ts';
import { TransportError, type TransportRequest, type TransportResponse } from './transport.ts';

/** A request as it goes over the wire. */
export interface WireRequest extends Pick<TransportRequest, 'method' | 'path' | 'body' | 'signal'> {
  readonly headers: Readonly<Record<string, string | readonly string[]>>;
  /** How long the head of the answer may take. */
  readonly headTimeoutMs: number;
}

/** A way to a server that is open and is kept open. */
export interface HttpConnection {
  /** Whether it takes new requests. */
  readonly isUsable: boolean;
  /** Whether nothing of it is left. */
  readonly isClosed: boolean;
  /** Resolves with the head of the answer; rejects with WireError, or when the signal aborts. */
  send(request: WireRequest): Promise<TransportResponse>;
  /** Takes no new requests, and closes when those under way have ended. */
  retire(): void;
  /** Ends everything at once. */
  destroy(reason: string): void;
}

/**
 * A request that failed on the wire, and who may send it again: anybody, since the server cannot have seen it; those who
 * only read; or nobody, since it would be no use.
 */
export class WireError extends TransportError {
  readonly repeatable: 'always' | 'reads' | 'never';

  constructor(message: string, repeatable: WireError['repeatable'], cause?: unknown) {
    super(message, cause);
    this.name = 'WireError';
    this.repeatable = repeatable;
  }
}

/** The code that Node gives an error; empty for none. */
export function codeOf(error: unknown): string {
  return (error as { code?: string } | null | undefined)?.code ?? '';
}

/** What the system says when there is nobody, or not yet, or no way. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EHOSTDOWN',
  'ENETDOWN',
  'EAI_AGAIN',
]);

/** The failure to open a connection: worth another try if the server may be back soon, not if it is the wrong one. */
export function connectFailure(error: unknown, server: string): WireError {
  if (error instanceof WireError) return error;
  const code = codeOf(error);
  const message = error instanceof Error && error.message !== '' ? error.message : code || String(error);
  return new WireError(`cannot connect to ${server}: ${message}`, UNREACHABLE.has(code) ? 'always' : 'never', error);
}

export interface BodyOptions {
  readonly stream: Readable;
  readonly signal: AbortSignal;
  /** Ends the stream early, telling the server if that can be told. */
  readonly cancel: (reason: Error) => void;
  /** Why a stream that has ended is incomplete; undefined if it is not. */
  readonly flaw: () => Promise<string | undefined>;
  /** Called with every piece. */
  readonly onPiece?: () => void;
  /** Called once, when the body has ended. */
  readonly onEnd?: () => void;
}

/** The body of an answer, piece by piece. Unlike a generator it can be given back before it was begun. */
export class ResponseBody implements AsyncIterableIterator<string> {
  readonly #options: BodyOptions;
  readonly #pieces: AsyncIterator<string>;
  readonly #onAbort = (): void => this.#options.cancel(cancelled(this.#options.signal));
  #isEnded = false;

  constructor(options: BodyOptions) {
    this.#options = options;
    options.stream.setEncoding('utf8');
    this.#pieces = options.stream[Symbol.asyncIterator]();
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal.aborted) this.#onAbort();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<string>> {
    if (this.#isEnded) return { done: true, value: undefined };
    try {
      const result = await this.#pieces.next();
      if (!result.done) {
        this.#options.onPiece?.();
        return result;
      }
    } catch (error) {
      this.#end();
      if (error instanceof TransportError) throw error;
      throw new TransportError(
        `the connection broke: ${error instanceof Error ? error.message : String(error)}`,
        error,
      );
    }
    this.#end();
    const { signal, flaw } = this.#options;
    if (signal.aborted) throw cancelled(signal);
    const reason = await flaw();
    if (reason !== undefined) throw new TransportError(reason);
    return { done: true, value: undefined };
  }

  async return(): Promise<IteratorResult<string>> {
    if (!this.#isEnded) {
      this.#end();
      this.#options.cancel(new TransportError('the rest of the answer is not wanted'));
    }
    return { done: true, value: undefined };
  }

  #end(): void {
    this.#isEnded = true;
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#options.onEnd?.();
  }
}
