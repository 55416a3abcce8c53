import { once } from 'node:events';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { type WebSocket, WebSocketServer } from 'ws';
import { realClock, realRandom } from '../../src/env/real.ts';
import { DAY_MS, type Identity, issueIdentity } from '../../src/machinery/x509/authority.ts';

/** Plays the agent of a node: it has a certificate of the cluster's, knows the paths, and notes what it is told. */
export class FakeAgent {
  static #started = 0;
  readonly #server: Server;
  readonly #number = FakeAgent.#started++;
  readonly #sockets = new WebSocketServer({ noServer: true });
  /** `METHOD path`, of all that was asked. */
  readonly seen: string[] = [];
  /** Tokens that were shown. */
  readonly tokens = new Set<string>();
  /** What its log says, of the one run that it has if there is any. */
  log = '';
  /** Consoles that are open. */
  readonly consoles: WebSocket[] = [];

  private constructor(server: Server) {
    this.#server = server;
    server.on('request', (request, response) => {
      this.#note(request.method, request.url, request.headers.authorization);
      const url = new URL(request.url ?? '', 'https://agent');
      if (request.method === 'PUT') {
        response.writeHead(202).end();
      } else if (url.pathname.endsWith('/runs')) {
        const run = { podUID: `pod-${this.#number}`, guestUID: 'g', startedAtMs: this.#number, isLive: true };
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify({ runs: this.log === '' ? [] : [run] }));
      } else if (url.pathname.endsWith('/log')) {
        if (url.searchParams.get('run') !== `pod-${this.#number}`) response.writeHead(404).end('nothing was said');
        else {
          const tail = url.searchParams.get('tailLines');
          const lines = this.log.split('\n').slice(0, -1);
          const shown = tail === null ? lines : lines.slice(lines.length - Math.min(lines.length, Number(tail)));
          response.writeHead(200, { 'content-type': 'text/plain' });
          response.write(shown.map((line) => `${line}\n`).join(''));
          if (url.searchParams.get('follow') !== 'true') response.end();
          else setTimeout(() => response.end('later\n'), 100);
        }
      } else response.writeHead(404).end();
    });
    server.on('upgrade', (request, socket, head) => {
      this.#note(request.method, request.url, request.headers.authorization);
      this.#sockets.handleUpgrade(request, socket, head, (opened) => {
        this.consoles.push(opened);
        opened.on('message', (data: Buffer) => opened.send(Buffer.from(`echo ${data.toString('utf8')}`)));
      });
    });
  }

  /** Starts on a free port of 127.0.0.1, as the agent of a node. */
  static async start(node: string, cluster: Identity): Promise<FakeAgent> {
    const identity = await issueIdentity(
      { ...cluster, env: { clock: realClock, random: realRandom } },
      {
        commonName: `system:node:${node}`,
        organizations: ['system:nodes'],
        ipAddresses: ['127.0.0.1'],
        usages: ['server'],
        validityMs: DAY_MS,
      },
    );
    const server = createServer({ cert: identity.certificatePem, key: identity.keyPem });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FakeAgent(server);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const socket of this.consoles) socket.terminate();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #note(method = '', url = '', authorization = ''): void {
    this.seen.push(`${method} ${url}`);
    this.tokens.add(authorization.replace(/^Bearer /, ''));
  }
}
