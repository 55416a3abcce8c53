import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import { discover, type DiscoveredResource, failureText, preferredResources } from '../../kube/discovery.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { namespaces, pods } from '../resources.ts';
import { conditionsWith, type Findings, type Namespace } from './conditions.ts';
import { deleteContent, graceSecondsOf, messageOf, NOTHING, type Remains } from './content.ts';
import { Departures, type Leaving } from './departures.ts';

export interface NamespaceControllerOptions {
  readonly env: Env;
  readonly client: Client;
  readonly metrics: KubeMetrics;
  readonly informer: Pick<Informer<Namespace>, 'onChange'>;
}

/** The finalizer that this controller takes away. */
const FINALIZER = 'kubernetes';
const WORKERS = 10;
/** Upstream's: a namespace that cannot be emptied is tried again at least every minute. */
const RATE_LIMITS = { maxMs: 60_000 };
/** Thousands of objects may have to be deleted one by one. */
const RECONCILE_TIMEOUT_MS = 10 * 60_000;

/** One attempt to empty a namespace. */
interface Attempt {
  readonly findings: Findings;
  /** How long it may take until the rest is gone; 0 where nothing is left, or nobody knows. */
  readonly seconds: number;
  readonly failures: readonly string[];
  readonly leaving: readonly Leaving[];
}

/**
 * Empties namespaces that are being deleted: first their pods, then all else that the server says can be deleted, until
 * nothing is left; then lets them go.
 *
 * Upstream waits for five seconds before it begins, for other API servers to learn that nothing may be created there any
 * more. Ours is one server, which admits nothing from the moment on in which the namespace is marked.
 */
export class NamespaceController implements Service {
  readonly name = 'namespace controller';
  readonly #options: NamespaceControllerOptions;
  readonly #controller: Controller;
  readonly #departures: Departures;

  constructor(options: NamespaceControllerOptions) {
    const { env, client, metrics, informer } = options;
    this.#options = options;
    this.#controller = new Controller({
      name: 'namespace',
      env,
      metrics,
      workers: WORKERS,
      rateLimits: RATE_LIMITS,
      reconcileTimeoutMs: RECONCILE_TIMEOUT_MS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
    });
    this.#departures = new Departures({
      env,
      client: client.metadataOnly(),
      onEmpty: (namespace) => this.#controller.enqueue(namespace),
    });
    informer.onChange(({ type, object }) => {
      if (type === 'deleted') this.#departures.forget(object.metadata.name ?? '');
      else if (isTerminating(object)) this.#controller.enqueue(object.metadata.name ?? '');
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await this.#controller.run(signal);
    } finally {
      await this.#departures.stop();
    }
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<Result | void> {
    try {
      return await this.#end(name, signal);
    } catch (error) {
      // Somebody else was faster, and the namespace is gone: that is what was wanted.
      if (error instanceof ApiError && error.code === 404 && error.details?.kind === namespaces.plural) return;
      throw error;
    }
  }

  async #end(name: string, signal: AbortSignal): Promise<Result | void> {
    const { client } = this.#options;
    let namespace = await client.get(namespaces, '', name, signal);
    if (!isTerminating(namespace)) return;
    if (namespace.status?.phase !== 'Terminating')
      namespace = await this.#updateStatus(namespace, { phase: 'Terminating' }, signal);
    if ((namespace.spec?.finalizers ?? []).length === 0) return;
    const { findings, seconds, failures, leaving } = await this.#empty(namespace, signal);
    this.#departures.expect(name, leaving);
    namespace = await this.#tell(namespace, findings, signal);
    if (failures.length > 0) throw new Error(`the namespace could not be emptied: ${failures.join(', ')}`);
    if (seconds > 0) return { requeueAfterMs: (Math.floor(seconds / 2) + 1) * 1000 };
    await this.#finalize(namespace, signal);
  }

  /**
   * Pods first: nothing that they need may go while they run. Upstream does not say so in the conditions while it waits
   * for them; who asks what holds up a namespace should be told.
   */
  async #empty(namespace: Namespace, signal: AbortSignal): Promise<Attempt> {
    const { resources, discoveryFailure, parsingFailure } = await this.#resources(signal);
    const gathering = new Gathering({ discoveryFailure, parsingFailure });
    const first = resources.find(isPods);
    if (first) gathering.add(first, await this.#deletePods(first, namespace, signal));
    if (gathering.isEmpty) {
      for (const resource of resources) {
        if (resource === first) continue;
        const { name = '' } = namespace.metadata;
        gathering.add(resource, await deleteContent(this.#options.client, resource, name, 0, signal));
      }
    }
    return gathering.attempt();
  }

  async #resources(signal: AbortSignal): Promise<{
    readonly resources: readonly DiscoveredResource[];
    readonly discoveryFailure?: string;
    readonly parsingFailure?: string;
  }> {
    let discovery;
    try {
      discovery = await discover(this.#options.client, signal);
    } catch (error) {
      signal.throwIfAborted();
      return { resources: [], discoveryFailure: messageOf(error) };
    }
    const { failures } = discovery;
    const resources = preferredResources(discovery).filter(
      ({ namespaced, verbs }) => namespaced && verbs.includes('delete'),
    );
    const discoveryFailure =
      failures.size === 0
        ? {}
        : { discoveryFailure: `Discovery failed for some groups, ${failures.size} failing: ${failureText(failures)}` };
    // What pods need must not go before them, so nothing goes where they may only have been left out. Upstream goes on.
    if (!resources.some(isPods))
      return { resources: [], discoveryFailure: 'the server does not say that it serves pods', ...discoveryFailure };
    const odd = resources.find(({ group, version }) => `${group}${version}`.includes('/'));
    if (!odd) return { resources, ...discoveryFailure };
    const parsingFailure = `unexpected GroupVersion string: ${odd.group}/${odd.version}`;
    return { resources: [], parsingFailure, ...discoveryFailure };
  }

  async #deletePods(resource: DiscoveredResource, namespace: Namespace, signal: AbortSignal): Promise<Remains> {
    const { client, env } = this.#options;
    const { name = '', deletionTimestamp = '' } = namespace.metadata;
    let seconds: number;
    try {
      seconds = graceSecondsOf((await client.list(pods, { namespace: name }, signal)).items);
    } catch (error) {
      signal.throwIfAborted();
      return { ...NOTHING, failure: messageOf(error) };
    }
    const isOver = env.clock.now() - Date.parse(deletionTimestamp) >= seconds * 1000;
    return deleteContent(client, resource, name, isOver ? 0 : seconds, signal);
  }

  /** Says what was found, if that is news. */
  async #tell(namespace: Namespace, findings: Findings, signal: AbortSignal): Promise<Namespace> {
    const known = namespace.status?.conditions;
    const conditions = conditionsWith(known, findings, this.#options.env.clock.now());
    return conditions === known ? namespace : this.#updateStatus(namespace, { conditions }, signal);
  }

  #updateStatus(namespace: Namespace, change: Namespace['status'], signal: AbortSignal): Promise<Namespace> {
    const updated: Namespace = { ...namespace, status: { ...namespace.status, ...change } };
    return this.#options.client.update(namespaces, updated, signal, { subresource: 'status' });
  }

  async #finalize(namespace: Namespace, signal: AbortSignal): Promise<void> {
    const finalizers = (namespace.spec?.finalizers ?? []).filter((each) => each !== FINALIZER);
    const updated: Namespace = { ...namespace, spec: { ...namespace.spec, finalizers } };
    await this.#options.client.update(namespaces, updated, signal, { subresource: 'finalize' });
  }
}

/** What several resources came to. */
class Gathering {
  readonly #start: Pick<Findings, 'discoveryFailure' | 'parsingFailure'>;
  readonly #contentFailures: string[] = [];
  readonly #leaving: Leaving[] = [];
  readonly #finalizers = new Map<string, number>();
  #seconds = 0;

  constructor(start: Pick<Findings, 'discoveryFailure' | 'parsingFailure'>) {
    this.#start = start;
  }

  /** Whether nothing is left. Where that could not be looked into, nobody knows. */
  get isEmpty(): boolean {
    return this.#leaving.length === 0 && this.#contentFailures.length === 0;
  }

  add(resource: Resource, { count, version, finalizers, seconds, failure }: Remains): void {
    if (failure !== undefined) this.#contentFailures.push(failure);
    if (count > 0) this.#leaving.push({ resource, count, version });
    for (const [name, held] of finalizers) this.#finalizers.set(name, (this.#finalizers.get(name) ?? 0) + held);
    this.#seconds = Math.max(this.#seconds, seconds);
  }

  attempt(): Attempt {
    const { discoveryFailure, parsingFailure } = this.#start;
    const failures = [discoveryFailure, parsingFailure, ...this.#contentFailures].filter((each) => each !== undefined);
    const findings: Findings = {
      ...this.#start,
      contentFailures: this.#contentFailures,
      remaining: new Map(this.#leaving.map(({ resource, count }) => [resource, count])),
      finalizers: this.#finalizers,
    };
    return { findings, seconds: this.#seconds, failures, leaving: this.#leaving };
  }
}

function isTerminating({ metadata }: Namespace): boolean {
  return metadata.deletionTimestamp !== undefined;
}

function isPods({ group, version, plural }: Resource): boolean {
  return group === pods.group && version === pods.version && plural === pods.plural;
}
