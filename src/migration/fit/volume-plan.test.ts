import { describe, expect, it } from 'vitest';
import { type Contents, makeCluster, makeNode, makePod } from './cluster.fixture.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';
import { podInfoOf } from './pod-info.ts';
import { volumePlanner } from './volume-plan.ts';

const nodes = [makeNode('a', { labels: { zone: 'x' } }), makeNode('b', { labels: { zone: 'y' } })];

function claim(name: string, storage = '1Gi', annotations: Record<string, string> = {}): PersistentVolumeClaim {
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name, namespace: 'default', uid: `uid-${name}`, annotations },
    spec: { storageClassName: 'lazy', accessModes: ['ReadWriteOnce'], resources: { requests: { storage } } },
  };
}

function volume(name: string, zone: string, storage = '1Gi', more: PersistentVolume['spec'] = {}): PersistentVolume {
  const matchExpressions = [{ key: 'zone', operator: 'In', values: [zone] }];
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolume',
    metadata: { name },
    spec: {
      storageClassName: 'lazy',
      accessModes: ['ReadWriteOnce'],
      capacity: { storage },
      nodeAffinity: { required: { nodeSelectorTerms: [{ matchExpressions }] } },
      ...more,
    },
    status: { phase: 'Available' },
  };
}

const lazy = (more: Partial<StorageClass> = {}): StorageClass => ({
  apiVersion: 'storage.k8s.io/v1',
  kind: 'StorageClass',
  metadata: { name: 'lazy' },
  volumeBindingMode: 'WaitForFirstConsumer',
  provisioner: 'kubernetes.io/no-provisioner',
  ...more,
});
const making = lazy({ provisioner: 'example.com/maker' });

/** The plan for each node: `claim=volume`, or `claim` alone where a volume is made. */
function plans({ claims = [], ...contents }: Omit<Contents, 'nodes'>): Record<string, string[] | undefined> {
  const mounts = claims.map(({ metadata: { name = '' } }) => ({ name, persistentVolumeClaim: { claimName: name } }));
  const cluster = makeCluster({ nodes, claims, ...contents });
  const planner = volumePlanner(podInfoOf(makePod('p', { volumes: mounts })), cluster.lookups);
  return Object.fromEntries(
    [...cluster.nodes].map(([name, { info }]) => {
      const plan = planner?.(info);
      const made = plan?.provisions.map(({ metadata }) => metadata.name ?? '') ?? [];
      const found = plan?.bindings.map((each) => `${each.claim.metadata.name}=${each.volume.metadata.name}`) ?? [];
      return [name, plan && [...found, ...made]];
    }),
  );
}

describe('volumes that are there', () => {
  it('are taken where they can be reached, the smallest that does', () => {
    const volumes = [volume('large', 'x', '3Gi'), volume('right', 'x', '2Gi'), volume('small', 'x', '1Mi')];
    expect(plans({ claims: [claim('c')], volumes, classes: [lazy()] })).toEqual({ a: ['c=right'], b: undefined });
  });

  it('are taken once, by small claims first', () => {
    const claims = [claim('large', '2Gi'), claim('small', '1Gi')];
    const volumes = [volume('v1', 'x', '1Gi'), volume('v2', 'x', '5Gi'), volume('w', 'y', '9Gi')];
    expect(plans({ claims, volumes, classes: [lazy()] })).toEqual({ a: ['small=v1', 'large=v2'], b: undefined });
  });

  it('are left to whom they are set aside for', () => {
    const claimRef = { namespace: 'default', name: 'c' };
    const own = volume('own', 'y', '1Gi', { claimRef });
    const other = volume('other', 'x', '1Gi', { claimRef: { namespace: 'default', name: 'd' } });
    const free = volume('free', 'x');
    const classes = [making];
    expect(plans({ claims: [claim('c')], volumes: [other, own, free], classes })).toEqual({
      a: undefined,
      b: ['c=own'],
    });
    expect(plans({ claims: [claim('e')], volumes: [other], classes: [lazy()] })).toEqual({
      a: undefined,
      b: undefined,
    });
    const stranger = volume('own', 'y', '1Gi', { claimRef: { ...claimRef, uid: 'of-another-life' } });
    expect(plans({ claims: [claim('c')], volumes: [stranger], classes: [lazy()] })).toEqual({
      a: undefined,
      b: undefined,
    });
  });

  it('are not taken while they are going, or before anybody has looked at them', () => {
    const going = volume('v', 'x');
    going.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    const fresh = { ...volume('w', 'x'), status: { phase: 'Pending' } };
    expect(plans({ claims: [claim('c')], volumes: [going, fresh], classes: [lazy()] })).toEqual({
      a: undefined,
      b: undefined,
    });
  });
});

describe('volumes that are made', () => {
  it('are made anywhere, unless one is there already', () => {
    expect(plans({ claims: [claim('c')], classes: [making] })).toEqual({ a: ['c'], b: ['c'] });
    expect(plans({ claims: [claim('c')], volumes: [volume('v', 'x')], classes: [making] })).toEqual({
      a: ['c=v'],
      b: ['c'],
    });
  });

  it('are made where the class allows it', () => {
    const topology = (key: string, values: string[]) => ({ matchLabelExpressions: [{ key, values }] });
    const inside = lazy({ ...making, allowedTopologies: [topology('zone', ['y', 'z'])] });
    expect(plans({ claims: [claim('c')], classes: [inside] })).toEqual({ a: undefined, b: ['c'] });
    const nowhere = lazy({ ...making, allowedTopologies: [topology('constructor', ['y'])] });
    expect(plans({ claims: [claim('c')], classes: [nowhere] })).toEqual({ a: undefined, b: undefined });
  });

  it('are made where they are being made', () => {
    const going = claim('c', '1Gi', { 'volume.kubernetes.io/selected-node': 'b' });
    expect(plans({ claims: [going], volumes: [volume('v', 'x')], classes: [making] })).toEqual({
      a: undefined,
      b: ['c'],
    });
  });
});
