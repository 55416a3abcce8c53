import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { LoopScene } from '../loops.fixture.ts';
import { persistentVolumeClaims, persistentVolumes, pods } from '../resources.ts';
import { usesClaim } from './claim-use.ts';
import { claimProtectionLoop, volumeProtectionLoop } from './loop.ts';
import { makeClaim, makeVolume } from './volumes.fixture.ts';

let scene: LoopScene;

beforeEach(async () => {
  scene = new LoopScene(claimProtectionLoop, volumeProtectionLoop);
  await scene.start();
  await scene.namespace('shop');
});
afterEach(() => scene.stop());

function podWith(nodeName: string, claimName = 'data'): Pod {
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName } }];
  const containers = [{ name: 'main', image: 'none' } as object];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'user', namespace: 'shop' },
    spec: { containers, volumes, ...(nodeName === '' ? {} : { nodeName }) },
  };
}

async function find<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T | undefined> {
  const { items } = await scene.client.list(resource, {}, scene.signal);
  return items.find(({ metadata }) => metadata.name === name);
}

async function makeProtected(): Promise<void> {
  await scene.create(persistentVolumeClaims, makeClaim('data'));
  await scene.until(async () => {
    const claim = await find(persistentVolumeClaims, 'data');
    expect(claim?.metadata.finalizers).toEqual(['kubernetes.io/pvc-protection']);
  });
}
const removeClaim = () => scene.client.delete(persistentVolumeClaims, 'shop', 'data', scene.signal);
const removePod = () => scene.client.delete(pods, 'shop', 'user', scene.signal, { gracePeriodSeconds: 0 });
const isClaimThere = async () => (await find(persistentVolumeClaims, 'data')) !== undefined;

describe('a claim', () => {
  it('goes at once where nobody uses it', async () => {
    await makeProtected();
    await scene.create(pods, podWith(''));
    await scene.create(pods, { ...podWith('a', 'other'), metadata: { name: 'stranger', namespace: 'shop' } });
    await removeClaim();
    await scene.until(async () => expect(await isClaimThere()).toBe(false));
  });

  it('stays until its pod is gone, though the pod has ended', async () => {
    await makeProtected();
    await scene.create(pods, podWith('a'));
    await removeClaim();
    await scene.patchStatus(pods, 'shop', 'user', { phase: 'Succeeded' });
    await scene.settle();
    expect(await isClaimThere()).toBe(true);
    await removePod();
    await scene.until(async () => expect(await isClaimThere()).toBe(false));
  });

  it('stays for a pod that the cache has not heard of', async () => {
    await makeProtected();
    scene.hold('pods');
    await scene.create(pods, podWith('a'));
    await removeClaim();
    await scene.settle();
    expect(await isClaimThere()).toBe(true);
    await scene.release('pods');
    expect(await isClaimThere()).toBe(true);
    await removePod();
    await scene.until(async () => expect(await isClaimThere()).toBe(false));
  });

  it('that was made for a pod is not kept by what is left of that pod', () => {
    const own = { apiVersion: 'v1', kind: 'Pod', name: 'user', uid: 'u', controller: true };
    const claim = makeClaim('user-v', { metadata: { ownerReferences: [own] } });
    const pod: Pod = {
      ...podWith('a'),
      metadata: { name: 'user', namespace: 'shop', uid: 'u' },
      spec: { nodeName: 'a', volumes: [{ name: 'v', ephemeral: {} }] },
    };
    const ended = { ...pod.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 };
    expect(usesClaim(pod, claim)).toBe(true);
    expect(usesClaim({ ...pod, metadata: ended }, claim)).toBe(false);
    expect(usesClaim({ ...pod, metadata: { ...pod.metadata, uid: 'other' } }, claim)).toBe(false);
  });
});

describe('a volume', () => {
  it('stays as long as it is bound', async () => {
    await scene.create(persistentVolumes, makeVolume('v'));
    await scene.until(async () => {
      const volume = await find(persistentVolumes, 'v');
      expect(volume?.metadata.finalizers).toEqual(['kubernetes.io/pv-protection']);
    });
    scene.hold('persistentvolumes');
    await scene.patchStatus(persistentVolumes, '', 'v', { phase: 'Bound' });
    await scene.client.delete(persistentVolumes, '', 'v', scene.signal);
    await scene.release('persistentvolumes');
    await scene.settle();
    expect(await find(persistentVolumes, 'v')).toBeDefined();
    await scene.patchStatus(persistentVolumes, '', 'v', { phase: 'Released' });
    await scene.until(async () => expect(await find(persistentVolumes, 'v')).toBeUndefined());
  });
});
