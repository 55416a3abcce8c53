import { once } from 'node:events';
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import { realClock, realRandom } from '../../src/env/real.ts';
import { createAuthority, DAY_MS, issueIdentity } from '../../src/machinery/x509/authority.ts';
import type { Anything } from './api.ts';

/** A request as the extension server got it. */
export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The common name on the certificate of whoever connected. */
  readonly proxy: string;
}

const GROUP_VERSION = 'stats.example.com/v1beta1';

/**
 * A small API server of its own (`stats.example.com/v1beta1`: readings, with a subresource `calibrate`), to be put
 * behind an APIService. It talks to nobody who has no certificate of the front proxy.
 */
export class ExtensionServer {
  readonly #server: Server;
  readonly #sockets = new Set<TLSSocket>();
  /** PEM of the authority that signed its certificate. */
  readonly caPem: string;
  /** Requests other than those of the aggregator itself. */
  readonly seen: SeenRequest[] = [];

  private constructor(server: Server, caPem: string) {
    this.#server = server;
    this.caPem = caPem;
    server.on('secureConnection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
    });
    server.on('request', (request, response) => void this.#serve(request, response));
  }

  /** Starts on a free port; `dnsName` is what it has to prove to be, `frontProxyCa` who may connect. */
  static async start(dnsName: string, frontProxyCa: string): Promise<ExtensionServer> {
    const authority = await createAuthority({ clock: realClock, random: realRandom }, 'extension-ca');
    const identity = await issueIdentity(authority, {
      commonName: dnsName,
      dnsNames: [dnsName],
      usages: ['server'],
      validityMs: DAY_MS,
    });
    const server = createServer({
      cert: identity.certificatePem,
      key: identity.keyPem,
      ca: frontProxyCa,
      requestCert: true,
      rejectUnauthorized: true,
    });
    server.listen(0, '0.0.0.0');
    await once(server, 'listening');
    return new ExtensionServer(server, authority.certificatePem);
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    this.#server.close();
    await once(this.#server, 'close');
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const { method = '', url = '', headers } = request;
    const path = url.split('?')[0] ?? '';
    const [status, body] = answerTo(method, path);
    const proxy = String((request.socket as TLSSocket).getPeerCertificate().subject.CN);
    if (path.includes('/namespaces/')) {
      this.seen.push({ method, path, headers, proxy, body: Buffer.concat(chunks).toString('utf8') });
    }
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify(body));
  }
}

function answerTo(method: string, path: string): [number, Anything] {
  const match =
    /^\/apis\/stats\.example\.com\/v1beta1\/namespaces\/([^/]+)\/readings(?:\/([^/]+)(\/calibrate)?)?$/.exec(path);
  const [, namespace = '', name, calibrate] = match ?? [];
  if (path === `/apis/${GROUP_VERSION}`) return [200, discovery()];
  if (!match) return [404, notFound(path)];
  if (calibrate) return [method === 'POST' ? 200 : 405, reading(namespace, name ?? '')];
  if (name === undefined) {
    return [
      200,
      {
        kind: 'ReadingList',
        apiVersion: GROUP_VERSION,
        metadata: {},
        items: [reading(namespace, 'one'), reading(namespace, 'two')],
      },
    ];
  }
  return name === 'none' ? [404, notFound(name)] : [200, reading(namespace, name)];
}

function reading(namespace: string, name: string): Anything {
  return {
    kind: 'Reading',
    apiVersion: GROUP_VERSION,
    metadata: { name, namespace, creationTimestamp: new Date().toISOString().replace(/\.\d+/, '') },
    value: '42',
  };
}

function discovery(): Anything {
  const common = { namespaced: true, kind: 'Reading' };
  return {
    kind: 'APIResourceList',
    apiVersion: 'v1',
    groupVersion: GROUP_VERSION,
    resources: [
      { name: 'readings', singularName: 'reading', verbs: ['get', 'list'], shortNames: ['rd'], ...common },
      { name: 'readings/calibrate', singularName: '', verbs: ['create'], ...common },
    ],
  };
}

function notFound(name: string): Anything {
  return {
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: `readings.stats.example.com "${name}" not found`,
    reason: 'NotFound',
    details: { name, group: 'stats.example.com', kind: 'readings' },
    code: 404,
  };
}
