import type { KubeObject } from '../../api/meta.ts';
import { unreachable } from '../../api/unreachable.ts';
import { type Env, sleep } from '../../env/ports.ts';
import { unlessAborted } from '../../kube/abort.ts';
import type { Client } from '../../kube/client.ts';
import { Controller } from '../../kube/controller.ts';
import type { Informer, InformerChange } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../migration/fit/objects.ts';
import { type PodInfo, podInfoOf } from '../../migration/fit/pod-info.ts';
import type { VolumePlan } from '../../migration/fit/volume-plan.ts';
import type { PodDisruptionBudget } from '../disruption-budgets/objects.ts';
import { Actions, type Mark, type Recorder } from './actions.ts';
import { AssumedVolumes } from './assumed-volumes.ts';
import { SchedulingBackoff } from './backoff.ts';
import { type Decision, decide } from './decide.ts';
import { isFinished, SchedulerState } from './state.ts';
import { UnboundVolumes } from './unbound-volumes.ts';
import { VolumeBinding } from './volume-binding.ts';
import { type ClusterEvent, WaitingPods } from './waiting.ts';

type Source = Pick<Informer<KubeObject>, 'get' | 'onChange' | 'synced'>;

/** Informers of whole collections, in all namespaces. None needs an index; they may be shared with anybody. */
export interface SchedulerInformers {
  readonly pods: Source;
  readonly nodes: Source;
  readonly namespaces: Source;
  readonly persistentVolumeClaims: Source;
  readonly persistentVolumes: Source;
  readonly storageClasses: Source;
  readonly podDisruptionBudgets: Source;
}

export interface SchedulerOptions {
  readonly env: Env;
  readonly client: Client;
  readonly recorder: Recorder;
  readonly informers: SchedulerInformers;
  readonly metrics?: KubeMetrics;
  /** The name under which pods ask for this scheduler. */
  readonly schedulerName?: string;
}

/** A pod is tried again after this long, whatever happens meanwhile: the safety net under `WaitingPods`. */
const FLUSH_MS = 5 * 60_000;
/** Writes under way at once; a scheduler that is faster than its server has to wait somewhere. */
const TASKS_MAX = 64;
/** How long an accepted binding may go unseen before the server is asked about it. */
const ASSUMED_MS_MAX = 30_000;
const SWEEP_MS = 10_000;

/**
 * Gives nodes to pods, as kube-scheduler does: the most important pod first, then the one that waits longest. One pod is
 * decided on at a time, from what is known then; what follows from it is written while the next is decided on.
 *
 * Nothing is lost between a decision and a change: both happen in one thread, and a pod found unschedulable is parked
 * before anything else can be heard of.
 */
export class Scheduler implements Service {
  readonly name = 'scheduler';
  readonly #env: Env;
  readonly #informers: SchedulerInformers;
  readonly #schedulerName: string;
  readonly #actions: Actions;
  readonly #state: SchedulerState;
  readonly #waiting: WaitingPods;
  readonly #backoff = new SchedulingBackoff();
  readonly #controller: Controller;
  /** Pods that something could help, and that are queued for when their backoff is over. */
  readonly #eager = new Set<string>();
  readonly #tasks = new Set<Promise<unknown>>();
  readonly #volumes: VolumeBinding;
  readonly #unboundVolumes = new UnboundVolumes();
  readonly #assumedVolumes = new AssumedVolumes();
  /** What waits for volumes before it writes, which may take long and must not hold up others. */
  readonly #patientTasks = new Set<Promise<unknown>>();
  /** Pods that something is being written about, by UID, and whether they want to be looked at again afterwards. */
  readonly #busy = new Map<string, { isWanted: boolean }>();
  /** Ends the writes, which outlive the reconciles that start them. */
  #signal = AbortSignal.abort();
  /** Pods to schedule that were known before this started to run. */
  #backlog: Map<string, Pod> | undefined = new Map();

  constructor(options: SchedulerOptions) {
    const { env, client, recorder, informers, metrics, schedulerName = 'default-scheduler' } = options;
    this.#env = env;
    this.#informers = informers;
    this.#schedulerName = schedulerName;
    this.#actions = new Actions({ env, client, recorder });
    const claim = (key: string) => informers.persistentVolumeClaims.get(key) as PersistentVolumeClaim | undefined;
    const volume = (name: string) => informers.persistentVolumes.get(name) as PersistentVolume | undefined;
    this.#state = new SchedulerState({
      namespaceLabels: (name) => informers.namespaces.get(name)?.metadata.labels,
      claim: (key) => this.#assumedVolumes.claim(claim(key)),
      volume: (name) => this.#assumedVolumes.volume(volume(name)),
      storageClass: (name) => informers.storageClasses.get(name) as StorageClass | undefined,
      unboundVolumes: (name) => this.#unbound(name),
    });
    this.#volumes = new VolumeBinding({ env, client, claim, volume });
    this.#waiting = new WaitingPods(this.#state);
    this.#controller = new Controller({
      name: this.name,
      env,
      metrics,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      priorityOf: (key) => this.#pod(key)?.spec?.priority ?? 0,
    });
    this.#listen();
  }

  async run(signal: AbortSignal): Promise<void> {
    if (!(await this.#hasSynced(signal)) || !(await this.#hasCaughtUp(signal))) return;
    this.#signal = signal;
    this.#enqueueBacklog();
    try {
      await Promise.all([this.#controller.run(signal), this.#sweep(signal)]);
    } finally {
      await Promise.allSettled([...this.#tasks, ...this.#patientTasks]);
    }
  }

  /** Waits until everything that is there is known; false where it is stopped before. */
  async #hasSynced(signal: AbortSignal): Promise<boolean> {
    const sources: readonly Source[] = Object.values(this.#informers);
    try {
      await unlessAborted(Promise.all(sources.map(({ synced }) => synced)), signal);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      throw error;
    }
  }

  /**
   * Learns of bindings that the informers have not told of yet; false where it is stopped before. Who takes over from
   * another scheduler may have been listening to a watch that lags, and would give away again what the other has given
   * away meanwhile. What is learned here is treated as a binding of its own that was accepted and not yet seen.
   */
  async #hasCaughtUp(signal: AbortSignal): Promise<boolean> {
    try {
      for (const pod of await this.#actions.placedPods(signal)) {
        const { uid = '' } = pod.metadata;
        const known = this.#pod(keyOf(pod));
        const isKnown = known?.metadata.uid === uid && (known.spec?.nodeName ?? '') !== '';
        if (isKnown || isFinished(pod)) continue;
        this.#state.assume(podInfoOf(pod), pod.spec?.nodeName ?? '');
        this.#state.confirm(uid, this.#env.clock.now());
      }
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      throw error;
    }
  }

  #listen(): void {
    const { pods, nodes, namespaces, persistentVolumeClaims, persistentVolumes, storageClasses, podDisruptionBudgets } =
      this.#informers;
    nodes.onChange((change) => this.#onNode(change));
    pods.onChange((change) => this.#onPod(change));
    podDisruptionBudgets.onChange(({ type, object }) => {
      if (type === 'deleted') this.#state.budgets.delete(object as PodDisruptionBudget);
      else this.#state.budgets.set(object as PodDisruptionBudget);
    });
    persistentVolumeClaims.onChange(({ object }) => {
      this.#volumes.notify(keyOf(object));
      this.#wake([{ type: 'claim-changed', key: keyOf(object) }]);
    });
    persistentVolumes.onChange((change) => this.#onVolume(change));
    storageClasses.onChange(() => this.#wake([{ type: 'volumes-changed' }]));
    namespaces.onChange(({ object, old }) => {
      if (!deepEqual(object.metadata.labels, old?.metadata.labels)) this.#wake([{ type: 'namespace-changed' }]);
    });
  }

  #onVolume({ type, object, old }: InformerChange<KubeObject>): void {
    const volume = object as PersistentVolume;
    this.#unboundVolumes.change(type === 'deleted' ? undefined : volume, old as PersistentVolume | undefined);
    const { namespace, name } = volume.spec?.claimRef ?? {};
    this.#volumes.notify(`${namespace}/${name}`);
    this.#wake([{ type: 'volumes-changed' }]);
  }

  *#unbound(storageClass: string): Generator<PersistentVolume> {
    for (const volume of this.#unboundVolumes.of(storageClass)) yield this.#assumedVolumes.volume(volume);
  }

  #onNode({ type, object, old }: InformerChange<KubeObject>): void {
    if (type === 'deleted') this.#wake(this.#state.removeNode(object.metadata.name ?? ''));
    else this.#wake(this.#state.setNode(object as Node, old as Node | undefined));
  }

  #onPod({ type, object, old }: InformerChange<KubeObject>): void {
    const [pod, before] = [object as Pod, old as Pod | undefined];
    const key = keyOf(pod);
    this.#wake(type === 'deleted' ? this.#state.removePod(pod) : this.#state.setPod(pod, before));
    const isAnother = before?.metadata.uid !== pod.metadata.uid;
    if (type === 'deleted' || !this.#isMine(pod)) {
      this.#waiting.delete(key);
      this.#eager.delete(key);
      this.#backoff.forget(key);
      this.#backlog?.delete(key);
      this.#volumes.cancel(pod.metadata.uid ?? '');
    } else if (this.#backlog) {
      this.#backlog.set(key, pod);
    } else if (!before || isAnother || isChanged(pod, before)) {
      if (isAnother) this.#backoff.forget(key);
      this.#waiting.delete(key);
      this.#retry(key);
    }
  }

  /** Whether a pod waits for this scheduler. */
  #isMine(pod: Pod): boolean {
    const { nodeName = '', schedulerName = '', schedulingGates = [] } = pod.spec ?? {};
    return (
      nodeName === '' &&
      schedulerName === this.#schedulerName &&
      schedulingGates.length === 0 &&
      pod.metadata.deletionTimestamp === undefined &&
      !isFinished(pod)
    );
  }

  #pod(key: string): Pod | undefined {
    return this.#informers.pods.get(key) as Pod | undefined;
  }

  /** The oldest first: what order they were listed in means nothing. */
  #enqueueBacklog(): void {
    const age = ([, pod]: [string, Pod]): number => Date.parse(pod.metadata.creationTimestamp ?? '') || 0;
    for (const [key] of [...(this.#backlog ?? [])].sort((a, b) => age(a) - age(b))) this.#controller.enqueue(key);
    this.#backlog = undefined;
  }

  /** Decides on a pod once there is room for the writes that follow. */
  async #reconcile(key: string, signal: AbortSignal): Promise<void> {
    while (this.#tasks.size >= TASKS_MAX) await unlessAborted(Promise.race(this.#tasks), signal);
    this.#eager.delete(key);
    this.#schedule(key, this.#signal);
    this.#hurry();
  }

  #schedule(key: string, signal: AbortSignal): void {
    const pod = this.#pod(key);
    if (!pod || !this.#isMine(pod) || this.#state.isAssumed(pod.metadata.uid ?? '')) return;
    const busy = this.#busy.get(pod.metadata.uid ?? '');
    if (busy) {
      busy.isWanted = true;
      return;
    }
    this.#waiting.delete(key);
    const info = podInfoOf(pod);
    this.#follow(info, decide(info, this.#state, this.#env.random), signal);
  }

  /** Does at once what others must know of, and starts the writing. */
  #follow(pod: PodInfo, decision: Decision, signal: AbortSignal): void {
    switch (decision.type) {
      case 'bind':
        this.#state.assume(pod, decision.node);
        this.#state.nominations.delete(pod.uid);
        if (!decision.volumes) return this.#start(pod, signal, () => this.#bind(pod, decision.node, signal));
        return this.#start(
          pod,
          signal,
          this.#bindAfter(decision.volumes, pod, decision.node, signal),
          this.#patientTasks,
        );
      case 'preempt':
        this.#state.nominations.set(pod, decision.node);
        this.#park(pod, decision.filters);
        return this.#start(pod, signal, () => this.#preempt(pod, decision, signal));
      case 'wait': {
        const isCleared = decision.nomination === 'clear';
        if (isCleared) this.#wake(this.#state.denominate(pod.uid));
        this.#park(pod, decision.filters);
        const mark = unschedulable(decision.message, isCleared ? '' : undefined);
        return this.#start(pod, signal, () => this.#actions.mark(pod, mark, signal));
      }
      default:
        return unreachable(decision);
    }
  }

  #park(pod: PodInfo, filters: Parameters<WaitingPods['add']>[1]): void {
    this.#backoff.add(pod.key, this.#env.clock.now());
    this.#waiting.add(pod, filters);
    this.#controller.enqueue(pod.key, { afterMs: FLUSH_MS });
  }

  /** Queues the pods that the changes could help, each when its backoff is over, or when there is nothing else to do. */
  #wake(events: readonly ClusterEvent[]): void {
    for (const event of events) {
      for (const key of this.#waiting.wake(event)) {
        this.#eager.add(key);
        this.#retry(key);
      }
    }
    this.#hurry();
  }

  /** An idle scheduler makes nobody wait: backoff is there to keep pods that fail from holding up others. */
  #hurry(): void {
    const [key] = this.#eager;
    if (key === undefined || this.#controller.queue.size > 0) return;
    this.#eager.delete(key);
    this.#controller.enqueue(key);
  }

  #retry(key: string): void {
    this.#controller.enqueue(key, { afterMs: this.#backoff.remainingMs(key, this.#env.clock.now()) });
  }

  /** Writes about a pod in the background. Nothing else is done about it until that has ended. */
  #start(pod: PodInfo, signal: AbortSignal, write: () => Promise<unknown>, tasks = this.#tasks): void {
    const busy = { isWanted: false };
    this.#busy.set(pod.uid, busy);
    const task = write()
      .catch((error: unknown) => {
        if (signal.aborted) return;
        this.#env.log.warn('cannot write about a pod; trying again', { pod: pod.key, error: String(error) });
        busy.isWanted = true;
      })
      .finally(() => {
        tasks.delete(task);
        this.#busy.delete(pod.uid);
        if (busy.isWanted) this.#retry(pod.key);
      });
    tasks.add(task);
  }

  /** Binds a pod once its volumes are. Until then others take what was decided about them for done. */
  #bindAfter(volumes: VolumePlan, pod: PodInfo, node: string, signal: AbortSignal): () => Promise<void> {
    this.#assumedVolumes.assume(pod.uid, node, volumes);
    return async () => {
      const labels = this.#state.cluster.nodes.get(node)?.info.labels ?? {};
      const failure = await this.#volumes
        .bind(pod, { name: node, labels }, volumes, signal)
        .finally(() => this.#assumedVolumes.release(pod.uid));
      if (failure === undefined) await this.#bind(pod, node, signal);
      else await this.#failToBind(pod, failure, signal);
    };
  }

  async #bind(pod: PodInfo, node: string, signal: AbortSignal): Promise<void> {
    const failure = await this.#actions.bind(pod, node, signal);
    if (failure === undefined) {
      this.#state.confirm(pod.uid, this.#env.clock.now());
      return;
    }
    await this.#failToBind(pod, failure, signal);
  }

  async #failToBind(pod: PodInfo, failure: string, signal: AbortSignal): Promise<void> {
    this.#abandon(pod);
    this.#backoff.add(pod.key, this.#env.clock.now());
    this.#retry(pod.key);
    await this.#actions.mark(pod, { reason: 'SchedulerError', message: failure, nominatedNode: undefined }, signal);
  }

  /** Takes back that a pod was assumed on a node; what it waited for before, it waits for again. */
  #abandon(pod: PodInfo): void {
    this.#wake(this.#state.forget(pod.uid));
    const actual = this.#pod(pod.key);
    if (actual?.metadata.uid === pod.uid) this.#wake(this.#state.setPod(actual, undefined));
  }

  /**
   * The node is nominated before anybody is pushed out: a scheduler that is restarted in between then knows why they
   * are going, and does not push out others elsewhere.
   */
  async #preempt(pod: PodInfo, decision: Decision & { readonly type: 'preempt' }, signal: AbortSignal): Promise<void> {
    const { node, victims, message } = decision;
    // Nobody has to make way for a pod that waits no more.
    if (!(await this.#actions.mark(pod, unschedulable(message, node), signal))) return;
    await Promise.all(this.#displaced(pod, node).map((other) => this.#displace(other, signal)));
    const leaving = victims.filter(({ isTerminating }) => !isTerminating);
    const found = await Promise.all(leaving.map((victim) => this.#actions.evict(victim, pod, node, signal)));
    // Where all were gone already, nobody is left whose departure would be noticed.
    if (leaving.length > 0 && !found.includes(true)) this.#retry(pod.key);
  }

  /** Pods of lower priority that wait for the same node, and would now wait in vain. */
  #displaced(pod: PodInfo, node: string): readonly PodInfo[] {
    return [...this.#state.nominations.on(node)].filter(({ priority }) => priority < pod.priority);
  }

  async #displace(pod: PodInfo, signal: AbortSignal): Promise<void> {
    this.#wake(this.#state.denominate(pod.uid));
    this.#waiting.delete(pod.key);
    this.#retry(pod.key);
    await this.#actions.clearNomination(pod, signal);
  }

  /** Asks the server about bindings that it accepted and that nobody has told of since. */
  async #sweep(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await sleep(this.#env.clock, SWEEP_MS, signal);
      for (const pod of this.#state.overdue(this.#env.clock.now() - ASSUMED_MS_MAX)) {
        if (signal.aborted) return;
        await this.#verify(pod, signal);
      }
    }
  }

  async #verify(pod: PodInfo, signal: AbortSignal): Promise<void> {
    try {
      const node = await this.#actions.nodeOf(pod, signal);
      if (!this.#state.isAssumed(pod.uid)) return;
      if (node !== undefined && node !== '') return this.#state.confirm(pod.uid, this.#env.clock.now());
      this.#abandon(pod);
      this.#retry(pod.key);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

function unschedulable(message: string, nominatedNode: string | undefined): Mark {
  return { reason: 'Unschedulable', message, nominatedNode };
}

/** Whether anything changed that could let the pod be placed; what the scheduler writes itself does not. */
function isChanged(pod: Pod, old: Pod): boolean {
  return !(deepEqual(pod.spec, old.spec) && deepEqual(pod.metadata.labels, old.metadata.labels));
}
