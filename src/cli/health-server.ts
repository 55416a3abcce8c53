import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { Service } from '../kube/service.ts';

export interface HealthServerOptions {
  readonly host: string;
  readonly port: number;
  readonly metrics: () => Promise<string>;
}

/** Tells those who watch over a process that it is there (`/healthz`), and what it does (`/metrics`), without TLS. */
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
    const text = async (): Promise<string | undefined> => {
      if (method !== 'GET') return undefined;
      if (url === '/metrics') return this.#options.metrics();
      return url === '/healthz' || url === '/readyz' || url === '/livez' ? 'ok' : undefined;
    };
    try {
      const body = await text();
      response.writeHead(body === undefined ? 404 : 200, { 'content-type': 'text/plain; version=0.0.4' });
      response.end(body ?? 'not found\n');
    } catch (error) {
      response.writeHead(500).end((error as Error).message);
    }
  }
}
