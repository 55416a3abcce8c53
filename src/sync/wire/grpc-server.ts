import {
  Code,
  ConnectError,
  createConnectRouter,
  createContextKey,
  createContextValues,
  type HandlerContext,
} from '@connectrpc/connect';
import type { UniversalHandler } from '@connectrpc/connect/protocol';
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from '@connectrpc/connect-node';
import type { X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import {
  createSecureServer,
  type Http2SecureServer,
  type Http2ServerRequest,
  type Http2ServerResponse,
  type Http2Session,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import type { AddressInfo, Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { errorMessage } from '../../api/error-message.ts';
import type { Clock, Logger, Timer } from '../../env/ports.ts';
import { SyncError } from '../channel.ts';
import { FRAME_BYTES_MAX } from './frame.ts';
import { Handshakes } from './handshakes.ts';
import type { Link } from './link.ts';
import { type FrameMessage, synchronizationService } from './schema.ts';
import { FAREWELL_MS, type ProvenPeer, StreamLink } from './stream-link.ts';
import { tlsOptions, type TlsTrust } from './tls.ts';

/**
 * Where other clusters dial in. Whoever shows a certificate of a cluster that is not trusted gets an answer that says so,
 * and nothing else: neither are its frames read, nor does it cost more than the handshake.
 */

/** Peers have one stream each, and one more while they change over. */
const SESSIONS_MAX = 256;
const STREAMS_PER_SESSION_MAX = 2;
/** How long a connection may be without a stream. */
const IDLE_MS = 15_000;
const HANDSHAKE_MS = 10_000;
/** Connections on which nobody has said yet who it is. */
const HANDSHAKES_MAX = 64;
/** Connections of whoever is not trusted, and how long they last. */
const STRANGERS_MAX = 32;
const STRANGER_MS = 5_000;
const SESSION_MEMORY_MB = 8;
const HEADER_PAIRS_MAX = 64;
const STREAM_WINDOW_BYTES = 256 * 1024;

export interface GrpcServerOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly trust: TlsTrust;
  readonly accept: (link: Link) => void;
  /** How long it may take to say over TLS who one is. */
  readonly handshakeMs?: number;
}

/** Who is at the other end of a connection; throws where nobody is who is trusted. */
interface Caller {
  readonly identify: () => ProvenPeer;
  readonly destroy: () => void;
}

const CALLER = createContextKey<Caller>({
  identify: () => {
    throw new Error('nobody is there');
  },
  destroy: () => undefined,
});

function isTrusted({ identify }: Caller): boolean {
  try {
    identify();
    return true;
  } catch {
    // Whoever asks for something is told why not.
    return false;
  }
}

/** gRPC with protobuf; it may be JSON too, which nobody here speaks. */
const BINARY = /^application\/grpc(?:\+proto)?$/;

type Converse = (incoming: AsyncIterable<FrameMessage>, context: HandlerContext) => AsyncIterable<FrameMessage>;

function handlerOf(converse: Converse): UniversalHandler {
  const router = createConnectRouter({
    connect: false,
    grpcWeb: false,
    readMaxBytes: FRAME_BYTES_MAX,
    writeMaxBytes: FRAME_BYTES_MAX,
    acceptCompression: [],
    binaryOptions: { readUnknownFields: false },
  }).service(synchronizationService, { converse });
  const handler = router.handlers[0];
  if (!handler) throw new Error('the service has no methods');
  return handler;
}

export class GrpcServer {
  readonly #options: GrpcServerOptions;
  readonly #server: Http2SecureServer;
  readonly #sessions = new Map<Http2Session, Caller>();
  readonly #strangers = new Set<Http2Session>();
  readonly #handshakes = new Handshakes(HANDSHAKES_MAX);
  readonly #handler: UniversalHandler;

  constructor(options: GrpcServerOptions) {
    this.#options = options;
    this.#handler = handlerOf((incoming, context) => this.#converse(incoming, context));
    this.#server = createSecureServer({
      ...tlsOptions(options.trust.material()),
      requestCert: true,
      // Strangers are told that they are some, which TLS could not.
      rejectUnauthorized: false,
      handshakeTimeout: options.handshakeMs ?? HANDSHAKE_MS,
      maxSessionMemory: SESSION_MEMORY_MB,
      maxHeaderListPairs: HEADER_PAIRS_MAX,
      settings: {
        enablePush: false,
        maxConcurrentStreams: STREAMS_PER_SESSION_MAX,
        initialWindowSize: STREAM_WINDOW_BYTES,
      },
    });
    // Whoever is not known yet, or not trusted, takes no place of those who are.
    this.#server.maxConnections = SESSIONS_MAX + HANDSHAKES_MAX + STRANGERS_MAX;
    this.#server.on('connection', (socket: Socket) => this.#handshakes.begin(socket));
    // Nobody of ours speaks anything else.
    this.#server.on('unknownProtocol', (socket: Socket) => socket.destroy());
    this.#server.on('session', (session) => this.#meet(session));
    this.#server.on('request', (request, response) => void this.#serve(request, response));
    this.#server.on('sessionError', (error) => this.#note('a connection of another cluster broke', error));
    this.#server.on('tlsClientError', (error) => this.#note('a TLS handshake failed', error));
  }

  /** Starts listening; answers the port, which matters when it was 0. Rejects with the system's error. */
  async listen(host: string, port: number): Promise<number> {
    this.#server.listen(port, host);
    await once(this.#server, 'listening');
    return (this.#server.address() as AddressInfo).port;
  }

  /** Connections made from now on see what is trusted now, and what is shown now. */
  renew(): void {
    this.#server.setSecureContext(tlsOptions(this.#options.trust.material()));
  }

  /** Ends every connection. */
  async stop(): Promise<void> {
    const closed = new Promise<void>((resolve) => this.#server.close(() => resolve()));
    this.#handshakes.stop();
    for (const session of this.#sessions.keys()) session.destroy();
    await closed;
  }

  #meet(session: ServerHttp2Session): void {
    const socket = session.socket as TLSSocket;
    this.#handshakes.end(socket);
    const certificate = socket.getPeerX509Certificate();
    // Node says here why it does not believe a certificate: as a text, whatever the types say.
    const objection = socket.authorized ? undefined : String(socket.authorizationError);
    const caller = { identify: () => this.#identify(certificate, objection), destroy: () => session.destroy() };
    this.#sessions.set(session, caller);
    this.#endIdle(session);
    if (!isTrusted(caller)) this.#limitStranger(session);
  }

  /** Strangers get an answer, and then leave the room to others. */
  #limitStranger(session: ServerHttp2Session): void {
    if (this.#strangers.size >= STRANGERS_MAX) return session.destroy();
    this.#strangers.add(session);
    const timer = this.#options.clock.setTimer(() => session.destroy(), STRANGER_MS);
    session.once('close', () => {
      timer.cancel();
      this.#strangers.delete(session);
    });
  }

  /** Ends a connection on which no stream is. A stream whose peer is silent ends by itself. */
  #endIdle(session: ServerHttp2Session): void {
    const { clock } = this.#options;
    const wait = (): Timer => clock.setTimer(() => session.destroy(), IDLE_MS);
    let streams = 0;
    let timer = wait();
    session.on('stream', (stream) => {
      streams++;
      timer.cancel();
      stream.once('close', () => {
        if (--streams === 0 && !session.destroyed) timer = wait();
      });
    });
    session.once('close', () => {
      timer.cancel();
      this.#sessions.delete(session);
    });
  }

  #identify(certificate: X509Certificate | undefined, objection: string | undefined): ProvenPeer {
    if (!certificate) throw new SyncError('NotTrusted', 'it shows no certificate');
    if (objection === 'CERT_HAS_EXPIRED') throw new SyncError('NotTrusted', 'its certificate has expired');
    if (objection !== undefined)
      throw new SyncError('NotTrusted', `no cluster that is trusted has issued its certificate (${objection})`);
    return this.#options.trust.identify(certificate);
  }

  async #serve(request: Http2ServerRequest, response: Http2ServerResponse): Promise<void> {
    const session = request.stream.session;
    const caller = session && this.#sessions.get(session);
    // A session that is gone has no requests that anybody waits for.
    if (!caller) return request.stream.close();
    if (request.url !== this.#handler.requestPath || !BINARY.test(request.headers['content-type'] ?? '')) {
      response.writeHead(404).end();
      return;
    }
    const values = createContextValues().set(CALLER, caller);
    request.stream.once('finish', () => this.#endStream(request.stream, caller));
    try {
      const answer = await this.#handler(universalRequestFromNodeRequest(request, response, undefined, values));
      await universalResponseToNodeResponse(answer, response);
    } catch (error) {
      this.#note('a stream of another cluster broke', error);
      request.stream.close();
    }
  }

  /** Whoever was answered to the end has nothing left to say that anybody would hear. */
  #endStream(stream: ServerHttp2Stream, { destroy }: Caller): void {
    // It closes the connection itself; one that goes on writing instead would keep its stream.
    const timer = this.#options.clock.setTimer(destroy, FAREWELL_MS);
    stream.once('close', () => timer.cancel());
  }

  async *#converse(incoming: AsyncIterable<FrameMessage>, { values }: HandlerContext): AsyncIterable<FrameMessage> {
    const { identify, destroy } = values.get(CALLER);
    const link = new StreamLink({
      clock: this.#options.clock,
      peer: this.#admitted(identify),
      check: () => void identify(),
      incoming: () => incoming,
      destroy,
    });
    this.#options.accept(link);
    yield* link.outgoing();
    // Once this side has said all, the stream may end: whoever closed the link does not listen any more.
  }

  /** Tells strangers that they are some, and why. */
  #admitted(identify: () => ProvenPeer): ProvenPeer {
    try {
      return identify();
    } catch (error) {
      const reason = errorMessage(error);
      this.#options.log.warn('a cluster that is not trusted dialed the synchronization controller', { reason });
      const advice = "'godwit trust import' there what 'godwit trust export' prints here";
      throw new ConnectError(`the other cluster does not trust this one: ${reason}; ${advice}`, Code.Unauthenticated);
    }
  }

  #note(message: string, error: unknown): void {
    this.#options.log.debug(message, { reason: errorMessage(error) });
  }
}
