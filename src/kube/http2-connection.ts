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
  /** Streams after this one the server has not looked at; it has said so when it went away. */
  #lastStream = Number.POSITIVE_INFINITY;
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
    session.on('connect', () => session.setLocalWindowSize(SESSION_WINDOW_BYTES));
    session.on('goaway', (_code, lastStream) => {
      this.#lastStream = lastStream;
      this.#isRetired = true;
    });
    // The streams that break with the session tell those who wait for them.
    session.on('error', () => this.#end());
    session.on('close', () => this.#end());
    this.#schedulePing();
  }

  get isUsable(): boolean {
    return !this.#isRetired && !this.#session.closed && !this.#session.destroyed;
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
      stream.on('response', (headers) => {
        if (isSettled) return;
        settle();
        resolve(responseOf(stream, headers, signal));
      });
      stream.on('error', (error) => fail(this.#failure(stream, error)));
      stream.on('close', () => fail(this.#failure(stream)));
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

  #failure(stream: ClientHttp2Stream, error?: Error): WireError {
    const isUnseen =
      stream.rstCode === NGHTTP2_REFUSED_STREAM || stream.id === undefined || stream.id > this.#lastStream;
    const detail = error === undefined ? `it closed with code ${stream.rstCode}` : error.message;
    return new WireError(`the connection broke before an answer came: ${detail}`, isUnseen ? 'always' : 'reads', error);
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
    this.#timer = this.#clock.setTimer(() => this.destroy('the server no longer answers'), PING_TIMEOUT_MS);
    this.#session.ping((error) => {
      if (error || this.#session.destroyed) return;
      this.#timer?.cancel();
      this.#schedulePing();
    });
  }
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
    // A session that breaks ends its streams as if they were complete; only the code tells.
    flaw: () =>
      stream.rstCode === NGHTTP2_NO_ERROR ? undefined : `the connection broke: it closed with code ${stream.rstCode}`,
  });
  return { status: Number(headers[':status']), headers: flat, body };
}

function end(stream: ClientHttp2Stream, reason: Error): void {
  if (stream.destroyed) return;
  stream.close(NGHTTP2_CANCEL);
  stream.destroy(reason);
}
