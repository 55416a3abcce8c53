import { once } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { createSecureServer, type Http2SecureServer, type ServerHttp2Session } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { ApiError } from '../../api/status.ts';
import type { Clock, Logger } from '../../env/ports.ts';
import { type Incoming, toRequest } from './incoming.ts';
import { HTTP_LIMITS, type HttpLimits, KEEP_ALIVE_PROBE_MS, STOP_TIMEOUT_MS, WINDOW_BYTES } from './limits.ts';
import type { ApiRequest, ApiResponse } from './message.ts';
import { errorResponse, type Outgoing, send } from './outgoing.ts';

/**
 * TLS on one port for HTTP/2 and HTTP/1.1: turns sockets into ApiRequests and ApiResponses into bytes. Nobody holds a
 * connection for nothing: handshakes, headers, bodies, answers and idleness each have a limit. What HTTP/1.1 needs for
 * that Node has itself; HTTP/2 sessions are watched here.
 */

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly certificate: string;
  readonly key: string;
  /** Client certificates are asked for and verified against these; one that does not hold is as good as a wrong token. */
  readonly clientAuthorities: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Never rejects: errors are answers too. */
  readonly handle: (request: ApiRequest) => Promise<ApiResponse>;
  /** Takes over a connection that asked for an upgrade. */
  readonly upgrade: (request: ApiRequest, socket: Duplex, head: Buffer) => Promise<void>;
  /** Default: HTTP_LIMITS. */
  readonly limits?: Partial<HttpLimits>;
}

/** How often Node looks for HTTP/1.1 clients that are late, as a part of the time that they have. */
const CHECKS_PER_TIMEOUT = 3;

export class HttpServer {
  readonly #options: ServerOptions;
  readonly #limits: HttpLimits;
  readonly #server: Http2SecureServer;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #sockets = new Set<Socket>();
  /** Connections of HTTP/1.1, each with the number of its requests under way. */
  readonly #plain = new Map<Duplex, number>();
  readonly #stopping = new AbortController();

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#limits = { ...HTTP_LIMITS, ...options.limits };
    const { headersTimeoutMs, bodyTimeoutMs, idleTimeoutMs, streamsPerConnectionMax, connectionsMax } = this.#limits;
    this.#server = createSecureServer({
      allowHTTP1: true,
      cert: options.certificate,
      key: options.key,
      ca: [...options.clientAuthorities],
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      settings: { initialWindowSize: WINDOW_BYTES, maxConcurrentStreams: streamsPerConnectionMax },
      handshakeTimeout: headersTimeoutMs,
    });
    // These belong to the HTTP/1.1 half, which shares the socket server but whose options have no typed place.
    Object.assign(this.#server, {
      headersTimeout: headersTimeoutMs,
      requestTimeout: headersTimeoutMs + bodyTimeoutMs,
      keepAliveTimeout: idleTimeoutMs,
      connectionsCheckingInterval: headersTimeoutMs / CHECKS_PER_TIMEOUT,
    });
    this.#server.maxConnections = connectionsMax;
    this.#listen();
  }

  /** Starts listening; answers the port, which matters when it was 0. */
  async listen(): Promise<number> {
    this.#server.listen(this.#options.port, this.#options.host);
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Stops accepting, ends streams (watches see a clean end), lets answers under way finish, then closes what is left. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#sessions) session.close();
    for (const [socket, requests] of this.#plain) if (requests === 0) socket.end();
    const force = this.#options.clock.setTimer(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, STOP_TIMEOUT_MS);
    await closed;
    force.cancel();
  }

  #listen(): void {
    const { log } = this.#options;
    const server = this.#server;
    server.on('connection', (socket: Socket) => this.#track(socket));
    server.on('secureConnection', (socket: TLSSocket) => this.#trackPlain(socket));
    server.on('session', (session) => this.#trackSession(session));
    server.on('request', (incoming, outgoing) => void this.#serve(incoming, outgoing));
    server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
      void this.#upgrade(incoming, socket, head);
    });
    // Clients that speak no TLS, or give up halfway, are their own problem.
    server.on('tlsClientError', (error) => log.debug('TLS handshake failed', { error: String(error) }));
    server.on('clientError', (_error: Error, socket: Duplex) => socket.destroy());
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  #trackPlain(socket: TLSSocket): void {
    if (socket.alpnProtocol === 'h2') return;
    this.#plain.set(socket, 0);
    socket.on('close', () => this.#plain.delete(socket));
  }

  /** Closes a session that has nothing open for too long: soon where it has never asked for anything. */
  #trackSession(session: ServerHttp2Session): void {
    const { clock, log } = this.#options;
    const { headersTimeoutMs, idleTimeoutMs } = this.#limits;
    let open = 0;
    let quietSinceMs = clock.now();
    let timeoutMs = headersTimeoutMs;
    const check = (): void => {
      const leftMs = open > 0 ? timeoutMs : quietSinceMs + timeoutMs - clock.now();
      if (leftMs <= 0) session.destroy();
      else timer = clock.setTimer(check, leftMs);
    };
    let timer = clock.setTimer(check, timeoutMs);
    session.on('stream', (stream) => {
      open++;
      timeoutMs = idleTimeoutMs;
      stream.on('close', () => {
        open--;
        quietSinceMs = clock.now();
      });
    });
    this.#sessions.add(session);
    session.on('close', () => {
      timer.cancel();
      this.#sessions.delete(session);
    });
    session.on('error', (error) => log.debug('HTTP/2 session failed', { error: String(error) }));
  }

  async #serve(incoming: Incoming, outgoing: Outgoing): Promise<void> {
    const { clock, log } = this.#options;
    const gone = new AbortController();
    const stop = (): void => gone.abort();
    outgoing.on('close', stop);
    incoming.on('error', stop);
    outgoing.on('error', stop);
    this.#stopping.signal.addEventListener('abort', stop);
    const end = 'stream' in incoming ? () => undefined : this.#begin(incoming.socket);
    try {
      const request = toRequest(incoming, gone.signal, clock, this.#limits);
      const response = request instanceof ApiError ? errorResponse(request) : await this.#options.handle(request);
      await send({ incoming, outgoing, clock, limits: this.#limits, gone: gone.signal }, response);
    } catch (error) {
      // The answer was already under way: all that is left is to end the stream so that the client notices.
      log.debug('response broke off', { path: incoming.url, error: String(error) });
      outgoing.destroy();
    } finally {
      this.#stopping.signal.removeEventListener('abort', stop);
      end();
    }
  }

  /** Counts a request of an HTTP/1.1 connection; one that becomes idle while the server stops is closed. */
  #begin(socket: Duplex): () => void {
    const change = (by: number): void => {
      const requests = this.#plain.get(socket);
      if (requests === undefined) return;
      this.#plain.set(socket, requests + by);
      if (requests + by === 0 && this.#stopping.signal.aborted) socket.end();
    };
    change(1);
    return () => change(-1);
  }

  async #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { clock, log, upgrade } = this.#options;
    const gone = new AbortController();
    const stop = (): void => gone.abort();
    socket.on('close', stop);
    socket.on('error', stop);
    this.#plain.delete(socket);
    try {
      const request = toRequest(incoming, gone.signal, clock, this.#limits);
      if (request instanceof ApiError) throw request;
      await upgrade(request, socket, head);
    } catch (error) {
      log.debug('upgrade failed', { path: incoming.url, error: String(error) });
      socket.destroy();
    }
  }
}
