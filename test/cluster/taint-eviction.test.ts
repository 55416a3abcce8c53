import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Taint, Toleration } from '../../src/migration/fit/objects.ts';
import { ClusterUnderTest } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';
import { Room } from '../support/room.ts';

/** What taints of the effect NoExecute do to pods, as seen through the API; the taint eviction controller does the same. */

const KEY = 'test.example/gone';
const TAINT: Taint = { key: KEY, effect: 'NoExecute' };
const tolerating = (tolerationSeconds?: number): Toleration => ({
  key: KEY,
  operator: 'Exists',
  effect: 'NoExecute',
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});

let cluster: ClusterUnderTest;
const rooms: Room[] = [];

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
});

afterAll(async () => {
  for (const room of rooms) await room.clear();
  await cluster.stop();
});

/** A room with one node in it. */
async function makeRoom(): Promise<{ room: Room; node: string }> {
  const room = await Room.make(cluster);
  rooms.push(room);
  return { room, node: await room.node('n') };
}

async function untilLeaving(room: Room, name: string): Promise<void> {
  await eventually(async () => expect((await room.pod(name)).metadata.deletionTimestamp).toBeDefined());
}

async function isLeaving(room: Room, name: string): Promise<boolean> {
  return (await room.pod(name)).metadata.deletionTimestamp !== undefined;
}

describe('a pod on a node that is tainted', () => {
  it('is told why, and deleted with its grace period', async () => {
    const { room, node } = await makeRoom();
    await room.podOn(node, 'p', { terminationGracePeriodSeconds: 17 } as object);
    await room.taint(node, TAINT);
    await untilLeaving(room, 'p');
    const { metadata, status } = await room.pod('p');
    expect(metadata.deletionGracePeriodSeconds).toBe(17);
    expect(status?.conditions?.find(({ type }) => type === 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
    });
    await room.told('p', new RegExp(`^Normal TaintManagerEviction: Marking for deletion Pod ${room.namespace}/p$`));
  });

  it('is deleted also where it came later', async () => {
    const { room, node } = await makeRoom();
    await room.taint(node, TAINT);
    await room.podOn(node, 'p');
    await untilLeaving(room, 'p');
  });

  it('stays where it tolerates that, or the effect is another', async () => {
    const { room, node } = await makeRoom();
    await room.podOn(node, 'forever', { tolerations: [tolerating()] });
    await room.podOn(node, 'everything', { tolerations: [{ operator: 'Exists' }] });
    await room.podOn(node, 'indicator');
    await room.taint(node, { ...TAINT, key: 'test.example/no-more', effect: 'NoSchedule' });
    await room.taint(node, TAINT);
    await untilLeaving(room, 'indicator');
    expect([await isLeaving(room, 'forever'), await isLeaving(room, 'everything')]).toEqual([false, false]);
  });

  it('leaves when the shortest of its tolerations is over', async () => {
    const { room, node } = await makeRoom();
    const other = { ...tolerating(3600), key: 'test.example/other' };
    await room.podOn(node, 'p', { tolerations: [tolerating(1), other] });
    await room.podOn(node, 'q', { tolerations: [tolerating(3600), other] });
    await room.taint(node, TAINT);
    await room.taint(node, { ...TAINT, key: other.key });
    await untilLeaving(room, 'p');
    expect(await isLeaving(room, 'q')).toBe(false);
  });

  it('stays when the taint goes first', async () => {
    const { room, node } = await makeRoom();
    await room.podOn(node, 'p', { tolerations: [tolerating(3600)] });
    await room.podOn(node, 'indicator', { tolerations: [tolerating(1)] });
    await room.taint(node, TAINT);
    await untilLeaving(room, 'indicator');
    await room.untaint(node, KEY);
    await room.told('p', new RegExp(`^Normal TaintManagerEviction: Cancelling deletion of Pod ${room.namespace}/p$`));
    expect(await isLeaving(room, 'p')).toBe(false);
    expect((await room.pod('p')).status?.conditions ?? []).not.toContainEqual(
      expect.objectContaining({ type: 'DisruptionTarget' }),
    );
  });

  it('leaves at once when another taint comes that it does not tolerate', async () => {
    const { room, node } = await makeRoom();
    await room.podOn(node, 'p', { tolerations: [tolerating(3600)] });
    await room.taint(node, TAINT);
    await room.taint(node, { ...TAINT, key: 'test.example/other' });
    await untilLeaving(room, 'p');
  });
});

describe('every pod', () => {
  it('tolerates the loss of its node for five minutes', async () => {
    const { room, node } = await makeRoom();
    const { spec } = await room.podOn(node, 'p');
    expect(spec?.tolerations).toEqual(
      ['not-ready', 'unreachable'].map((what) => ({
        key: `node.kubernetes.io/${what}`,
        operator: 'Exists',
        effect: 'NoExecute',
        tolerationSeconds: 300,
      })),
    );
  });
});
