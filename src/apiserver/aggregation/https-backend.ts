import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, type RequestOptions, request as httpsRequest } from 'node:https';
import type { Duplex } from 'node:stream';
import type { Clock } from '../../env/ports.ts';
import {
  type Backend,
  type BackendAddress,
  BackendError,
  type BackendRequest,
  type BackendResponse,
  type BackendTransport,
  type UpgradeAnswer,
} from './backend.ts';

/** The certificate by which backends recognise this server as their front proxy. */
export interface FrontProxyIdentity {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** Idle connections kept to one backend. */
const IDLE_CONNECTIONS_MAX = 16;
/** Shorter than servers keep theirs, so that we rarely write into a closed one. */
const IDLE_TIMEOUT_MS = 30_000;
/** How many addresses of a backend are tried before it counts as down. */
const ADDRESSES_TRIED_MAX = 3;

/** Methods that may safely be sent twice, and so over a kept connection that the peer may just be closing. */
const SAFE_METHODS: ReadonlySet<string> = new Set(['GET', 'HEAD']);

/** Reaches backends over HTTPS/1.1, presenting the front-proxy certificate. */
export class HttpsBackendTransport implements BackendTransport {
  readonly #clock: Clock;
  readonly #identity: () => FrontProxyIdentity;
  /** One for all: it pools by address, name, trust anchors and certificate. */
  readonly #agent = new Agent({ keepAlive: true, maxFreeSockets: IDLE_CONNECTIONS_MAX, timeout: IDLE_TIMEOUT_MS });

  /** The identity is asked for with every request, so that a renewed certificate is taken up. */
  constructor(clock: Clock, identity: () => FrontProxyIdentity) {
    this.#clock = clock;
    this.#identity = identity;
  }

  async send(backend: Backend, request: BackendRequest): Promise<BackendResponse> {
    const isSafe = SAFE_METHODS.has(request.method);
    const answer = await this.#try(backend, request, isSafe ? this.#agent : false);
    if (answer.kind === 'response') return responseOf(answer.incoming);
    // Nobody asked for an upgrade, so this is no HTTP.
    answer.socket.destroy();
    throw new BackendError('the backend switched protocols without being asked');
  }

  async upgrade(backend: Backend, request: BackendRequest): Promise<UpgradeAnswer> {
    const answer = await this.#try(backend, request, false);
    if (answer.kind === 'response') return { kind: 'refused', response: responseOf(answer.incoming) };
    const { incoming, socket, head } = answer;
    return { kind: 'upgraded', headers: headersOf(incoming), socket, head };
  }

  /** Closes the connections that are kept; the transport can still be used. */
  close(): void {
    this.#agent.destroy();
  }

  /** Tries one address after the other as long as none has been spoken to. */
  async #try(backend: Backend, request: BackendRequest, agent: Agent | false): Promise<Answer> {
    let failure: BackendError | undefined;
    for (const address of backend.addresses.slice(0, ADDRESSES_TRIED_MAX)) {
      try {
        return await this.#exchange(backend, address, request, agent);
      } catch (error) {
        failure = explain(error, address);
        if (!NOT_CONNECTED.has(codeOf(error)) || request.signal.aborted) break;
      }
    }
    throw failure ?? new BackendError('the backend has no address');
  }

  async #exchange(
    backend: Backend,
    address: BackendAddress,
    request: BackendRequest,
    agent: Agent | false,
  ): Promise<Answer> {
    const deadline = new AbortController();
    const timer = this.#clock.setTimer(() => deadline.abort(), request.timeoutMs);
    const options = this.#options(backend, address, request);
    try {
      const first = await once({ ...options, agent }, request, deadline.signal);
      if (first !== 'stale') return first;
      const second = await once({ ...options, agent: false }, request, deadline.signal);
      if (second !== 'stale') return second;
      throw new BackendError('the backend closed the connection');
    } catch (error) {
      if (!deadline.signal.aborted || request.signal.aborted) throw error;
      throw new BackendError(`no answer within ${request.timeoutMs / 1000} s`, { isTimeout: true, cause: error });
    } finally {
      timer.cancel();
    }
  }

  #options(backend: Backend, address: BackendAddress, request: BackendRequest): RequestOptions {
    const { certificatePem, keyPem } = this.#identity();
    const headers: Record<string, string | string[]> = { host: backend.serverName };
    for (const [name, value] of Object.entries(request.headers)) {
      headers[name] = typeof value === 'string' ? value : [...value];
    }
    if (request.body !== undefined) headers['content-length'] = String(request.body.length);
    return {
      host: address.host,
      port: address.port,
      servername: backend.serverName,
      method: request.method,
      path: request.path,
      headers,
      cert: certificatePem,
      key: keyPem,
      minVersion: 'TLSv1.2',
      rejectUnauthorized: !backend.isInsecure,
      ...(backend.caBundle === undefined ? {} : { ca: backend.caBundle }),
    };
  }
}

type Answer =
  | { readonly kind: 'response'; readonly incoming: IncomingMessage }
  | {
      readonly kind: 'upgrade';
      readonly incoming: IncomingMessage;
      readonly socket: Duplex;
      readonly head: Uint8Array;
    };

/** One request on one connection; `stale` when a kept connection turned out to be closed. */
function once(options: RequestOptions, request: BackendRequest, deadline: AbortSignal): Promise<Answer | 'stale'> {
  return new Promise((resolve, reject) => {
    const outgoing: ClientRequest = httpsRequest(options);
    const abandon = (): void => void outgoing.destroy(new BackendError('the request was abandoned'));
    const signals = [request.signal, deadline];
    for (const signal of signals) signal.addEventListener('abort', abandon, { once: true });
    const settle = (): void => deadline.removeEventListener('abort', abandon);
    outgoing.on('response', (incoming) => {
      settle();
      incoming.on('close', () => request.signal.removeEventListener('abort', abandon));
      resolve({ kind: 'response', incoming });
    });
    outgoing.on('upgrade', (incoming, socket, head) => {
      for (const signal of signals) signal.removeEventListener('abort', abandon);
      resolve({ kind: 'upgrade', incoming, socket, head });
    });
    outgoing.on('error', (error) => {
      for (const signal of signals) signal.removeEventListener('abort', abandon);
      if (outgoing.reusedSocket && codeOf(error) === 'ECONNRESET') resolve('stale');
      else reject(error);
    });
    if (signals.some((signal) => signal.aborted)) abandon();
    outgoing.end(request.body);
  });
}

function responseOf(incoming: IncomingMessage): BackendResponse {
  return { status: incoming.statusCode ?? 502, headers: headersOf(incoming), body: incoming };
}

/** Repeated headers stay lists: joining some of them (Warning, Set-Cookie) would change what they say. */
function headersOf(incoming: IncomingMessage): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = {};
  for (const [name, values] of Object.entries(incoming.headersDistinct)) {
    if (values) headers[name] = values.length === 1 ? (values[0] ?? '') : values;
  }
  return headers;
}

/** Errors before a connection stood: nothing was sent, so another address may be tried. */
const NOT_CONNECTED: ReadonlySet<string> = new Set(['ECONNREFUSED', 'EHOSTUNREACH', 'ENETUNREACH', 'ENOTFOUND']);

function codeOf(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? '';
}

function explain(error: unknown, address: BackendAddress): BackendError {
  if (error instanceof BackendError) return error;
  const message = error instanceof Error ? error.message || codeOf(error) : String(error);
  return new BackendError(`${address.host}:${address.port}: ${message}`, { cause: error });
}
