import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type ServerHttp2Session,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { promisify } from 'node:util';
import { gzip as gzipCallback } from 'node:zlib';
import { ApiError, badRequest, entityTooLarge } from '../../api/status.ts';
import type { Clock, Logger } from '../../env/ports.ts';
import * as limits from './limits.ts';
import type { ApiRequest, ApiResponse } from './message.ts';

/** TLS on one port for HTTP/2 and HTTP/1.1: turns sockets into ApiRequests and ApiResponses into bytes. */

const gzip = promisify(gzipCallback);

export interface ServerOptions {
  readonly host: string;
  readonly port: number;
  readonly certificate: string;
  readonly key: string;
  /** Client certificates are asked for and verified against these; what does not verify counts as none. */
  readonly clientAuthorities: readonly string[];
  readonly clock: Clock;
  readonly log: Logger;
  /** Never rejects: errors are answers too. */
  readonly handle: (request: ApiRequest) => Promise<ApiResponse>;
  /** Takes over a connection that asked for an upgrade. */
  readonly upgrade: (request: ApiRequest, socket: Duplex, head: Buffer) => Promise<void>;
}

type Incoming = IncomingMessage | Http2ServerRequest;
type Outgoing = ServerResponse | Http2ServerResponse;

export class HttpServer {
  readonly #options: ServerOptions;
  readonly #server: Http2SecureServer;
  readonly #sessions = new Set<ServerHttp2Session>();
  readonly #sockets = new Set<Socket>();
  readonly #stopping = new AbortController();

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#server = createSecureServer({
      allowHTTP1: true,
      cert: options.certificate,
      key: options.key,
      ca: [...options.clientAuthorities],
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      settings: { initialWindowSize: limits.WINDOW_BYTES, maxConcurrentStreams: limits.STREAMS_PER_CONNECTION_MAX },
      handshakeTimeout: limits.HEADERS_TIMEOUT_MS,
    });
    // These belong to the HTTP/1.1 half, which shares the socket server but whose options have no typed place.
    Object.assign(this.#server, {
      headersTimeout: limits.HEADERS_TIMEOUT_MS,
      requestTimeout: 0,
      keepAliveTimeout: limits.IDLE_TIMEOUT_MS,
    });
    this.#server.maxConnections = limits.CONNECTIONS_MAX;
    this.#server.on('connection', (socket: Socket) => this.#track(socket));
    this.#server.on('session', (session) => this.#trackSession(session));
    this.#server.on('request', (incoming, outgoing) => void this.#serve(incoming, outgoing));
    this.#server.on(
      'upgrade',
      (incoming: IncomingMessage, socket: Duplex, head: Buffer) => void this.#upgrade(incoming, socket, head),
    );
    // Clients that speak no TLS, or give up halfway, are their own problem.
    this.#server.on('tlsClientError', (error) => options.log.debug('TLS handshake failed', { error: String(error) }));
    this.#server.on('clientError', (_error: Error, socket: Duplex) => socket.destroy());
  }

  /** Starts listening; answers the port, which matters when it was 0. */
  async listen(): Promise<number> {
    this.#server.listen(this.#options.port, this.#options.host);
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Stops accepting, ends streams (watches see a clean end), then closes what is left. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    for (const session of this.#sessions) session.close();
    const force = this.#options.clock.setTimer(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, 2_000);
    for (const socket of this.#sockets)
      if (socket.listenerCount('idle') === 0 && this.#sessions.size === 0) socket.end();
    await closed;
    force.cancel();
  }

  #track(socket: Socket): void {
    this.#sockets.add(socket);
    socket.setNoDelay(true);
    socket.on('close', () => this.#sockets.delete(socket));
  }

  #trackSession(session: ServerHttp2Session): void {
    this.#sessions.add(session);
    session.on('close', () => this.#sessions.delete(session));
    session.on('error', (error) => this.#options.log.debug('HTTP/2 session failed', { error: String(error) }));
  }

  async #serve(incoming: Incoming, outgoing: Outgoing): Promise<void> {
    const gone = new AbortController();
    const stop = (): void => gone.abort();
    outgoing.on('close', stop);
    incoming.on('error', stop);
    outgoing.on('error', stop);
    this.#stopping.signal.addEventListener('abort', stop);
    try {
      const request = toRequest(incoming, gone.signal, this.#options.clock);
      const response = request instanceof ApiError ? errorResponse(request) : await this.#options.handle(request);
      await send(incoming, outgoing, response, this.#options.clock, gone.signal);
    } catch (error) {
      // The answer was already under way: all that is left is to end the stream so that the client notices.
      this.#options.log.debug('response broke off', { path: incoming.url, error: String(error) });
      outgoing.destroy();
    } finally {
      this.#stopping.signal.removeEventListener('abort', stop);
    }
  }

  async #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const gone = new AbortController();
    socket.on('close', () => gone.abort());
    socket.on('error', () => gone.abort());
    const request = toRequest(incoming, gone.signal, this.#options.clock);
    if (request instanceof ApiError)
      socket.end(`HTTP/1.1 ${request.code} ${request.reason}\r\nConnection: close\r\n\r\n`);
    else await this.#options.upgrade(request, socket, head);
  }
}

/** An error as the response that carries it. */
export function errorResponse(error: ApiError): ApiResponse {
  const headers: Record<string, string> = { 'content-type': 'application/json' };
  if (error.details?.retryAfterSeconds !== undefined) headers['retry-after'] = String(error.details.retryAfterSeconds);
  if (error.code === 401) headers['www-authenticate'] = 'Bearer realm="godwit"';
  return { status: error.code, headers, body: `${JSON.stringify(error.toStatus())}\n` };
}

function toRequest(incoming: Incoming, signal: AbortSignal, clock: Clock): ApiRequest | ApiError {
  const url = incoming.url ?? '/';
  if (url.length > limits.URL_LENGTH_MAX)
    return new ApiError(414, 'BadRequest', `the URL is longer than ${limits.URL_LENGTH_MAX} characters`);
  const mark = url.indexOf('?');
  const socket = incoming.socket as TLSSocket;
  return {
    method: incoming.method ?? 'GET',
    path: mark < 0 ? url : url.slice(0, mark),
    query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
    headers: incoming.headers as ApiRequest['headers'],
    body: () => readBody(incoming, clock),
    certificate: certificateOf(socket),
    remoteAddress: socket.remoteAddress ?? '',
    signal,
  };
}

/** Verified once per connection: parsing the peer's certificate costs more than most requests. */
const certificates = new WeakMap<object, { readonly value: ApiRequest['certificate'] }>();

function certificateOf(socket: TLSSocket): ApiRequest['certificate'] {
  const raw = (socket as unknown as { stream?: object }).stream ?? socket;
  const known = certificates.get(raw);
  if (known) return known.value;
  const value = socket.authorized ? subjectOf(socket.getPeerCertificate()) : undefined;
  certificates.set(raw, { value });
  return value;
}

function subjectOf(certificate: PeerCertificate): ApiRequest['certificate'] {
  const subject = certificate.subject as { CN?: string; O?: string | string[] } | undefined;
  if (!subject?.CN) return undefined;
  const organizations = subject.O === undefined ? [] : Array.isArray(subject.O) ? subject.O : [subject.O];
  return { commonName: subject.CN, organizations, fingerprint: certificate.fingerprint256 };
}

async function readBody(incoming: Incoming, clock: Clock): Promise<Uint8Array> {
  if (Number(incoming.headers['content-length'] ?? 0) > limits.BODY_BYTES_MAX)
    throw entityTooLarge(limits.BODY_BYTES_MAX);
  const chunks: Buffer[] = [];
  let length = 0;
  let isLate = false;
  const timer = clock.setTimer(() => {
    isLate = true;
    incoming.destroy();
  }, limits.BODY_TIMEOUT_MS);
  try {
    for await (const chunk of incoming) {
      length += (chunk as Buffer).length;
      if (length > limits.BODY_BYTES_MAX) throw entityTooLarge(limits.BODY_BYTES_MAX);
      chunks.push(chunk as Buffer);
    }
  } catch (error) {
    if (error instanceof ApiError) throw error;
    throw badRequest(
      isLate ? `the body did not arrive within ${limits.BODY_TIMEOUT_MS / 1000} s` : 'the body ended early',
      error,
    );
  } finally {
    timer.cancel();
  }
  return chunks.length === 1 ? (chunks[0] ?? Buffer.alloc(0)) : Buffer.concat(chunks, length);
}

function isLoopback(address: string | undefined): boolean {
  return (
    address !== undefined && (address.startsWith('127.') || address === '::1' || address.startsWith('::ffff:127.'))
  );
}

async function send(
  incoming: Incoming,
  outgoing: Outgoing,
  response: ApiResponse,
  clock: Clock,
  gone: AbortSignal,
): Promise<void> {
  const { body } = response;
  const headers: Record<string, string | readonly string[]> = {
    'cache-control': 'no-cache, private',
    ...response.headers,
  };
  if (typeof body !== 'string' && !(body instanceof Uint8Array))
    return stream(outgoing, response.status, headers, body, clock, gone);
  let bytes: Uint8Array = typeof body === 'string' ? Buffer.from(body) : body;
  // Compressing for a peer on this very machine only burns its processor.
  const wantsGzip =
    bytes.length >= limits.GZIP_BYTES_MIN &&
    /\bgzip\b/.test(String(incoming.headers['accept-encoding'] ?? '')) &&
    !isLoopback(incoming.socket.remoteAddress);
  if (wantsGzip) {
    bytes = await gzip(bytes, { level: 1 });
    headers['content-encoding'] = 'gzip';
  }
  headers['content-length'] = String(bytes.length);
  if (gone.aborted) return;
  writeHead(outgoing, response.status, headers);
  (outgoing as ServerResponse).end(incoming.method === 'HEAD' ? undefined : bytes);
  // A body that was not read (an early refusal) would block the connection's next request.
  incoming.resume();
}

function writeHead(outgoing: Outgoing, status: number, headers: Record<string, string | readonly string[]>): void {
  // Both servers take this shape; their typings only agree on less.
  (outgoing as ServerResponse).writeHead(status, headers as Record<string, string | string[]>);
}

async function stream(
  outgoing: Outgoing,
  status: number,
  headers: Record<string, string | readonly string[]>,
  body: AsyncIterable<string | Uint8Array>,
  clock: Clock,
  gone: AbortSignal,
): Promise<void> {
  writeHead(outgoing, status, headers);
  // Clients wait for the headers of a watch before its first event.
  if ('flushHeaders' in outgoing) outgoing.flushHeaders();
  for await (const chunk of body) {
    if (gone.aborted) break;
    if (!(outgoing as ServerResponse).write(chunk)) await drained(outgoing as ServerResponse, clock);
  }
  outgoing.end();
}

/** Waits until the client has read; a peer that reads nothing for too long is taken for dead. */
function drained(outgoing: ServerResponse, clock: Clock): Promise<void> {
  return new Promise((resolve) => {
    const timer = clock.setTimer(() => outgoing.destroy(), limits.WRITE_TIMEOUT_MS);
    const done = (): void => {
      timer.cancel();
      outgoing.off('drain', done);
      outgoing.off('close', done);
      resolve();
    };
    outgoing.on('drain', done);
    outgoing.on('close', done);
  });
}
