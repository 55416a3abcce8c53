import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createSecureServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import type { TLSSocket } from 'node:tls';
import type { KubeObject } from '../../api/meta.ts';
import { sleep } from '../../env/ports.ts';
import { realClock, realRandom } from '../../env/real.ts';
import { testEnv } from '../../env/test.ts';
import { clone } from '../../machinery/clone.ts';
import type { ApiRequest } from '../http/message.ts';
import {
  type Authority,
  createAuthority,
  DAY_MS,
  type Identity,
  issueIdentity,
} from '../../machinery/x509/authority.ts';
import type { View } from '../registry/contract.ts';
import { Aggregator } from './aggregator.ts';
import type { ApiService } from './api-service.ts';
import { HttpsBackendTransport } from './https-backend.ts';

/** A real HTTPS backend, and fakes of the ports around the aggregator. */

/** A fake of a registry's view that tests write to. */
export class FakeView implements View {
  readonly #objects = new Map<string, KubeObject>();
  readonly #listeners: ((object: KubeObject | undefined, old: KubeObject | undefined) => void)[] = [];

  get(namespace: string, name: string): KubeObject | undefined {
    return this.#objects.get(`${namespace}/${name}`);
  }

  list(): readonly KubeObject[] {
    return [...this.#objects.values()];
  }

  onChange(listener: (object: KubeObject | undefined, old: KubeObject | undefined) => void): void {
    this.#listeners.push(listener);
  }

  put(object: KubeObject): void {
    const key = `${object.metadata.namespace ?? ''}/${object.metadata.name}`;
    const old = this.#objects.get(key);
    this.#objects.set(key, object);
    for (const listener of this.#listeners) listener(object, old);
  }

  drop(namespace: string, name: string): void {
    const old = this.get(namespace, name);
    this.#objects.delete(`${namespace}/${name}`);
    for (const listener of this.#listeners) listener(undefined, old);
  }

  /** A fake of a status write. */
  update(name: string, change: (object: KubeObject) => void): void {
    const next = clone(this.get('', name));
    if (!next) throw new Error(`${name} is gone`);
    change(next);
    this.put(next);
  }
}

export interface TestPki {
  readonly serverAuthority: Authority;
  readonly frontProxyAuthority: Authority;
  readonly server: Identity;
  readonly frontProxy: Identity;
}

/** Real authorities and certificates; the server's is for `api.apps.svc`. */
export async function createPki(): Promise<TestPki> {
  const env = { clock: realClock, random: realRandom };
  const serverAuthority = await createAuthority(env, 'backend-ca');
  const frontProxyAuthority = await createAuthority(env, 'front-proxy-ca');
  const shared = { validityMs: DAY_MS };
  return {
    serverAuthority,
    frontProxyAuthority,
    server: await issueIdentity(serverAuthority, {
      ...shared,
      commonName: 'api.apps.svc',
      dnsNames: ['api.apps.svc'],
      usages: ['server'],
    }),
    frontProxy: await issueIdentity(frontProxyAuthority, {
      ...shared,
      commonName: 'front-proxy-client',
      usages: ['client'],
    }),
  };
}

type Handler = (request: IncomingMessage, response: ServerResponse) => void;
type Upgrader = (request: IncomingMessage, socket: Duplex, head: Buffer) => void;

/** A real HTTPS server that believes nobody but the front proxy. */
export class Backend {
  readonly #server: Server;
  readonly #sockets = new Set<TLSSocket>();
  handle: Handler;
  upgrade: Upgrader = (_request, socket) => socket.destroy();
  port = 0;
  /** Every request: its method and URL, and who the front proxy said was asking. */
  readonly seen: { readonly line: string; readonly headers: IncomingMessage['headers'] }[] = [];
  readonly proxies: string[] = [];

  constructor(pki: TestPki, handle: Handler) {
    this.handle = handle;
    this.#server = createSecureServer({
      cert: pki.server.certificatePem,
      key: pki.server.keyPem,
      ca: pki.frontProxyAuthority.certificatePem,
      requestCert: true,
      rejectUnauthorized: true,
    });
    this.#server.on('secureConnection', (socket) => {
      this.#sockets.add(socket);
      socket.on('close', () => this.#sockets.delete(socket));
      this.proxies.push(String(socket.getPeerCertificate().subject.CN));
    });
    this.#server.on('request', (request, response) => {
      this.seen.push({ line: `${request.method} ${request.url}`, headers: request.headers });
      this.handle(request, response);
    });
    this.#server.on('upgrade', (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      this.seen.push({ line: `UPGRADE ${request.url}`, headers: request.headers });
      this.upgrade(request, socket, head);
    });
  }

  async start(port = 0): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(port, '127.0.0.1', resolve));
    this.port = (this.#server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

export const ROOT = '/apis/sub.example.com/v1';
const NAME = 'v1.sub.example.com';

/** Answers the legacy form of discovery, and an OpenAPI index. */
export const serveDiscovery: Handler = (request, response) => {
  response.setHeader('content-type', 'application/json');
  if (request.url === ROOT) {
    const resources = [{ name: 'vms/pause', namespaced: true, kind: 'Vm', verbs: ['update'] }];
    response.end(JSON.stringify({ kind: 'APIResourceList', groupVersion: 'sub.example.com/v1', resources }));
  } else if (request.url === '/openapi/v3') {
    const paths = { 'apis/sub.example.com/v1': { serverRelativeURL: `/openapi/v3${ROOT}?hash=AB12` } };
    response.end(JSON.stringify({ paths }));
  } else {
    response.statusCode = 404;
    response.end('{}');
  }
};

/** An aggregator over fake views, with a real backend behind one APIService. */
export class World {
  readonly pki: TestPki;
  readonly env = testEnv();
  readonly views = { apiServices: new FakeView(), services: new FakeView(), endpoints: new FakeView() };
  readonly aggregator: Aggregator;
  backend: Backend;
  readonly #transport: HttpsBackendTransport;
  readonly #stop = new AbortController();
  #running = Promise.resolve();

  constructor(pki: TestPki) {
    this.pki = pki;
    this.backend = new Backend(pki, serveDiscovery);
    this.#transport = new HttpsBackendTransport(this.env.clock, () => pki.frontProxy);
    this.aggregator = new Aggregator(this.env, {
      ...this.views,
      transport: this.#transport,
      updateStatus: async (name, change) => this.views.apiServices.update(name, change),
    });
  }

  async start(): Promise<void> {
    await this.backend.start();
    this.views.services.put(this.service());
    this.views.endpoints.put(this.endpoints([this.backend.port]));
    this.#running = this.aggregator.run(this.#stop.signal);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    this.#transport.close();
    await this.backend.stop();
  }

  /** Registers the backend, and waits until it has been looked at. */
  async register(): Promise<void> {
    this.views.apiServices.put(this.apiService());
    await until(() => this.available().status !== undefined);
    this.backend.seen.length = 0;
  }

  /** Kills the backend, if it is alive, and starts another on its port. */
  async restartBackend(): Promise<void> {
    const { port } = this.backend;
    await this.backend.stop();
    this.backend = new Backend(this.pki, serveDiscovery);
    await this.backend.start(port);
  }

  available(): { status?: string; reason?: string; message?: string } {
    const apiService = this.views.apiServices.get('', NAME) as ApiService | undefined;
    return apiService?.status?.conditions?.[0] ?? {};
  }

  forget(): void {
    this.views.apiServices.drop('', NAME);
  }

  apiService(spec: object = {}): KubeObject {
    return {
      apiVersion: 'apiregistration.k8s.io/v1',
      kind: 'APIService',
      metadata: { name: NAME },
      spec: {
        group: 'sub.example.com',
        version: 'v1',
        service: { namespace: 'apps', name: 'api', port: 443 },
        caBundle: Buffer.from(this.pki.serverAuthority.certificatePem).toString('base64'),
        groupPriorityMinimum: 2000,
        versionPriority: 10,
        ...spec,
      },
    };
  }

  service(spec: object = {}): KubeObject {
    const metadata = { namespace: 'apps', name: 'api' };
    return { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ name: 'https', port: 443 }], ...spec } };
  }

  endpoints(ports: readonly number[]): KubeObject {
    const subsets = ports.map((port) => ({ addresses: [{ ip: '127.0.0.1' }], ports: [{ name: 'https', port }] }));
    return { apiVersion: 'v1', kind: 'Endpoints', metadata: { namespace: 'apps', name: 'api' }, subsets };
  }
}

/** A request without a connection. */
export function requestOf(
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string; signal?: AbortSignal } = {},
): ApiRequest {
  const [pathname = '', query = ''] = path.split('?');
  return {
    method: options.method ?? 'GET',
    path: pathname,
    query: new URLSearchParams(query),
    headers: options.headers ?? {},
    body: () => Promise.resolve(Buffer.from(options.body ?? '')),
    remoteAddress: '192.0.2.7',
    signal: options.signal ?? new AbortController().signal,
  };
}

/** A plain HTTP server whose upgrades are handed to `upgrade`: the client's side of a proxied connection. */
export async function upgradeFront(
  upgrade: (request: ApiRequest, socket: Duplex, head: Buffer) => Promise<void>,
): Promise<{ port: number; stop: () => Promise<void> }> {
  const server = createServer();
  const pending: Promise<void>[] = [];
  server.on('upgrade', (incoming: IncomingMessage, socket: Duplex, head: Buffer) => {
    const gone = new AbortController();
    socket.on('close', () => gone.abort());
    const headers = incoming.headers as Record<string, string>;
    pending.push(upgrade({ ...requestOf(incoming.url ?? ''), headers, signal: gone.signal }, socket, head));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    stop: async () => {
      server.closeAllConnections();
      await Promise.all(pending);
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** A real moment for I/O to happen in. */
export const tick = (delayMs = 5): Promise<void> => sleep(realClock, delayMs);

/** Waits until something is so. */
export async function until(isSo: () => boolean): Promise<void> {
  for (let round = 0; round < 1000; round++) {
    if (isSo()) return;
    await tick();
  }
  throw new Error('it never came to be');
}
