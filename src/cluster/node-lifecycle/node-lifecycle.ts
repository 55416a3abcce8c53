import type { EventReason } from '../../api/event-reasons.ts';
import type { JsonObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer, InformerChange } from '../../kube/informer.ts';
import type { Lease } from '../../kube/leader-lease.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import type { Service } from '../../kube/service.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { nodes as nodeResource } from '../resources.ts';
import { readinessOf, readyConditionOf, silencePatch } from './conditions.ts';
import { NodeHealth } from './health.ts';
import { labelsFor } from './labels.ts';
import { PodReadiness } from './pod-readiness.ts';
import { TaintLine } from './taint-line.ts';
import { awaitsEviction, type Eviction, taintsFor } from './taints.ts';
import { zoneOf, Zones } from './zones.ts';

export interface NodeLifecycleOptions {
  readonly env: Env;
  readonly client: Client;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly metrics?: KubeMetrics;
  /** With the index `node`. */
  readonly pods: Pick<Informer<Pod>, 'get' | 'byIndex' | 'onChange'>;
  readonly nodes: Pick<Informer<Node>, 'get' | 'list' | 'onChange'>;
  readonly leases: Pick<Informer<Lease>, 'get' | 'onChange' | 'listNotOlderThan'>;
}

/** Where nodes renew their leases. */
const LEASE_NAMESPACE = 'kube-node-lease';
/** Upstream's. */
const WORKERS = 8;
/** Attempts on a node that others keep changing. */
const ATTEMPTS_MAX = 5;
/** When what we read and what we hear disagree, one of them is late: this is how soon we look again. */
const RECHECK_MS = 1000;

/**
 * Watches over nodes: says of those that have fallen silent that nothing is known of them, keeps every node's taints in
 * step with its conditions, and gives up nodes that stay lost at the rate that their zones allow. Each node has a
 * deadline of its own, which its signs of life put off; nothing looks at all nodes from time to time.
 */
export class NodeLifecycle implements Service {
  readonly name = 'node lifecycle';
  readonly #env: Env;
  readonly #client: Client;
  readonly #recorder: NodeLifecycleOptions['recorder'];
  readonly #nodes: NodeLifecycleOptions['nodes'];
  readonly #leases: NodeLifecycleOptions['leases'];
  readonly #controller: Controller;
  readonly #podReadiness: PodReadiness;
  readonly #health = new NodeHealth();
  readonly #zones = new Zones();
  readonly #lines = new Map<string, TaintLine>();
  #wereAllLost = false;

  constructor(options: NodeLifecycleOptions) {
    const { env, metrics, nodes, leases } = options;
    this.#env = env;
    this.#client = options.client;
    this.#recorder = options.recorder;
    this.#nodes = nodes;
    this.#leases = leases;
    this.#podReadiness = new PodReadiness(options);
    this.#controller = new Controller({
      name: 'node-lifecycle-controller',
      env,
      workers: WORKERS,
      reconcile: (name, signal) => this.#reconcile(name, signal),
      ...(metrics ? { metrics } : {}),
    });
    nodes.onChange((change) => this.#nodeChanged(change));
    leases.onChange(({ type, object }) => {
      if (type !== 'deleted' && object.metadata.namespace === LEASE_NAMESPACE)
        this.#health.sawLease(object, env.clock.now());
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([this.#controller.run(signal), this.#podReadiness.run(signal)]);
  }

  #nodeChanged({ type, object, old }: InformerChange<Node>): void {
    const { name = '' } = object.metadata;
    if (old && (type === 'deleted' || zoneOf(old) !== zoneOf(object))) this.#lines.get(zoneOf(old))?.leave(name);
    if (type === 'deleted') {
      this.#health.forget(name);
      this.#zones.deleteNode(name);
      this.#say(object, 'RemovingNode', `Node ${name} event: Removing Node ${name} from Controller`);
    } else {
      const isNew = this.#sawNode(object);
      this.#zones.setNode(object);
      if (isNew ? isUnready(object) : wasJustLost(object, old)) this.#podReadiness.nodeLost(name);
      this.#controller.enqueue(name);
    }
    this.#zoneChanged(zoneOf(object));
  }

  /** True where nothing was known of the node. */
  #sawNode(node: Node): boolean {
    const { name = '' } = node.metadata;
    const nowMs = this.#env.clock.now();
    if (!this.#health.sawNode(node, nowMs)) return false;
    const lease = this.#leases.get(`${LEASE_NAMESPACE}/${name}`);
    if (lease) this.#health.sawLease(lease, nowMs);
    this.#say(node, 'RegisteredNode', `Node ${name} event: Registered Node ${name} in Controller`);
    return true;
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<Result | void> {
    const node = this.#nodes.get(name);
    if (!node) return;
    const graceMs = this.#graceMs(node);
    // Once that is written we hear of it, and go on.
    if (graceMs <= 0) return this.#declareSilent(node, signal);
    const isDone = await this.#keepInStep(node, signal);
    return { requeueAfterMs: isDone ? graceMs : Math.min(graceMs, RECHECK_MS) };
  }

  #graceMs(node: Node): number {
    if (readinessOf(node) === 'Unknown') return Number.POSITIVE_INFINITY;
    return this.#health.graceMs(node, this.#env.clock.now());
  }

  /** What we heard last may be old: the server is asked before anything is said. */
  async #declareSilent(node: Node, signal: AbortSignal): Promise<Result | void> {
    for (let attempt = 1; ; attempt++) {
      const current = await this.#read(node, signal);
      if (!current) return { requeueAfterMs: RECHECK_MS };
      const nowMs = this.#env.clock.now();
      this.#health.sawNode(current, nowMs);
      for (const lease of await this.#readLease(current, signal)) this.#health.sawLease(lease, nowMs);
      const body = silencePatch(current, nowMs);
      if (!body) return { requeueAfterMs: RECHECK_MS };
      const graceMs = this.#graceMs(current);
      if (graceMs > 0) return { requeueAfterMs: graceMs };
      if (!(await this.#patch(current, { type: 'strategic', body }, attempt, signal, 'status'))) continue;
      const { name = '' } = current.metadata;
      if (readinessOf(current) === 'True')
        this.#say(current, 'NodeNotReady', `Node ${name} status is now: NodeNotReady`);
      return;
    }
  }

  /** Writes the taints and labels that the node's state asks for. False where the node is said to be gone. */
  async #keepInStep(node: Node, signal: AbortSignal): Promise<boolean> {
    let current: Node | undefined = node;
    for (let attempt = 1; current; attempt++) {
      const body = this.#stepPatch(current);
      if (!body || (await this.#patch(current, { type: 'merge', body }, attempt, signal))) return true;
      current = await this.#read(node, signal);
    }
    return false;
  }

  #stepPatch(node: Node): JsonObject | undefined {
    const taints = taintsFor(node, this.#evictionOf(node), this.#env.clock.now());
    const labels = labelsFor(node);
    if (!taints && !labels) return undefined;
    const { uid = '', resourceVersion = '' } = node.metadata;
    return {
      metadata: { uid, resourceVersion, ...(labels ? { labels } : {}) },
      ...(taints ? { spec: { taints: taints.map((taint) => ({ ...taint })) } } : {}),
    };
  }

  #evictionOf(node: Node): Eviction {
    const { name = '' } = node.metadata;
    const line = this.#lineOf(zoneOf(node));
    const isWaiting = awaitsEviction(node) && !this.#zones.areAllLost;
    if (!isWaiting) line.leave(name);
    const isItsTurn = isWaiting && line.ask(name, this.#env.clock.now());
    this.#wakeNext(line);
    if (this.#zones.areAllLost) return 'remove';
    return isItsTurn ? 'add' : 'keep';
  }

  #lineOf(zone: string): TaintLine {
    let line = this.#lines.get(zone);
    if (!line) this.#lines.set(zone, (line = new TaintLine(this.#zones.rateOf(zone), this.#env.clock.now())));
    return line;
  }

  #wakeNext(line: TaintLine): void {
    const next = line.next();
    if (next) this.#controller.enqueue(next.node, { afterMs: Math.max(0, next.atMs - this.#env.clock.now()) });
  }

  /** Takes account of a node's change for its zone, or for all. */
  #zoneChanged(zone: string): void {
    const { areAllLost } = this.#zones;
    if (areAllLost === this.#wereAllLost) return this.#setRate(zone);
    this.#wereAllLost = areAllLost;
    this.#env.log.info(areAllLost ? 'all nodes are lost; none is given up' : 'some nodes are ready again', {});
    // We have not heard of nodes for as long as we could not.
    if (!areAllLost) this.#health.pardonAll(this.#env.clock.now());
    for (const each of this.#lines.keys()) this.#setRate(each);
    for (const { metadata } of this.#nodes.list()) this.#controller.enqueue(metadata.name ?? '');
  }

  #setRate(zone: string): void {
    const line = this.#lines.get(zone);
    if (!line) return;
    line.setRate(this.#zones.rateOf(zone), this.#env.clock.now());
    this.#wakeNext(line);
  }

  /** False where the node has changed meanwhile, and it is worth looking at it again. One that is gone needs nothing. */
  async #patch(
    node: Node,
    patch: { readonly type: 'merge' | 'strategic'; readonly body: JsonObject },
    attempt: number,
    signal: AbortSignal,
    subresource = '',
  ): Promise<boolean> {
    try {
      await this.#client.patch(nodeResource, '', node.metadata.name ?? '', patch, signal, { subresource });
      return true;
    } catch (error) {
      const { code = 0 } = error instanceof ApiError ? error : {};
      if (code === 404) return true;
      if (code !== 409 || attempt === ATTEMPTS_MAX) throw error;
      return false;
    }
  }

  /** The node as it is now; undefined where it is gone, also where another has its name. */
  async #read(node: Node, signal: AbortSignal): Promise<Node | undefined> {
    const { name = '', uid } = node.metadata;
    const current = await this.#client.find(nodeResource, '', name, signal);
    return current?.metadata.uid === uid ? current : undefined;
  }

  #readLease(node: Node, signal: AbortSignal): Promise<readonly Lease[]> {
    const { name = '', resourceVersion = '' } = node.metadata;
    const scope = { namespace: LEASE_NAMESPACE, fieldSelector: `metadata.name=${name}` };
    return this.#leases.listNotOlderThan(resourceVersion, scope, signal);
  }

  #say(node: Node, reason: EventReason, message: string): void {
    this.#recorder.event(node, 'Normal', reason, message);
  }
}

function isUnready(node: Node): boolean {
  const readiness = readinessOf(node);
  return readiness !== undefined && readiness !== 'True';
}

/** A kubelet that says that it is not ready is there to see to its pods. */
function wasJustLost(node: Node, old: Node | undefined): boolean {
  return readinessOf(old) === 'True' && readyConditionOf(node)?.reason === 'NodeStatusUnknown';
}
