import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  connect,
  constants,
  type IncomingHttpHeaders,
} from 'node:http2';
import type { TLSSocket } from 'node:tls';
import type { Clock, Timer } from '../env/ports.ts';
import { cancelled } from './abort.ts';
import { type HttpConnection, ResponseBody, WireError, type WireRequest } from './http-connection.ts';
import type { TransportResponse } from './transport.ts';

const { NGHTTP2_CANCEL, NGHTTP2_NO_ERROR, NGHTTP2_REFUSED_STREAM } = constants;

/** client-go's: a peer that is gone without a word (pulled cable, lost NAT entry) is noticed within 45 s. */
const PING_INTERVAL_MS = 30_000;
const PING_TIMEOUT_MS = 15_000;
/** Node cannot ping on a session that is closing; so that a dead one does not stay, it gets as long as a watch lives. */
const RETIRED_MS_MAX = 10 * 60_000;
/** What may be under way per stream and per connection: the defaults of 64 KiB throttle lists to one window per round trip. */
const STREAM_WINDOW_BYTES = 1024 * 1024;
const SESSION_WINDOW_BYTES = 16 * 1024 * 1024;
/** Megabytes that the session may hold for us. */
const SESSION_MEMORY_MB_MAX = 64;

/** One HTTP/2 session on a connected socket, for all requests at once. */
export class Http2Connection implements HttpConnection {
  readonly #session: ClientHttp2Session;
  readonly #clock: Clock;
  readonly #authority: string;
  /** Requests whose answer has not begun, and how to end them. */
  readonly #waiting = new Map<ClientHttp2Stream, (error: Error) => void>();
  #isRetired = false;
  #timer: Timer | undefined;

  constructor(socket: TLSSocket, authority: string, clock: Clock) {
    this.#clock = clock;
    this.#authority = authority;
    const session = connect(`https://${authority}`, {
      createConnection: () => socket,
      settings: { enablePush: false, initialWindowSize: STREAM_WINDOW_BYTES },
      maxSessionMemory: SESSION_MEMORY_MB_MAX,
    });
    this.#session = session;
    session.on('connect', () => {
      if (!session.destroyed) session.setLocalWindowSize(SESSION_WINDOW_BYTES);
    });
    session.on('goaway', (_code, lastStream) => this.#onGoAway(lastStream));
    // The streams that break with the session tell those who wait for them.
    session.on('error', () => this.#end());
    session.on('close', () => this.#end());
    this.#schedulePing();
  }

  get isUsable(): boolean {
    return !this.#isRetired && !this.#session.closed && !this.#session.destroyed;
  }

  get isClosed(): boolean {
    return this.#session.destroyed;
  }

  retire(): void {
    this.#isRetired = true;
    this.#session.close();
  }

  destroy(reason: string): void {
    this.#end();
    this.#session.destroy(new WireError(reason, 'reads'));
  }

  send(request: WireRequest): Promise<TransportResponse> {
    const { signal, body } = request;
    return new Promise((resolve, reject) => {
      const stream = this.#open(request);
      let isSettled = false;
      const settle = (): void => {
        isSettled = true;
        this.#waiting.delete(stream);
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
      };
      const fail = (error: Error): void => {
        if (isSettled) return;
        settle();
        reject(error);
        end(stream, error);
      };
      const onAbort = (): void => fail(cancelled(signal));
      const timer = this.#clock.setTimer(
        () => fail(new WireError(`no answer within ${request.headTimeoutMs / 1000} s`, 'never')),
        request.headTimeoutMs,
      );
      signal.addEventListener('abort', onAbort, { once: true });
      this.#waiting.set(stream, fail);
      stream.on('response', (headers) => {
        if (isSettled) return;
        settle();
        resolve(responseOf(stream, headers, signal));
      });
      stream.on('error', (error) => fail(failureOf(stream, error)));
      stream.on('close', () => fail(failureOf(stream)));
      if (signal.aborted) onAbort();
      else stream.end(body);
    });
  }

  #open(request: WireRequest): ClientHttp2Stream {
    const headers: Record<string, string | readonly string[]> = {
      ...request.headers,
      ':method': request.method,
      ':path': request.path,
      ':authority': this.#authority,
      ':scheme': 'https',
    };
    if (request.body !== undefined) headers['content-length'] = String(Buffer.byteLength(request.body));
    try {
      return this.#session.request(headers as Record<string, string | string[]>, {
        endStream: request.body === undefined,
      });
    } catch (error) {
      throw new WireError('the connection closed before the request was sent', 'always', error);
    }
  }

  /** The server takes no new requests, and has not looked at those after the last one that it names. */
  #onGoAway(lastStream: number): void {
    this.#isRetired = true;
    for (const [stream, fail] of this.#waiting) {
      if (stream.id === undefined || stream.id > lastStream)
        fail(new WireError('the server went away before it looked at the request', 'always'));
    }
  }

  #end(): void {
    this.#isRetired = true;
    this.#timer?.cancel();
  }

  #schedulePing(): void {
    this.#timer = this.#clock.setTimer(() => this.#ping(), PING_INTERVAL_MS);
  }

  #ping(): void {
    if (this.#session.destroyed) return;
    const isClosing = this.#session.closed;
    this.#timer = this.#clock.setTimer(
      () => this.destroy('the server no longer answers'),
      isClosing ? RETIRED_MS_MAX : PING_TIMEOUT_MS,
    );
    if (!isClosing) this.#session.ping((error) => this.#onPong(error));
  }

  #onPong(error: Error | null): void {
    if (this.#session.destroyed) return;
    // The ping of a session that begins to close is called off; the next one will see that it is closing.
    if (error && !this.#session.closed) return;
    this.#timer?.cancel();
    this.#schedulePing();
  }
}

function failureOf(stream: ClientHttp2Stream, error?: Error): WireError {
  const isUnseen = stream.rstCode === NGHTTP2_REFUSED_STREAM || stream.id === undefined;
  const detail = error === undefined ? `it closed with code ${stream.rstCode}` : error.message;
  return new WireError(`the connection broke before an answer came: ${detail}`, isUnseen ? 'always' : 'reads', error);
}

function responseOf(stream: ClientHttp2Stream, headers: IncomingHttpHeaders, signal: AbortSignal): TransportResponse {
  const flat: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith(':') && value !== undefined) flat[name] = Array.isArray(value) ? value.join(', ') : value;
  }
  const body = new ResponseBody({
    stream,
    signal,
    cancel: (reason) => end(stream, reason),
    flaw: () => flawOf(stream),
  });
  return { status: Number(headers[':status']), headers: flat, body };
}

/** A session that breaks ends its streams as if they were complete; only the code tells, once they have closed. */
async function flawOf(stream: ClientHttp2Stream): Promise<string | undefined> {
  if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve));
  return stream.rstCode === NGHTTP2_NO_ERROR
    ? undefined
    : `the connection broke: it closed with code ${stream.rstCode}`;
}

function end(stream: ClientHttp2Stream, reason: Error): void {
  if (stream.destroyed) return;
  stream.close(NGHTTP2_CANCEL);
  stream.destroy(reason);
}
