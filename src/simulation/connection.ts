import { type Clock, sleep } from '../env/ports.ts';
import { InProcessTransport, type LocalIdentity } from '../kube/in-process-transport.ts';
import { type Transport, TransportError, type TransportRequest, type TransportResponse } from '../kube/transport.ts';
import type { Incarnation } from './server.ts';

/** How one client reaches the server: with a little delay, or not at all while there is no server. */

export interface ConnectionOptions {
  readonly server: { readonly current: Incarnation | undefined };
  readonly identity: LocalIdentity;
  /** Aborts when the client is dead: the server then finds its connections closed. */
  readonly killed: AbortSignal;
  readonly clock: Clock;
  /** How long a request is on its way. */
  readonly latencyMs: () => number;
  /** Told of each request, with its status; 0 where no answer came. */
  readonly onRequest: (request: TransportRequest, status: number) => void;
}

export class Connection implements Transport {
  readonly #options: ConnectionOptions;

  constructor(options: ConnectionOptions) {
    this.#options = options;
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const { clock, latencyMs, server, onRequest } = this.#options;
    await sleep(clock, latencyMs(), request.signal);
    const incarnation = server.current;
    if (!incarnation) {
      onRequest(request, 0);
      throw new TransportError('connection refused: the server is down');
    }
    return this.#exchange(request, incarnation);
  }

  close(): void {
    // There is nothing to close.
  }

  async #exchange(request: TransportRequest, incarnation: Incarnation): Promise<TransportResponse> {
    const link = new AbortController();
    const cut = (): void => link.abort();
    const causes = [request.signal, incarnation.gone, this.#options.killed];
    for (const cause of causes) cause.addEventListener('abort', cut, { once: true });
    if (causes.some(({ aborted }) => aborted)) cut();
    const unlink = (): void => {
      for (const cause of causes) cause.removeEventListener('abort', cut);
    };
    try {
      const transport = new InProcessTransport(incarnation.handle, this.#options.identity);
      const response = await transport.send({ ...request, signal: link.signal });
      this.#options.onRequest(request, response.status);
      return { ...response, body: bodyOf(response.body, incarnation.gone, unlink) };
    } catch (error) {
      unlink();
      this.#options.onRequest(request, 0);
      throw incarnation.gone.aborted ? new TransportError('the connection broke: the server is gone', error) : error;
    }
  }
}

/** The body of an answer, which breaks off when the server is gone. */
async function* bodyOf(body: AsyncIterable<string>, gone: AbortSignal, onEnd: () => void): AsyncGenerator<string> {
  try {
    for await (const piece of body) {
      if (gone.aborted) break;
      yield piece;
    }
    if (gone.aborted) throw new TransportError('the connection broke: the server is gone');
  } finally {
    onEnd();
  }
}
