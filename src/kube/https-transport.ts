import { isIP } from 'node:net';
import { connect, type ConnectionOptions, type TLSSocket } from 'node:tls';
import { type Clock, type Env, sleep } from '../env/ports.ts';
import { cancelled, unlessAborted } from './abort.ts';
import { Backoff } from './backoff.ts';
import type { ClusterAccess, Credentials } from './cluster-access.ts';
import { connectFailure, type HttpConnection, WireError } from './http-connection.ts';
import { Http1Connection } from './http1-connection.ts';
import { Http2Connection } from './http2-connection.ts';
import { type Transport, TransportError, type TransportRequest, type TransportResponse } from './transport.ts';

/**
 * Reaches an API server over TLS: one HTTP/2 session for everything, made anew when it breaks, goes away or falls
 * silent; HTTP/1.1 where that is all the server speaks. A request is sent again only when the server cannot have acted
 * on it, or has said that it did not.
 */

export interface HttpsTransportOptions {
  readonly access: ClusterAccess;
  readonly env: Pick<Env, 'clock' | 'random'>;
}

/** How long a connection may take to stand. */
const CONNECT_TIMEOUT_MS = 10_000;
/** How long the head of an answer may take: longer than the minute that API servers give themselves. */
const HEAD_TIMEOUT_MS = 65_000;
/** How often a request is sent again, and with what pauses: enough for a server that restarts. */
const RETRIES_MAX = 5;
const RETRY_BACKOFF = { baseMs: 100, maxMs: 2_000 };
/** A server that wants to be left alone for longer is obeyed by whoever asked, who may have better things to do. */
const RETRY_AFTER_SECONDS_MAX = 10;
/** Requests that wait for their answer at once. More means that something runs away. */
const REQUESTS_MAX = 1_000;

export class HttpsTransport implements Transport {
  readonly #access: ClusterAccess;
  readonly #clock: Clock;
  readonly #backoff: () => Backoff;
  readonly #server: URL;
  /** All that may still be open, those that take no new requests included. */
  readonly #open = new Set<HttpConnection>();
  #connection: { readonly http: HttpConnection; readonly credentials: Credentials } | undefined;
  #connecting: Promise<HttpConnection> | undefined;
  #requests = 0;
  #isClosed = false;

  constructor({ access, env }: HttpsTransportOptions) {
    this.#access = access;
    this.#clock = env.clock;
    this.#backoff = () => new Backoff(env.random, RETRY_BACKOFF);
    this.#server = new URL(access.server);
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    if (this.#requests >= REQUESTS_MAX) throw new TransportError(`more than ${REQUESTS_MAX} requests are under way`);
    this.#requests++;
    try {
      return await this.#sendUntilAnswered(request);
    } finally {
      this.#requests--;
    }
  }

  close(): void {
    this.#isClosed = true;
    for (const http of this.#open) http.destroy('the transport was closed');
    this.#open.clear();
  }

  async #sendUntilAnswered(request: TransportRequest): Promise<TransportResponse> {
    const { signal } = request;
    const backoff = this.#backoff();
    let wasRefused = false;
    for (let retries = 0; ; retries++) {
      const answer = await this.#attempt(request);
      if (signal.aborted) throw cancelled(signal);
      let delayMs = backoff.next();
      if (answer instanceof WireError) {
        if (retries >= RETRIES_MAX || !mayRepeat(answer, request.method) || this.#isClosed) throw answer;
      } else if (answer.status === 401 && !wasRefused) {
        // A token may have expired, or been rotated, since it was read.
        wasRefused = true;
        this.#access.refused();
        delayMs = 0;
      } else {
        const retryAfterSeconds = retries >= RETRIES_MAX ? undefined : retryAfterOf(request, answer);
        if (retryAfterSeconds === undefined) return answer;
        delayMs = Math.max(delayMs, retryAfterSeconds * 1000);
      }
      if (!(answer instanceof WireError)) await answer.body[Symbol.asyncIterator]().return?.();
      if (delayMs > 0) await sleep(this.#clock, delayMs, signal);
      if (signal.aborted) throw cancelled(signal);
    }
  }

  async #attempt(request: TransportRequest): Promise<TransportResponse | WireError> {
    const { method, path, body, signal } = request;
    try {
      const credentials = await this.#credentials(signal);
      const http = await this.#connect(credentials, signal);
      const { authorization } = credentials;
      const headers = {
        ...request.headers,
        ...this.#access.impersonation,
        ...(authorization ? { authorization } : {}),
      };
      const prefix = this.#server.pathname.replace(/\/$/, '');
      return await http.send({ method, path: prefix + path, body, signal, headers, headTimeoutMs: HEAD_TIMEOUT_MS });
    } catch (error) {
      if (error instanceof WireError) return error;
      throw error;
    }
  }

  async #credentials(signal: AbortSignal): Promise<Credentials> {
    try {
      return await unlessAborted(this.#access.credentials(signal), signal);
    } catch (error) {
      if (error instanceof TransportError) throw error;
      throw new TransportError(`no credentials: ${error instanceof Error ? error.message : String(error)}`, error);
    }
  }

  /** The connection that there is, or a new one, which all who ask meanwhile share. */
  async #connect(credentials: Credentials, signal: AbortSignal): Promise<HttpConnection> {
    for (;;) {
      if (this.#isClosed) throw new WireError('the transport was closed', 'never');
      const known = this.#connection;
      if (known?.http.isUsable && isSameIdentity(known.credentials, credentials)) return known.http;
      if (this.#connecting === undefined) {
        // Whoever has a new certificate is somebody else to the server; what is under way may end in peace.
        known?.http.retire();
        this.#connection = undefined;
        this.#connecting = this.#dial(credentials).finally(() => (this.#connecting = undefined));
      }
      await unlessAborted(this.#connecting, signal);
    }
  }

  async #dial(credentials: Credentials): Promise<HttpConnection> {
    const authority = this.#server.host;
    try {
      const options = await this.#tlsOptions(credentials);
      const socket = await openSocket(options, this.#clock);
      const isHttp2 = socket.alpnProtocol === 'h2';
      if (!isHttp2) socket.destroy();
      const http = isHttp2
        ? new Http2Connection(socket, authority, this.#clock)
        : new Http1Connection(options, authority, this.#clock);
      if (this.#isClosed) {
        http.destroy('the transport was closed');
      } else {
        for (const each of this.#open) if (each.isClosed) this.#open.delete(each);
        this.#open.add(http);
        this.#connection = { http, credentials };
      }
      return http;
    } catch (error) {
      throw connectFailure(error, this.#server.origin);
    }
  }

  async #tlsOptions({ certificate, key }: Credentials): Promise<ConnectionOptions> {
    const access = this.#access;
    const host = this.#server.hostname.replace(/^\[|\]$/g, '');
    const serverName = access.serverName ?? (isIP(host) ? undefined : host);
    return {
      host,
      port: this.#server.port === '' ? 443 : Number(this.#server.port),
      ca: await access.authorities(),
      cert: certificate,
      key,
      rejectUnauthorized: !access.isInsecure,
      minVersion: 'TLSv1.2',
      ALPNProtocols: ['h2', 'http/1.1'],
      ...(serverName === undefined ? {} : { servername: serverName }),
    };
  }
}

function isSameIdentity(a: Credentials, b: Credentials): boolean {
  return a.certificate === b.certificate && a.key === b.key;
}

function mayRepeat(error: WireError, method: string): boolean {
  return error.repeatable === 'always' || (error.repeatable === 'reads' && method === 'GET');
}

/** How long the server asks to wait before the same request is sent again; undefined if it does not, or for too long. */
function retryAfterOf({ path }: TransportRequest, { status, headers }: TransportResponse): number | undefined {
  if (status !== 429 && status !== 503) return undefined;
  // There it says that a budget allows no eviction now: the answer to what was asked.
  if (status === 429 && /\/eviction(\?|$)/.test(path)) return undefined;
  const header = headers['retry-after'];
  const seconds = header === undefined || header === '' ? Number.NaN : Number(header);
  return seconds >= 0 && seconds <= RETRY_AFTER_SECONDS_MAX ? seconds : undefined;
}

function openSocket(options: ConnectionOptions, clock: Clock): Promise<TLSSocket> {
  return new Promise((resolve, reject) => {
    const socket = connect(options);
    const timer = clock.setTimer(
      () => socket.destroy(new WireError(`no connection within ${CONNECT_TIMEOUT_MS / 1000} s`, 'always')),
      CONNECT_TIMEOUT_MS,
    );
    const onError = (error: Error): void => {
      timer.cancel();
      reject(error);
    };
    socket.once('error', onError);
    socket.once('secureConnect', () => {
      timer.cancel();
      socket.off('error', onError);
      // Whoever uses the socket hears of it too; but it may break before anybody does.
      socket.on('error', () => undefined);
      socket.setNoDelay(true);
      resolve(socket);
    });
  });
}
