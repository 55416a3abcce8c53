import { describe, expect, it } from 'vitest';
import { type Contents, makeCluster, makeNode, makePod, refusals } from '../cluster.fixture.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from '../objects.ts';

const nodes = [makeNode('a', { labels: { zone: 'x' } }), makeNode('b', { labels: { zone: 'y' } })];
const pod = makePod('p', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] });

function claim(
  more: Partial<PersistentVolumeClaim> & { annotations?: Record<string, string> } = {},
): PersistentVolumeClaim {
  const { annotations, ...rest } = more;
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'default', annotations },
    ...rest,
  };
}
const bound = claim({ spec: { volumeName: 'pv' }, status: { phase: 'Bound' } });
const volume = (zone?: string): PersistentVolume => ({
  apiVersion: 'v1',
  kind: 'PersistentVolume',
  metadata: { name: 'pv' },
  spec:
    zone === undefined
      ? {}
      : {
          nodeAffinity: {
            required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] }] },
          },
        },
});
const lazy: StorageClass = {
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'lazy' },
  volumeBindingMode: 'WaitForFirstConsumer',
};

describe('VolumeBinding', () => {
  const everywhere = (message: string) => ({ a: [message], b: [message] });
  const cases: [string, Omit<Contents, 'nodes'>, Record<string, string[]>][] = [
    ['a volume of no place', { claims: [bound], volumes: [volume()] }, { a: [], b: [] }],
    [
      'a volume of one zone',
      { claims: [bound], volumes: [volume('x')] },
      {
        a: [],
        b: ["node(s) didn't match PersistentVolume's node affinity"],
      },
    ],
    [
      'bound by annotation',
      {
        claims: [claim({ spec: { volumeName: 'pv' }, annotations: { 'pv.kubernetes.io/bind-completed': 'yes' } })],
        volumes: [volume('x')],
      },
      { a: [], b: ["node(s) didn't match PersistentVolume's node affinity"] },
    ],
    ['no claim', {}, everywhere('persistentvolumeclaim "data" not found')],
    [
      'a lost volume',
      { claims: [claim({ spec: { volumeName: 'pv' }, status: { phase: 'Lost' } })] },
      everywhere('persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"'),
    ],
    [
      'a claim on its way out',
      {
        claims: [{ ...bound, metadata: { ...bound.metadata, deletionTimestamp: '2026-01-01T00:00:00Z' } }],
      },
      everywhere('persistentvolumeclaim "data" is being deleted'),
    ],
    ['not bound', { claims: [claim({ spec: {} })] }, everywhere('pod has unbound immediate PersistentVolumeClaims')],
    [
      'asked for by name only',
      { claims: [claim({ spec: { volumeName: 'pv' } })] },
      everywhere('pod has unbound immediate PersistentVolumeClaims'),
    ],
    [
      'waiting for its pod',
      { claims: [claim({ spec: { storageClassName: 'lazy' } })], classes: [lazy] },
      everywhere("node(s) didn't find available persistent volumes to bind"),
    ],
    [
      'a volume that is gone',
      { claims: [bound] },
      everywhere('node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)'),
    ],
  ];
  it.each(cases)('%s', (_, contents, expected) => {
    expect(refusals(pod, makeCluster({ nodes, ...contents }))).toEqual(expected);
  });

  it('takes a claim made for a pod only if it was made for this one', () => {
    const ephemeral = makePod('p', { volumes: [{ name: 'v', ephemeral: {} }] });
    const own = (uid: string): PersistentVolumeClaim => ({
      ...bound,
      metadata: {
        name: 'p-v',
        namespace: 'default',
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid, controller: true }],
      },
    });
    const reasons = (claims: PersistentVolumeClaim[]) =>
      refusals(ephemeral, makeCluster({ nodes, claims, volumes: [volume()] })).a;
    expect(reasons([])).toEqual(['waiting for ephemeral volume controller to create the persistentvolumeclaim "p-v"']);
    expect(reasons([own('other')])).toEqual(['PVC default/p-v was not created for pod default/p (pod is not owner)']);
    expect(reasons([own('uid-default-p')])).toEqual([]);
  });
});

describe('VolumeRestrictions', () => {
  it('lets only one pod mount a claim that is for one pod', () => {
    const exclusive = { ...bound, spec: { ...bound.spec, accessModes: ['ReadWriteOncePod'] } };
    const user = makePod('user', pod.spec);
    const cluster = makeCluster({ nodes, claims: [exclusive], volumes: [volume()], pods: { a: [user] } });
    const no = [
      'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
    ];
    expect(refusals(pod, cluster)).toEqual({ a: no, b: no });
    cluster.removePod(user.metadata.uid ?? '');
    expect(refusals(pod, cluster)).toEqual({ a: [], b: [] });
  });
});
