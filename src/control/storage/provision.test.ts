import { describe, expect, it } from 'vitest';
import type { Node, PersistentVolumeClaim, StorageClass } from '../../migration/fit/objects.ts';
import { storageClasses } from './classes.ts';
import { type Provision, provisionFor } from './provision.ts';

const node: Node = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'n1',
    labels: { 'kubernetes.io/hostname': 'host-1' },
    annotations: { 'godwit.dev/local-storage-path': '/var/lib/volumes/' },
  },
};
const bare: Node = { ...node, metadata: { name: 'bare' } };
const ASKED = { 'volume.kubernetes.io/storage-provisioner': 'godwit.dev/directories' };
const on = (name: string) => ({ ...ASKED, 'volume.kubernetes.io/selected-node': name });

function claim(
  storageClassName: string,
  spec: PersistentVolumeClaim['spec'] = {},
  metadata: PersistentVolumeClaim['metadata'] = {},
): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'shop', uid: 'u1', resourceVersion: '7', annotations: ASKED, ...metadata },
    spec: { storageClassName, accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '3Gi' } }, ...spec },
  };
}

function decide(of: PersistentVolumeClaim, ...more: readonly StorageClass[]): Provision {
  const classes = [...storageClasses('/srv/shared'), ...more];
  return provisionFor(of, {
    storageClass: (name) => classes.find(({ metadata }) => metadata.name === name),
    node: (name) => [node, bare].find(({ metadata }) => metadata.name === name),
  });
}

const claimRef = {
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  namespace: 'shop',
  name: 'data',
  uid: 'u1',
  resourceVersion: '7',
};

describe('a volume', () => {
  it('is a directory below the shared path, reached from everywhere', () => {
    expect(decide(claim('shared', { accessModes: ['ReadWriteMany'] }))).toEqual({
      type: 'make',
      volume: {
        apiVersion: 'v1',
        kind: 'PersistentVolume',
        metadata: {
          name: 'pvc-u1',
          annotations: { 'pv.kubernetes.io/provisioned-by': 'godwit.dev/directories' },
          finalizers: ['kubernetes.io/pv-protection'],
        },
        spec: {
          capacity: { storage: '3Gi' },
          accessModes: ['ReadWriteMany'],
          volumeMode: 'Filesystem',
          storageClassName: 'shared',
          persistentVolumeReclaimPolicy: 'Delete',
          claimRef,
          hostPath: { path: '/srv/shared/pvc-u1', type: 'DirectoryOrCreate' },
        },
      },
    });
  });

  it('is a directory of the chosen node, reached from there alone', () => {
    const decision = decide(claim('local', {}, { annotations: on('n1') }));
    expect(decision).toMatchObject({
      type: 'make',
      volume: {
        metadata: { annotations: { 'godwit.dev/node': 'n1' } },
        spec: {
          local: { path: '/var/lib/volumes/pvc-u1' },
          nodeAffinity: {
            required: {
              nodeSelectorTerms: [
                { matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: ['host-1'] }] },
              ],
            },
          },
        },
      },
    });
  });
});

describe('nothing is done', () => {
  it.each([
    ['unasked', claim('shared', {}, { annotations: {} })],
    ['for a claim of another class', claim('other')],
    ['for one that has a volume', claim('shared', { volumeName: 'v' })],
    ['for one that is going', claim('shared', {}, { deletionTimestamp: '2026-01-01T00:00:00Z' })],
    ['before a node is chosen', claim('local')],
  ])('%s', (_, of) => expect(decide(of)).toEqual({ type: 'nothing' }));
});

describe('what cannot be had is refused with a reason', () => {
  const other = (more: Partial<StorageClass>): StorageClass => ({
    ...(storageClasses('/srv/shared')[0] as StorageClass),
    metadata: { name: 'other' },
    ...more,
  });
  it.each([
    ['Block', claim('shared', { volumeMode: 'Block' }), /volumeMode Block/],
    ['a selector', claim('shared', { selector: {} }), /selector/],
    ['a source', claim('shared', { dataSource: { kind: 'PersistentVolumeClaim', name: 'a' } }), /dataSource/],
    ['attributes', claim('shared', { volumeAttributesClassName: 'gold' }), /attributes/],
    [
      'many writers of one disk',
      claim('local', { accessModes: ['ReadWriteOnce', 'ReadWriteMany'] }, { annotations: on('n1') }),
      /cannot be ReadWriteMany/,
    ],
  ])('%s', (_, of, message) => {
    expect(decide(of)).toEqual({ type: 'refuse', message: expect.stringMatching(message) });
  });

  it.each([
    ['unknown parameters', { parameters: { path: '/a', size: '1' } }, /"size"/],
    ['mount options', { mountOptions: ['ro'] }, /mount options/],
    ['a relative path', { parameters: { path: 'a' } }, /absolute/],
    ['the root', { parameters: { path: '/' } }, /absolute/],
    ['a detour', { parameters: { path: '/a/../b' } }, /absolute/],
    ['no path and no node', { parameters: {} }, /WaitForFirstConsumer/],
  ])('a class with %s', (_, more, message) => {
    expect(decide(claim('other'), other(more))).toEqual({ type: 'refuse', message: expect.stringMatching(message) });
  });

  it.each([
    ['is gone', 'gone', /gone/],
    ['has no directory', 'bare', /no directory/],
  ])('a node that %s has to be chosen again', (_, name, message) => {
    const decision = decide(claim('local', {}, { annotations: on(name) }));
    expect(decision).toEqual({ type: 'choose-again', message: expect.stringMatching(message) });
  });
});
