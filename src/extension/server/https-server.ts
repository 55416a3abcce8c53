import { type EventEmitter, once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import { entityTooLarge, tooManyRequests } from '../../api/status.ts';
import type { Clock, Logger } from '../../env/ports.ts';
import { drained } from '../../kube/drained.ts';
import { joinSockets, refuseUpgrade } from './join-sockets.ts';
import { errorResponse, type ExtensionRequest, type ExtensionResponse, type UpgradeAnswer } from './message.ts';

/** HTTPS for API servers alone: they call webhooks, and pass on what users ask of the aggregated API. */

/** What the server shows to others, and whom it believes; both may change while it runs. */
export interface TlsIdentity {
  readonly certificatePem: string;
  readonly keyPem: string;
  /** PEM of the front proxy's authority. Certificates are asked for, and those of nobody else count. */
  readonly clientAuthorityPem: string;
}

export interface HttpsServerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly identity: TlsIdentity;
  /** May reject: errors are answers too. */
  readonly handle: (request: ExtensionRequest) => Promise<ExtensionResponse>;
  readonly upgrade: (request: ExtensionRequest) => Promise<UpgradeAnswer>;
}

/** Two of the largest objects that API servers keep, and what is around them in a review. */
const BODY_BYTES_MAX = 8 * 1024 * 1024;
/** Of all bodies together: API servers show no certificate to webhooks, so that anybody may send something. */
const BODIES_BYTES_MAX = 128 * 1024 * 1024;
const CONNECTIONS_MAX = 1_000;
const HEADERS_TIMEOUT_MS = 10_000;
/** All of a request; API servers give webhooks no longer. */
const REQUEST_TIMEOUT_MS = 40_000;
/** Longer than API servers keep theirs, so that they rarely write into a closed one. */
const IDLE_TIMEOUT_MS = 75_000;
const KEEP_ALIVE_PROBE_MS = 15_000;
/** How long answers that are under way may take once the server stops. */
const STOP_TIMEOUT_MS = 2_000;

export class HttpsServer {
  readonly #options: HttpsServerOptions;
  readonly #server: Server;
  readonly #sockets = new Set<Duplex>();
  /** Ends each answer that may have no end of its own. */
  readonly #endless = new Set<AbortController>();
  #bodiesBytes = 0;

  constructor(options: HttpsServerOptions) {
    this.#options = options;
    this.#server = createServer({
      ...contextOf(options.identity),
      requestCert: true,
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      handshakeTimeout: HEADERS_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#server.on('connection', (socket: Duplex) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    this.#server.on('secureConnection', (socket) => socket.setKeepAlive(true, KEEP_ALIVE_PROBE_MS));
    this.#server.on('request', (incoming, outgoing) => void this.#serve(incoming, outgoing));
    this.#server.on('upgrade', (incoming, socket, head) => void this.#upgrade(incoming, socket, head));
    this.#server.on('tlsClientError', (error) =>
      options.log.debug('TLS handshake failed', { error: String(error), component: 'extension' }),
    );
    this.#server.on('clientError', (_error, socket) => socket.destroy());
  }

  /** Starts listening; answers the port, which matters when it was 0. Rejects with the system's error. */
  async listen(host: string, port: number): Promise<number> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections made from now on see the new identity, and are believed by the new authority. */
  renew(identity: TlsIdentity): void {
    this.#server.setSecureContext({ ...contextOf(identity), minVersion: 'TLSv1.2' });
  }

  /** Stops accepting, ends what streams, lets answers under way finish for a moment, then closes what is left. */
  async stop(): Promise<void> {
    for (const each of this.#endless) each.abort();
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
    const timer = this.#options.clock.setTimer(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, STOP_TIMEOUT_MS);
    await closed;
    timer.cancel();
  }

  async #serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const gone = this.#untilClosed(outgoing);
    const request = this.#requestOf(incoming, gone.signal);
    try {
      const response = await this.#answer(request);
      if (typeof response.body !== 'string') this.#endWithServer(gone);
      // Who asks again by the same connection would wait for nobody.
      if (!this.#server.listening) outgoing.setHeader('connection', 'close');
      await send(outgoing, response);
    } catch (error) {
      // The answer was under way already: the other side notices that it breaks off.
      this.#options.log.debug('response broke off', { path: request.path, error: String(error) });
      outgoing.destroy();
    }
  }

  async #answer(request: ExtensionRequest): Promise<ExtensionResponse> {
    try {
      return await this.#options.handle(request);
    } catch (error) {
      const response = errorResponse(error);
      if (response.status >= 500 && !request.signal.aborted)
        this.#options.log.warn('request failed', { path: request.path, error: String(error) });
      return response;
    }
  }

  async #upgrade(incoming: IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    const gone = this.#untilClosed(socket);
    this.#endWithServer(gone);
    const request = this.#requestOf(incoming, gone.signal);
    const answer = await this.#options
      .upgrade(request)
      .catch((error: unknown): UpgradeAnswer => ({ kind: 'refused', response: errorResponse(error) }));
    if (socket.destroyed) {
      if (answer.kind === 'joined') answer.socket.destroy();
      return;
    }
    if (answer.kind === 'joined') joinSockets(this.#options.clock, socket, head, answer);
    else await refuseUpgrade(socket, answer.response).catch(() => socket.destroy());
  }

  /** Aborts when whoever waits for the answer is gone. */
  #untilClosed(answer: EventEmitter): AbortController {
    const gone = new AbortController();
    answer.once('close', () => {
      this.#endless.delete(gone);
      gone.abort();
    });
    return gone;
  }

  #endWithServer(gone: AbortController): void {
    if (!this.#server.listening) gone.abort();
    else if (!gone.signal.aborted) this.#endless.add(gone);
  }

  #requestOf(incoming: IncomingMessage, signal: AbortSignal): ExtensionRequest {
    const { method = '', url = '', headersDistinct } = incoming;
    const mark = url.indexOf('?');
    let body: Promise<Uint8Array> | undefined;
    return {
      method,
      path: mark < 0 ? url : url.slice(0, mark),
      query: new URLSearchParams(mark < 0 ? '' : url.slice(mark + 1)),
      headers: headersDistinct,
      clientName: clientNameOf(incoming.socket as TLSSocket),
      body: () => (body ??= this.#bodyOf(incoming, signal)),
      signal,
    };
  }

  /** What is read counts until the request is over. */
  async #bodyOf(incoming: IncomingMessage, signal: AbortSignal): Promise<Uint8Array> {
    const chunks: Buffer[] = [];
    let length = 0;
    signal.addEventListener('abort', () => (this.#bodiesBytes -= length), { once: true });
    for await (const chunk of incoming as AsyncIterable<Buffer>) {
      if (signal.aborted) throw new Error('the request was given up');
      length += chunk.length;
      this.#bodiesBytes += chunk.length;
      if (length > BODY_BYTES_MAX) throw entityTooLarge(BODY_BYTES_MAX);
      if (this.#bodiesBytes > BODIES_BYTES_MAX) throw tooManyRequests('too much is being sent at once', 1);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  }
}

function contextOf({ certificatePem, keyPem, clientAuthorityPem }: TlsIdentity): {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
} {
  return { cert: certificatePem, key: keyPem, ca: clientAuthorityPem };
}

/** Whoever takes up an earlier session again counts as authorized, even without ever having shown a certificate. */
function clientNameOf(socket: TLSSocket): string | undefined {
  if (!socket.authorized) return undefined;
  const subject = socket.getPeerCertificate().subject as { CN?: string | string[] } | undefined;
  return typeof subject?.CN === 'string' ? subject.CN : undefined;
}

async function send(outgoing: ServerResponse, { status, headers, body }: ExtensionResponse): Promise<void> {
  if (typeof body === 'string') {
    outgoing.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
    outgoing.end(body);
    return;
  }
  outgoing.writeHead(status, headers);
  // Whoever waits for a stream wants to know at once that it has begun.
  outgoing.flushHeaders();
  for await (const chunk of body) {
    if (outgoing.destroyed) return;
    if (!outgoing.write(chunk)) await drained(outgoing);
  }
  outgoing.end();
}
