import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SELECTED_NODE } from '../../api/storage.ts';
import type { JsonObject } from '../../api/meta.ts';
import type { PersistentVolume, Pod } from '../../migration/fit/objects.ts';
import { LoopScene } from '../loops.fixture.ts';
import { nodes, persistentVolumeClaims, persistentVolumes, pods, storageClasses } from '../resources.ts';
import { volumeBinderLoop } from '../volumes/loop.ts';
import { makeClaim, makeClass, makeVolume } from '../volumes/volumes.fixture.ts';
import { schedulerLoop } from './loop.ts';

/** Pods whose claims wait for them; the test plays whoever makes volumes. */

const MINUTE_MS = 60_000;
let scene: LoopScene;

beforeEach(async () => {
  scene = new LoopScene(schedulerLoop, volumeBinderLoop);
  await scene.start();
  await scene.namespace('shop');
  const volumeBindingMode = 'WaitForFirstConsumer';
  await scene.create(storageClasses, makeClass('made', { volumeBindingMode }));
  await scene.create(
    storageClasses,
    makeClass('found', { volumeBindingMode, provisioner: 'kubernetes.io/no-provisioner' }),
  );
});
afterEach(() => scene.stop());

async function node(name: string, cpu = '1'): Promise<void> {
  await scene.create(nodes, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name } },
  });
  await scene.patchStatus(nodes, '', name, {
    allocatable: { cpu, memory: '8Gi', pods: '500' },
    conditions: [{ type: 'Ready', status: 'True' }],
  });
  await scene.client.patch(nodes, '', name, { type: 'merge', body: { spec: { taints: null } } }, scene.signal);
}

async function pod(name: string, claimName?: string, cpu = '600m'): Promise<void> {
  const volumes = claimName === undefined ? [] : [{ name: 'v', persistentVolumeClaim: { claimName } }];
  const containers = [{ name: 'main', image: 'none', resources: { requests: { cpu } } }];
  const metadata = { name, namespace: 'shop' };
  await scene.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers, volumes } as Pod['spec'] });
}

const claim = (name: string, storageClassName: string) =>
  scene.create(persistentVolumeClaims, makeClaim(name, { storageClassName }));
const nodeOf = async (name: string) => (await scene.get(pods, 'shop', name)).spec?.nodeName;
const selected = async (name: string) =>
  (await scene.get(persistentVolumeClaims, 'shop', name)).metadata.annotations?.[SELECTED_NODE];
const patchClaim = (name: string, body: JsonObject) =>
  scene.client.patch(persistentVolumeClaims, 'shop', name, { type: 'merge', body }, scene.signal);

const onlyOn = (name: string): PersistentVolume['spec'] => ({
  nodeAffinity: {
    required: {
      nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [name] }] }],
    },
  },
});

/** Makes the volume that a claim asks for, where it was asked for. */
async function provision(name: string, on?: string): Promise<void> {
  const { metadata } = await scene.get(persistentVolumeClaims, 'shop', name);
  const where = on ?? metadata.annotations?.[SELECTED_NODE] ?? '';
  const claimRef = { namespace: 'shop', name, uid: metadata.uid ?? '' };
  await scene.create(
    persistentVolumes,
    makeVolume(`for-${name}`, { storageClassName: 'made', claimRef, ...onlyOn(where) }),
  );
}

describe('volumes that are made for a pod', () => {
  it('come first, and the pod keeps its room meanwhile', async () => {
    await node('a');
    await claim('data', 'made');
    await pod('p', 'data');
    await scene.until(async () => expect(await selected('data')).toBe('a'));
    await pod('late');
    await scene.pass(MINUTE_MS);
    expect([await nodeOf('p'), await nodeOf('late')]).toEqual([undefined, undefined]);
    await provision('data');
    await scene.until(async () => expect(await nodeOf('p')).toBe('a'));
    expect(await nodeOf('late')).toBeUndefined();
  });

  it('come for all pods of a claim to the same node', async () => {
    await node('a', '4');
    await node('b', '4');
    await claim('data', 'made');
    await Promise.all([pod('p', 'data'), pod('q', 'data'), pod('r', 'data')]);
    const chosen = await scene.until(async () => {
      const name = await selected('data');
      expect(name).toBeDefined();
      return name;
    });
    await provision('data');
    for (const name of ['p', 'q', 'r']) await scene.until(async () => expect(await nodeOf(name)).toBe(chosen));
  });

  it('are looked for elsewhere where they cannot be made', async () => {
    await node('a');
    await claim('data', 'made');
    await pod('p', 'data');
    await scene.until(async () => expect(await selected('data')).toBe('a'));
    await node('b');
    await scene.client.patch(nodes, '', 'a', { type: 'merge', body: { spec: { unschedulable: true } } }, scene.signal);
    await patchClaim('data', { metadata: { annotations: { [SELECTED_NODE]: null } } });
    await scene.pass(15_000);
    expect(await selected('data')).toBe('b');
    expect((await scene.events('shop')).join('\n')).toContain(
      'p Warning FailedScheduling: binding volumes: no volume can be made for claim shop/data on node a',
    );
    await provision('data');
    await scene.until(async () => expect(await nodeOf('p')).toBe('b'));
  });

  it('take no pod to a node from where they cannot be reached', async () => {
    await node('a');
    await node('b');
    await claim('data', 'made');
    await pod('p', 'data');
    await scene.until(async () => expect(await selected('data')).toBeDefined());
    const wrong = (await selected('data')) === 'a' ? 'b' : 'a';
    await provision('data', wrong);
    await scene.pass(15_000);
    expect(await nodeOf('p')).toBe(wrong);
  });

  it('are not waited for without end, nor for a pod that is gone', async () => {
    await node('a');
    await claim('data', 'made');
    await pod('p', 'data');
    await scene.until(async () => expect(await selected('data')).toBe('a'));
    await pod('late');
    await scene.client.delete(pods, 'shop', 'p', scene.signal, { gracePeriodSeconds: 0 });
    await scene.until(async () => expect(await nodeOf('late')).toBe('a'));
    await scene.client.delete(pods, 'shop', 'late', scene.signal, { gracePeriodSeconds: 0 });
    await pod('q', 'data');
    await scene.pass(11 * MINUTE_MS, 10_000);
    const { status } = await scene.get(pods, 'shop', 'q');
    expect(status?.conditions?.[0]).toMatchObject({ type: 'PodScheduled', status: 'False', reason: 'SchedulerError' });
  });

  it('hold up nobody else', async () => {
    await node('a', '100');
    for (let number = 0; number < 70; number++) {
      await claim(`c${number}`, 'made');
      await pod(`p${number}`, `c${number}`, '1m');
    }
    await scene.until(async () => expect(await selected('c69')).toBe('a'));
    await pod('plain', undefined, '1m');
    await scene.until(async () => expect(await nodeOf('plain')).toBe('a'));
  });

  it('are waited for again after a restart', async () => {
    await node('a');
    await node('b');
    await claim('data', 'made');
    await pod('p', 'data');
    const chosen = await scene.until(async () => {
      const name = await selected('data');
      expect(name).toBeDefined();
      return name;
    });
    await scene.stopLoops();
    await scene.startLoops();
    await scene.pass(5000);
    expect(await selected('data')).toBe(chosen);
    await provision('data');
    await scene.until(async () => expect(await nodeOf('p')).toBe(chosen));
  });
});

describe('volumes that are there', () => {
  it('are given away once, and decide where the pod goes', async () => {
    await node('a');
    await node('b');
    await scene.create(persistentVolumes, makeVolume('v', { storageClassName: 'found', ...onlyOn('b') }));
    await claim('one', 'found');
    await claim('two', 'found');
    await scene.settle();
    scene.hold('persistentvolumes');
    await pod('p', 'one');
    await pod('q', 'two');
    await scene.settle();
    await scene.release('persistentvolumes');
    await scene.until(async () => expect(await nodeOf('p')).toBe('b'));
    expect(await nodeOf('q')).toBeUndefined();
    await scene.create(persistentVolumes, makeVolume('w', { storageClassName: 'found', ...onlyOn('a') }));
    await scene.pass(15_000);
    expect(await nodeOf('q')).toBe('a');
    const claimed = await scene.get(persistentVolumeClaims, 'shop', 'two');
    expect(claimed.spec?.volumeName).toBe('w');
  });

  it('are taken though the answer is lost', async () => {
    await node('a');
    await scene.create(persistentVolumes, makeVolume('v', { storageClassName: 'found', ...onlyOn('a') }));
    await claim('one', 'found');
    await scene.settle();
    scene.lost = /PATCH .*persistentvolumes/;
    await pod('p', 'one');
    await scene.settle();
    scene.lost = undefined;
    await scene.pass(15_000);
    expect(await nodeOf('p')).toBe('a');
  });
});
