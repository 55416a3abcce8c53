import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createSecureServer, type Http2SecureServer, type Http2Session } from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { ApiError } from '../../api/status.ts';
import type { Clock, Logger } from '../../env/ports.ts';
import { BodyMemory } from './body-memory.ts';
import { type Carrier, Http1Carrier, Http2Carrier } from './carrier.ts';
import { Exchange } from './exchange.ts';
import { HTTP_LIMITS, type HttpLimits, KEEP_ALIVE_PROBE_MS, STOP_TIMEOUT_MS, WINDOW_BYTES } from './limits.ts';
import type { ApiRequest, ApiResponse } from './message.ts';
import { errorResponse, send } from './outgoing.ts';
import { type Peer, peerOf } from './peer.ts';

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

const ignore = (): void => undefined;

/** What is kept of a connection. */
interface Connection {
  readonly peer: Peer;
  /** Requests under way. */
  open: number;
  /** How long nothing may be under way, and since when that is so. */
  timeoutMs: number;
  quietSinceMs: number;
}

export class HttpServer {
  readonly #options: ServerOptions;
  readonly #limits: HttpLimits;
  readonly #memory: BodyMemory;
  readonly #server: Http2SecureServer;
  readonly #sockets = new Set<Socket>();
  /** Connections of HTTP/2. */
  readonly #sessions = new Map<Http2Session, Connection>();
  /** Connections of HTTP/1.1. */
  readonly #plain = new Map<Duplex, Connection>();
  readonly #exchanges = new Set<Exchange>();
  #isStopping = false;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#limits = { ...HTTP_LIMITS, ...options.limits };
    this.#memory = new BodyMemory(this.#limits.bodiesBytesMax);
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
    this.#isStopping = true;
    for (const exchange of this.#exchanges) exchange.abort();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#sessions.keys()) session.close();
    for (const [socket, { open }] of this.#plain) if (open === 0) socket.end();
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
    server.on('request', (incoming: unknown, outgoing: unknown) => {
      const { socket } = incoming as IncomingMessage;
      const carrier = new Http1Carrier(incoming as IncomingMessage, outgoing as ServerResponse);
      this.#begin(carrier, this.#plain.get(socket), (connection) => {
        // One that becomes idle while the server stops is closed.
        if (connection.open === 0 && this.#isStopping) socket.end();
      });
    });
    // Listening for requests has brought in the compatibility layer of HTTP/2, whose place the next listener takes.
    server.removeAllListeners('stream');
    server.on('stream', (stream, headers) => {
      this.#begin(new Http2Carrier(stream, headers), stream.session && this.#sessions.get(stream.session));
    });
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
    // Node's parser takes what was decrypted straight from the TLS layer, past the pause that it asks for itself when a
    // request comes while the answer before is still being written; that breaks the connection (HPE_PAUSED). One who
    // listens makes the data go the long way, where a pause holds.
    socket.on('data', ignore);
    this.#plain.set(socket, this.#connectionOf(socket));
    socket.on('close', () => this.#plain.delete(socket));
  }

  /** Closes a session that has nothing open for too long: soon where it has never asked for anything. */
  #trackSession(session: Http2Session): void {
    const { clock, log } = this.#options;
    const connection = this.#connectionOf(session.socket as TLSSocket);
    const check = (): void => {
      const { open, timeoutMs, quietSinceMs } = connection;
      const leftMs = open > 0 ? timeoutMs : quietSinceMs + timeoutMs - clock.now();
      if (leftMs <= 0) session.destroy();
      else timer = clock.setTimer(check, leftMs);
    };
    let timer = clock.setTimer(check, connection.timeoutMs);
    this.#sessions.set(session, connection);
    session.on('close', () => {
      timer.cancel();
      this.#sessions.delete(session);
    });
    session.on('error', (error) => log.debug('HTTP/2 session failed', { error: String(error) }));
  }

  #connectionOf(socket: TLSSocket): Connection {
    const quietSinceMs = this.#options.clock.now();
    return { peer: peerOf(socket), open: 0, timeoutMs: this.#limits.headersTimeoutMs, quietSinceMs };
  }

  /** Takes a request; `onEnd` is called when it is over. */
  #begin(carrier: Carrier, connection: Connection | undefined, onEnd?: (connection: Connection) => void): void {
    // The connection has been lost meanwhile.
    if (!connection) return carrier.cutOff();
    const { clock } = this.#options;
    connection.open++;
    connection.timeoutMs = this.#limits.idleTimeoutMs;
    const onClose = (closed: Exchange): void => {
      this.#exchanges.delete(closed);
      connection.open--;
      connection.quietSinceMs = clock.now();
      onEnd?.(connection);
    };
    const { peer } = connection;
    const exchange = new Exchange({ carrier, peer, clock, limits: this.#limits, memory: this.#memory, onClose });
    this.#exchanges.add(exchange);
    void this.#serve(exchange);
  }

  async #serve(exchange: Exchange): Promise<void> {
    try {
      const refusal = this.#refusalOf(exchange);
      await send(exchange, refusal ? errorResponse(refusal) : await this.#options.handle(exchange));
    } catch (error) {
      // The answer was already under way: all that is left is to end the stream so that the client notices.
      this.#options.log.debug('response broke off', { path: exchange.path, error: String(error) });
      exchange.carrier.writable.destroy();
    }
  }

  async #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const { clock, log, upgrade } = this.#options;
    const connection = this.#plain.get(socket);
    this.#plain.delete(socket);
    // What comes from now on is for whoever takes the connection over.
    socket.off('data', ignore);
    if (!connection) return void socket.destroy();
    const exchange = new Exchange({
      carrier: new Http1Carrier(incoming),
      peer: connection.peer,
      clock,
      limits: this.#limits,
      memory: this.#memory,
      onClose: () => undefined,
    });
    try {
      const refusal = this.#refusalOf(exchange);
      if (refusal) throw refusal;
      await upgrade(exchange, socket, head);
    } catch (error) {
      log.debug('upgrade failed', { path: incoming.url, error: String(error) });
      socket.destroy();
    }
  }

  #refusalOf({ carrier }: Exchange): ApiError | undefined {
    const { urlLengthMax } = this.#limits;
    if (carrier.url.length <= urlLengthMax) return undefined;
    return new ApiError(414, 'BadRequest', `the URL is longer than ${urlLengthMax} characters`);
  }
}
