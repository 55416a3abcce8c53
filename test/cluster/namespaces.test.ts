import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Condition, KubeObject, ObjectMeta } from '../../src/api/meta.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { ClusterUnderTest, resource } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';

/** How namespaces end, as seen through the API: kube-controller-manager ends them the same way. */

interface Namespace extends KubeObject {
  spec?: { finalizers?: string[] };
  status?: { phase?: string; conditions?: Condition[] };
}

const namespaces = resource<Namespace>('namespaces', 'Namespace', '', false);
const configMaps = resource('configmaps', 'ConfigMap');
const secrets = resource('secrets', 'Secret');
const leases = resource('leases', 'Lease', 'coordination.k8s.io');
const pods = resource('pods', 'Pod');
const nodes = resource('nodes', 'Node', '', false);
const definitions = resource('customresourcedefinitions', 'CustomResourceDefinition', 'apiextensions.k8s.io', false);

/** Upstream's begins after five seconds, and looks again after eight where finalizers hold something. */
const END_MS = 40_000;

let cluster: ClusterUnderTest;
let rooms = 0;
const cleanUps: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
});

afterAll(async () => {
  for (const cleanUp of cleanUps.toReversed()) await cleanUp().catch(() => undefined);
  await cluster.stop();
});

function make(kind: Resource, metadata: ObjectMeta, more: object = {}): Promise<KubeObject> {
  return cluster.client.create(kind, { apiVersion: '', kind: '', metadata, ...more }, cluster.signal);
}

async function makeRoom(): Promise<string> {
  const name = `ending-${process.pid}-${rooms++}`;
  await make(namespaces, { name });
  return name;
}

const end = (name: string): Promise<unknown> => cluster.client.delete(namespaces, '', name, cluster.signal);

async function isGone(kind: Resource, namespace: string, name: string): Promise<boolean> {
  try {
    await cluster.client.get(kind, namespace, name, cluster.signal);
    return false;
  } catch (error) {
    expect(error).toMatchObject({ code: 404 });
    return true;
  }
}

const ended = (name: string) => eventually(async () => expect(await isGone(namespaces, '', name)).toBe(true), END_MS);

const told = async (name: string): Promise<Record<string, string>> => {
  const { status } = await cluster.client.get(namespaces, '', name, cluster.signal);
  return Object.fromEntries(
    (status?.conditions ?? []).map(({ type, status: is, reason, message }) => [type, `${is} ${reason}: ${message}`]),
  );
};

it('a namespace ends with all that is in it', { timeout: END_MS }, async () => {
  const room = await makeRoom();
  await make(configMaps, { name: 'a', namespace: room });
  await make(secrets, { name: 'a', namespace: room });
  await make(leases, { name: 'a', namespace: room });
  const other = await makeRoom();
  await make(configMaps, { name: 'a', namespace: other });
  cleanUps.push(() => end(other));
  await end(room);
  await ended(room);
  for (const kind of [configMaps, secrets, leases]) expect(await isGone(kind, room, 'a')).toBe(true);
  expect(await isGone(configMaps, other, 'a')).toBe(false);
  // Nothing was only hidden.
  await make(namespaces, { name: room });
  cleanUps.push(() => end(room));
  for (const kind of [configMaps, secrets, leases]) expect(await isGone(kind, room, 'a')).toBe(true);
});

it('what a finalizer holds holds its namespace, which says so', { timeout: 2 * END_MS }, async () => {
  const room = await makeRoom();
  await make(configMaps, { name: 'held', namespace: room, finalizers: ['example.com/hold'] });
  await make(secrets, { name: 'free', namespace: room });
  await end(room);
  await eventually(
    async () =>
      expect(await told(room)).toEqual({
        NamespaceDeletionDiscoveryFailure: 'False ResourcesDiscovered: All resources successfully discovered',
        NamespaceDeletionGroupVersionParsingFailure:
          'False ParsedGroupVersions: All legacy kube types successfully parsed',
        NamespaceDeletionContentFailure:
          'False ContentDeleted: All content successfully deleted, may be waiting on finalization',
        NamespaceContentRemaining:
          'True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource instances',
        NamespaceFinalizersRemaining:
          'True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
      }),
    END_MS,
  );
  expect(await isGone(secrets, room, 'free')).toBe(true);
  const { status } = await cluster.client.get(namespaces, '', room, cluster.signal);
  expect(status?.phase).toBe('Terminating');
  await expect(make(configMaps, { name: 'late', namespace: room })).rejects.toMatchObject({
    code: 403,
    details: { causes: [{ reason: 'NamespaceTerminating' }] },
  });
  const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
  await cluster.client.patch(configMaps, room, 'held', patch, cluster.signal);
  await ended(room);
});

it('pods have the time that they were promised, and all else stays for them', { timeout: 2 * END_MS }, async () => {
  const room = await makeRoom();
  const node = `${room}-node`;
  await make(nodes, { name: node });
  cleanUps.push(() => cluster.client.delete(nodes, '', node, cluster.signal));
  const container = { name: 'main', image: 'registry.k8s.io/pause:3.10' };
  const spec = { nodeName: node, terminationGracePeriodSeconds: 600, containers: [container] };
  await make(pods, { name: 'patient', namespace: room }, { spec });
  await make(configMaps, { name: 'needed', namespace: room });
  await end(room);
  await eventually(async () => {
    const { metadata } = await cluster.client.get(pods, room, 'patient', cluster.signal);
    expect(metadata).toMatchObject({ deletionTimestamp: expect.any(String), deletionGracePeriodSeconds: 600 });
    expect(await told(room)).toHaveProperty('NamespaceDeletionContentFailure');
  }, END_MS);
  expect(await isGone(configMaps, room, 'needed')).toBe(false);
  await cluster.client.delete(pods, room, 'patient', cluster.signal, { gracePeriodSeconds: 0 });
  // Upstream's looks again when half of the time is over.
  if (process.env['GODWIT_TEST_KUBECONFIG'] === undefined) await ended(room);
});

it('custom resources go with it', { timeout: 2 * END_MS }, async () => {
  const group = `n${process.pid}.example.com`;
  const gadgets = resource('gadgets', 'Gadget', group);
  const name = `gadgets.${group}`;
  const spec = {
    group,
    scope: 'Namespaced',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  };
  await make(definitions, { name }, { spec });
  cleanUps.push(() => cluster.client.delete(definitions, '', name, cluster.signal));
  const room = await makeRoom();
  await eventually(() => make(gadgets, { name: 'gadget', namespace: room }));
  await end(room);
  await ended(room);
  expect(await isGone(gadgets, room, 'gadget')).toBe(true);
});

it('a namespace stays as long as it has finalizers of its own', { timeout: 2 * END_MS }, async () => {
  const room = `ending-${process.pid}-${rooms++}`;
  await make(namespaces, { name: room, finalizers: ['example.com/hold'] });
  await make(configMaps, { name: 'a', namespace: room });
  await end(room);
  await eventually(async () => {
    const { spec, metadata } = await cluster.client.get(namespaces, '', room, cluster.signal);
    expect(spec?.finalizers ?? []).toEqual([]);
    expect(metadata.finalizers).toEqual(['example.com/hold']);
  }, END_MS);
  expect(await isGone(configMaps, room, 'a')).toBe(true);
  const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
  await cluster.client.patch(namespaces, '', room, patch, cluster.signal);
  await ended(room);
});
