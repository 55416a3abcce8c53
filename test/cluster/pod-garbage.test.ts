import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ApiError } from '../../src/api/status.ts';
import type { Pod, PodSpec } from '../../src/migration/fit/objects.ts';
import { ClusterUnderTest } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';
import { pods, Room } from '../support/room.ts';

/** Which pods are collected as seen through the API. What takes minutes, as with nodes that are gone, is tested beside the loop. */

const HOLD = 'example.com/hold';
/** kube-controller-manager looks every 20 s. */
const PATIENCE_MS = 60_000;

let cluster: ClusterUnderTest;
const rooms: Room[] = [];

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
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

const remove = ({ namespace }: Room, name: string) => cluster.client.delete(pods, namespace, name, cluster.signal);

async function isGone(room: Room, name: string): Promise<boolean> {
  try {
    await room.pod(name);
    return false;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return true;
    throw error;
  }
}

describe('pods that are going', () => {
  it(
    'have failed where they never had a node, whoever holds them',
    async () => {
      const room = await makeRoom();
      const containers = [{ name: 'main', image: 'none' } as object];
      const gated: Pod = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'gated', namespace: room.namespace, finalizers: [HOLD] },
        spec: { containers, schedulingGates: [{ name: 'example.com/wait' }] } as PodSpec,
      };
      await cluster.client.create(pods, gated, cluster.signal);
      await remove(room, 'gated');
      await eventually(async () => expect((await room.pod('gated')).status?.phase).toBe('Failed'), PATIENCE_MS);
      const { metadata, status } = await room.pod('gated');
      expect(metadata.deletionTimestamp).toBeDefined();
      expect(status?.conditions?.some(({ type }) => type === 'DisruptionTarget') ?? false).toBe(false);
      await room.changePod('gated', { metadata: { finalizers: null } });
      await eventually(async () => expect(await isGone(room, 'gated')).toBe(true));
    },
    2 * PATIENCE_MS,
  );

  it(
    'are gone at once where their node is out of service',
    async () => {
      const room = await makeRoom();
      const node = await room.node('a');
      const slow = { terminationGracePeriodSeconds: 600 };
      await room.podOn(node, 'going', slow);
      await room.podOn(node, 'staying', { ...slow, tolerations: [{ operator: 'Exists' }] });
      await remove(room, 'going');
      expect((await room.pod('going')).metadata.deletionGracePeriodSeconds).toBe(600);
      await room.taint(node, { key: 'node.kubernetes.io/out-of-service', value: 'nodeshutdown', effect: 'NoExecute' });
      await room.report(node, { type: 'Ready', status: 'False', reason: 'Test', message: 'down' });
      await eventually(async () => expect(await isGone(room, 'going')).toBe(true), PATIENCE_MS);
      expect((await room.pod('staying')).metadata.deletionTimestamp).toBeUndefined();
    },
    2 * PATIENCE_MS,
  );
});
