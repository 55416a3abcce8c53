import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SELECTED_NODE, PROVISIONED_BY } from '../../api/storage.ts';
import type { JsonObject } from '../../api/meta.ts';
import { LoopScene } from '../loops.fixture.ts';
import { persistentVolumeClaims, persistentVolumes, storageClasses } from '../resources.ts';
import { volumeBinderLoop } from './loop.ts';
import { makeClaim, makeClass, makeVolume } from './volumes.fixture.ts';

let scene: LoopScene;

beforeEach(async () => {
  scene = new LoopScene(volumeBinderLoop);
  await scene.start();
  await scene.namespace('shop');
});
afterEach(() => scene.stop());

const claim = (name: string, more?: Parameters<typeof makeClaim>[1]) =>
  scene.create(persistentVolumeClaims, makeClaim(name, more));
const volume = (name: string, more?: Parameters<typeof makeVolume>[1]) =>
  scene.create(persistentVolumes, makeVolume(name, more));
const claimNow = (name: string) => scene.get(persistentVolumeClaims, 'shop', name);
const volumeNow = (name: string) => scene.get(persistentVolumes, '', name);
const phases = async (claimName: string, volumeName: string) => [
  (await claimNow(claimName)).status?.phase,
  (await volumeNow(volumeName)).status?.phase,
];
const removeClaim = (name: string) => scene.client.delete(persistentVolumeClaims, 'shop', name, scene.signal);
const patchClaim = (name: string, body: JsonObject) =>
  scene.client.patch(persistentVolumeClaims, 'shop', name, { type: 'merge', body }, scene.signal);

describe('a claim and a volume that was there', () => {
  it('belong together, and both say so', async () => {
    await volume('large', { capacity: { storage: '5Gi' } });
    await volume('right', { capacity: { storage: '2Gi' } });
    await volume('small', { capacity: { storage: '1Mi' } });
    await scene.until(async () => expect((await volumeNow('right')).status?.phase).toBe('Available'));
    const { metadata } = await claim('data');
    await scene.until(async () => expect(await phases('data', 'right')).toEqual(['Bound', 'Bound']));
    const bound = await claimNow('data');
    expect(bound.spec?.volumeName).toBe('right');
    expect(bound.status).toMatchObject({ accessModes: ['ReadWriteOnce'], capacity: { storage: '2Gi' } });
    expect(bound.metadata.annotations).toEqual({
      'pv.kubernetes.io/bind-completed': 'yes',
      'pv.kubernetes.io/bound-by-controller': 'yes',
    });
    const { spec } = await volumeNow('right');
    expect(spec?.claimRef).toMatchObject({ namespace: 'shop', name: 'data', uid: metadata.uid });
  });

  it('find each other when the volume comes later, and nobody else takes it', async () => {
    await claim('first');
    await scene.until(async () =>
      expect(await scene.events('shop')).toEqual([
        'first Normal FailedBinding: no persistent volumes available for this claim and no storage class is set',
      ]),
    );
    await volume('v');
    await scene.until(async () => expect(await phases('first', 'v')).toEqual(['Bound', 'Bound']));
    await claim('second');
    await scene.settle();
    expect((await claimNow('second')).status?.phase).toBe('Pending');
    await volume('w');
    await scene.until(async () => expect(await phases('second', 'w')).toEqual(['Bound', 'Bound']));
  });

  it.each([
    ['the class', { storageClassName: 'other' }],
    ['the mode', { volumeMode: 'Block' }],
    ['the access', { accessModes: ['ReadWriteMany'] }],
    ['the labels', { selector: { matchLabels: { tier: 'gold' } } }],
    ['the size', { resources: { requests: { storage: '3Gi' } } }],
  ])('stay apart over %s', async (_, spec) => {
    await volume('v');
    await claim('data', spec);
    await scene.settle();
    expect(await phases('data', 'v')).toEqual(['Pending', 'Available']);
  });

  it('are bound with few writes', async () => {
    await volume('v');
    await scene.settle();
    scene.writes.length = 0;
    await claim('data');
    await scene.until(async () => expect(await phases('data', 'v')).toEqual(['Bound', 'Bound']));
    await scene.settle();
    expect(scene.writes).toEqual([
      'PUT /api/v1/persistentvolumes/v',
      'PUT /api/v1/persistentvolumes/v/status',
      'PUT /api/v1/namespaces/shop/persistentvolumeclaims/data',
      'PUT /api/v1/namespaces/shop/persistentvolumeclaims/data/status',
    ]);
  });

  it('are bound though the binder dies after each of its writes', async () => {
    for (const [index, dies] of [/PUT .*\/v0\/status/, /PUT .*claims\/c1\?/, /PUT .*claims\/c2\/status/].entries()) {
      await volume(`v${index}`);
      await scene.until(async () => expect((await volumeNow(`v${index}`)).status?.phase).toBe('Available'));
      scene.lost = dies;
      await claim(`c${index}`);
      await scene.settle();
      await scene.stopLoops();
      scene.lost = undefined;
      await volume(`decoy${index}`);
      await scene.startLoops();
      await scene.until(async () => expect(await phases(`c${index}`, `v${index}`)).toEqual(['Bound', 'Bound']));
      await scene.client.delete(persistentVolumes, '', `decoy${index}`, scene.signal);
    }
  });
});

describe('a claim that names its volume', () => {
  it('gets it, or hears why not', async () => {
    await volume('small', { capacity: { storage: '1Mi' } });
    await volume('v');
    await claim('a', { volumeName: 'small' });
    await claim('b', { volumeName: 'v' });
    await scene.until(async () => expect(await phases('b', 'v')).toEqual(['Bound', 'Bound']));
    await claim('c', { volumeName: 'v' });
    await claim('d', { volumeName: 'none' });
    await scene.until(async () =>
      expect(await scene.events('shop')).toEqual([
        'a Warning VolumeMismatch: Cannot bind to requested volume "small": requested PV is too small',
        'c Warning FailedBinding: volume "v" already bound to a different claim.',
      ]),
    );
    expect((await claimNow('b')).metadata.annotations).toEqual({ 'pv.kubernetes.io/bind-completed': 'yes' });
    await removeClaim('c');
    await volume('none');
    await scene.until(async () => expect(await phases('d', 'none')).toEqual(['Bound', 'Bound']));
  });

  it('gets the volume that was set aside for it, of whatever class', async () => {
    await volume('v', { claimRef: { namespace: 'shop', name: 'data' }, storageClassName: 'fast' });
    await claim('other', { storageClassName: 'fast' });
    await scene.settle();
    expect(await phases('other', 'v')).toEqual(['Pending', 'Available']);
    await claim('data');
    await scene.until(async () => expect(await phases('data', 'v')).toEqual(['Bound', 'Bound']));
  });
});

describe('what is left of one without the other', () => {
  it('a claim is lost, and found again with its volume', async () => {
    const made = await volume('v');
    await claim('data');
    await scene.until(async () => expect(await phases('data', 'v')).toEqual(['Bound', 'Bound']));
    const { spec } = await volumeNow('v');
    await scene.client.delete(persistentVolumes, '', 'v', scene.signal);
    await scene.until(async () => expect((await claimNow('data')).status?.phase).toBe('Lost'));
    expect((await scene.events('shop')).at(-1)).toBe(
      'data Warning ClaimLost: Bound claim has lost its PersistentVolume. Data on the volume is lost!',
    );
    await scene.create(persistentVolumes, { ...made, metadata: { name: 'v' }, spec });
    await scene.until(async () => expect(await phases('data', 'v')).toEqual(['Bound', 'Bound']));
  });

  it('is not lost because the cache has not heard of the volume', async () => {
    await volume('v');
    await claim('data');
    await scene.until(async () => expect(await phases('data', 'v')).toEqual(['Bound', 'Bound']));
    const { spec } = await volumeNow('v');
    await scene.client.delete(persistentVolumes, '', 'v', scene.signal);
    await scene.until(async () => expect((await claimNow('data')).status?.phase).toBe('Lost'));
    scene.hold('persistentvolumes');
    await scene.create(persistentVolumes, { ...makeVolume('v'), spec });
    await patchClaim('data', { metadata: { labels: { a: 'b' } } });
    await scene.settle();
    await scene.release('persistentvolumes');
    await scene.until(async () => expect((await claimNow('data')).status?.phase).toBe('Bound'));
  });

  it.each([
    ['Retain', undefined, 'Released'],
    ['Delete', 'example.com/maker', 'Released'],
    ['Delete', undefined, 'Failed'],
    ['Recycle', undefined, 'Failed'],
  ])('a volume with %s, made by %s, is %s', async (persistentVolumeReclaimPolicy, maker, phase) => {
    const metadata = maker === undefined ? {} : { annotations: { [PROVISIONED_BY]: maker } };
    await volume('v', { persistentVolumeReclaimPolicy, metadata });
    await claim('data');
    await scene.until(async () => expect(await phases('data', 'v')).toEqual(['Bound', 'Bound']));
    await removeClaim('data');
    await scene.until(async () => expect((await volumeNow('v')).status?.phase).toBe(phase));
    await claim('data');
    await scene.settle();
    expect(await phases('data', 'v')).toEqual(['Pending', phase]);
  });

  it('a volume stays bound although the cache has lost its claim', async () => {
    await volume('v');
    scene.hold('persistentvolumeclaims');
    const { metadata } = await claim('data', { volumeName: 'v' });
    const claimRef = { namespace: 'shop', name: 'data', uid: metadata.uid ?? '' };
    const patch = { type: 'merge', body: { spec: { claimRef } } } as const;
    await scene.client.patch(persistentVolumes, '', 'v', patch, scene.signal);
    await scene.until(async () => expect((await volumeNow('v')).status?.phase).toBe('Bound'));
    await scene.release('persistentvolumeclaims');
    await scene.until(async () => expect(await phases('data', 'v')).toEqual(['Bound', 'Bound']));
  });

  it('a volume goes free when its claim has another', async () => {
    const { metadata } = await claim('data', { volumeName: 'v' });
    await volume('w', { claimRef: { namespace: 'shop', name: 'data', uid: metadata.uid ?? '' } });
    await scene.until(async () =>
      expect((await volumeNow('w')).spec?.claimRef).toEqual({ namespace: 'shop', name: 'data' }),
    );
    await volume('v');
    await scene.until(async () => expect(await phases('data', 'v')).toEqual(['Bound', 'Bound']));
    expect((await volumeNow('w')).status?.phase).toBe('Available');
  });
});

describe('claims of a class', () => {
  it('are given to whoever makes volumes of it', async () => {
    await claim('data', { storageClassName: 'fast' });
    await scene.until(async () =>
      expect(await scene.events('shop')).toEqual([
        'data Warning ProvisioningFailed: storageclass.storage.k8s.io "fast" not found',
      ]),
    );
    await scene.create(storageClasses, makeClass('fast'));
    await scene.until(async () => {
      const { metadata } = await claimNow('data');
      expect(metadata.annotations?.['volume.kubernetes.io/storage-provisioner']).toBe('example.com/maker');
    });
    const { metadata } = await claimNow('data');
    const claimRef = { namespace: 'shop', name: 'data', uid: metadata.uid ?? '' };
    await volume('made', { storageClassName: 'fast', claimRef });
    await scene.until(async () => expect(await phases('data', 'made')).toEqual(['Bound', 'Bound']));
  });

  it('wait for a pod where the class says so', async () => {
    await scene.create(storageClasses, makeClass('lazy', { volumeBindingMode: 'WaitForFirstConsumer' }));
    await volume('v', { storageClassName: 'lazy' });
    await claim('data', { storageClassName: 'lazy' });
    await scene.until(async () =>
      expect(await scene.events('shop')).toEqual([
        'data Normal WaitForFirstConsumer: waiting for first consumer to be created before binding',
      ]),
    );
    expect(await phases('data', 'v')).toEqual(['Pending', 'Available']);
    await patchClaim('data', { metadata: { annotations: { [SELECTED_NODE]: 'n' } } });
    await scene.until(async () => {
      const { metadata } = await claimNow('data');
      expect(metadata.annotations?.['volume.kubernetes.io/storage-provisioner']).toBe('example.com/maker');
    });
  });

  it('get the default class as soon as there is one', async () => {
    const { spec, ...rest } = makeClaim('data');
    const { storageClassName: _, ...open } = spec ?? {};
    await scene.create(persistentVolumeClaims, { ...rest, spec: open });
    await claim('none');
    await scene.settle();
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' };
    await scene.create(storageClasses, makeClass('fast', { metadata: { name: 'fast', annotations } }));
    await scene.until(async () => expect((await claimNow('data')).spec?.storageClassName).toBe('fast'));
    expect((await claimNow('none')).spec?.storageClassName).toBe('');
  });
});
