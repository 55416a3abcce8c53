import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../src/api/meta.ts';
import { ApiError } from '../../src/api/status.ts';
import type { PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../../src/migration/fit/objects.ts';
import { ClusterUnderTest, resource } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';
import { IS_KUBERNETES } from '../support/kubernetes/wanted.ts';
import { pods, Room } from '../support/room.ts';

/** How claims get their volumes, and what becomes of both, as seen through the API. The test plays whoever makes volumes. */

const claims = resource<PersistentVolumeClaim>('persistentvolumeclaims', 'PersistentVolumeClaim');
const volumes = resource<PersistentVolume>('persistentvolumes', 'PersistentVolume', '', false);
const classes = resource<StorageClass>('storageclasses', 'StorageClass', 'storage.k8s.io', false);

const SELECTED_NODE = 'volume.kubernetes.io/selected-node';
const PROVISIONER = 'volume.kubernetes.io/storage-provisioner';
const HOSTNAME = 'kubernetes.io/hostname';
/** kube-controller-manager looks at waiting claims every 15 s. */
const PATIENCE_MS = 40_000;

let cluster: ClusterUnderTest;
const rooms: Room[] = [];
const made: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
});
afterAll(async () => {
  for (const room of rooms) await room.clear();
  for (const remove of made) await remove().catch(() => undefined);
  await cluster.stop();
});

async function makeRoom(): Promise<Room> {
  const room = await Room.make(cluster);
  rooms.push(room);
  return room;
}

async function make<T extends KubeObject>(of: ReturnType<typeof resource<T>>, object: T): Promise<T> {
  const { name = '' } = object.metadata;
  made.push(() => cluster.client.delete(of, '', name, cluster.signal));
  return cluster.client.create(of, object, cluster.signal);
}

function makeClass(room: Room, provisioner: string, volumeBindingMode: string): Promise<StorageClass> {
  const metadata = { name: `${room.namespace}-${volumeBindingMode.toLowerCase()}` };
  const object = { apiVersion: 'storage.k8s.io/v1', kind: 'StorageClass', metadata, provisioner, volumeBindingMode };
  return make(classes, object);
}

async function touch(room: Room, name: string): Promise<void> {
  const patch = { type: 'merge', body: { metadata: { annotations: { touched: 'true' } } } } as const;
  await cluster.client.patch(volumes, '', `${room.namespace}-${name}`, patch, cluster.signal);
}

function makeVolume(room: Room, name: string, more: PersistentVolume['spec'] = {}): Promise<PersistentVolume> {
  return make(volumes, {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name: `${room.namespace}-${name}` },
    spec: {
      accessModes: ['ReadWriteOnce'],
      capacity: { storage: '1Gi' },
      storageClassName: room.namespace,
      ...(more.local ? {} : { hostPath: { path: '/nowhere' } }),
      ...more,
    },
  });
}

function makeClaim(room: Room, name: string, spec: PersistentVolumeClaim['spec'] = {}): Promise<PersistentVolumeClaim> {
  const object: PersistentVolumeClaim = {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: room.namespace },
    spec: {
      accessModes: ['ReadWriteOnce'],
      resources: { requests: { storage: '1Gi' } },
      storageClassName: room.namespace,
      ...spec,
    },
  };
  return cluster.client.create(claims, object, cluster.signal);
}

const claimNow = (room: Room, name: string) => cluster.client.get(claims, room.namespace, name, cluster.signal);
const volumeNow = (room: Room, name: string) =>
  cluster.client.get(volumes, '', `${room.namespace}-${name}`, cluster.signal);
const removeClaim = (room: Room, name: string) => cluster.client.delete(claims, room.namespace, name, cluster.signal);
const phaseOf = async (room: Room, name: string) => (await volumeNow(room, name)).status?.phase;
const becomes = (check: () => Promise<void>) => eventually(check, PATIENCE_MS);

const bound = (room: Room, claim: string, volume: string) =>
  becomes(async () => {
    const { spec, status } = await claimNow(room, claim);
    expect([spec?.volumeName, status?.phase]).toEqual([`${room.namespace}-${volume}`, 'Bound']);
    expect(await phaseOf(room, volume)).toBe('Bound');
  });

async function isGone(read: Promise<unknown>): Promise<boolean> {
  try {
    await read;
    return false;
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return true;
    throw error;
  }
}

/** A pod that mounts the claim and may go to any of the room's nodes. */
async function makePod(room: Room, name: string, claimName: string): Promise<void> {
  const pod: Pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: room.namespace },
    spec: {
      containers: [{ name: 'main', image: 'none' } as object],
      nodeSelector: { room: room.namespace },
      tolerations: [{ operator: 'Exists' }],
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName } }],
    },
  };
  await cluster.client.create(pods, pod, cluster.signal);
}

const onlyOn = (node: string): PersistentVolume['spec'] => ({
  local: { path: '/disk' },
  nodeAffinity: {
    required: { nodeSelectorTerms: [{ matchExpressions: [{ key: HOSTNAME, operator: 'In', values: [node] }] }] },
  },
});

describe('claims', { timeout: 3 * PATIENCE_MS }, () => {
  it('get the smallest volume that does, and both are held while they are needed', async () => {
    const room = await makeRoom();
    await makeVolume(room, 'large', { capacity: { storage: '9Gi' } });
    await makeVolume(room, 'right', { capacity: { storage: '2Gi' } });
    await becomes(async () => {
      expect([await phaseOf(room, 'large'), await phaseOf(room, 'right')]).toEqual(['Available', 'Available']);
    });
    await makeClaim(room, 'data');
    await bound(room, 'data', 'right');
    const claim = await claimNow(room, 'data');
    expect(claim.status).toMatchObject({ capacity: { storage: '2Gi' }, accessModes: ['ReadWriteOnce'] });
    await becomes(async () => {
      expect((await claimNow(room, 'data')).metadata.finalizers).toEqual(['kubernetes.io/pvc-protection']);
      expect((await volumeNow(room, 'right')).metadata.finalizers).toEqual(['kubernetes.io/pv-protection']);
    });
    await cluster.client.delete(volumes, '', `${room.namespace}-right`, cluster.signal);
    expect((await volumeNow(room, 'right')).metadata.deletionTimestamp).toBeDefined();
    await removeClaim(room, 'data');
    await becomes(async () => expect(await isGone(volumeNow(room, 'right'))).toBe(true));
  });

  it('stay as long as a pod uses them', async () => {
    const room = await makeRoom();
    const node = await room.node('a');
    await makeVolume(room, 'v');
    await makeClaim(room, 'data');
    await bound(room, 'data', 'v');
    await room.podOn(node, 'user', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] });
    await becomes(async () => expect((await claimNow(room, 'data')).metadata.finalizers).toBeDefined());
    await removeClaim(room, 'data');
    expect((await claimNow(room, 'data')).metadata.deletionTimestamp).toBeDefined();
    await room.end('user');
    await becomes(async () => expect(await isGone(claimNow(room, 'data'))).toBe(true));
    await becomes(async () => expect(await phaseOf(room, 'v')).toBe('Released'));
  });

  it('are lost with their volume', async () => {
    const room = await makeRoom();
    await makeVolume(room, 'v');
    await makeClaim(room, 'data');
    await bound(room, 'data', 'v');
    await cluster.client.delete(volumes, '', `${room.namespace}-v`, cluster.signal);
    await eventually(async () => {
      const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
      await cluster.client.patch(volumes, '', `${room.namespace}-v`, patch, cluster.signal).catch(() => undefined);
      expect(await isGone(volumeNow(room, 'v'))).toBe(true);
    });
    await becomes(async () => expect((await claimNow(room, 'data')).status?.phase).toBe('Lost'));
    await room.told('data', /^Warning ClaimLost: /m);
  });

  it('are given to whoever makes volumes of their class', async () => {
    const room = await makeRoom();
    const { metadata } = await makeClass(room, 'example.com/test', 'Immediate');
    const claim = await makeClaim(room, 'data', { storageClassName: metadata.name ?? '' });
    await becomes(async () =>
      expect((await claimNow(room, 'data')).metadata.annotations?.[PROVISIONER]).toBe('example.com/test'),
    );
    await room.told('data', /^Normal ExternalProvisioning: .*example\.com\/test/m);
    const claimRef = { namespace: room.namespace, name: 'data', uid: claim.metadata.uid ?? '' };
    await makeVolume(room, 'made', { storageClassName: metadata.name ?? '', claimRef });
    await bound(room, 'data', 'made');
  });
});

describe('claims that wait for a pod', { timeout: 3 * PATIENCE_MS }, () => {
  it('get a volume that the pod can reach', async () => {
    const room = await makeRoom();
    await room.node('a');
    const b = await room.node('b');
    const { metadata } = await makeClass(room, 'kubernetes.io/no-provisioner', 'WaitForFirstConsumer');
    const storageClassName = metadata.name ?? '';
    await makeClaim(room, 'data', { storageClassName });
    await room.told('data', /^Normal WaitForFirstConsumer: waiting for first consumer/m);
    await makePod(room, 'p', 'data');
    await room.told('p', /didn't find available persistent volumes to bind/);
    await makeVolume(room, 'v', { ...onlyOn(b), storageClassName });
    // kube-scheduler may hear of a volume before its own cache has it, and looks again only where that changes.
    if (IS_KUBERNETES) await bound(room, 'data', 'v').catch(() => touch(room, 'v'));
    await bound(room, 'data', 'v');
    await becomes(async () => expect((await room.pod('p')).spec?.nodeName).toBe(b));
  });

  it('have one made where the pod will be, before the pod is there', async () => {
    const room = await makeRoom();
    await room.node('a');
    await room.node('b');
    const { metadata } = await makeClass(room, 'example.com/test', 'WaitForFirstConsumer');
    const storageClassName = metadata.name ?? '';
    const claim = await makeClaim(room, 'data', { storageClassName });
    await makePod(room, 'p', 'data');
    await makePod(room, 'q', 'data');
    let node = '';
    await becomes(async () => {
      node = (await claimNow(room, 'data')).metadata.annotations?.[SELECTED_NODE] ?? '';
      expect(node).not.toBe('');
    });
    expect((await room.pod('p')).spec?.nodeName).toBeUndefined();
    const claimRef = { namespace: room.namespace, name: 'data', uid: claim.metadata.uid ?? '' };
    await makeVolume(room, 'made', { ...onlyOn(node), storageClassName, claimRef });
    await bound(room, 'data', 'made');
    for (const name of ['p', 'q']) await becomes(async () => expect((await room.pod(name)).spec?.nodeName).toBe(node));
  });
});
