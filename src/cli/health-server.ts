import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Service } from '../kube/service.ts';

export interface HealthServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: () => Promise<string>;
  /** What keeps the process from being asked; undefined while nothing does. */
  readonly notReady: () => string | undefined;
}

interface Page {
  readonly status: number;
  readonly body: string;
}

const OK: Page = { status: 200, body: 'ok' };
const NOT_FOUND: Page = { status: 404, body: 'not found\n' };

/**
 * Tells those who watch over a process that it is there (`/healthz`, `/livez`), whether it can work (`/readyz`), and what it does
 * (`/metrics`), without TLS.
 */
export class HealthServer implements Service {
  readonly name = 'health and metrics';
  readonly needsLeadership = false;
  readonly #options: HealthServerOptions;

  constructor(options: HealthServerOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const server = createServer((request, response) => void this.#answer(request, response));
    const { host, port } = this.#options;
    server.listen(port, host);
    await once(server, 'listening');
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  async #answer({ url = '', method }: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const { status, body } = method === 'GET' ? await this.#page(url) : NOT_FOUND;
      response.writeHead(status, { 'content-type': 'text/plain; version=0.0.4' }).end(body);
    } catch (error) {
      response.writeHead(500).end((error as Error).message);
    }
  }

  async #page(url: string): Promise<Page> {
    if (url === '/metrics') return { status: 200, body: await this.#options.metrics() };
    if (url === '/healthz' || url === '/livez') return OK;
    if (url !== '/readyz') return NOT_FOUND;
    const reason = this.#options.notReady();
    return reason === undefined ? OK : { status: 503, body: `${reason}\n` };
  }
}
