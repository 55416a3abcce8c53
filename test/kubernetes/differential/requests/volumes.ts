import { get, type Group, inNamespace, mergePatch, post, refused, remove } from '../request.ts';

const VOLUMES = '/api/v1/persistentvolumes';
const CLAIMS = '/api/v1/namespaces/$ns/persistentvolumeclaims';
const CLASSES = '/apis/storage.k8s.io/v1/storageclasses';
const TABLE = { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } };
const volume = (name: string, spec: object = {}): object => ({
  metadata: { name },
  spec: {
    capacity: { storage: '1Gi' },
    accessModes: ['ReadWriteOnce'],
    storageClassName: '$ns',
    hostPath: { path: '/x' },
    ...spec,
  },
});
const claim = (name: string, spec: object = {}): object => ({
  metadata: { name },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: '$ns',
    resources: { requests: { storage: '1Gi' } },
    ...spec,
  },
});
/** Whoever binds volumes writes their status. */
const spec = {
  view: ({ spec, metadata: { finalizers } }: { spec: object; metadata: { finalizers?: string[] } }) => ({
    spec,
    finalizers,
  }),
};

export const VOLUMES_GROUP: Group = {
  name: 'volumes',
  requests: inNamespace([
    post('makes a class', CLASSES, {
      metadata: { name: '$ns' },
      provisioner: 'example.org/nobody',
      volumeBindingMode: 'WaitForFirstConsumer',
    }),
    refused(422).post('makes a class without a provisioner', CLASSES, { metadata: { name: 'bad' } }),
    refused(422).post('makes a class with bad policies', CLASSES, {
      metadata: { name: 'bad' },
      provisioner: 'x',
      reclaimPolicy: 'Odd',
      volumeBindingMode: 'Odd',
    }),
    refused(422).put('changes a class', `${CLASSES}/$ns`, {
      metadata: { name: '$ns' },
      provisioner: 'example.org/other',
    }),
    refused(422).mergePatch('changes its parameters', `${CLASSES}/$ns`, { parameters: { a: 'b' } }),
    refused(422).mergePatch('changes its reclaim policy', `${CLASSES}/$ns`, { reclaimPolicy: 'Retain' }),
    mergePatch('lets it expand', `${CLASSES}/$ns`, { allowVolumeExpansion: true }),
    get('a class as a table', `${CLASSES}/$ns`, TABLE),
    post('makes a volume', VOLUMES, volume('$ns'), spec),
    refused(422).post('makes a volume without a size', VOLUMES, volume('bad', { capacity: {} })),
    refused(422).post('makes a volume without modes', VOLUMES, volume('bad', { accessModes: [] })),
    refused(422).post('makes a volume with a bad mode', VOLUMES, volume('bad', { accessModes: ['Odd'] })),
    refused(422).post('makes a volume without a source', VOLUMES, volume('bad', { hostPath: undefined })),
    refused(422).post('makes a volume with two sources', VOLUMES, volume('bad', { nfs: { server: 'a', path: '/b' } })),
    refused(422).post('makes a volume with a bad path', VOLUMES, volume('bad', { hostPath: { path: '/a/../b' } })),
    refused(422).post(
      'makes a volume with a bad policy',
      VOLUMES,
      volume('bad', { persistentVolumeReclaimPolicy: 'Odd' }),
    ),
    refused(422).post(
      'makes a local volume without a node',
      VOLUMES,
      volume('bad', { hostPath: undefined, local: { path: '/x' } }),
    ),
    refused(422).post(
      'makes a volume with modes that exclude each other',
      VOLUMES,
      volume('bad', { accessModes: ['ReadWriteOncePod', 'ReadWriteMany'] }),
    ),
    refused(422).mergePatch('changes its source', `${VOLUMES}/$ns`, { spec: { hostPath: { path: '/y' } } }),
    mergePatch('makes it larger', `${VOLUMES}/$ns`, { spec: { capacity: { storage: '2Gi' } } }, spec),
    refused(422).mergePatch('changes its mode', `${VOLUMES}/$ns`, { spec: { volumeMode: 'Block' } }),
    get('a volume as a table', `${VOLUMES}/$ns`, { ...TABLE, view: ({ columnDefinitions }) => columnDefinitions }),
    post('makes a claim', CLAIMS, claim('one'), spec),
    refused(422).post('makes a claim without modes', CLAIMS, claim('bad', { accessModes: [] })),
    refused(422).post('makes a claim without a size', CLAIMS, claim('bad', { resources: {} })),
    refused(422).post('makes a claim of nothing', CLAIMS, claim('bad', { resources: { requests: { storage: '0' } } })),
    refused(422).post('makes a claim with a bad class', CLAIMS, claim('bad', { storageClassName: 'A_B' })),
    refused(422).post('makes a claim with a bad mode', CLAIMS, claim('bad', { volumeMode: 'Odd' })),
    post('makes a claim with a bad source', CLAIMS, claim('bad', { dataSource: { kind: 'Other', name: 'x' } }), spec),
    refused(422).post(
      'makes a claim with a bad selector',
      CLAIMS,
      claim('bad', { selector: { matchExpressions: [{ key: 'a', operator: 'In' }] } }),
    ),
    refused(422).mergePatch('makes a claim smaller', `${CLAIMS}/one`, {
      spec: { resources: { requests: { storage: '500Mi' } } },
    }),
    refused(422).mergePatch('makes a claim larger', `${CLAIMS}/one`, {
      spec: { resources: { requests: { storage: '5Gi' } } },
    }),
    refused(422).mergePatch('changes the class of a claim', `${CLAIMS}/one`, { spec: { storageClassName: 'other' } }),
    mergePatch(
      'binds a claim',
      `${CLAIMS}/one`,
      { spec: { volumeName: 'nothing' } },
      { view: ({ spec: { volumeName } }) => volumeName },
    ),
    get('a claim as a table', `${CLAIMS}/one`, { ...TABLE, view: ({ columnDefinitions }) => columnDefinitions }),
    refused(422).mergePatch('grows the status of a claim', `${CLAIMS}/one/status`, {
      status: { capacity: { storage: '-1' } },
    }),
    remove('deletes a claim', `${CLAIMS}/one`, undefined, { view: ({ kind }) => kind }),
    remove('deletes a class', `${CLASSES}/$ns`),
  ]),
};
