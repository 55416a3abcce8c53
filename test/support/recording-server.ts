import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { WebSocketServer } from 'ws';
import { realClock, realRandom } from '../../src/env/real.ts';
import { createAuthority, DAY_MS, issueIdentity } from '../../src/machinery/x509/authority.ts';

/** What was asked of a server. */
export interface Recorded {
  readonly method: string;
  /** Decoded, with its query. */
  readonly path: string;
  /** Of JSON; undefined where there was none. */
  readonly body: unknown;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** An answer; where a code is missing it is 200. */
export interface Scripted {
  readonly code?: number;
  readonly body: object;
}

/** Stands for an API server: remembers what it is asked, and answers as it was told, or with nothing. Consoles end at once. */
export class RecordingServer {
  readonly requests: Recorded[] = [];
  /** Answers by method and path, of which the beginning is enough. */
  readonly answers = new Map<string, Scripted>();
  /** Who has signed its certificate. */
  readonly authorityPem: string;
  readonly #server: Server;

  private constructor(server: Server, authorityPem: string) {
    this.#server = server;
    this.authorityPem = authorityPem;
  }

  static async start(): Promise<RecordingServer> {
    const authority = await createAuthority({ clock: realClock, random: realRandom }, 'recording');
    const { certificatePem, keyPem } = await issueIdentity(authority, {
      commonName: 'recording',
      ipAddresses: ['127.0.0.1'],
      usages: ['server'],
      validityMs: DAY_MS,
    });
    const server = createServer({ cert: certificatePem, key: keyPem });
    const recording = new RecordingServer(server, authority.certificatePem);
    server.on('request', (request, response) => {
      const pieces: Buffer[] = [];
      request.on('data', (piece: Buffer) => pieces.push(piece));
      request.on('end', () => {
        const { code = 200, body } = recording.#note(request, Buffer.concat(pieces).toString('utf8'));
        response.writeHead(code, { 'content-type': 'application/json' }).end(JSON.stringify(body));
      });
    });
    const sockets = new WebSocketServer({ server, handleProtocols: ([first]) => first ?? false });
    sockets.on('connection', (socket, request) => {
      recording.#note(request, '');
      socket.close(1000);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return recording;
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #note(
    { method = '', url = '', headers }: { method?: string; url?: string; headers: Recorded['headers'] },
    text: string,
  ): Scripted {
    const path = decodeURIComponent(url);
    this.requests.push({ method, path, body: text === '' ? undefined : (JSON.parse(text) as unknown), headers });
    const known = [...this.answers].find(([start]) => `${method} ${path}`.startsWith(start));
    return known?.[1] ?? { body: {} };
  }
}
