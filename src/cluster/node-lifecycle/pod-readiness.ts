import { formatTime, type JsonObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer, InformerChange } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { pods as podResource } from '../resources.ts';
import { readinessOf } from './conditions.ts';

export interface PodReadinessOptions {
  readonly env: Env;
  readonly client: Client;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly metrics?: KubeMetrics;
  /** With the index `node`. */
  readonly pods: Pick<Informer<Pod>, 'get' | 'byIndex' | 'onChange'>;
  readonly nodes: Pick<Informer<Node>, 'get'>;
}

/** Upstream's. */
const WORKERS = 4;
/** Attempts on a pod that others keep changing. */
const ATTEMPTS_MAX = 5;
/** When what we read and what we hear disagree, one of them is late: this is how soon we look again. */
const RECHECK_MS = 1000;

/**
 * Says of pods that they are not ready when their node is lost: nobody else can. It is said once, when the node is lost
 * or a pod turns up on one that is; a kubelet that has come back knows better, maybe before its node is known to be back.
 */
export class PodReadiness implements Service {
  readonly name = 'readiness of pods on lost nodes';
  readonly #env: Env;
  readonly #client: Client;
  readonly #recorder: PodReadinessOptions['recorder'];
  readonly #pods: PodReadinessOptions['pods'];
  readonly #nodes: PodReadinessOptions['nodes'];
  readonly #controller: Controller;

  constructor(options: PodReadinessOptions) {
    const { env, metrics, pods } = options;
    this.#env = env;
    this.#client = options.client;
    this.#recorder = options.recorder;
    this.#pods = pods;
    this.#nodes = options.nodes;
    this.#controller = new Controller({
      name: 'node-lifecycle-controller-pods',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    pods.onChange((change) => this.#podChanged(change));
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  /** The node is known not to be ready. */
  nodeLost(name: string): void {
    for (const pod of this.#pods.byIndex('node', name)) this.#controller.enqueue(keyOf(pod));
  }

  #podChanged({ type, object, old }: InformerChange<Pod>): void {
    if (
      type === 'deleted' ||
      (old?.spec?.nodeName === object.spec?.nodeName && old?.metadata.uid === object.metadata.uid)
    )
      return;
    if (this.#isOnLostNode(object)) this.#controller.enqueue(keyOf(object));
  }

  #isOnLostNode({ spec }: Pod): boolean {
    const readiness = readinessOf(this.#nodes.get(spec?.nodeName ?? ''));
    return readiness !== undefined && readiness !== 'True';
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    let pod = this.#pods.get(key);
    for (let attempt = 1; pod && this.#isOnLostNode(pod); attempt++) {
      const { namespace = '', name = '', uid } = pod.metadata;
      const body = unreadyPatch(pod, this.#env.clock.now());
      if (!body) return;
      try {
        const patch = { type: 'strategic', body } as const;
        await this.#client.patch(podResource, namespace, name, patch, signal, { subresource: 'status' });
        return this.#recorder.event(pod, 'Warning', 'NodeNotReady', 'Node is not ready');
      } catch (error) {
        const { code = 0 } = error instanceof ApiError ? error : {};
        if (code === 404) return;
        if (code !== 409 || attempt === ATTEMPTS_MAX) throw error;
      }
      pod = await this.#client.find(podResource, namespace, name, signal);
      if (pod?.metadata.uid !== uid) return { requeueAfterMs: RECHECK_MS };
    }
  }
}

/** Only the status changes: why the pod was ready, and what was observed, is the kubelet's. */
function unreadyPatch({ metadata, status }: Pod, nowMs: number): JsonObject | undefined {
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  if (!ready || ready.status === 'False') return undefined;
  const { uid = '', resourceVersion = '' } = metadata;
  const condition = { type: 'Ready', status: 'False', lastTransitionTime: formatTime(nowMs) };
  return { metadata: { uid, resourceVersion }, status: { conditions: [condition] } };
}
