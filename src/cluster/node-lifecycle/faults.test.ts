import { expect, it } from 'vitest';
import { formatMicroTime, formatTime } from '../../api/meta.ts';
import { seededRandom } from '../../env/test.ts';
import { leaseResource } from '../../kube/leader-lease.ts';
import type { TransportRequest } from '../../kube/transport.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { FaultyWorld } from '../faulty-world.fixture.ts';
import { nodes } from '../resources.ts';
import { nodeLifecycleLoop } from './loop.ts';

/** Nodes that fall silent and come back, while everything goes wrong that can. */

const NODES = ['a', 'b', 'c', 'd'];
const STEP_MS = 5000;
const STEPS = 80;
const GRACE_MS = 50_000;
/** How long a decision may be on its way: a lease that is renewed meanwhile does not stop it. */
const ON_THE_WAY_MS = 10_000;

/** When each node last showed that it was alive. */
const heard = new Map<string, number[]>();

/** No node may be said to be silent that has spoken. */
function judge({ method, path }: TransportRequest, world: FaultyWorld): string | undefined {
  const [, name = ''] = /^\/api\/v1\/nodes\/([^/]+)\/status/.exec(path) ?? [];
  if (method !== 'PATCH' || name === '') return undefined;
  const nowMs = world.clock.now();
  const sign = heard.get(name)?.find((atMs) => atMs > nowMs - GRACE_MS && atMs < nowMs - ON_THE_WAY_MS);
  return sign === undefined ? undefined : `${name} was said to be silent, and had spoken ${nowMs - sign} ms before`;
}

async function speak(world: FaultyWorld, name: string, how: 'lease' | 'status'): Promise<void> {
  const { client, signal, clock } = world;
  const nowMs = clock.now();
  heard.set(name, [...(heard.get(name) ?? []).slice(-20), nowMs]);
  if (how === 'lease') {
    const body = { spec: { renewTime: formatMicroTime(nowMs) } };
    await client.patch(leaseResource, 'kube-node-lease', name, { type: 'merge', body }, signal);
    return;
  }
  const lastHeartbeatTime = formatTime(nowMs);
  const body = { status: { conditions: [{ type: 'Ready', status: 'True', reason: 'Kubelet', lastHeartbeatTime }] } };
  await client.patch<Node>(nodes, '', name, { type: 'strategic', body }, signal, { subresource: 'status' });
}

/** What is known of each node: its readiness, and which taints it has. */
async function known(world: FaultyWorld): Promise<Record<string, string>> {
  const { items } = await world.client.list(nodes, {}, world.signal);
  const text = ({ status, spec }: Node): string =>
    [
      status?.conditions?.find(({ type }) => type === 'Ready')?.status,
      ...(spec?.taints ?? []).map(({ key, effect }) => `${key.replace(/.*\//, '')}:${effect}`).toSorted(),
    ].join(' ');
  return Object.fromEntries(items.map((node) => [node.metadata.name ?? '', text(node)]));
}

it.each([301, 302, 303, 304])('nodes are what they show to be (seed %i)', async (seed) => {
  heard.clear();
  const world = new FaultyWorld({ seed, loop: nodeLifecycleLoop, judge });
  await world.start();
  const random = seededRandom(1000 + seed);
  for (const name of NODES) {
    await world.client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name } }, world.signal);
    const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease' };
    await world.client.create(
      leaseResource,
      { ...lease, metadata: { name, namespace: 'kube-node-lease' } },
      world.signal,
    );
    await speak(world, name, 'status');
  }
  const alive = new Set(NODES);
  const step = async (stepMs = STEP_MS): Promise<void> => {
    for (const name of alive) await speak(world, name, 'lease');
    await world.pass(stepMs, 1000);
  };
  for (let count = 0; count < STEPS; count++) {
    const name = NODES[Math.floor(random.number() * NODES.length)] ?? '';
    const draw = random.number();
    if (draw < 0.1) alive.delete(name);
    else if (draw < 0.2) {
      alive.add(name);
      await speak(world, name, 'status');
    }
    await step();
  }
  await world.calm();
  alive.delete('a');
  for (const name of ['b', 'c', 'd']) {
    alive.add(name);
    await speak(world, name, 'status');
  }
  for (let count = 0; count < 40; count++) await step();
  expect(world.wrongs).toEqual([]);
  const well = { b: 'True', c: 'True', d: 'True' };
  expect(await known(world)).toEqual({ a: 'Unknown unreachable:NoExecute unreachable:NoSchedule', ...well });
  expect(world.writes).toBeGreaterThan(5);
  await world.stop();
});
