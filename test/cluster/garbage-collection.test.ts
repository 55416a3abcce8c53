import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject, ObjectMeta, OwnerReference } from '../../src/api/meta.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { ClusterUnderTest, resource } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';

/** What becomes of dependents as seen through the API: on these inputs, kube-controller-manager does the same. */

const namespaces = resource('namespaces', 'Namespace', '', false);
const configMaps = resource('configmaps', 'ConfigMap');
const secrets = resource('secrets', 'Secret');
const clusterRoles = resource('clusterroles', 'ClusterRole', 'rbac.authorization.k8s.io', false);
const definitions = resource('customresourcedefinitions', 'CustomResourceDefinition', 'apiextensions.k8s.io', false);
const events = resource<KubeObject & { reason: string; message: string; involvedObject: { name: string } }>(
  'events',
  'Event',
);

const BLOCKING = { blockOwnerDeletion: true };
const HOLD = 'example.com/hold';
/** How long a collector may take to hear of a new kind: upstream's asks every half minute. */
const DISCOVERY_MS = 90_000;

let cluster: ClusterUnderTest;
let room: string;
let rooms = 0;
const cleanUps: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
});

afterAll(async () => {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp().catch(() => undefined);
  await cluster.stop();
});

beforeEach(async () => {
  room = await makeRoom();
});

async function makeRoom(): Promise<string> {
  const name = `garbage-${process.pid}-${rooms++}`;
  await make(namespaces, name);
  cleanUps.push(() => cluster.client.delete(namespaces, '', name, cluster.signal));
  return name;
}

function make(kind: Resource, name: string, owners: readonly OwnerReference[] = [], more: ObjectMeta = {}) {
  const place = kind.namespaced ? { namespace: room } : {};
  const metadata: ObjectMeta = { name, ...place, ownerReferences: [...owners], ...more };
  return cluster.client.create(kind, { apiVersion: '', kind: '', metadata }, cluster.signal);
}

function referenceTo({ apiVersion, kind, metadata }: KubeObject, more: Partial<OwnerReference> = {}): OwnerReference {
  return { apiVersion, kind, name: metadata.name ?? '', uid: metadata.uid ?? '', ...more };
}

function find(kind: Resource, name: string): Promise<KubeObject | undefined> {
  const namespace = kind.namespaced ? room : '';
  return cluster.client.get(kind, namespace, name, cluster.signal).catch((error: { code?: number }) => {
    if (error.code === 404) return undefined;
    throw error;
  });
}

async function remove(kind: Resource, name: string, propagationPolicy: 'Orphan' | 'Background' | 'Foreground') {
  const namespace = kind.namespaced ? room : '';
  await cluster.client.delete(kind, namespace, name, cluster.signal, { propagationPolicy });
}

const merge = (kind: Resource, name: string, body: { metadata: { [field: string]: null } }) =>
  cluster.client.patch(kind, room, name, { type: 'merge', body }, cluster.signal);
const gone = (kind: Resource, name: string, timeoutMs?: number) =>
  eventually(async () => expect(await find(kind, name)).toBeUndefined(), timeoutMs);
const ownersOf = async (kind: Resource, name: string): Promise<readonly string[]> =>
  ((await find(kind, name))?.metadata.ownerReferences ?? []).map((each) => each.name);

describe('in the background', () => {
  it('dependents go after their owner, and theirs after them', async () => {
    const top = await make(configMaps, 'top');
    const middle = await make(secrets, 'middle', [referenceTo(top)]);
    await make(configMaps, 'bottom', [referenceTo(middle)]);
    await make(configMaps, 'stranger');
    await remove(configMaps, 'top', 'Background');
    expect(await find(configMaps, 'top')).toBeUndefined();
    await gone(secrets, 'middle');
    await gone(configMaps, 'bottom');
    expect(await find(configMaps, 'stranger')).toBeDefined();
  });

  it('whoever has another owner only loses the one that is gone', async () => {
    const [a, b] = [await make(configMaps, 'a'), await make(configMaps, 'b')];
    await make(secrets, 'shared', [referenceTo(a), referenceTo(b)]);
    await remove(configMaps, 'a', 'Background');
    await eventually(async () => expect(await ownersOf(secrets, 'shared')).toEqual(['b']));
    await remove(configMaps, 'b', 'Background');
    await gone(secrets, 'shared');
  });

  it('an owner that never was is as good as gone', async () => {
    const owner = await make(configMaps, 'owner');
    await make(secrets, 'wrong-uid', [{ ...referenceTo(owner), uid: '00000000-0000-4000-8000-000000000000' }]);
    await make(secrets, 'wrong-name', [{ ...referenceTo(owner), name: 'other' }]);
    await make(secrets, 'right', [referenceTo(owner)]);
    await gone(secrets, 'wrong-uid');
    await gone(secrets, 'wrong-name');
    expect(await find(secrets, 'right')).toBeDefined();
  });
});

describe('in the foreground', () => {
  it('an owner stays until those are gone who block it, and theirs', async () => {
    const top = await make(configMaps, 'top');
    const middle = await make(secrets, 'middle', [referenceTo(top, BLOCKING)]);
    await make(configMaps, 'bottom', [referenceTo(middle, BLOCKING)], { finalizers: [HOLD] });
    await remove(configMaps, 'top', 'Foreground');
    await eventually(async () => expect((await find(configMaps, 'bottom'))?.metadata.deletionTimestamp).toBeDefined());
    for (const [kind, name] of [
      [configMaps, 'top'],
      [secrets, 'middle'],
    ] as const) {
      const object = await find(kind, name);
      expect(object?.metadata.finalizers).toEqual(['foregroundDeletion']);
      expect(object?.metadata.deletionTimestamp).toBeDefined();
    }
    await merge(configMaps, 'bottom', { metadata: { finalizers: null } });
    await gone(secrets, 'middle');
    await gone(configMaps, 'top');
  });

  it('an owner does not wait for those who do not block it', async () => {
    const owner = await make(configMaps, 'owner');
    await make(secrets, 'free', [referenceTo(owner)], { finalizers: [HOLD] });
    await remove(configMaps, 'owner', 'Foreground');
    await gone(configMaps, 'owner');
    await eventually(async () => expect((await find(secrets, 'free'))?.metadata.deletionTimestamp).toBeDefined());
    await merge(secrets, 'free', { metadata: { finalizers: null } });
    await gone(secrets, 'free');
  });

  it('an owner lets go of those whom another one owns', async () => {
    const [a, b] = [await make(configMaps, 'a'), await make(configMaps, 'b')];
    await make(secrets, 'shared', [referenceTo(a, BLOCKING), referenceTo(b, BLOCKING)]);
    await remove(configMaps, 'a', 'Foreground');
    await gone(configMaps, 'a');
    expect(await ownersOf(secrets, 'shared')).toEqual(['b']);
  });
});

it('orphans stay, without an owner', async () => {
  const [owner, other] = [await make(configMaps, 'owner'), await make(configMaps, 'other')];
  await make(secrets, 'orphan', [referenceTo(owner)]);
  await make(secrets, 'shared', [referenceTo(owner), referenceTo(other)]);
  // Upstream's spares only those that it has heard of.
  await new Promise((resolve) => setTimeout(resolve, 500));
  await remove(configMaps, 'owner', 'Orphan');
  await gone(configMaps, 'owner');
  expect(await ownersOf(secrets, 'orphan')).toEqual([]);
  expect(await find(secrets, 'orphan')).toBeDefined();
  expect(await ownersOf(secrets, 'shared')).toEqual(['other']);
});

describe('across the borders of namespaces', () => {
  it('an owner does not count, and people are told', async () => {
    const here = room;
    room = await makeRoom();
    const owner = await make(configMaps, 'owner');
    const there = room;
    room = here;
    await make(secrets, 'dependent', [referenceTo(owner)]);
    await gone(secrets, 'dependent');
    const { uid } = owner.metadata;
    const message = `ownerRef [v1/ConfigMap, namespace: ${here}, name: owner, uid: ${uid}] does not exist in namespace "${here}"`;
    await eventually(async () => {
      const { items } = await cluster.client.list(events, { namespace: here }, cluster.signal);
      expect(items).toContainEqual(
        expect.objectContaining({ reason: 'OwnerRefInvalidNamespace', type: 'Warning', message }),
      );
    });
    room = there;
    expect(await find(configMaps, 'owner')).toBeDefined();
  });

  it('what has no namespace cannot be owned from within one, and stays', async () => {
    const owner = await make(configMaps, 'owner');
    const name = `${room}-role`;
    cleanUps.push(() => remove(clusterRoles, name, 'Background'));
    await make(clusterRoles, name, [referenceTo(owner)]);
    await make(secrets, 'witness', [referenceTo(owner)]);
    await remove(configMaps, 'owner', 'Background');
    await gone(secrets, 'witness');
    expect(await find(clusterRoles, name)).toBeDefined();
  });

  it('what has one can be owned by what has none', async () => {
    const name = `${room}-role`;
    const owner = await make(clusterRoles, name);
    await make(secrets, 'dependent', [referenceTo(owner)]);
    await remove(clusterRoles, name, 'Background');
    await gone(secrets, 'dependent');
  });
});

it(
  'custom resources own and are owned, and take theirs with them when their kind goes',
  async () => {
    const group = `g${process.pid}.example.com`;
    const gadgets = resource('gadgets', 'Gadget', group);
    const schema = { openAPIV3Schema: { type: 'object' } };
    const definition = {
      apiVersion: '',
      kind: '',
      metadata: { name: `gadgets.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    };
    await cluster.client.create(definitions, definition, cluster.signal);
    cleanUps.push(() => remove(definitions, definition.metadata.name, 'Background'));
    const owner = await make(configMaps, 'owner');
    const gadget = await eventually(() => make(gadgets, 'gadget', [referenceTo(owner)]));
    await make(secrets, 'part', [referenceTo(gadget)]);
    await remove(configMaps, 'owner', 'Background');
    await gone(gadgets, 'gadget', DISCOVERY_MS);
    await gone(secrets, 'part', DISCOVERY_MS);
    await make(secrets, 'last', [referenceTo(await make(gadgets, 'another'))]);
    await remove(definitions, definition.metadata.name, 'Background');
    await gone(secrets, 'last', DISCOVERY_MS);
  },
  3 * DISCOVERY_MS,
);
