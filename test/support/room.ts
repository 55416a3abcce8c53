import { expect } from 'vitest';
import { formatTime, type JsonObject, type KubeObject } from '../../src/api/meta.ts';
import { ApiError } from '../../src/api/status.ts';
import type { Node, NodeCondition, Pod, PodSpec, Taint } from '../../src/migration/fit/objects.ts';
import { type ClusterUnderTest, resource } from './cluster-under-test.ts';
import { eventually } from './eventually.ts';

interface Event extends KubeObject {
  reason: string;
  message: string;
  type: string;
  involvedObject: { name: string };
}

export const pods = resource<Pod>('pods', 'Pod');
export const nodes = resource<Node>('nodes', 'Node', '', false);
const namespaces = resource('namespaces', 'Namespace', '', false);
const events = resource<Event>('events', 'Event');

let rooms = 0;

/** A namespace of a cluster under test, with nodes that nobody else uses. It plays their kubelets where a test says so. */
export class Room {
  readonly namespace: string;
  readonly #cluster: ClusterUnderTest;
  readonly #nodes: string[] = [];

  private constructor(cluster: ClusterUnderTest, namespace: string) {
    this.#cluster = cluster;
    this.namespace = namespace;
  }

  static async make(cluster: ClusterUnderTest): Promise<Room> {
    const name = `room-${process.pid}-${rooms++}`;
    await cluster.client.create(
      namespaces,
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
      cluster.signal,
    );
    return new Room(cluster, name);
  }

  /** Another cluster outlives the suite. */
  async clear(): Promise<void> {
    const { client, signal } = this.#cluster;
    const { items } = await client.list(pods, { namespace: this.namespace }, signal);
    for (const { metadata } of items) await this.end(metadata.name ?? '');
    for (const name of this.#nodes) await client.delete(nodes, '', name, signal);
    await client.delete(namespaces, '', this.namespace, signal);
  }

  /** Makes a node that has reported once that it is well. Answers its full name. */
  async node(name: string, more: { labels?: Record<string, string>; spec?: Node['spec'] } = {}): Promise<string> {
    const { client, signal } = this.#cluster;
    const full = `${this.namespace}-${name}`;
    const metadata = { name: full, labels: { room: this.namespace, 'kubernetes.io/hostname': full, ...more.labels } };
    await client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata, spec: more.spec ?? {} }, signal);
    this.#nodes.push(full);
    await this.report(full, { type: 'Ready', status: 'True', reason: 'Test', message: 'well' });
    return full;
  }

  /** What the node's kubelet would say about it. */
  async report(node: string, ...conditions: NodeCondition[]): Promise<void> {
    const { client, signal } = this.#cluster;
    const amounts = { cpu: '4', memory: '8Gi', pods: '20' };
    const now = formatTime(Date.now());
    const timed = conditions.map((each) => ({ ...each, lastHeartbeatTime: now, lastTransitionTime: now }));
    const body = { status: { allocatable: amounts, capacity: amounts, conditions: timed } };
    await client.patch(nodes, '', node, { type: 'strategic', body }, signal, { subresource: 'status' });
  }

  async changeNode(node: string, body: JsonObject): Promise<void> {
    await this.#cluster.client.patch(nodes, '', node, { type: 'merge', body }, this.#cluster.signal);
  }

  /** Puts a taint on a node, beside those that others have put there. */
  async taint(node: string, taint: Taint): Promise<void> {
    await this.#retaint(node, (taints) => [...taints, taint]);
  }

  async untaint(node: string, key: string): Promise<void> {
    await this.#retaint(node, (taints) => taints.filter((each) => each.key !== key));
  }

  /** The node's taints as `key:effect`, in no particular order. */
  async taintsOf(node: string): Promise<string[]> {
    const { spec } = await this.#cluster.client.get(nodes, '', node, this.#cluster.signal);
    return (spec?.taints ?? []).map(({ key, effect }) => `${key}:${effect}`).toSorted();
  }

  /** Makes a pod that is on the node from the start, as far as anybody has said. */
  async podOn(node: string, name: string, spec: PodSpec = {}): Promise<Pod> {
    const containers = [{ name: 'main', image: 'none' } as object];
    const object: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: this.namespace },
      spec: { nodeName: node, containers, ...spec },
    };
    return this.#cluster.client.create(pods, object, this.#cluster.signal);
  }

  async changePod(name: string, body: JsonObject, subresource = ''): Promise<void> {
    const { client, signal } = this.#cluster;
    await client.patch(pods, this.namespace, name, { type: 'merge', body }, signal, { subresource });
  }

  pod(name: string): Promise<Pod> {
    return this.#cluster.client.get(pods, this.namespace, name, this.#cluster.signal);
  }

  /** Plays the kubelet whose pod has stopped. */
  async end(name: string): Promise<void> {
    const { client, signal } = this.#cluster;
    await client.delete(pods, this.namespace, name, signal, { gracePeriodSeconds: 0 });
  }

  /** Waits until people are told so about an object: `type reason: message`. */
  async told(name: string, pattern: RegExp, namespace = this.namespace): Promise<void> {
    const { client, signal } = this.#cluster;
    await eventually(async () => {
      const { items } = await client.list(events, { namespace }, signal);
      const lines = items
        .filter(({ involvedObject }) => involvedObject.name === name)
        .map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
      expect(lines.join('\n')).toMatch(pattern);
    });
  }

  /** Others write taints too: whoever comes late looks again. */
  async #retaint(node: string, change: (taints: readonly Taint[]) => readonly Taint[]): Promise<void> {
    const { client, signal } = this.#cluster;
    await eventually(async () => {
      const { metadata, spec } = await client.get(nodes, '', node, signal);
      const taints = change(spec?.taints ?? []).map((each) => ({ ...each }));
      const { resourceVersion = '' } = metadata;
      try {
        await this.changeNode(node, { metadata: { resourceVersion }, spec: { taints } });
      } catch (error) {
        if (error instanceof ApiError && error.code === 409) expect.fail('the node has changed meanwhile');
        throw error;
      }
    });
  }
}
