import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer, InformerChange } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { Node, Pod, Taint } from '../../migration/fit/objects.ts';
import { evictingTaints, leavesAtMs } from './decide.ts';
import { Evictor } from './evictor.ts';
import { Sightings } from './sightings.ts';

export interface TaintEvictionOptions {
  readonly env: Env;
  readonly client: Client;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly metrics?: KubeMetrics;
  /** With the index `node`. */
  readonly pods: Pick<Informer<Pod>, 'get' | 'byIndex' | 'onChange'>;
  readonly nodes: Pick<Informer<Node>, 'get' | 'onChange'>;
}

/** Upstream's. */
const WORKERS = 8;
/** When what we read and what we hear disagree, one of them is late: this is how soon we look again. */
const RECHECK_MS = 1000;

/**
 * Makes pods leave nodes whose NoExecute taints they do not tolerate, or do not tolerate any longer. A pod that
 * tolerates them for a while is looked at again when that is over, and whenever its node's taints or its own
 * tolerations change.
 */
export class TaintEviction implements Service {
  readonly name = 'taint eviction';
  readonly #env: Env;
  readonly #pods: TaintEvictionOptions['pods'];
  readonly #nodes: TaintEvictionOptions['nodes'];
  readonly #recorder: TaintEvictionOptions['recorder'];
  readonly #evictor: Evictor;
  readonly #controller: Controller;
  readonly #sightings = new Sightings();
  /** Pods that are to leave at some time to come. */
  readonly #leaving = new Map<string, Pod>();

  constructor(options: TaintEvictionOptions) {
    const { env, metrics, pods, nodes, recorder } = options;
    this.#env = env;
    this.#pods = pods;
    this.#nodes = nodes;
    this.#recorder = recorder;
    this.#evictor = new Evictor(options);
    this.#controller = new Controller({
      name: 'taint-eviction-controller',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    pods.onChange((change) => this.#podChanged(change));
    nodes.onChange((change) => this.#nodeChanged(change));
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  #podChanged({ type, object, old }: InformerChange<Pod>): void {
    const key = keyOf(object);
    const isSame =
      type === 'updated' &&
      old?.metadata.uid === object.metadata.uid &&
      old?.spec?.nodeName === object.spec?.nodeName &&
      deepEqual(old?.spec?.tolerations, object.spec?.tolerations);
    if (isSame) return;
    if (this.#taintsOf(object).length > 0 || this.#sightings.has(key)) this.#controller.enqueue(key);
  }

  #nodeChanged({ type, object, old }: InformerChange<Node>): void {
    const [before, after] = [evictingTaints(old), evictingTaints(type === 'deleted' ? undefined : object)];
    if (before.length === 0 && after.length === 0) return;
    if (type === 'updated' && deepEqual(before, after)) return;
    for (const pod of this.#pods.byIndex('node', object.metadata.name ?? '')) this.#controller.enqueue(keyOf(pod));
  }

  #taintsOf({ spec }: Pod): readonly Taint[] {
    return evictingTaints(this.#nodes.get(spec?.nodeName ?? ''));
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    const pod = this.#pods.get(key);
    const node = this.#nodes.get(pod?.spec?.nodeName ?? '');
    if (!pod || !node) return this.#stays(key, !pod);
    const taints = evictingTaints(node);
    this.#sightings.keepOnly(key, taints);
    const atMs = this.#leavesAtMs(pod, taints);
    if (atMs === Number.POSITIVE_INFINITY) return this.#stays(key, true);
    const nowMs = this.#env.clock.now();
    if (atMs > nowMs) {
      this.#leaving.set(key, pod);
      return { requeueAfterMs: atMs - nowMs };
    }
    const hasToGo = (live: Pod, on: Node): boolean => this.#leavesAtMs(live, evictingTaints(on)) <= nowMs;
    if (!(await this.#evictor.evict(pod, hasToGo, signal))) return { requeueAfterMs: RECHECK_MS };
    this.#leaving.delete(key);
  }

  #leavesAtMs(pod: Pod, taints: readonly Taint[]): number {
    return leavesAtMs(pod, taints, this.#sightings.of(keyOf(pod), pod, this.#env.clock.now()));
  }

  /** Nothing makes the pod leave, or there is none any more. */
  #stays(key: string, isToBeTold: boolean): void {
    this.#sightings.forget(key);
    const pod = this.#leaving.get(key);
    if (!pod) return;
    this.#leaving.delete(key);
    // What became of its node is for others to see to.
    if (isToBeTold) this.#recorder.event(pod, 'Normal', 'TaintManagerEviction', `Cancelling deletion of Pod ${key}`);
  }
}
