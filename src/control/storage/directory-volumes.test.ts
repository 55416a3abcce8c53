import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { removedVolumesText } from '../../api/removed-volumes.ts';
import { ControlScene, NAMESPACE } from '../control.fixture.ts';
import { nodes, persistentVolumeClaims, persistentVolumes, storageClasses as classResource } from '../resources.ts';
import { storageClasses } from './classes.ts';
import { DirectoryVolumes } from './directory-volumes.ts';

let scene: ControlScene;

beforeEach(async () => {
  scene = new ControlScene((context) => new DirectoryVolumes(context));
  await scene.start();
  for (const each of storageClasses('/srv/shared')) await scene.create(classResource, each);
});
afterEach(() => scene.stop());

const ASKED = { 'volume.kubernetes.io/storage-provisioner': 'godwit.dev/directories' };

/** A claim as the binder leaves it for us. */
async function claim(storageClassName: string, more: { node?: string; volumeMode?: string } = {}): Promise<string> {
  const selected: Record<string, string> =
    more.node === undefined ? {} : { 'volume.kubernetes.io/selected-node': more.node };
  const { metadata } = await scene.create(persistentVolumeClaims, {
    metadata: { name: 'data', annotations: { ...ASKED, ...selected } },
    spec: {
      storageClassName,
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      volumeMode: more.volumeMode ?? 'Filesystem',
    },
  });
  return `pvc-${metadata.uid}`;
}

async function node(name: string): Promise<void> {
  const annotations = { 'godwit.dev/local-storage-path': '/var/volumes' };
  await scene.create(nodes, { metadata: { name, annotations, labels: { 'kubernetes.io/hostname': name } } });
}

const say = async (name: string, removed: string): Promise<void> => {
  const body = { metadata: { annotations: { 'godwit.dev/removed-volumes': removedVolumesText([removed]) } } };
  await scene.client.patch(nodes, '', name, { type: 'merge', body }, scene.signal);
};
const setPhase = (name: string, phase: string) => {
  const patch = { type: 'merge', body: { status: { phase } } } as const;
  return scene.client.patch(persistentVolumes, '', name, patch, scene.signal, { subresource: 'status' });
};
/** Those that nobody has deleted; nobody is here to let go of the others. */
const volumeNames = async () =>
  (await scene.client.list(persistentVolumes, {}, scene.signal)).items
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name);

describe('making volumes', () => {
  it('makes one per claim, though the answer is lost', async () => {
    scene.loseAnswerOf = /POST .*persistentvolumes/;
    const name = await claim('shared');
    await scene.until(async () => expect(await volumeNames()).toEqual([name]));
    await scene.stopControllers();
    await scene.startControllers();
    expect(await volumeNames()).toEqual([name]);
  });

  it('says so', async () => {
    const name = await claim('shared');
    await scene.until(async () =>
      expect(await scene.events()).toEqual([
        `data Normal ProvisioningSucceeded: Successfully provisioned volume ${name}`,
      ]),
    );
  });

  it('says why there is none', async () => {
    await claim('shared', { volumeMode: 'Block' });
    await scene.until(async () =>
      expect(await scene.events()).toEqual([
        'data Warning ProvisioningFailed: failed to provision volume with StorageClass "shared": volumeMode Block ' +
          'cannot be had: volumes of this class are directories',
      ]),
    );
    await scene.patch(persistentVolumeClaims, 'data', { metadata: { labels: { a: 'b' } } });
    await scene.settle();
    expect(await scene.events()).toHaveLength(1);
    expect(await volumeNames()).toEqual([]);
  });

  it('gives back the choice of a node that cannot', async () => {
    await claim('local', { node: 'gone' });
    await scene.until(async () => {
      const { metadata } = await scene.get(persistentVolumeClaims, 'data');
      expect(metadata.annotations).toEqual(ASKED);
    });
    expect(await scene.events()).toEqual([
      'data Warning ProvisioningFailed: failed to provision volume with StorageClass "local": node "gone" is gone',
    ]);
  });
});

describe('a volume that nobody has any more', () => {
  it.each([
    ['shared', undefined],
    ['local', 'a'],
  ])('goes once its directory is gone (%s)', async (className, chosen) => {
    await node('a');
    await node('b');
    const name = await claim(className, chosen === undefined ? {} : { node: chosen });
    await scene.until(async () => expect(await volumeNames()).toEqual([name]));
    await say('a', name);
    await scene.settle();
    expect(await volumeNames()).toEqual([name]);
    await scene.client.delete(persistentVolumeClaims, NAMESPACE, 'data', scene.signal);
    await setPhase(name, 'Released');
    await scene.until(async () => expect(await volumeNames()).toEqual([]));
  });

  it('stays where another node says so', async () => {
    await node('a');
    await node('b');
    const name = await claim('local', { node: 'a' });
    await scene.until(async () => expect(await volumeNames()).toEqual([name]));
    await setPhase(name, 'Released');
    await say('b', name);
    await scene.settle();
    expect(await volumeNames()).toEqual([name]);
    await say('a', name);
    await scene.until(async () => expect(await volumeNames()).toEqual([]));
  });
});
