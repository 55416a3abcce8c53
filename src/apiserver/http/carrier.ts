import type { IncomingMessage, ServerResponse } from 'node:http';
import { constants, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2';
import type { Readable, Writable } from 'node:stream';

export type AnswerHeaders = { readonly [name: string]: string | readonly string[] };

/** What follows the head of an answer. */
export type Follows = 'nothing' | 'body' | 'stream';

/** What brings a request in and takes its answer out: all in which HTTP/1.1 and HTTP/2 differ. */
export interface Carrier {
  readonly method: string;
  /** The path and the query, as they came. */
  readonly url: string;
  /** Names in lower case. */
  readonly headers: { readonly [name: string]: string | string[] | undefined };
  /** The request's body. */
  readonly readable: Readable;
  /** The answer's body. Closes when the exchange is over, or broken off. */
  readonly writable: Writable;
  /** Whether nothing of the request's body is outstanding. */
  readonly isComplete: boolean;
  /** Sends the head of the answer, at once where a stream follows. */
  writeHead(status: number, headers: AnswerHeaders, follows: Follows): void;
  /** Ends the stream, or the connection that is nothing but one. */
  cutOff(): void;
}

/** A request over HTTP/2, on the bare stream: Node's compatibility layer costs as much again. */
export class Http2Carrier implements Carrier {
  readonly headers: IncomingHttpHeaders;
  readonly readable: Readable;
  readonly writable: Writable;
  readonly #stream: ServerHttp2Stream;

  constructor(stream: ServerHttp2Stream, headers: IncomingHttpHeaders) {
    this.headers = headers;
    this.readable = stream;
    this.writable = stream;
    this.#stream = stream;
    if (headers.expect === '100-continue') stream.additionalHeaders({ ':status': 100 });
  }

  get method(): string {
    return this.headers[':method'] ?? 'GET';
  }

  get url(): string {
    return this.headers[':path'] ?? '/';
  }

  get isComplete(): boolean {
    return this.#stream.endAfterHeaders || this.#stream.readableEnded || this.#stream.destroyed;
  }

  writeHead(status: number, headers: AnswerHeaders, follows: Follows): void {
    const all = { ':status': status, ...(headers as Record<string, string | string[]>) };
    this.#stream.respond(all, { endStream: follows === 'nothing' });
  }

  cutOff(): void {
    this.#stream.close(constants.NGHTTP2_CANCEL);
    this.#stream.destroy();
  }
}

/** A request over HTTP/1.1. */
export class Http1Carrier implements Carrier {
  readonly readable: Readable;
  readonly writable: Writable;
  readonly #incoming: IncomingMessage;
  readonly #outgoing: ServerResponse | undefined;

  /** Without `outgoing` it is a request for an upgrade, which is answered on its socket. */
  constructor(incoming: IncomingMessage, outgoing?: ServerResponse) {
    this.readable = incoming;
    this.writable = outgoing ?? incoming.socket;
    this.#incoming = incoming;
    this.#outgoing = outgoing;
  }

  get method(): string {
    return this.#incoming.method ?? 'GET';
  }

  get url(): string {
    return this.#incoming.url ?? '/';
  }

  get headers(): Carrier['headers'] {
    return this.#incoming.headers;
  }

  get isComplete(): boolean {
    return this.#incoming.complete;
  }

  writeHead(status: number, headers: AnswerHeaders, follows: Follows): void {
    const outgoing = this.#outgoing;
    if (!outgoing) throw new Error('an upgrade is answered on its socket');
    outgoing.writeHead(status, headers as Record<string, string | string[]>);
    // Clients wait for the head of a watch before its first event.
    if (follows === 'stream') outgoing.flushHeaders();
    if (follows === 'nothing') outgoing.end();
  }

  cutOff(): void {
    this.#incoming.socket.destroy();
  }
}
