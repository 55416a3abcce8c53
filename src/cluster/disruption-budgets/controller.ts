import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer, InformerChange } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf, splitKey } from '../../kube/resource.ts';
import { compareVersions } from '../../kube/resource-version.ts';
import type { Service } from '../../kube/service.ts';
import { TransportError } from '../../kube/transport.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { selectorFrom } from '../../machinery/selectors.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { controllerOf } from '../indexes.ts';
import { podDisruptionBudgets, pods as podResource } from '../resources.ts';
import { BudgetIndex } from './budget-index.ts';
import { type Decision, decide, demandOf, failSafe, isHealthy } from './decide.ts';
import { notDeleted, severalBudgets, unmanagedPods } from './messages.ts';
import type { BudgetStatus, PodDisruptionBudget, Workload } from './objects.ts';
import { cachedPods, freshPods, type PodSource } from './pods-of.ts';
import { Scales } from './scale.ts';
import { clearing, staleInMs } from './stale-disruptions.ts';

export interface DisruptionControllerOptions {
  readonly env: Env;
  readonly client: Client;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly metrics: KubeMetrics;
  /** Pods by namespace, by label and by controller; replica sets by controller. */
  readonly informers: {
    readonly pods: PodSource & Pick<Informer<Pod>, 'get' | 'onChange'>;
    readonly podDisruptionBudgets: Pick<Informer<PodDisruptionBudget>, 'get' | 'onChange'>;
    readonly replicationControllers: Pick<Informer<Workload>, 'get' | 'onChange'>;
    readonly replicaSets: Pick<Informer<Workload>, 'get' | 'onChange' | 'byIndex'>;
    readonly deployments: Pick<Informer<Workload>, 'get' | 'onChange'>;
    readonly statefulSets: Pick<Informer<Workload>, 'get' | 'onChange'>;
  };
}

/** Budgets worked on at once: some wait for the scale of what is not watched. */
const WORKERS = 4;

/** What the pods of a budget come to, and what there is to tell about it. */
interface Sync extends Decision {
  readonly pods: readonly Pod[];
  readonly unmanaged: readonly Pod[];
  /** Whether the pods are those of the cache. */
  readonly isCached: boolean;
}

/** What the cache says could not be verified. What is in force meanwhile allows no more than it should. */
class UnverifiedError extends Error {}

/** A version of a budget that was written here, and as of when the pods have to be known that it is judged by. */
interface Written {
  readonly version: string | undefined;
  readonly podsSince: string;
}

/**
 * Keeps count of what budgets allow, for the eviction API, which takes from it.
 *
 * Every write is for the version of the budget that was looked at, so that no eviction granted meanwhile is lost. More
 * is allowed only on the word of pods that are at least as new as that version: a cache that lags may still have a pod
 * whose departure is known already, in the budget or to whoever forgot the note of it.
 */
export class DisruptionController implements Service {
  readonly name = 'disruption';
  readonly #env: Env;
  readonly #client: Client;
  readonly #recorder: Pick<EventRecorder, 'event'>;
  readonly #informers: DisruptionControllerOptions['informers'];
  readonly #scales: Scales;
  readonly #index = new BudgetIndex();
  readonly #budgets: Controller;
  readonly #staleDisruptions: Controller;
  /** By the budget's key; what is not here, after a restart say, is only judged more carefully. */
  readonly #written = new Map<string, Written>();

  constructor(options: DisruptionControllerOptions) {
    const { env, client, recorder, metrics, informers } = options;
    this.#env = env;
    this.#client = client;
    this.#recorder = recorder;
    this.#informers = informers;
    this.#scales = new Scales(client, informers);
    const common = { env, metrics, workers: WORKERS };
    this.#budgets = new Controller({
      ...common,
      name: this.name,
      reconcile: (key, signal) => this.#reconcileBudget(key, signal),
    });
    this.#staleDisruptions = new Controller({
      ...common,
      name: 'stale_pod_disruption',
      reconcile: (key, signal) => this.#reconcileDisruption(key, signal),
    });
    this.#listen();
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#budgets.run(signal), this.#staleDisruptions.run(signal)]);
  }

  #listen(): void {
    const { pods, podDisruptionBudgets: budgets, deployments, replicaSets } = this.#informers;
    const { replicationControllers, statefulSets } = this.#informers;
    budgets.onChange(({ type, object }) => {
      if (type === 'deleted') {
        this.#index.delete(object);
        this.#written.delete(keyOf(object));
        return;
      }
      this.#index.set(object);
      this.#budgets.enqueue(keyOf(object));
    });
    pods.onChange((change) => this.#onPod(change));
    for (const workloads of [replicationControllers, replicaSets, statefulSets])
      workloads.onChange((change) => {
        if (isRescaled(change)) this.#onScale(change.object);
      });
    deployments.onChange((change) => {
      if (!isRescaled(change)) return;
      for (const each of replicaSets.byIndex('controller', change.object.metadata.uid ?? '')) this.#onScale(each);
    });
  }

  #onPod({ type, object: pod, old }: InformerChange<Pod>): void {
    const isUpdate = type === 'updated' && old !== undefined;
    if (!isUpdate || countsDifferently(pod, old)) {
      const keys = this.#index.keysOf(pod);
      if (keys.length > 1)
        this.#recorder.event(pod, 'Warning', 'MultiplePodDisruptionBudgets', severalBudgets(pod, keys[0] ?? ''));
      for (const key of [...keys, ...(isUpdate ? this.#index.keysOf(old) : [])]) this.#budgets.enqueue(key);
    }
    const afterMs = type === 'deleted' ? undefined : staleInMs(pod, this.#env.clock.now());
    if (afterMs !== undefined) this.#staleDisruptions.enqueue(keyOf(pod), { afterMs });
  }

  /** The pods of a controller may be expected in other numbers now. */
  #onScale({ metadata }: KubeObject): void {
    for (const pod of this.#informers.pods.byIndex('controller', metadata.uid ?? ''))
      for (const key of this.#index.keysOf(pod)) this.#budgets.enqueue(key);
  }

  async #reconcileBudget(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const budget = this.#informers.podDisruptionBudgets.get(key);
    if (!budget) return undefined;
    let sync: Sync;
    try {
      sync = await this.#observe(budget, signal);
    } catch (error) {
      if (signal.aborted || error instanceof UnverifiedError) throw error;
      const status = failSafe(budget, messageOf(error), this.#env.clock.now());
      if (status !== budget.status) await this.#write(budget, status, signal);
      // What is wrong with the budget itself is looked at again when that, or a pod of it, changes.
      if (isPassing(error)) throw error;
      return undefined;
    }
    if (sync.status !== budget.status) {
      const written = await this.#write(budget, sync.status, signal);
      if (!written) return undefined;
      // Nobody else wrote in between: pods that were new enough to judge the former version are so for this one.
      if (sync.isCached)
        this.#written.set(key, { version: written.metadata.resourceVersion, podsSince: this.#podsSince(budget) });
      this.#tell(budget, sync);
    }
    return { requeueAfterMs: sync.recheckAtMs && Math.max(0, sync.recheckAtMs - this.#env.clock.now()) };
  }

  /** Decides, where it matters on what the server knows and not only the cache. */
  async #observe(budget: PodDisruptionBudget, signal: AbortSignal): Promise<Sync> {
    const { namespace = '', resourceVersion = '' } = budget.metadata;
    const { pods: source } = this.#informers;
    const selector = this.#selectorOf(budget);
    const order = compareVersions(source.position, this.#podsSince(budget));
    const isCurrent = order !== undefined && order >= 0;
    const sync = await this.#decide(budget, cachedPods(source, namespace, selector), isCurrent, signal);
    if (isCurrent || !sync.isGenerous) return { ...sync, isCached: true };
    const pods = await freshPods(source, namespace, selector, resourceVersion, signal).catch((cause: unknown) => {
      throw new UnverifiedError('its pods cannot be read', { cause });
    });
    return { ...(await this.#decide(budget, pods, true, signal)), isCached: false };
  }

  /** As of when the pods have to be known that this version of the budget is judged by. */
  #podsSince({ metadata }: PodDisruptionBudget): string {
    const { resourceVersion = '' } = metadata;
    const written = this.#written.get(keyOf({ metadata }));
    return written?.version === resourceVersion ? written.podsSince : resourceVersion;
  }

  async #decide(
    budget: PodDisruptionBudget,
    pods: readonly Pod[],
    isCurrent: boolean,
    signal: AbortSignal,
  ): Promise<Omit<Sync, 'isCached'>> {
    let unmanaged: readonly Pod[] = [];
    try {
      const demand = await demandOf(budget.spec, pods.length, async () => {
        const scale = await this.#scales.totalOf(pods, signal);
        unmanaged = scale.unmanaged;
        return scale.total;
      });
      return { ...decide({ budget, pods, isCurrent, demand, nowMs: this.#env.clock.now() }), pods, unmanaged };
    } catch (error) {
      const message = `Failed to calculate the number of expected pods: ${messageOf(error)}`;
      if (!signal.aborted) this.#recorder.event(budget, 'Warning', 'CalculateExpectedPodCountFailed', message);
      throw error;
    }
  }

  #selectorOf(budget: PodDisruptionBudget): ReturnType<typeof selectorFrom> {
    try {
      return selectorFrom(budget.spec?.selector);
    } catch (error) {
      this.#recorder.event(budget, 'Warning', 'NoPods', `Failed to get pods: ${messageOf(error)}`);
      throw error;
    }
  }

  #tell(budget: PodDisruptionBudget, { pods, unmanaged, staying }: Sync): void {
    if (pods.length === 0) this.#recorder.event(budget, 'Normal', 'NoPods', 'No matching pods found');
    if (unmanaged.length > 0) this.#recorder.event(budget, 'Warning', 'UnmanagedPods', unmanagedPods(budget));
    for (const pod of staying) this.#recorder.event(pod, 'Warning', 'NotDeleted', notDeleted(budget));
  }

  /** Writes a status on this very version; answers what was written, undefined where the budget is gone. */
  async #write(
    budget: PodDisruptionBudget,
    status: BudgetStatus,
    signal: AbortSignal,
  ): Promise<PodDisruptionBudget | undefined> {
    try {
      return await this.#client.update(podDisruptionBudgets, { ...budget, status }, signal, { subresource: 'status' });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return undefined;
      throw error;
    }
  }

  async #reconcileDisruption(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const pod = this.#informers.pods.get(key);
    const nowMs = this.#env.clock.now();
    const afterMs = pod && staleInMs(pod, nowMs);
    if (!pod || afterMs === undefined) return undefined;
    if (afterMs > 0) return { requeueAfterMs: afterMs };
    const { namespace, name } = splitKey(key);
    const patch = { type: 'strategic', body: clearing(pod, nowMs) } as const;
    try {
      await this.#client.patch(podResource, namespace, name, patch, signal, { subresource: 'status' });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 404)) throw error;
    }
    return undefined;
  }
}

/** Whether a budget may count the pod otherwise than before, or another budget may count it. */
function countsDifferently(pod: Pod, old: Pod): boolean {
  return (
    isHealthy(pod) !== isHealthy(old) ||
    (pod.metadata.deletionTimestamp === undefined) !== (old.metadata.deletionTimestamp === undefined) ||
    controllerOf(pod)?.uid !== controllerOf(old)?.uid ||
    !deepEqual(pod.metadata.labels, old.metadata.labels)
  );
}

function isRescaled({ type, object, old }: InformerChange<Workload>): boolean {
  return type !== 'updated' || object.spec?.replicas !== old?.spec?.replicas;
}

/** Whether it may go better without anything having changed here. */
function isPassing(error: unknown): boolean {
  return error instanceof ApiError ? error.code === 429 || error.code >= 500 : error instanceof TransportError;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
