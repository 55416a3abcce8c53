import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ClusterUnderTest } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';
import { nodes, Room } from '../support/room.ts';

/** How nodes and what is known of them are kept in step, as seen through the API; the node lifecycle controller does the same. */

let cluster: ClusterUnderTest;
const rooms: Room[] = [];

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
  // Where no node at all is ready, none is given up.
  await (await makeRoom()).node('well');
});

afterAll(async () => {
  for (const room of rooms) await room.clear();
  await cluster.stop();
});

async function makeRoom(): Promise<Room> {
  const room = await Room.make(cluster);
  rooms.push(room);
  return room;
}

/** A room with one node, in a zone of its own, that has no taint any more that new nodes may have. */
async function makeNode(labels: Record<string, string> = {}): Promise<{ room: Room; node: string }> {
  const room = await makeRoom();
  const node = await room.node('n', { labels: { 'topology.kubernetes.io/zone': room.namespace, ...labels } });
  await untilTainted(room, node);
  return { room, node };
}

async function untilTainted(room: Room, node: string, ...taints: string[]): Promise<void> {
  await eventually(async () => expect(await room.taintsOf(node)).toEqual(taints));
}

describe('a node', () => {
  it.each([
    ['MemoryPressure', 'memory-pressure'],
    ['DiskPressure', 'disk-pressure'],
    ['PIDPressure', 'pid-pressure'],
    ['NetworkUnavailable', 'network-unavailable'],
  ])('under %s takes no pods, for as long as that lasts', async (type, taint) => {
    const { room, node } = await makeNode();
    await room.report(node, { type, status: 'True' });
    await untilTainted(room, node, `node.kubernetes.io/${taint}:NoSchedule`);
    await room.report(node, { type, status: 'False' });
    await untilTainted(room, node);
  });

  it('that is cordoned takes no pods', async () => {
    const { room, node } = await makeNode();
    await room.changeNode(node, { spec: { unschedulable: true } });
    await untilTainted(room, node, 'node.kubernetes.io/unschedulable:NoSchedule');
    await room.changeNode(node, { spec: { unschedulable: false } });
    await untilTainted(room, node);
  });

  it('that is not ready takes no pods, and is left by those it has', async () => {
    const { room, node } = await makeNode();
    await room.taint(node, { key: 'test.example/mine', effect: 'NoSchedule' });
    await room.podOn(node, 'patient');
    await room.podOn(node, 'hasty', { tolerations: [hastily('not-ready'), hastily('unreachable')] });
    await room.report(node, { type: 'Ready', status: 'False', reason: 'Test', message: 'ill' });
    await untilTainted(
      room,
      node,
      'node.kubernetes.io/not-ready:NoExecute',
      'node.kubernetes.io/not-ready:NoSchedule',
      'test.example/mine:NoSchedule',
    );
    const { spec } = await cluster.client.get(nodes, '', node, cluster.signal);
    expect(spec?.taints?.find(({ effect }) => effect === 'NoExecute')?.timeAdded).toMatch(/^\d{4}-.*Z$/);
    await eventually(async () => expect((await room.pod('hasty')).metadata.deletionTimestamp).toBeDefined());
    await room.report(node, { type: 'Ready', status: 'True', reason: 'Test', message: 'well' });
    await untilTainted(room, node, 'test.example/mine:NoSchedule');
    expect((await room.pod('patient')).metadata.deletionTimestamp).toBeUndefined();
  });

  it('of which nothing is known is unreachable', async () => {
    const { room, node } = await makeNode();
    await room.report(node, { type: 'Ready', status: 'Unknown', reason: 'Test', message: 'lost' });
    await untilTainted(
      room,
      node,
      'node.kubernetes.io/unreachable:NoExecute',
      'node.kubernetes.io/unreachable:NoSchedule',
    );
    await room.report(node, { type: 'Ready', status: 'False', reason: 'Test', message: 'ill' });
    await untilTainted(room, node, 'node.kubernetes.io/not-ready:NoExecute', 'node.kubernetes.io/not-ready:NoSchedule');
  });

  it('has the older names of labels too', async () => {
    const { node } = await makeNode({ 'kubernetes.io/os': 'linux', 'kubernetes.io/arch': 'amd64' });
    await eventually(async () => {
      const { metadata } = await cluster.client.get(nodes, '', node, cluster.signal);
      expect(metadata.labels).toMatchObject({ 'beta.kubernetes.io/os': 'linux', 'beta.kubernetes.io/arch': 'amd64' });
    });
  });

  it('is announced', async () => {
    const { room, node } = await makeNode();
    await room.told(
      node,
      new RegExp(`^Normal RegisteredNode: Node ${node} event: Registered Node ${node} in Controller$`, 'm'),
      'default',
    );
  });
});

function hastily(taint: string): object {
  return { key: `node.kubernetes.io/${taint}`, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 0 };
}
