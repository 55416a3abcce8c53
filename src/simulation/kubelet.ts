import { ApiError } from '../api/status.ts';
import type { JsonObject, KubeObject } from '../api/meta.ts';
import { type Env, sleep } from '../env/ports.ts';
import { nodes, pods } from '../cluster/resources.ts';
import type { Client } from '../kube/client.ts';
import { Controller, type Result } from '../kube/controller.ts';
import { Informer } from '../kube/informer.ts';
import { Manager } from '../kube/manager.ts';
import { keyOf, type Resource } from '../kube/resource.ts';
import type { Service } from '../kube/service.ts';
import type { Node, Pod } from '../migration/fit/objects.ts';
import type { Program } from './component.ts';
import { ADMIN, unending } from './world.ts';

/**
 * A model of a kubelet, no more: it says that its node is alive, reports pods as running once they had the time to start,
 * and lets go of those that are being deleted once they had the time to end. It runs nothing.
 */

/** A machine: what is there even while no kubelet runs on it. */
export interface Machine {
  readonly name: string;
  readonly cpu: string;
  readonly memory: string;
  readonly podsMax: number;
  readonly labels: Readonly<Record<string, string>>;
  /** When each pod, by UID, was first seen to start or to end; containers do not wait for their kubelet. */
  readonly startsMs: Map<string, number>;
  readonly endsMs: Map<string, number>;
}

/** After how many milliseconds of running a pod ends by itself. */
export const ENDS_AFTER_ANNOTATION = 'simulation.godwit/ends-after-ms';

const HEARTBEAT_MS = 10_000;
const STATUS_MS = 300_000;
const START_MS_MAX = 5000;
const END_MS_MAX = 20_000;
const LEASE_SECONDS = 40;

interface Lease extends KubeObject {
  spec?: Record<string, unknown>;
}

const leases: Resource<Lease> = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};

/** The program that a machine runs. */
export function kubelet(machine: Machine): Program {
  return async (process, clientOf) => {
    const { env } = process;
    const signal = unending();
    const client = clientOf(ADMIN);
    const scope = { client, env };
    const node = new Informer({ ...scope, resource: nodes, fieldSelector: `metadata.name=${machine.name}` });
    const mine = new Informer({ ...scope, resource: pods, fieldSelector: `spec.nodeName=${machine.name}` });
    const runner = new PodRunner(machine, env, client, mine);
    const controller = new Controller({
      name: 'kubelet',
      env,
      workers: 4,
      reconcile: (key) => runner.reconcile(key, signal),
    });
    mine.onChange(({ object }) => controller.enqueue(keyOf(object)));
    const manager = new Manager({ env, name: machine.name });
    await manager.add(node, mine, controller, new Heartbeat(machine, env, client, node)).run(signal);
  };
}

/** Brings the pods of its node from one phase to the next. */
class PodRunner {
  readonly #machine: Machine;
  readonly #env: Env;
  readonly #client: Client;
  readonly #pods: Informer<Pod>;

  constructor(machine: Machine, env: Env, client: Client, informer: Informer<Pod>) {
    this.#machine = machine;
    this.#env = env;
    this.#client = client;
    this.#pods = informer;
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Result> {
    const pod = this.#pods.get(key);
    if (!pod) return {};
    if (pod.metadata.deletionTimestamp !== undefined) return this.#end(pod, signal);
    const phase = pod.status?.phase ?? 'Pending';
    if (phase === 'Pending') return this.#start(pod, signal);
    if (phase === 'Running') return this.#finish(pod, signal);
    return {};
  }

  async #start(pod: Pod, signal: AbortSignal): Promise<Result> {
    const waitMs = this.#remainingMs(this.#machine.startsMs, pod, START_MS_MAX);
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await this.#report(pod, 'Running', 'True', signal);
    return {};
  }

  async #finish(pod: Pod, signal: AbortSignal): Promise<Result> {
    const afterMs = Number(pod.metadata.annotations?.[ENDS_AFTER_ANNOTATION] ?? Number.NaN);
    if (Number.isNaN(afterMs)) return {};
    const waitMs = Date.parse(pod.status?.startTime ?? '') + afterMs - this.#env.clock.now();
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    await this.#report(pod, 'Succeeded', 'False', signal);
    return {};
  }

  async #end(pod: Pod, signal: AbortSignal): Promise<Result> {
    const { uid = '', namespace = '', name = '', deletionGracePeriodSeconds = 0 } = pod.metadata;
    const isRunning = pod.status?.phase === 'Running';
    const waitMs = this.#remainingMs(
      this.#machine.endsMs,
      pod,
      isRunning ? Math.min(END_MS_MAX, deletionGracePeriodSeconds * 1000) : 0,
    );
    if (waitMs > 0) return { requeueAfterMs: waitMs };
    try {
      await this.#client.delete(pods, namespace, name, signal, { gracePeriodSeconds: 0, preconditions: { uid } });
    } catch (error) {
      // It is gone, or another one has its name.
      if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 409)) throw error;
      if (error.code === 409) return { requeueAfterMs: 1000 };
    }
    return {};
  }

  /** How much is left of a time that was drawn for this pod when it was first asked for. */
  #remainingMs(times: Map<string, number>, { metadata: { uid = '' } }: Pod, maxMs: number): number {
    const nowMs = this.#env.clock.now();
    const atMs = times.get(uid) ?? nowMs + Math.ceil(this.#env.random.number() * maxMs);
    times.set(uid, atMs);
    // The clock may have been set since.
    return Math.min(atMs - nowMs, maxMs);
  }

  async #report(pod: Pod, phase: string, ready: string, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const now = new Date(this.#env.clock.now()).toISOString().replace(/\.\d+/, '');
    const conditions = ['Initialized', 'Ready', 'ContainersReady'].map((type) => ({
      type,
      status: type === 'Initialized' ? 'True' : ready,
      lastTransitionTime: now,
    }));
    const startTime = pod.status?.startTime ?? now;
    const body: JsonObject = { metadata: { uid }, status: { phase, startTime, conditions } };
    await this.#client.patch(pods, namespace, name, { type: 'strategic', body }, signal, { subresource: 'status' });
  }
}

/** Says that the node is alive, and what it is like. */
class Heartbeat implements Service {
  readonly name = 'heartbeat';
  readonly #machine: Machine;
  readonly #env: Env;
  readonly #client: Client;
  readonly #node: Informer<Node>;
  #statusMs = Number.NEGATIVE_INFINITY;

  constructor(machine: Machine, env: Env, client: Client, node: Informer<Node>) {
    this.#machine = machine;
    this.#env = env;
    this.#client = client;
    this.#node = node;
  }

  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.#beat(signal);
      } catch (error) {
        this.#env.log.debug('no heartbeat', { error: String(error) });
      }
      await sleep(this.#env.clock, HEARTBEAT_MS * (0.9 + 0.2 * this.#env.random.number()), signal);
    }
  }

  async #beat(signal: AbortSignal): Promise<void> {
    const { name, labels } = this.#machine;
    await this.#renewLease(signal);
    const node = this.#node.get(name);
    if (!node) {
      const metadata = { name, labels: { ...labels, 'kubernetes.io/hostname': name } };
      await ignoring(409, this.#client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata }, signal));
    }
    const ready = (node?.status as { conditions?: { type: string; status: string }[] } | undefined)?.conditions?.find(
      ({ type }) => type === 'Ready',
    );
    const nowMs = this.#env.clock.now();
    if (ready?.status === 'True' && nowMs - this.#statusMs < STATUS_MS) return;
    await this.#report(ready?.status === 'True', signal);
    this.#statusMs = nowMs;
  }

  async #report(wasReady: boolean, signal: AbortSignal): Promise<void> {
    const { name, cpu, memory, podsMax } = this.#machine;
    const now = new Date(this.#env.clock.now()).toISOString().replace(/\.\d+/, '');
    const amounts = { cpu, memory, pods: String(podsMax) };
    const condition = {
      type: 'Ready',
      status: 'True',
      reason: 'KubeletReady',
      message: 'the model of a kubelet is ready',
      lastHeartbeatTime: now,
      ...(wasReady ? {} : { lastTransitionTime: now }),
    };
    const body: JsonObject = { status: { capacity: amounts, allocatable: amounts, conditions: [condition] } };
    await this.#client.patch(nodes, '', name, { type: 'strategic', body }, signal, { subresource: 'status' });
  }

  async #renewLease(signal: AbortSignal): Promise<void> {
    const { name } = this.#machine;
    const renewTime = new Date(this.#env.clock.now()).toISOString().replace('Z', '000Z');
    const spec = { holderIdentity: name, leaseDurationSeconds: LEASE_SECONDS, renewTime };
    try {
      await this.#client.patch(leases, 'kube-node-lease', name, { type: 'merge', body: { spec } }, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
      const metadata = { name, namespace: 'kube-node-lease' };
      const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec };
      await ignoring(409, this.#client.create(leases, lease, signal));
    }
  }
}

async function ignoring(code: number, call: Promise<unknown>): Promise<void> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== code) throw error;
  }
}
