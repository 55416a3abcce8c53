import { once } from 'node:events';
import {
  createSecureServer,
  type Http2SecureServer,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2';
import { createServer as createHttpsServer, type Server as HttpsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { createAuthority, DAY_MS, type Identity, issueIdentity } from '../../src/machinery/x509/authority.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import type { ClusterAccess, Credentials } from '../../src/kube/cluster-access.ts';

/** Servers that misbehave as told, for the transport that has to cope. */

export interface TestPki {
  readonly authority: string;
  readonly server: Identity;
  /** A new client certificate. */
  client(name: string): Promise<Identity>;
}

export async function createTestPki(): Promise<TestPki> {
  const authority = await createAuthority({ clock: realClock, random: realRandom }, 'test');
  const common = { validityMs: DAY_MS };
  return {
    authority: authority.certificatePem,
    server: await issueIdentity(authority, {
      ...common,
      commonName: 'server',
      dnsNames: ['localhost', 'api.test'],
      ipAddresses: ['127.0.0.1'],
      usages: ['server'],
    }),
    client: (commonName) => issueIdentity(authority, { ...common, commonName, usages: ['client'] }),
  };
}

/** A request that came in. */
export interface Received {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, unknown>;
  readonly body: string;
  /** Counts the connections. */
  readonly session: number;
  /** The client certificate's name. */
  readonly client: string | undefined;
  readonly stream: ServerHttp2Stream;
}

/** An HTTP/2 server that does with each request what the test says. */
export class Http2TestServer {
  readonly received: Received[] = [];
  readonly sessions: ServerHttp2Session[] = [];
  handle: (received: Received) => void = ({ stream }) => answer(stream, 200, '{}');
  readonly #server: Http2SecureServer;

  constructor(pki: TestPki) {
    this.#server = createSecureServer({
      cert: pki.server.certificatePem,
      key: pki.server.keyPem,
      ca: pki.authority,
      requestCert: true,
      rejectUnauthorized: false,
    });
    this.#server.on('session', (session) => {
      this.sessions.push(session);
      session.on('error', () => undefined);
    });
    this.#server.on('stream', (stream, headers) => {
      stream.on('error', () => undefined);
      void this.#receive(stream, headers);
    });
    this.#server.on('sessionError', () => undefined);
  }

  async #receive(stream: ServerHttp2Stream, headers: Record<string, unknown>): Promise<void> {
    let body = '';
    stream.setEncoding('utf8');
    for await (const piece of stream) body += piece as string;
    const socket = stream.session?.socket as TLSSocket | undefined;
    const received: Received = {
      method: String(headers[':method']),
      path: String(headers[':path']),
      headers,
      body,
      session: this.sessions.indexOf(stream.session as ServerHttp2Session),
      client: [socket?.getPeerCertificate()?.subject?.CN].flat()[0],
      stream,
    };
    this.received.push(received);
    this.handle(received);
  }

  async listen(port = 0): Promise<number> {
    return listen(this.#server, port);
  }

  async close(): Promise<void> {
    for (const session of this.sessions) session.destroy();
    await closed(this.#server);
  }
}

export function answer(
  stream: ServerHttp2Stream,
  status: number,
  body: string,
  headers: Record<string, string> = {},
): void {
  stream.respond({ ':status': status, ...headers });
  stream.end(body);
}

/** A server that speaks HTTP/1.1 only. */
export function http1Server(pki: TestPki): HttpsServer {
  return createHttpsServer({
    cert: pki.server.certificatePem,
    key: pki.server.keyPem,
    ca: pki.authority,
    requestCert: true,
    rejectUnauthorized: false,
  });
}

export async function listen(server: Server | HttpsServer | Http2SecureServer, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

export function closed(server: Server | HttpsServer | Http2SecureServer): Promise<void> {
  return new Promise((resolve) => server.close(() => resolve()));
}

/** Passes bytes on to a port until told to swallow them, as a peer does whose cable was pulled. */
export class Cable {
  isPulled = false;
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();

  constructor(port: () => number) {
    this.#server = createServer((client) => {
      const target = connect(port(), '127.0.0.1');
      for (const [from, to] of [
        [client, target],
        [target, client],
      ] as const) {
        this.#sockets.add(from);
        from.on('data', (bytes) => {
          if (!this.isPulled) to.write(bytes);
        });
        from.on('error', () => undefined);
        from.on('close', () => {
          this.#sockets.delete(from);
          if (!this.isPulled) to.destroy();
        });
      }
    });
  }

  listen(): Promise<number> {
    return listen(this.#server);
  }

  close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    return closed(this.#server);
  }
}

/** Access whose parts a test can exchange. */
export interface TestAccess extends ClusterAccess {
  credential: Credentials;
  refused: () => void;
}

/** Access to a server on this machine, by credentials that the test can change. */
export function accessTo(port: number, pki: TestPki, options: Partial<TestAccess> = {}): TestAccess {
  const access: TestAccess = {
    server: `https://127.0.0.1:${port}`,
    namespace: 'default',
    isInsecure: false,
    impersonation: {},
    credential: {},
    authorities: async () => pki.authority,
    credentials: async () => access.credential,
    refused: () => undefined,
    ...options,
  };
  return access;
}
