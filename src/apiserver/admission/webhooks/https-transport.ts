import type { IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { Clock } from '../../../env/ports.ts';
import {
  CANCELED,
  DEADLINE_EXCEEDED,
  TransportError,
  type WebhookRequest,
  type WebhookResponse,
  type WebhookTransport,
} from './transport.ts';

/** Larger answers are refused: a patch cannot sensibly be larger than the largest object. */
export const RESPONSE_BYTES_MAX = 3 * 1024 * 1024;
/** Calls to one webhook at once from which on others wait for their connections: opening one costs ten times what a call does. */
const CONNECTIONS_USUAL = 16;
/**
 * How much of its time a call waits for a connection; then it opens its own, where some call takes that long. Where each is
 * over sooner there are only many of them, and they are not made faster by connections.
 */
const WAIT_SHARE = 0.1;
const WATCH_INTERVAL_MS = 100;
/** Whoever has waited for this share of its time is answered too late, if at all. */
const LATE_SHARE = 0.5;
/** What was opened is kept, up to this many: a webhook that is slow would else be called over new connections alone. */
const CONNECTIONS_KEPT = 256;
/** How long an idle connection is kept; shorter than servers keep theirs, so that we rarely write into a closed one. */
const IDLE_TIMEOUT_MS = 30_000;
/** Webhooks whose connections are kept; past it the least recently used are closed. */
const PEERS_MAX = 200;

/** Calls webhooks over HTTPS/1.1, with connections kept open per server, trust anchors and name. */
export class HttpsWebhookTransport implements WebhookTransport {
  readonly #clock: Clock;
  /** In order of use: the first is the one that was not used for longest. */
  readonly #peers = new Map<string, Peer>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async call(request: WebhookRequest): Promise<WebhookResponse> {
    const url = new URL(request.url);
    if (url.protocol !== 'https:')
      throw new TransportError(`unsupported protocol scheme "${url.protocol.slice(0, -1)}"`);
    if (request.signal.aborted) throw new TransportError(CANCELED);
    // By hand rather than with AbortSignal.any: callers may wait with a signal that lives as long as the process.
    const cut = new AbortController();
    let reason = '';
    const end = (why: string): void => {
      reason ||= why;
      cut.abort();
    };
    const cancel = (): void => end(CANCELED);
    const timer = this.#clock.setTimer(() => end(DEADLINE_EXCEEDED), request.timeoutMs);
    request.signal.addEventListener('abort', cancel, { once: true });
    const peer = this.#peerFor(url, request);
    const state: Exchange = {
      url,
      request,
      agent: peer.agent,
      signal: cut.signal,
      isReused: false,
      isAnswered: false,
    };
    try {
      await this.#turn(peer, state, request.timeoutMs, cut.signal);
      if (cut.signal.aborted) throw new TransportError(reason);
      return await this.#exchange(state);
    } catch (error) {
      if (error instanceof TransportError) throw error;
      const duringBody = state.isAnswered;
      reason ||= duringBody ? 'unexpected EOF' : explain(error, url);
      throw new TransportError(reason, { duringBody, cause: error });
    } finally {
      timer.cancel();
      request.signal.removeEventListener('abort', cancel);
      peer.underWay.delete(state);
      this.#letNextGo(peer);
    }
  }

  /** Closes the connections that are kept; the transport can still be used. */
  close(): void {
    for (const { agent } of this.#peers.values()) agent.destroy();
    this.#peers.clear();
  }

  async #exchange(state: Exchange): Promise<WebhookResponse> {
    try {
      return await exchange(state);
    } catch (error) {
      // A server may close a kept connection just as we write into it; a review is a question and can be asked again.
      if (!state.isReused || state.isAnswered || codeOf(error) !== 'ECONNRESET' || state.signal.aborted) throw error;
      state.agent = undefined;
      return exchange(state);
    }
  }

  /** Counts a call in when it may go, which is at once unless there are many, or when it is cut short. */
  async #turn(peer: Peer, call: object, timeoutMs: number, signal: AbortSignal): Promise<void> {
    if (!hasRoom(peer)) await this.#wait(peer, timeoutMs, signal);
    peer.underWay.set(call, this.#clock.now());
  }

  #wait(peer: Peer, timeoutMs: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const waiter: Waiter = {
        sinceMs: this.#clock.now(),
        timeoutMs,
        go: () => {
          peer.waiting.delete(waiter);
          signal.removeEventListener('abort', waiter.go);
          resolve();
        },
      };
      signal.addEventListener('abort', waiter.go, { once: true });
      peer.waiting.add(waiter);
      peer.newest.push(waiter);
      this.#watch(peer);
    });
  }

  /**
   * The first to come goes first, unless there are more than can be called for in time: then whoever came last does. Those
   * before have hardly any time left, and to begin with them would be to come too late for everybody.
   */
  #letNextGo({ waiting, newest }: Peer): void {
    const oldest = waiting.values().next().value;
    if (!oldest) return void newest.splice(0);
    if (this.#clock.now() - oldest.sinceMs < oldest.timeoutMs * LATE_SHARE) return oldest.go();
    for (let last = newest.pop(); last; last = newest.pop()) if (waiting.has(last)) return last.go();
  }

  /** Looks now and then, once for all who wait, whether some call takes so long that they should not. */
  #watch(peer: Peer): void {
    if (peer.isWatched) return;
    peer.isWatched = true;
    this.#clock.setTimer(() => {
      peer.isWatched = false;
      const nowMs = this.#clock.now();
      const [underWaySinceMs = nowMs] = peer.underWay.values();
      for (const { sinceMs, timeoutMs, go } of peer.waiting) {
        if (nowMs - Math.max(sinceMs, underWaySinceMs) < timeoutMs * WAIT_SHARE) break;
        go();
      }
      if (peer.waiting.size > 0) this.#watch(peer);
    }, WATCH_INTERVAL_MS);
  }

  #peerFor(url: URL, { serverName = '', caBundle }: WebhookRequest): Peer {
    const key = `${url.host}\n${serverName}\n${caBundle ?? ''}`;
    const peer: Peer = this.#peers.get(key) ?? {
      agent: new Agent({ keepAlive: true, maxFreeSockets: CONNECTIONS_KEPT, timeout: IDLE_TIMEOUT_MS }),
      underWay: new Map<object, number>(),
      waiting: new Set<Waiter>(),
      newest: [],
      isWatched: false,
    };
    this.#peers.delete(key);
    this.#peers.set(key, peer);
    if (this.#peers.size > PEERS_MAX) this.#dropOldest();
    return peer;
  }

  #dropOldest(): void {
    const [oldest] = this.#peers;
    if (!oldest) return;
    this.#peers.delete(oldest[0]);
    oldest[1].agent.destroy();
  }
}

/** Whom webhooks are called at. */
interface Peer {
  readonly agent: Agent;
  /** Calls under way and when they began, the oldest first. Those that wait are not among them. */
  readonly underWay: Map<object, number>;
  /** The first to come first. */
  readonly waiting: Set<Waiter>;
  /** The same, the last to come last; some of them do not wait any more. */
  readonly newest: Waiter[];
  isWatched: boolean;
}

/** A call that waits for a connection of others. */
interface Waiter {
  readonly sinceMs: number;
  /** How long it may take in all. */
  readonly timeoutMs: number;
  readonly go: () => void;
}

/** Whether a call would find a connection, or may open one without waiting for those that are there. */
function hasRoom({ agent, underWay, waiting }: Peer): boolean {
  if (underWay.size < CONNECTIONS_USUAL) return true;
  return waiting.size === 0 && underWay.size < countOf(agent.sockets) + countOf(agent.freeSockets);
}

function countOf(sockets: Agent['sockets']): number {
  return Object.values(sockets).reduce((sum, each = []) => sum + each.length, 0);
}

interface Exchange {
  readonly url: URL;
  readonly request: WebhookRequest;
  /** Undefined for a connection of its own. */
  agent: Agent | undefined;
  readonly signal: AbortSignal;
  isReused: boolean;
  /** Whether the headers of the answer have arrived. */
  isAnswered: boolean;
}

function exchange(state: Exchange): Promise<WebhookResponse> {
  const { url, request, agent, signal } = state;
  const body = Buffer.from(request.body);
  const hostname = url.hostname.replace(/^\[|\]$/g, '');
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest({
      agent: agent ?? false,
      host: hostname,
      port: url.port === '' ? 443 : Number(url.port),
      path: url.pathname + url.search,
      method: 'POST',
      signal,
      ...(request.caBundle === undefined ? {} : { ca: request.caBundle }),
      ...(request.serverName === undefined ? {} : { servername: request.serverName }),
      headers: {
        host: request.serverName ?? url.host,
        'content-type': 'application/json',
        accept: 'application/json, */*',
        'content-length': body.length,
      },
    });
    outgoing.on('response', (response) => {
      state.isAnswered = true;
      readBody(response).then((bytes) => resolve({ status: response.statusCode ?? 0, body: bytes }), reject);
    });
    outgoing.on('error', (error) => {
      state.isReused = outgoing.reusedSocket;
      reject(error);
    });
    outgoing.end(body);
  });
}

async function readBody(response: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length;
    // Leaving the loop ends the connection.
    if (length > RESPONSE_BYTES_MAX) {
      throw new TransportError(`response is larger than ${RESPONSE_BYTES_MAX} bytes`, { duringBody: true });
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function codeOf(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? '';
}

const UNKNOWN_AUTHORITY: ReadonlySet<string> = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
]);

/** Node's error in Go's words. */
function explain(error: unknown, url: URL): string {
  const code = codeOf(error);
  const address = `${url.hostname}:${url.port === '' ? '443' : url.port}`;
  const failed = (detail: string): string => `tls: failed to verify certificate: x509: ${detail}`;
  if (UNKNOWN_AUTHORITY.has(code)) return failed('certificate signed by unknown authority');
  switch (code) {
    case 'ECONNREFUSED':
      return `dial tcp ${address}: connect: connection refused`;
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
      return `dial tcp ${address}: connect: no route to host`;
    case 'ENOTFOUND':
      return `dial tcp: lookup ${url.hostname}: no such host`;
    case 'ETIMEDOUT':
      return `dial tcp ${address}: i/o timeout`;
    case 'ECONNRESET':
    case 'EPIPE':
      return 'EOF';
    case 'CERT_HAS_EXPIRED':
    case 'CERT_NOT_YET_VALID':
      return failed('certificate has expired or is not yet valid');
    case 'ERR_TLS_CERT_ALTNAME_INVALID':
      return failed((error as { reason?: string }).reason ?? 'certificate is not valid for this name');
    case 'EPROTO':
    case 'ERR_SSL_WRONG_VERSION_NUMBER':
      return 'tls: first record does not look like a TLS handshake';
    default:
      return (error as Error).message;
  }
}
