import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request as httpsRequest } from 'node:https';
import type { ConnectionOptions } from 'node:tls';
import type { Clock, Timer } from '../env/ports.ts';
import { cancelled } from './abort.ts';
import { connectFailure, type HttpConnection, ResponseBody, WireError, type WireRequest } from './http-connection.ts';
import { TransportError, type TransportResponse } from './transport.ts';

/** Sockets at once: each watch has one of its own. */
const SOCKETS_MAX = 256;
const IDLE_SOCKETS_MAX = 16;
/** Shorter than servers keep theirs, so that we rarely write into a closed one. */
const IDLE_TIMEOUT_MS = 30_000;
/** There are no pings here: a body that stays silent for longer than three bookmarks take is taken for dead. */
const BODY_SILENCE_MS_MAX = 180_000;

/** The same as an HTTP/2 session for servers (or proxies before them) that do not speak it: a pool of sockets. */
export class Http1Connection implements HttpConnection {
  readonly #agent: Agent;
  readonly #authority: string;
  readonly #clock: Clock;
  /** Requests, and their answers once those have begun. */
  readonly #underWay = new Map<ClientRequest, IncomingMessage | undefined>();
  #isUsable = true;

  constructor(options: ConnectionOptions, authority: string, clock: Clock) {
    this.#authority = authority;
    this.#clock = clock;
    this.#agent = new Agent({
      ...options,
      ALPNProtocols: ['http/1.1'],
      keepAlive: true,
      maxSockets: SOCKETS_MAX,
      maxFreeSockets: IDLE_SOCKETS_MAX,
      timeout: IDLE_TIMEOUT_MS,
    });
  }

  get isUsable(): boolean {
    return this.#isUsable;
  }

  get isClosed(): boolean {
    return !this.#isUsable && this.#underWay.size === 0;
  }

  retire(): void {
    this.#isUsable = false;
    if (this.#underWay.size === 0) this.#agent.destroy();
  }

  destroy(reason: string): void {
    this.#isUsable = false;
    for (const [outgoing, incoming] of this.#underWay) (incoming ?? outgoing).destroy(new TransportError(reason));
    this.#agent.destroy();
  }

  send(request: WireRequest): Promise<TransportResponse> {
    const { signal, method, path, body } = request;
    return new Promise((resolve, reject) => {
      const outgoing = httpsRequest({
        agent: this.#agent,
        method,
        path,
        headers: { ...headersOf(request), host: this.#authority },
      });
      this.#underWay.set(outgoing, undefined);
      let isConnected = false;
      outgoing.on('socket', (socket) => {
        isConnected = outgoing.reusedSocket;
        socket.once('secureConnect', () => (isConnected = true));
      });
      const fail = (error: Error): void => {
        settle();
        reject(error);
        outgoing.destroy(error);
      };
      const onAbort = (): void => fail(cancelled(signal));
      const timer = this.#clock.setTimer(
        () => fail(new WireError(`no answer within ${request.headTimeoutMs / 1000} s`, 'never')),
        request.headTimeoutMs,
      );
      const settle = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', onAbort);
      };
      signal.addEventListener('abort', onAbort, { once: true });
      outgoing.on('response', (incoming) => {
        settle();
        this.#underWay.set(outgoing, incoming);
        resolve(this.#responseOf(incoming, signal));
      });
      outgoing.on('error', (error) => fail(this.#failure(isConnected, error)));
      outgoing.on('close', () => this.#forget(outgoing));
      if (signal.aborted) onAbort();
      else outgoing.end(body);
    });
  }

  #forget(outgoing: ClientRequest): void {
    this.#underWay.delete(outgoing);
    if (!this.#isUsable && this.#underWay.size === 0) this.#agent.destroy();
  }

  #failure(isConnected: boolean, error: Error): TransportError {
    if (error instanceof TransportError) return error;
    if (isConnected)
      return new WireError(`the connection broke before an answer came: ${error.message}`, 'reads', error);
    // Nothing was sent. The server may have become another one, which is to be found out anew.
    this.#isUsable = false;
    return connectFailure(error, this.#authority);
  }

  #responseOf(incoming: IncomingMessage, signal: AbortSignal): TransportResponse {
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(incoming.headers)) {
      if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
    }
    let timer: Timer | undefined;
    const listen = (): void => {
      timer?.cancel();
      timer = this.#clock.setTimer(
        () => incoming.destroy(new TransportError('the server no longer answers')),
        BODY_SILENCE_MS_MAX,
      );
    };
    listen();
    const body = new ResponseBody({
      stream: incoming,
      signal,
      cancel: (reason) => incoming.destroy(reason),
      flaw: async () => (incoming.complete ? undefined : 'the connection broke in the middle of the answer'),
      onPiece: listen,
      onEnd: () => timer?.cancel(),
    });
    return { status: incoming.statusCode ?? 0, headers, body };
  }
}

function headersOf({ headers, body }: WireRequest): Record<string, string | string[]> {
  const result: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) result[name] = typeof value === 'string' ? value : [...value];
  if (body !== undefined) result['content-length'] = String(Buffer.byteLength(body));
  return result;
}
