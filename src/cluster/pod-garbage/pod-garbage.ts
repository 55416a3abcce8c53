import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer, InformerChange } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { nodes as nodeResource, pods as podResource } from '../resources.ts';
import {
  ending,
  isAsGoodAsGone,
  isGoneBefore,
  isOutOfService,
  isTerminated,
  isTerminating,
  isUnscheduledAndTerminating,
} from './decide.ts';

export interface PodGarbageOptions {
  readonly env: Env;
  readonly client: Client;
  readonly metrics: KubeMetrics;
  /** By node, and those that have terminated. */
  readonly pods: Pick<Informer<Pod>, 'get' | 'onChange' | 'byIndex' | 'countByIndex'>;
  readonly nodes: Pick<Informer<Node>, 'get' | 'onChange'>;
  /** How many terminated pods may stay. */
  readonly terminatedMax?: number;
}

/** Pods that have ended by themselves, all under one value. */
export const byTermination = { terminated: (pod: Pod): readonly string[] => (isTerminated(pod) ? [''] : []) };

/** As kube-controller-manager has it. */
const TERMINATED_MAX = 12_500;
/** How long terminated pods gather before some are deleted. */
const PERIOD_MS = 20_000;
/** How long a node has to be missing before its pods are: it may only be registering again. */
const QUARANTINE_MS = 40_000;
/** Deletions under way at once. */
const AT_ONCE = 20;
const ALL_TERMINATED = 'terminated';

/** Deletes pods that nobody else will: of nodes that are gone or out of service, and of the past. */
export class PodGarbage implements Service {
  readonly name = 'pod-garbage-collector';
  readonly #env: Env;
  readonly #client: Client;
  readonly #pods: PodGarbageOptions['pods'];
  readonly #nodes: PodGarbageOptions['nodes'];
  readonly #terminatedMax: number;
  /** Pods that were never scheduled, by key. */
  readonly #unscheduled: Controller;
  /** Nodes, by name, for the sake of their pods. */
  readonly #byNode: Controller;
  readonly #terminated: Controller;
  /** Since when nodes that have pods are missing. */
  readonly #missingSinceMs = new Map<string, number>();

  constructor(options: PodGarbageOptions) {
    const { env, client, metrics, pods, nodes, terminatedMax = TERMINATED_MAX } = options;
    this.#env = env;
    this.#client = client;
    this.#pods = pods;
    this.#nodes = nodes;
    this.#terminatedMax = terminatedMax;
    const controller = (name: string, reconcile: (key: string, signal: AbortSignal) => Promise<Result | void>) =>
      new Controller({ name, env, metrics, reconcile });
    this.#unscheduled = controller('pod_gc_unscheduled', (key, signal) => this.#endUnscheduled(key, signal));
    this.#byNode = controller('orphaned_pods_nodes', (key, signal) => this.#endOnNode(key, signal));
    this.#terminated = controller('pod_gc_terminated', (_, signal) => this.#deleteTerminated(signal));
    pods.onChange((change) => this.#onPod(change));
    nodes.onChange((change) => this.#onNode(change));
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#unscheduled, this.#byNode, this.#terminated].map((each) => each.run(signal)));
  }

  #onPod({ type, object: pod }: InformerChange<Pod>): void {
    if (type === 'deleted') return;
    if (isUnscheduledAndTerminating(pod)) this.#unscheduled.enqueue(keyOf(pod));
    const name = pod.spec?.nodeName ?? '';
    const node = this.#nodes.get(name);
    if (name !== '' && (!node || (isTerminating(pod) && isOutOfService(node)))) this.#byNode.enqueue(name);
    if (isTerminated(pod) && this.#pods.countByIndex('terminated', '') > this.#terminatedMax)
      this.#terminated.enqueue(ALL_TERMINATED, { afterMs: PERIOD_MS });
  }

  #onNode({ type, object: node }: InformerChange<Node>): void {
    const name = node.metadata.name ?? '';
    if (type !== 'deleted') this.#missingSinceMs.delete(name);
    if (type === 'deleted' || isOutOfService(node)) this.#byNode.enqueue(name);
  }

  async #endUnscheduled(key: string, signal: AbortSignal): Promise<void> {
    const pod = this.#pods.get(key);
    if (pod && isUnscheduledAndTerminating(pod)) await this.#end(pod, 'other', signal);
  }

  async #endOnNode(name: string, signal: AbortSignal): Promise<Result | undefined> {
    const node = this.#nodes.get(name);
    const pods = this.#pods.byIndex('node', name).filter((pod) => !isAsGoodAsGone(pod));
    if (pods.length === 0) {
      this.#missingSinceMs.delete(name);
      return undefined;
    }
    if (node) {
      const going = isOutOfService(node) ? pods.filter(isTerminating) : [];
      // Nobody may still be running there, so the server is asked whether the node is really down.
      const live = going.length > 0 ? await this.#liveNode(name, signal) : undefined;
      if (live && isOutOfService(live)) await this.#endAll(going, 'other', signal);
      return undefined;
    }
    const nowMs = this.#env.clock.now();
    const sinceMs = this.#missingSinceMs.get(name) ?? nowMs;
    this.#missingSinceMs.set(name, sinceMs);
    if (nowMs < sinceMs + QUARANTINE_MS) return { requeueAfterMs: sinceMs + QUARANTINE_MS - nowMs };
    // It may only be the cache that has not heard of it.
    if (await this.#liveNode(name, signal)) return { requeueAfterMs: QUARANTINE_MS };
    await this.#endAll(pods, 'orphaned', signal);
    this.#missingSinceMs.delete(name);
    return undefined;
  }

  async #deleteTerminated(signal: AbortSignal): Promise<Result | undefined> {
    const terminated = this.#pods.byIndex('terminated', '').filter((pod) => !isAsGoodAsGone(pod));
    const tooMany = terminated.length - this.#terminatedMax;
    if (tooMany > 0) await this.#endAll([...terminated].sort(isGoneBefore).slice(0, tooMany), 'other', signal);
    return undefined;
  }

  async #liveNode(name: string, signal: AbortSignal): Promise<Node | undefined> {
    try {
      return await this.#client.get(nodeResource, '', name, signal);
    } catch (error) {
      if (isGone(error)) return undefined;
      throw error;
    }
  }

  /** Ends them all, as far as that goes; rejects with the first failure when all have been tried. */
  async #endAll(pods: readonly Pod[], reason: 'orphaned' | 'other', signal: AbortSignal): Promise<void> {
    const failures: unknown[] = [];
    for (let from = 0; from < pods.length; from += AT_ONCE) {
      const some = pods.slice(from, from + AT_ONCE);
      const results = await Promise.allSettled(some.map((pod) => this.#end(pod, reason, signal)));
      for (const result of results) if (result.status === 'rejected') failures.push(result.reason);
    }
    if (failures.length > 0) throw failures[0];
  }

  /** Lets a pod fail that has not ended, since no kubelet will say so, and deletes it at once. */
  async #end(pod: Pod, reason: 'orphaned' | 'other', signal: AbortSignal): Promise<void> {
    if (isAsGoodAsGone(pod)) return;
    const { namespace = '', name = '', uid } = pod.metadata;
    const body = ending(pod, reason, this.#env.clock.now());
    try {
      if (body) {
        const patch = { type: 'strategic', body } as const;
        await this.#client.patch(podResource, namespace, name, patch, signal, { subresource: 'status' });
      }
      await this.#client.delete(podResource, namespace, name, signal, {
        gracePeriodSeconds: 0,
        preconditions: { uid },
      });
    } catch (error) {
      // One that was changed meanwhile, or another one of the same name, is looked at again.
      if (!isGone(error)) throw error;
    }
  }
}

function isGone(error: unknown): boolean {
  return error instanceof ApiError && error.code === 404;
}
