import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import type { PeerCertificate, TLSSocket } from 'node:tls';
import { WebSocketServer } from 'ws';
import { LOG_OFFSET_HEADER } from '../../api/guest-run.ts';
import { ApiError, badRequest, entityTooLarge, notFound, pathNotFound } from '../../api/status.ts';
import { unreachable } from '../../api/unreachable.ts';
import { type Env, sleep } from '../../env/ports.ts';
import { sharedAbortController } from '../../kube/abort.ts';
import type { Client } from '../../kube/client.ts';
import { errorText } from '../../kube/error-text.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import type { GuestAccess, SerialLog } from '../guests/guest-access.ts';
import { shownPin } from '../identity/key-pin.ts';
import type { PeerService } from '../migrations/peer.ts';
import { Callers, type Shown } from './callers.ts';
import { CONSOLE_PROTOCOL, ConsoleSession } from './console-session.ts';
import { callingPeer, isPeerRequest, readPeerRequest } from './peer-requests.ts';
import { type GuestAction, type Route, routeOf } from './routes.ts';
import { type LogOptions, streamLogs, withOffset } from './serial-log-stream.ts';

/** What the server shows that it is. */
export interface ServingCertificate {
  /** Undefined for as long as there is none: then nobody can connect. */
  readonly current: { readonly certificatePem: string; readonly keyPem: string } | undefined;
  /** Calls back whenever there is another one. */
  onChange(listener: () => void): void;
}

export interface AgentServerOptions {
  readonly env: Env;
  /** For questions about callers and pods. */
  readonly client: Client;
  readonly node: string;
  readonly guests: GuestAccess;
  /** Answers the agents of other nodes; nobody does where absent. */
  readonly peers?: PeerService;
  /** Whether a guest is to come from somebody with this key, who is no node of this cluster; nobody is where absent. */
  readonly isAwaited?: (key: string) => boolean;
  readonly certificate: ServingCertificate;
  /** Whose client certificates are taken, PEM. */
  readonly clientAuthorities: () => Promise<string | undefined>;
  /** What `/metrics` says. */
  readonly metrics: () => Promise<string>;
  /** Where to listen; port 0 for any that is free. */
  readonly host: string;
  readonly port: number;
  /** Ports to listen on instead, if one of them is free: the first one that is. */
  readonly preferredPorts?: readonly number[];
}

const CONNECTIONS_MAX = 512;
const HEADER_BYTES_MAX = 16 * 1024;
const HANDSHAKE_TIMEOUT_MS = 10_000;
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 30_000;
const IDLE_TIMEOUT_MS = 60_000;
/** How often those who take too long are looked for. */
const CHECK_MS = 5_000;
/** Bodies say at most how, never what. */
const BODY_BYTES_MAX = 64 * 1024;
/** Nobody types more at once, and who pastes more sends several messages. */
const MESSAGE_BYTES_MAX = 1024 * 1024;
/** How long those at consoles may take to hear that it is over. */
const FAREWELL_MS = 1_000;
const LAUNCHER_CONTAINER = 'compute';

const pods: Resource<Pod> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };

/** The verbs that rights on nodes are given for, by method. */
const VERBS: ReadonlyMap<string, string> = new Map([
  ['GET', 'get'],
  ['PUT', 'update'],
]);

/** Serves the guests of this node to whom the API server lets: consoles, logs, and what can be done to them at once. */
export class AgentServer implements Service {
  readonly name = 'server of the agent';
  readonly needsLeadership = false;
  readonly #options: AgentServerOptions;
  readonly #server: Server;
  readonly #webSockets: WebSocketServer;
  readonly #callers: Callers;
  readonly #sessions = new Set<ConsoleSession>();
  /** Sessions whose console is being opened, with the guest's name: whoever has it will hear that it is closed. */
  readonly #coming = new Map<ConsoleSession, string>();
  readonly #stopping = sharedAbortController();

  private constructor(options: AgentServerOptions) {
    this.#options = options;
    this.#callers = new Callers({ client: options.client, clock: options.env.clock, node: options.node });
    this.#server = createServer({
      requestCert: true,
      // Who has none may have a token.
      rejectUnauthorized: false,
      minVersion: 'TLSv1.2',
      handshakeTimeout: HANDSHAKE_TIMEOUT_MS,
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: IDLE_TIMEOUT_MS,
      connectionsCheckingInterval: CHECK_MS,
      maxHeaderSize: HEADER_BYTES_MAX,
      keepAlive: true,
      noDelay: true,
    });
    this.#server.maxConnections = CONNECTIONS_MAX;
    this.#webSockets = new WebSocketServer({
      noServer: true,
      maxPayload: MESSAGE_BYTES_MAX,
      handleProtocols: (offered) => (offered.has(CONSOLE_PROTOCOL) ? CONSOLE_PROTOCOL : false),
    });
    const { log } = options.env;
    this.#server.on('tlsClientError', (error) => log.debug('a TLS handshake failed', { error: errorText(error) }));
    this.#server.on('request', (request, response) => void this.#answer(request, response));
    this.#server.on('upgrade', (request, socket, head) => {
      // Whoever breaks off hears nothing anyway.
      socket.on('error', () => undefined);
      void this.#upgrade(request, socket as TLSSocket, head);
    });
  }

  /** Listens; connections can be made as soon as there is a certificate. Rejects where the port cannot be had. */
  static async listen(options: AgentServerOptions): Promise<AgentServer> {
    const server = new AgentServer(options);
    await server.#useCertificate();
    options.certificate.onChange(() => {
      server
        .#useCertificate()
        .catch((error) => options.env.log.error('cannot take up a certificate', { error: errorText(error) }));
    });
    for (const port of options.preferredPorts ?? []) if (await server.#listens(port)) return server;
    server.#server.listen(options.port, options.host);
    await once(server.#server, 'listening');
    return server;
  }

  /** Takes a port, unless somebody else has it. */
  async #listens(port: number): Promise<boolean> {
    this.#server.listen(port, this.#options.host);
    try {
      await once(this.#server, 'listening');
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return false;
      throw error;
    }
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  async run(signal: AbortSignal): Promise<void> {
    await new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
    await this.close();
  }

  /** Ends every connection; consoles are told why. */
  async close(): Promise<void> {
    this.#stopping.abort(new Error('the agent stops'));
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    for (const session of this.#sessions) session.end();
    const farewell = new AbortController();
    const partings = [...this.#webSockets.clients].map((socket) => once(socket, 'close'));
    void Promise.all(partings).finally(() => farewell.abort());
    await sleep(this.#options.env.clock, FAREWELL_MS, farewell.signal);
    for (const socket of this.#webSockets.clients) socket.terminate();
    this.#webSockets.close();
    await closed;
  }

  async #useCertificate(): Promise<void> {
    const { certificate, clientAuthorities } = this.#options;
    const ca = await clientAuthorities();
    const { current } = certificate;
    // Without authorities the system's would be taken, whose certificates say nothing here.
    this.#server.setSecureContext({
      ca: ca ?? [],
      ...(current ? { cert: current.certificatePem, key: current.keyPem } : {}),
    });
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      if (isPeerRequest(request)) return await this.#answerPeer(request, response);
      const route = await this.#admit(request);
      await drained(request);
      if (route.kind === 'console') throw badRequest('a console is opened by WebSocket');
      await this.#serve(route, response);
    } catch (error) {
      this.#refuse(request, response, error);
    }
  }

  /** Nothing here is asked of the API server: a guest may stand still meanwhile. */
  async #answerPeer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { peers, isAwaited = () => false, env } = this.#options;
    const key = shownPin((request.socket as TLSSocket).getPeerX509Certificate(), env.clock.now());
    const caller = callingPeer({ certificate: shownBy(request).certificate, key }, isAwaited);
    if (!peers) throw pathNotFound();
    const answer = await peers.answer(caller, await readPeerRequest(request), this.#stopping.signal);
    send(response, 200, JSON.stringify(answer), 'application/json');
  }

  /** What is asked for, by somebody who may. */
  async #admit(request: IncomingMessage): Promise<Route> {
    const { method = '', url = '' } = request;
    const { signal } = this.#stopping;
    // Says nothing but that somebody is there, to whoever has found the way.
    if (method === 'GET' && url === '/healthz') return { kind: 'health' };
    const caller = await this.#callers.identify(shownBy(request), signal);
    const route = routeOf(method, url);
    await this.#callers.permit(caller, VERBS.get(method) ?? method.toLowerCase(), subresourcesOf(route), signal);
    return route;
  }

  async #serve(route: Exclude<Route, { kind: 'console' }>, response: ServerResponse): Promise<void> {
    const { guests, metrics } = this.#options;
    switch (route.kind) {
      case 'health':
        return send(response, 200, 'ok');
      case 'metrics':
        return send(response, 200, await metrics(), 'text/plain; version=0.0.4; charset=utf-8');
      case 'action':
        await act(guests, route.action, route.namespace, route.name);
        return send(response, 202, '');
      case 'guestInfo': {
        const { version: guestAgentVersion, ...info } = await guests.guestInfo(route.namespace, route.name);
        return send(response, 200, JSON.stringify({ guestAgentVersion, ...info }), 'application/json');
      }
      case 'runs': {
        const runs = await guests.runs(route.namespace, route.name);
        return send(response, 200, JSON.stringify({ runs }), 'application/json');
      }
      case 'log':
        return this.#sendLogs(() => this.#guestLogs(route), route.options, response);
      case 'containerLog': {
        const source = await this.#containerLogs(route.namespace, route.pod, route.container);
        return this.#sendLogs(source, route.options, response);
      }
      default:
        return unreachable(route);
    }
  }

  async #guestLogs({ namespace, name, run }: Extract<Route, { kind: 'log' }>): Promise<readonly SerialLog[]> {
    const logs = await this.#options.guests.serialLogs(namespace, name);
    return run === undefined ? logs : logs.filter(({ podUID }) => podUID === run);
  }

  /** A launcher's log is what its guest's serial port said while that very pod ran. */
  async #containerLogs(namespace: string, name: string, container: string): Promise<() => Promise<SerialLog[]>> {
    const { client, node, guests } = this.#options;
    const missing = notFound({ group: '', plural: 'pods' }, name);
    let pod: Pod;
    try {
      pod = await client.get(pods, namespace, name, this.#stopping.signal);
    } catch (error) {
      // A node is not let to know of pods elsewhere.
      throw error instanceof ApiError && [403, 404].includes(error.code) ? missing : error;
    }
    const owner = controllerOf(pod);
    if (pod.spec?.nodeName !== node || owner?.kind !== 'VirtualMachineInstance') throw missing;
    if (container !== LAUNCHER_CONTAINER)
      throw badRequest(`container ${container} is not valid for pod ${name}: a launcher has ${LAUNCHER_CONTAINER}`);
    return async () => {
      const logs = await guests.serialLogs(namespace, owner.name);
      return logs.filter(({ podUID }) => podUID === pod.metadata.uid);
    };
  }

  async #sendLogs(
    source: () => Promise<readonly SerialLog[]>,
    options: LogOptions,
    response: ServerResponse,
  ): Promise<void> {
    const gone = new AbortController();
    const leave = (): void => gone.abort();
    response.once('close', leave);
    this.#stopping.signal.addEventListener('abort', leave, { once: true });
    try {
      const first = await source();
      const placed = await withOffset(first, options);
      let isFirst = true;
      const again = async (): Promise<readonly SerialLog[]> => {
        if (!isFirst) return source();
        isFirst = false;
        return first;
      };
      response.writeHead(200, {
        'content-type': 'text/plain; charset=utf-8',
        'x-content-type-options': 'nosniff',
        ...(placed.offset === undefined ? {} : { [LOG_OFFSET_HEADER]: placed.offset }),
      });
      response.flushHeaders();
      await pipeline(Readable.from(streamLogs(again, placed, this.#options.env.clock, gone.signal)), response);
    } finally {
      this.#stopping.signal.removeEventListener('abort', leave);
    }
  }

  #refuse(request: IncomingMessage, response: ServerResponse, thrown: unknown): void {
    const { log } = this.#options.env;
    const error = ApiError.from(thrown);
    const { method, url } = request;
    if (response.headersSent || response.destroyed) {
      // What was under way cannot be taken back, only broken off.
      log.debug('a request broke off', { method, url, error: errorText(thrown) });
      return void response.destroy();
    }
    if (error.code >= 500) log.warn('a request failed', { method, url, error: errorText(thrown) });
    if (error.code === 401) response.setHeader('www-authenticate', 'Bearer');
    if (error.code === 413) response.setHeader('connection', 'close');
    // An API server passes on what a kubelet says of logs, and does not expect it to speak as one.
    if (url?.startsWith('/containerLogs/')) send(response, error.code, error.message);
    else send(response, error.code, JSON.stringify(error.toStatus()), 'application/json');
  }

  async #upgrade(request: IncomingMessage, socket: TLSSocket, head: Buffer): Promise<void> {
    const { guests, env } = this.#options;
    let guest = '';
    const session = new ConsoleSession(env.clock, () => this.#isComing(guest, session));
    try {
      const route = await this.#admit(request);
      if (route.kind !== 'console') throw badRequest('only consoles are opened by WebSocket');
      guest = `${route.namespace}/${route.name}`;
      this.#coming.set(session, guest);
      await session.open((handlers) => guests.openConsole(route.namespace, route.name, handlers));
      if (socket.destroyed || this.#stopping.signal.aborted) return session.end();
      this.#sessions.add(session);
      socket.once('close', () => {
        // Also where it never became a WebSocket.
        this.#sessions.delete(session);
        session.end();
      });
      this.#webSockets.handleUpgrade(request, socket, head, (webSocket) => session.attach(webSocket));
    } catch (thrown) {
      session.end();
      const error = ApiError.from(thrown);
      if (error.code >= 500) env.log.warn('a console could not be opened', { error: errorText(thrown) });
      const body = JSON.stringify(error.toStatus());
      const length = Buffer.byteLength(body);
      socket.end(
        `HTTP/1.1 ${error.code} Refused\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\nconnection: close\r\n\r\n${body}`,
      );
    } finally {
      this.#coming.delete(session);
    }
  }

  /** Whether somebody else is about to have the console of a guest. */
  #isComing(guest: string, session: ConsoleSession): boolean {
    return [...this.#coming].some(([other, name]) => other !== session && name === guest);
  }
}

/**
 * As kubelets have it, and `nodes/guests` for what they do not: with `nodes/proxy`, which is enough too, somebody could have the
 * kubelets of the same cluster run commands in any pod.
 */
function subresourcesOf({ kind }: Route): readonly string[] {
  if (kind === 'metrics') return ['metrics'];
  return [kind === 'containerLog' ? 'log' : 'guests', 'proxy'];
}

function shownBy({ socket, headers }: IncomingMessage): Shown {
  const tls = socket as TLSSocket;
  const certificate = tls.authorized ? subjectOf(tls.getPeerCertificate()) : undefined;
  return { certificate, authorization: headers.authorization };
}

/** Undefined for more than one common name: who reads which of them is anyone's guess. */
function subjectOf({ subject }: PeerCertificate): Shown['certificate'] {
  const { CN, O = [] } = (subject ?? {}) as { CN?: string | string[]; O?: string | string[] };
  if (typeof CN !== 'string' || CN === '') return undefined;
  return { commonName: CN, organizations: [O].flat() };
}

function act(guests: GuestAccess, action: GuestAction, namespace: string, name: string): Promise<void> {
  switch (action) {
    case 'pause':
      return guests.pause(namespace, name);
    case 'unpause':
      return guests.unpause(namespace, name);
    case 'softreboot':
      return guests.softReboot(namespace, name);
    case 'reset':
      return guests.reset(namespace, name);
    default:
      return unreachable(action);
  }
}

/** Reads a body that nobody wants, so that the next request can follow. */
function drained(request: IncomingMessage): Promise<void> {
  return new Promise((resolve, reject) => {
    let length = 0;
    request.on('data', (chunk: Buffer) => {
      length += chunk.length;
      if (length > BODY_BYTES_MAX) reject(entityTooLarge(BODY_BYTES_MAX));
    });
    request.once('end', resolve);
    request.once('error', reject);
  });
}

function send(response: ServerResponse, status: number, body: string, type = 'text/plain; charset=utf-8'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) });
  response.end(body);
}
