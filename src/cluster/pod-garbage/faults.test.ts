import { expect, it } from 'vitest';
import { seededRandom } from '../../env/test.ts';
import { ApiError } from '../../api/status.ts';
import type { TransportRequest } from '../../kube/transport.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { FaultyWorld } from '../faulty-world.fixture.ts';
import { namespaces, nodes, pods } from '../resources.ts';
import { isOutOfService } from './decide.ts';
import { podGarbageLoop } from './loop.ts';

/** Nodes that come, go and fail under their pods, while everything goes wrong that can for whoever collects those. */

const ROUNDS = 60;
const NODES = ['a', 'b', 'c'];
/** A node that came this lately may have been missed: it was asked for, and the deletion was on its way. */
const LATELY_MS = 10_000;

class Scene {
  readonly world: FaultyWorld;
  readonly #random: () => number;
  /** Since when each node is there, or in service. */
  readonly #wellSinceMs = new Map<string, number>();
  #made = 0;

  constructor(seed: number) {
    const random = seededRandom(1000 + seed);
    this.#random = () => random.number();
    this.world = new FaultyWorld({ seed, loop: podGarbageLoop, judge: (request) => this.#judge(request) });
  }

  /** No pod may be ended whose node is there and may still run it. */
  #judge({ path, method }: TransportRequest): string | undefined {
    const name = /\/namespaces\/room\/pods\/([^/?]+)/.exec(path)?.[1];
    const pod = this.world.stored('pods', `room/${name}`) as Pod | undefined;
    const nodeName = pod?.spec?.nodeName ?? '';
    if (!pod) return undefined;
    if (nodeName === '')
      return pod.metadata.deletionTimestamp === undefined ? `${method} of a pod that waits` : undefined;
    const node = this.world.stored('nodes', nodeName) as Node | undefined;
    const wellMs = this.world.clock.now() - (this.#wellSinceMs.get(nodeName) ?? Number.NEGATIVE_INFINITY);
    if (!node || wellMs < LATELY_MS) return undefined;
    if (isOutOfService(node) && pod.metadata.deletionTimestamp !== undefined) return undefined;
    return `${method} of ${name} on ${nodeName}, which is there`;
  }

  async start(): Promise<void> {
    await this.world.start();
    const { client, signal } = this.world;
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'room' } }, signal);
  }

  async act(): Promise<void> {
    const draw = this.#random();
    const node = NODES[Math.floor(this.#random() * NODES.length)] ?? '';
    try {
      if (draw < 0.4) await this.#addPod(draw < 0.05 ? '' : node);
      else if (draw < 0.55) await this.#removePod();
      else if (draw < 0.75) await this.#addNode(node);
      else if (draw < 0.85) await this.world.client.delete(nodes, '', node, this.world.signal);
      else await this.#service(node, draw < 0.93);
    } catch (error) {
      expect(error instanceof ApiError && [404, 409].includes(error.code)).toBe(true);
    }
  }

  async #addPod(nodeName: string): Promise<void> {
    const spec = { containers: [{ name: 'c', image: 'i' }], terminationGracePeriodSeconds: 600 };
    const bound = nodeName === '' ? spec : { ...spec, nodeName };
    const metadata = { name: `p${this.#made++}`, namespace: 'room', finalizers: nodeName === '' ? ['x.io/hold'] : [] };
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata, spec: bound as Pod['spec'] };
    await this.world.client.create(pods, pod, this.world.signal);
  }

  async #removePod(): Promise<void> {
    const keys = this.world.keys('pods', 'room/');
    const name = keys[Math.floor(this.#random() * keys.length)]?.slice('room/'.length);
    if (name !== undefined) await this.world.client.delete(pods, 'room', name, this.world.signal);
  }

  async #addNode(name: string): Promise<void> {
    this.#wellSinceMs.set(name, this.world.clock.now());
    const node = { apiVersion: 'v1', kind: 'Node', metadata: { name } };
    await this.world.client.create(nodes, node, this.world.signal);
  }

  /** Puts a node out of service, or back into it. */
  async #service(name: string, isOut: boolean): Promise<void> {
    const { client, signal, clock } = this.world;
    if (!isOut) this.#wellSinceMs.set(name, clock.now());
    const taints = isOut ? [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }] : null;
    await client.patch(nodes, '', name, { type: 'merge', body: { spec: { taints } } }, signal);
  }

  /** What is there that should have been collected. */
  garbage(): string[] {
    return this.world.keys('pods', 'room/').filter((key) => {
      const pod = this.world.stored('pods', key) as Pod;
      const node = this.world.stored('nodes', pod.spec?.nodeName ?? '') as Node | undefined;
      const isGoing = pod.metadata.deletionTimestamp !== undefined;
      if ((pod.spec?.nodeName ?? '') === '') return isGoing && pod.status?.phase !== 'Failed';
      return !node || (isGoing && isOutOfService(node));
    });
  }
}

it.each([1, 2, 3, 36])('collects what is garbage, and nothing else (seed %i)', async (seed) => {
  const scene = new Scene(seed);
  const random = seededRandom(2000 + seed);
  await scene.start();
  const { world } = scene;
  for (let round = 0; round < ROUNDS; round++) {
    await scene.act();
    await world.pass(random.number() < 0.5 ? 1000 : 15_000, 1000);
  }
  await world.calm();
  for (let minutes = 0; minutes < 10 && scene.garbage().length > 0; minutes++) await world.pass(60_000, 5000);
  expect(scene.garbage()).toEqual([]);
  expect(world.wrongs).toEqual([]);
  expect(world.writes).toBeGreaterThan(0);
  await world.stop();
});
