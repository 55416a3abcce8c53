import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LoopsInTime } from '../../../test/support/loops-in-time.ts';
import { formatTime } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { makePod } from '../../migration/fit/cluster.fixture.ts';
import type { Node, Pod, Taint, Toleration } from '../../migration/fit/objects.ts';
import { nodes, pods } from '../resources.ts';
import { taintEvictionLoop } from './loop.ts';

const SECOND_MS = 1000;
const TAINT: Taint = { key: 'k', effect: 'NoExecute' };

let world: LoopsInTime;
beforeEach(async () => {
  world = await LoopsInTime.start(taintEvictionLoop);
  await world.client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n' } }, world.signal);
});
afterEach(() => world.stop());

const tolerating = (tolerationSeconds?: number): Toleration => ({
  key: 'k',
  operator: 'Exists',
  effect: 'NoExecute',
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});

async function pod(name: string, ...tolerations: Toleration[]): Promise<void> {
  const { kind, apiVersion } = makePod(name);
  const spec = { nodeName: 'n', tolerations, containers: [{ name: 'main', image: 'none' }] };
  await world.client.create(pods, { kind, apiVersion, metadata: { name, namespace: 'default' }, spec }, world.signal);
}

async function taint(...taints: Taint[]): Promise<void> {
  const patch = { type: 'merge', body: { spec: { taints: taints.map((each) => ({ ...each })) } } } as const;
  await world.client.patch<Node>(nodes, '', 'n', patch, world.signal);
  await world.settle();
}

async function read(name: string): Promise<Pod | undefined> {
  try {
    return await world.client.get(pods, 'default', name, world.signal);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

async function isLeaving(name: string): Promise<boolean> {
  return (await read(name))?.metadata.deletionTimestamp !== undefined;
}

const marking = (name: string) => `${name} TaintManagerEviction: Marking for deletion Pod default/${name}`;
const cancelling = (name: string) => `${name} TaintManagerEviction: Cancelling deletion of Pod default/${name}`;

describe('pods that do not tolerate a taint', () => {
  it('leave at once, and are told why first', async () => {
    await pod('p');
    await pod('q', tolerating());
    await taint(TAINT);
    const gone = await read('p');
    expect(gone?.metadata).toMatchObject({ deletionGracePeriodSeconds: 30 });
    expect(gone?.status?.conditions).toContainEqual({
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'DeletionByTaintManager',
      message: 'Taint manager: deleting due to NoExecute taint',
      lastTransitionTime: formatTime(world.env.clock.now()),
      observedGeneration: 1,
    });
    expect(await isLeaving('q')).toBe(false);
    expect(await world.events()).toEqual([marking('p')]);
  });

  it('leave when they come later', async () => {
    await taint(TAINT);
    await pod('p');
    await world.settle();
    expect(await isLeaving('p')).toBe(true);
  });

  it('are left alone once they are leaving, by whoever comes next too', async () => {
    await pod('p');
    await taint(TAINT);
    const { resourceVersion } = (await read('p'))?.metadata ?? {};
    await taint(TAINT, { ...TAINT, key: 'l' });
    await world.restart();
    expect((await read('p'))?.metadata.resourceVersion).toBe(resourceVersion);
    expect(await world.events()).toEqual([marking('p')]);
  });

  it('are told why they leave, where they leave already', async () => {
    await pod('p');
    await world.client.delete(pods, 'default', 'p', world.signal);
    const before = await read('p');
    await taint(TAINT);
    const after = await read('p');
    expect(after?.status?.conditions).toContainEqual(expect.objectContaining({ reason: 'DeletionByTaintManager' }));
    expect(after?.metadata.deletionTimestamp).toBe(before?.metadata.deletionTimestamp);
  });

  it('stay where the effect is another', async () => {
    await pod('p');
    await taint({ ...TAINT, effect: 'NoSchedule' }, { ...TAINT, effect: 'PreferNoSchedule' });
    expect(await isLeaving('p')).toBe(false);
  });
});

describe('pods that tolerate a taint for a while', () => {
  it('leave when that is over', async () => {
    await pod('p', tolerating(60));
    await taint(TAINT);
    await world.pass(59 * SECOND_MS);
    expect(await isLeaving('p')).toBe(false);
    await world.pass(SECOND_MS);
    expect(await isLeaving('p')).toBe(true);
    expect(await world.events()).toEqual([marking('p')]);
  });

  it('stay when the taint goes, and get all their time when it comes back', async () => {
    await pod('p', tolerating(60));
    await taint(TAINT);
    await world.pass(40 * SECOND_MS);
    await taint();
    expect(await world.events()).toEqual([cancelling('p')]);
    await world.pass(40 * SECOND_MS);
    await taint(TAINT);
    await world.pass(59 * SECOND_MS);
    expect(await isLeaving('p')).toBe(false);
    await world.pass(SECOND_MS);
    expect(await isLeaving('p')).toBe(true);
  });

  it('stay when they come to tolerate more', async () => {
    await pod('p', tolerating(60));
    await taint(TAINT);
    await world.pass(40 * SECOND_MS);
    const tolerations = (await read('p'))?.spec?.tolerations?.map((each) => ({ ...each })) ?? [];
    // Tolerations can only be added; the first one that covers a taint counts.
    const body = { spec: { tolerations: [{ operator: 'Exists' }, ...tolerations] } };
    await world.client.patch<Pod>(pods, 'default', 'p', { type: 'merge', body }, world.signal);
    await world.pass(60 * SECOND_MS);
    expect(await isLeaving('p')).toBe(false);
    expect(await world.events()).toEqual([cancelling('p')]);
  });

  it('leave at once when another taint comes that they do not tolerate', async () => {
    await pod('p', tolerating(60));
    await taint(TAINT);
    await taint(TAINT, { ...TAINT, key: 'l' });
    expect(await isLeaving('p')).toBe(true);
  });

  it('are no trouble when they go by themselves, or their node does', async () => {
    await pod('p', tolerating(60));
    await pod('q', tolerating(60));
    await taint(TAINT);
    await world.client.delete(pods, 'default', 'p', world.signal, { gracePeriodSeconds: 0 });
    await world.settle();
    expect(await world.events()).toEqual([cancelling('p')]);
    await world.client.delete(nodes, '', 'n', world.signal);
    await world.pass(100 * SECOND_MS);
    expect(await isLeaving('q')).toBe(false);
    expect(await world.events()).toEqual([cancelling('p')]);
  });

  it('are not mistaken for others of their name', async () => {
    await pod('p', tolerating(60));
    await taint(TAINT);
    await world.pass(40 * SECOND_MS);
    await world.client.delete(pods, 'default', 'p', world.signal, { gracePeriodSeconds: 0 });
    await pod('p', tolerating(60));
    await world.pass(40 * SECOND_MS);
    expect(await isLeaving('p')).toBe(false);
    await world.pass(20 * SECOND_MS);
    expect(await isLeaving('p')).toBe(true);
  });
});

describe('a restart', () => {
  const timed = (): Taint => ({ ...TAINT, timeAdded: formatTime(world.env.clock.now()) });

  it('delays nothing where the taint says since when it has been there', async () => {
    await pod('p', tolerating(300));
    await taint(timed());
    await world.pass(100 * SECOND_MS);
    await world.restart(100 * SECOND_MS);
    await world.pass(100 * SECOND_MS);
    expect(await isLeaving('p')).toBe(false);
    await world.pass(SECOND_MS);
    expect(await isLeaving('p')).toBe(true);
  });

  it('leaves nodes that come back as well the time to say so', async () => {
    await pod('p', tolerating(300));
    await taint(timed());
    await world.restart(3600 * SECOND_MS);
    await world.pass(49 * SECOND_MS);
    await taint();
    await world.pass(300 * SECOND_MS);
    expect(await isLeaving('p')).toBe(false);
  });
});
