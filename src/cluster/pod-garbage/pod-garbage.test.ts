import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ApiError } from '../../api/status.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { byNode } from '../indexes.ts';
import type { ClusterLoop } from '../loop.ts';
import { LoopScene } from '../loops.fixture.ts';
import { nodes, pods } from '../resources.ts';
import { podGarbageLoop } from './loop.ts';
import { byTermination, PodGarbage } from './pod-garbage.ts';

/** As it is, but that five terminated pods are too many. */
const loop: ClusterLoop = {
  ...podGarbageLoop,
  make: ({ env, client, informers, metrics }) =>
    new PodGarbage({
      env,
      client,
      metrics,
      pods: informers.of(pods, { ...byNode, ...byTermination }),
      nodes: informers.of(nodes),
      terminatedMax: 4,
    }),
};

const scene = new LoopScene(loop);
let namespace = '';
let rooms = 0;
beforeAll(() => scene.start());
afterAll(() => scene.stop());
beforeEach(async () => {
  namespace = `room-${++rooms}`;
  await scene.namespace(namespace);
});

async function pod(name: string, nodeName: string, finalizers: string[] = []): Promise<void> {
  const containers = [{ name: 'c', image: 'i' }];
  const spec = { containers, terminationGracePeriodSeconds: 30, ...(nodeName === '' ? {} : { nodeName }) };
  await scene.create(pods, { metadata: { name, namespace, finalizers }, spec: spec as Pod['spec'] });
}

async function node(name: string, isReady: boolean, ...taints: string[]): Promise<void> {
  const spec = { taints: taints.map((key) => ({ key, effect: 'NoExecute' })) };
  await scene.create(nodes, { metadata: { name }, spec });
  await scene.patchStatus(nodes, '', name, { conditions: [{ type: 'Ready', status: isReady ? 'True' : 'Unknown' }] });
}

/** The pod, or undefined where it is gone. */
async function find(name: string): Promise<Pod | undefined> {
  try {
    return await scene.get(pods, namespace, name);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

const gone = (name: string) => scene.until(async () => expect(await find(name)).toBeUndefined());
const remove = (name: string, gracePeriodSeconds?: number) =>
  scene.client.delete(
    pods,
    namespace,
    name,
    scene.signal,
    gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds },
  );

describe('pods of nodes that are gone', () => {
  it('go after a quarantine, and are told why', async () => {
    await node('here', true);
    await pod('kept', 'here');
    await pod('orphan', 'nowhere', ['example.com/hold']);
    await pod('finished', 'nowhere');
    await scene.patchStatus(pods, namespace, 'finished', { phase: 'Succeeded' });
    await scene.pass(38_000, 2000);
    expect((await find('orphan'))?.metadata.deletionTimestamp).toBeUndefined();
    await scene.pass(6000);
    await gone('finished');
    const orphan = await find('orphan');
    expect(orphan?.metadata).toMatchObject({ deletionGracePeriodSeconds: 0 });
    expect(orphan?.status).toMatchObject({
      phase: 'Failed',
      conditions: [
        {
          type: 'DisruptionTarget',
          status: 'True',
          reason: 'DeletionByPodGC',
          message: 'PodGC: node no longer exists',
        },
      ],
    });
    expect((await find('kept'))?.metadata.deletionTimestamp).toBeUndefined();
    scene.writes.length = 0;
    await scene.pass(120_000, 10_000);
    expect(scene.writes).toEqual([]);
  });

  it('stay when the node comes back in time', async () => {
    await pod('lucky', 'late');
    await scene.pass(30_000, 5000);
    await node('late', true);
    await scene.pass(20_000, 5000);
    expect((await find('lucky'))?.metadata.deletionTimestamp).toBeUndefined();
    await scene.client.delete(nodes, '', 'late', scene.signal);
    await scene.pass(30_000, 5000);
    expect((await find('lucky'))?.metadata.deletionTimestamp).toBeUndefined();
    await scene.pass(15_000, 5000);
    await gone('lucky');
  });

  it('stay where only the cache has not heard of the node', async () => {
    scene.hold('nodes');
    await node('quiet', true);
    await pod('misjudged', 'quiet');
    await scene.pass(120_000, 10_000);
    expect((await find('misjudged'))?.metadata.deletionTimestamp).toBeUndefined();
    await scene.release('nodes');
  });

  it('are found after a restart', async () => {
    await pod('orphan', 'void');
    await scene.stopLoops();
    await scene.startLoops();
    await scene.pass(45_000, 5000);
    await gone('orphan');
  });
});

describe('pods that are going', () => {
  it('are gone at once where no node has them', async () => {
    await pod('a', '', ['example.com/hold']);
    await remove('a');
    const held = await scene.until(async () => {
      const found = await find('a');
      expect(found?.status?.phase).toBe('Failed');
      return found;
    });
    expect(held?.status?.conditions ?? []).toEqual([]);
  });

  it('are gone at once where their node is out of service', async () => {
    await node('dead', false, 'node.kubernetes.io/out-of-service');
    await node('slow', false);
    await pod('a', 'dead');
    await pod('b', 'dead');
    await pod('c', 'slow');
    await remove('a');
    await remove('c');
    await gone('a');
    expect((await find('b'))?.metadata.deletionTimestamp).toBeUndefined();
    expect((await find('c'))?.metadata.deletionTimestamp).toBeDefined();
    const body = { spec: { taints: [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoSchedule' }] } };
    await scene.client.patch(nodes, '', 'slow', { type: 'merge', body }, scene.signal);
    await gone('c');
  });

  it('stay where the node is back, and the cache does not know', async () => {
    await node('back', false, 'node.kubernetes.io/out-of-service');
    await pod('a', 'back');
    await scene.settle();
    scene.hold('nodes');
    await scene.patchStatus(nodes, '', 'back', { conditions: [{ type: 'Ready', status: 'True' }] });
    await remove('a');
    await scene.settle();
    expect(await find('a')).toBeDefined();
    await scene.release('nodes');
    expect(await find('a')).toBeDefined();
  });
});

describe('pods that have ended', () => {
  it('go when there are too many, the oldest first', async () => {
    await node('busy', true);
    for (let number = 1; number <= 7; number++) {
      await pod(`p${number}`, 'busy');
      await scene.patchStatus(pods, namespace, `p${number}`, { phase: number % 2 ? 'Failed' : 'Succeeded' });
      scene.clock.advance(1000);
    }
    await scene.pass(25_000, 5000);
    const { items } = await scene.client.list(pods, { namespace }, scene.signal);
    expect(items.map(({ metadata }) => metadata.name)).toEqual(['p4', 'p5', 'p6', 'p7']);
  });
});
