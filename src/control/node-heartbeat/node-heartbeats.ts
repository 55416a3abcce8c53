import { HEARTBEAT_ANNOTATION, SCHEDULABLE_LABEL } from '../../api/kubevirt/well-known.ts';
import { ApiError } from '../../api/status.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { Service } from '../../kube/service.ts';
import type { Node } from '../../migration/fit/objects.ts';
import type { ControlContext } from '../context.ts';
import { nodes } from '../resources.ts';

/** For how long an agent may be silent, as in KubeVirt; it says something every four minutes. */
const SILENT_MS = 5 * 60_000;
/** How soon it is looked again when the node was written meanwhile. */
const RECHECK_MS = 1000;

/**
 * Keeps guests from nodes whose agents are gone: a node of a kubelet stays Ready without one. An agent that is back says itself that
 * its node takes guests. A sign of life is any change of the heartbeat, at the moment in which it is seen here: the time in it is by the
 * node's clock. Keyed by nodes.
 */
export class NodeHeartbeats implements Service {
  readonly name = 'node heartbeats';
  readonly #context: ControlContext;
  readonly #nodes: Informer<Node>;
  readonly #controller: Controller;
  /** The last heartbeat of each node, and when it was first seen. */
  readonly #heard = new Map<string, { readonly beat: string; readonly atMs: number }>();

  constructor(context: ControlContext) {
    const { env, informers, metrics } = context;
    this.#context = context;
    this.#nodes = informers.of(nodes);
    this.#controller = new Controller({
      name: 'node-heartbeats',
      env,
      reconcile: (name, signal) => this.#reconcile(name, signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#nodes.onChange(({ object, old }) => {
      if (!old || beatOf(object) !== beatOf(old) || isSchedulable(object) !== isSchedulable(old))
        this.#controller.enqueue(object.metadata.name ?? '');
    });
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<Result | void> {
    const node = this.#nodes.get(name);
    const beat = node && beatOf(node);
    // What never had a heartbeat is not ours.
    if (!node || beat === undefined) return void this.#heard.delete(name);
    const nowMs = this.#context.env.clock.now();
    const last = this.#heard.get(name);
    const atMs = last?.beat === beat ? last.atMs : nowMs;
    this.#heard.set(name, { beat, atMs });
    if (!isSchedulable(node)) return;
    const leftMs = atMs + SILENT_MS - nowMs;
    return leftMs > 0 ? { requeueAfterMs: leftMs } : this.#close(node, signal);
  }

  async #close(node: Node, signal: AbortSignal): Promise<Result | void> {
    const { client, recorder } = this.#context;
    const { name = '', uid = '', resourceVersion = '' } = node.metadata;
    // Of the very node that was looked at: its agent may be back since.
    const body = { metadata: { uid, resourceVersion, labels: { [SCHEDULABLE_LABEL]: 'false' } } };
    try {
      // A status brings labels along: who may write no more than that cannot touch taints.
      await client.patch(nodes, '', name, { type: 'merge', body }, signal, { subresource: 'status' });
    } catch (error) {
      if (!(error instanceof ApiError && (error.code === 404 || error.code === 409))) throw error;
      return { requeueAfterMs: RECHECK_MS };
    }
    const message = 'Its agent has not been heard of for 5 minutes: no guests are scheduled there until it is';
    recorder.event(node, 'Warning', 'AgentNotHeard', message);
  }
}

function beatOf({ metadata }: Node): string | undefined {
  return metadata.annotations?.[HEARTBEAT_ANNOTATION];
}

function isSchedulable({ metadata }: Node): boolean {
  return metadata.labels?.[SCHEDULABLE_LABEL] === 'true';
}
