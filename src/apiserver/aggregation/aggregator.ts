import type { Duplex } from 'node:stream';
import { formatTime, type KubeObject } from '../../api/meta.ts';
import { ApiError, badRequest, pathNotFound, serviceUnavailable } from '../../api/status.ts';
import type { Env, Timer } from '../../env/ports.ts';
import { clone } from '../../machinery/clone.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { RemoteGroupVersion } from '../discovery/groups.ts';
import type { ApiRequest, ApiResponse, UserInfo } from '../http/message.ts';
import type { View } from '../registry/contract.ts';
import { type ApiService, apiServiceName, type Availability, LOCAL, setAvailable } from './api-service.ts';
import {
  type Backend,
  BackendError,
  type BackendRequest,
  type BackendTransport,
  isBackend,
  resolveBackend,
  type ServiceViews,
} from './backend.ts';
import { type Finding, probe } from './probe.ts';
import { requestHeaders, responseHeaders, upgradeHeaders } from './proxy-headers.ts';
import { joinSockets, refuse } from './upgrade.ts';

/**
 * Serves groups that other servers implement, by proxy: each APIService that names a Service. Requests reach the
 * backend with the front-proxy certificate and headers that say who asks; authorization has been done by then.
 *
 * Every backend is looked at when anything about it changes and at intervals; one that is known to be down is not
 * tried for every request, so that a hung backend costs its callers nothing.
 */

/** What the aggregator needs from the rest of the server. */
export interface AggregatorPorts extends ServiceViews {
  /** Of `apiservices.apiregistration.k8s.io`. */
  readonly apiServices: View;
  readonly transport: BackendTransport;
  /** Changes an APIService through its `status` subresource; `change` may run again when another write comes between. */
  updateStatus(name: string, change: (apiService: KubeObject) => void): Promise<void>;
}

interface State {
  readonly apiService: ApiService;
  /** Undefined until the first look. */
  readonly finding: Finding | undefined;
  /** What was found last, fresh or stale. */
  readonly remote: RemoteGroupVersion | undefined;
}

/** How often a backend that answers is looked at again. */
const PROBE_INTERVAL_MS = 30_000;
const RETRY_MS_MIN = 500;
const RETRY_MS_MAX = 30_000;
/** As long as kube-apiserver gives any request; only the headers have to arrive by then. */
const ANSWER_TIMEOUT_MS = 60_000;

export class Aggregator {
  readonly #env: Env;
  readonly #ports: AggregatorPorts;
  readonly #states = new Map<string, State>();
  readonly #listeners: (() => void)[] = [];
  readonly #dirty = new Set<string>();
  readonly #probing = new Map<string, Promise<void>>();
  readonly #timers = new Map<string, Timer>();
  readonly #failures = new Map<string, number>();
  #remotes: readonly RemoteGroupVersion[] = [];
  #signal: AbortSignal | undefined;

  constructor(env: Env, ports: AggregatorPorts) {
    this.#env = env;
    this.#ports = ports;
    for (const apiService of ports.apiServices.list()) this.#take(apiService as ApiService);
    this.#publish();
    ports.apiServices.onChange((apiService, old) => {
      if (apiService) this.#take(apiService as ApiService, old as ApiService | undefined);
      else this.#forget(old?.metadata.name ?? '');
    });
    ports.services.onChange((service, old) => this.#serviceChanged(service ?? old));
    ports.endpoints.onChange((endpoints, old) => this.#serviceChanged(endpoints ?? old));
  }

  /** The groups and versions that backends serve, as they were found last. */
  remotes(): readonly RemoteGroupVersion[] {
    return this.#remotes;
  }

  /** Calls back after `remotes` has changed. */
  onRemotesChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Looks after the backends, and writes what it finds into the APIServices, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    this.#signal = signal;
    for (const name of this.#states.keys()) this.#look(name);
    await new Promise<void>((resolve) => {
      if (signal.aborted) return resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    for (const timer of this.#timers.values()) timer.cancel();
    this.#timers.clear();
    // Nothing is written after this has returned.
    await Promise.all(this.#probing.values());
  }

  /** Whether a path belongs to a backend: `/apis/<group>/<version>` and all below, and its OpenAPI document. */
  owns(path: string): boolean {
    return this.#stateFor(path) !== undefined;
  }

  /** Passes a request on to the backend that owns its path. Throws 404 when none does, 503 when it cannot be reached. */
  async proxy(request: ApiRequest, user: UserInfo): Promise<ApiResponse> {
    const { backend, name } = this.#backendFor(request);
    const hasBody = request.method !== 'GET' && request.method !== 'HEAD';
    const body = hasBody ? await request.body() : undefined;
    const response = await this.#reach(name, () =>
      this.#ports.transport.send(backend, {
        ...this.#message(request, requestHeaders(request.headers, user, request.remoteAddress)),
        ...(body && body.length > 0 ? { body } : {}),
      }),
    );
    const isEmpty = response.status === 204 || response.status === 304 || request.method === 'HEAD';
    if (isEmpty) await drain(response.body);
    return {
      status: response.status,
      headers: responseHeaders(response.headers),
      body: isEmpty ? '' : response.body,
    };
  }

  /**
   * Passes on a connection that asks for an upgrade (WebSocket, SPDY). Resolves when it has ended; errors are
   * answered on the socket.
   */
  async upgrade(request: ApiRequest, user: UserInfo, socket: Duplex, head: Uint8Array): Promise<void> {
    try {
      const { backend, name } = this.#backendFor(request);
      const headers = {
        ...requestHeaders(request.headers, user, request.remoteAddress),
        ...upgradeHeaders(request.headers),
      };
      const answer = await this.#reach(name, () =>
        this.#ports.transport.upgrade(backend, this.#message(request, headers)),
      );
      if (answer.kind === 'upgraded') await joinSockets(this.#env.clock, socket, head, answer, request.signal);
      else await refuse(socket, answer.response.status, responseHeaders(answer.response.headers), answer.response.body);
    } catch (error) {
      const failure = ApiError.from(error);
      const status = `${JSON.stringify(failure.toStatus())}\n`;
      await refuse(socket, failure.code, { 'content-type': 'application/json' }, [Buffer.from(status)]);
    }
  }

  #message(request: ApiRequest, headers: BackendRequest['headers']): BackendRequest {
    const query = request.query.toString();
    return {
      method: request.method,
      path: query === '' ? request.path : `${request.path}?${query}`,
      headers,
      signal: request.signal,
      timeoutMs: ANSWER_TIMEOUT_MS,
    };
  }

  #stateFor(path: string): State | undefined {
    const parts = path.split('/');
    const at = parts[1] === 'openapi' && parts[2] === 'v3' ? 3 : 1;
    const [root, group = '', version = ''] = parts.slice(at);
    if (root !== 'apis' || group === '' || version === '') return undefined;
    const state = this.#states.get(apiServiceName(group, version));
    return state?.apiService.spec?.service ? state : undefined;
  }

  #backendFor(request: ApiRequest): { backend: Backend; name: string } {
    // Whoever authorized this path and whoever serves it must read the same one.
    if (request.path.split('/').some((part) => /^(?:\.|%2e){1,2}$/i.test(part))) {
      throw badRequest('the path must not contain "." or ".." as a segment');
    }
    const state = this.#stateFor(request.path);
    if (!state) throw pathNotFound();
    const name = state.apiService.metadata.name ?? '';
    if (state.finding?.availability.status === 'False') throw unavailable();
    const backend = resolveBackend(state.apiService, this.#ports, this.#env.random);
    if (!isBackend(backend)) throw unavailable();
    return { backend, name };
  }

  /** Runs a request; one that fails is a reason to look at the backend at once. */
  async #reach<T>(name: string, send: () => Promise<T>): Promise<T> {
    try {
      return await send();
    } catch (error) {
      if (!(error instanceof BackendError)) throw error;
      this.#env.log.warn('aggregated server not reached', { apiService: name, error: error.message });
      this.#look(name);
      if (error.isTimeout) {
        throw new ApiError(504, 'Timeout', 'request did not complete within the allotted timeout', {}, error);
      }
      throw unavailable(error);
    }
  }

  #take(apiService: ApiService, old?: ApiService): void {
    const name = apiService.metadata.name ?? '';
    const before = this.#states.get(name);
    const isSame = old !== undefined && deepEqual(apiService.spec, old.spec);
    const keep = isSame ? before : undefined;
    this.#states.set(name, { apiService, finding: keep?.finding, remote: keep?.remote });
    // Its status is ours, so only a new spec is news.
    if (!isSame) this.#look(name);
  }

  #forget(name: string): void {
    this.#states.delete(name);
    this.#failures.delete(name);
    this.#timers.get(name)?.cancel();
    this.#timers.delete(name);
    this.#publish();
  }

  #serviceChanged(object: KubeObject | undefined): void {
    const { namespace, name } = object?.metadata ?? {};
    for (const [key, { apiService }] of this.#states) {
      const service = apiService.spec?.service;
      if (service && service.namespace === namespace && service.name === name) this.#look(key);
    }
  }

  /** Looks at a backend now, or once more after the look that is under way. */
  #look(name: string): void {
    const signal = this.#signal;
    if (!signal || signal.aborted) return;
    this.#timers.get(name)?.cancel();
    this.#timers.delete(name);
    this.#dirty.add(name);
    if (!this.#probing.has(name)) this.#probing.set(name, this.#examine(name, signal));
  }

  async #examine(name: string, signal: AbortSignal): Promise<void> {
    while (this.#dirty.delete(name) && !signal.aborted) await this.#examineOnce(name, signal);
    this.#probing.delete(name);
    const state = this.#states.get(name);
    if (!state?.apiService.spec?.service || signal.aborted) return;
    const failures = this.#failures.get(name) ?? 0;
    const delayMs =
      failures === 0 ? PROBE_INTERVAL_MS : Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(failures, 10));
    this.#timers.set(
      name,
      this.#env.clock.setTimer(() => this.#look(name), delayMs),
    );
  }

  async #examineOnce(name: string, signal: AbortSignal): Promise<void> {
    const state = this.#states.get(name);
    if (!state) return;
    const isLocal = state.apiService.spec?.service === undefined;
    const finding = isLocal
      ? { availability: LOCAL }
      : await probe(this.#env, this.#ports.transport, this.#ports, state.apiService, signal);
    const current = this.#states.get(name);
    // Changed meanwhile: what was found is about something else, and the next look is already due.
    if (!current || signal.aborted || !deepEqual(current.apiService.spec, state.apiService.spec)) return;
    const isUp = finding.availability.status === 'True';
    this.#failures.set(name, isUp ? 0 : (this.#failures.get(name) ?? 0) + 1);
    this.#states.set(name, { ...current, finding, remote: isLocal ? undefined : remoteOf(current, finding) });
    this.#publish();
    await this.#writeStatus(name, current.apiService, finding.availability);
  }

  async #writeStatus(name: string, apiService: ApiService, availability: Availability): Promise<void> {
    const now = formatTime(this.#env.clock.now());
    const change = (object: KubeObject): void => setAvailable(object as ApiService, availability, now);
    const wanted = clone(apiService);
    change(wanted);
    if (deepEqual(wanted.status, apiService.status)) return;
    try {
      await this.#ports.updateStatus(name, change);
    } catch (error) {
      // The condition only informs; the next look writes it again.
      this.#env.log.warn('status of an APIService not written', { apiService: name, error: String(error) });
    }
  }

  #publish(): void {
    const remotes = [...this.#states.values()].flatMap(({ remote }) => (remote ? [remote] : []));
    if (deepEqual(remotes, this.#remotes)) return;
    this.#remotes = remotes;
    for (const listener of this.#listeners) listener();
  }
}

/** What discovery shows: what was found, or what was known before with the mark of age, or at least the version. */
function remoteOf(state: State, finding: Finding): RemoteGroupVersion {
  if (finding.remote) return finding.remote;
  if (state.remote) return { ...state.remote, freshness: 'Stale' };
  const { group = '', version = '', groupPriorityMinimum = 0, versionPriority = 0 } = state.apiService.spec ?? {};
  return { group, version, groupPriority: groupPriorityMinimum, versionPriority, resources: [], freshness: 'Stale' };
}

function unavailable(cause?: unknown): ApiError {
  return serviceUnavailable('the server is currently unable to handle the request', cause);
}

async function drain(body: AsyncIterable<Uint8Array>): Promise<void> {
  // Statuses without a body have none to speak of; reading to the end frees the connection.
  for await (const chunk of body) void chunk;
}
