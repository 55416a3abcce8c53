import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { Resource } from '../../kube/resource.ts';
import { LoopScene } from '../loops.fixture.ts';
import { apiServices, namespaces, nodes, pods } from '../resources.ts';
import { namespaceLoop } from './loop.ts';

const configMaps: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
const secrets: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true };

let scene: LoopScene;

beforeEach(async () => {
  scene = new LoopScene(namespaceLoop);
  await scene.start();
  await scene.namespace('room');
});

afterEach(() => scene.stop());

const end = (): Promise<unknown> => scene.client.delete(namespaces, '', 'room', scene.signal);
const isThere = async (resource: Resource, namespace: string, name: string): Promise<boolean> =>
  scene.get(resource, namespace, name).then(
    () => true,
    () => false,
  );
const gone = (): Promise<void> => scene.until(async () => expect(await isThere(namespaces, '', 'room')).toBe(false));
const told = async (): Promise<Record<string, string>> => {
  const { status } = await scene.get(namespaces, '', 'room');
  return Object.fromEntries(
    (status?.conditions ?? []).map(({ type, status: is, reason }) => [type, `${is} ${reason}`]),
  );
};

/** A pod that runs, so that it is given its time. */
async function runningPod(seconds: number): Promise<void> {
  const metadata = { name: 'patient', namespace: 'room' };
  const container = { name: 'main', image: 'none' };
  await scene.create(nodes, { metadata: { name: 'node' } });
  await scene.create(pods, {
    metadata,
    spec: {
      nodeName: 'node',
      terminationGracePeriodSeconds: seconds,
      containers: [container],
    },
  });
}

const leave = (name: string): Promise<unknown> =>
  scene.client.delete(pods, 'room', name, scene.signal, { gracePeriodSeconds: 0 });

type Versions = readonly { readonly resources: readonly { readonly resource: string }[] }[];
interface Groups {
  readonly items: readonly { readonly versions: Versions }[];
}

const withVersions = ({ items, ...rest }: Groups, told: (versions: Versions) => Versions): Groups => ({
  ...rest,
  items: items.map((group) => ({ ...group, versions: told(group.versions) })),
});

describe('a namespace that is deleted', () => {
  it('is emptied, and goes', async () => {
    await scene.create(configMaps, { metadata: { name: 'a', namespace: 'room' } });
    await scene.create(secrets, { metadata: { name: 'b', namespace: 'room' } });
    await end();
    await gone();
    expect(await isThere(configMaps, 'room', 'a')).toBe(false);
    expect(await isThere(secrets, 'room', 'b')).toBe(false);
    expect(scene.writes.filter((each) => each.startsWith('PUT'))).toEqual([
      'PUT /api/v1/namespaces/room/status',
      'PUT /api/v1/namespaces/room/finalize',
    ]);
  });

  it('takes nothing along that is not in it', async () => {
    await scene.namespace('other');
    await scene.create(configMaps, { metadata: { name: 'a', namespace: 'other' } });
    await end();
    await gone();
    expect(await isThere(configMaps, 'other', 'a')).toBe(true);
    expect(await isThere(namespaces, '', 'other')).toBe(true);
  });

  it('loses its pods first, then the rest at once, however long they might have taken', async () => {
    await runningPod(600);
    await scene.create(configMaps, { metadata: { name: 'a', namespace: 'room' } });
    await end();
    await scene.until(async () =>
      expect(await told()).toMatchObject({
        NamespaceDeletionContentFailure: 'False ContentDeleted',
        NamespaceContentRemaining: 'True SomeResourcesRemain',
      }),
    );
    await scene.pass(20_000);
    expect(await isThere(configMaps, 'room', 'a')).toBe(true);
    await leave('patient');
    await gone();
    expect(await isThere(configMaps, 'room', 'a')).toBe(false);
  });

  it.each(['GET', 'DELETE'])('keeps the rest while nobody knows of its pods (%s)', async (method) => {
    await runningPod(600);
    await scene.create(configMaps, { metadata: { name: 'a', namespace: 'room' } });
    scene.lost = new RegExp(`^${method} /api/v1/namespaces/room/pods`);
    await end();
    await scene.pass(20_000);
    expect(await told()).toMatchObject({ NamespaceDeletionContentFailure: 'True ContentDeletionFailed' });
    expect(await isThere(configMaps, 'room', 'a')).toBe(true);
    scene.lost = undefined;
    await leave('patient');
    await scene.pass(60_000);
    await gone();
  });

  it('complains of pods that do not end in time, and goes on trying', async () => {
    await runningPod(30);
    await end();
    await scene.pass(20_000);
    expect(await told()).toMatchObject({ NamespaceDeletionContentFailure: 'False ContentDeleted' });
    await scene.pass(30_000);
    expect(await told()).toMatchObject({ NamespaceDeletionContentFailure: 'True ContentDeletionFailed' });
    await leave('patient');
    await gone();
  });

  it('waits for finalizers, goes when they do, and writes nothing meanwhile', async () => {
    const held: KubeObject = await scene.create(configMaps, {
      metadata: { name: 'held', namespace: 'room', finalizers: ['example.com/hold'] },
    });
    await end();
    await scene.until(async () =>
      expect(await told()).toEqual({
        NamespaceDeletionDiscoveryFailure: 'False ResourcesDiscovered',
        NamespaceDeletionGroupVersionParsingFailure: 'False ParsedGroupVersions',
        NamespaceDeletionContentFailure: 'False ContentDeleted',
        NamespaceContentRemaining: 'True SomeResourcesRemain',
        NamespaceFinalizersRemaining: 'True SomeFinalizersRemain',
      }),
    );
    scene.writes.length = 0;
    await scene.pass(60_000);
    expect(scene.writes.filter((each) => each.startsWith('PUT'))).toEqual([]);
    expect(scene.writes.length).toBeGreaterThan(0);
    const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await scene.client.patch(configMaps, 'room', held.metadata.name ?? '', patch, scene.signal);
    await gone();
  });

  it('stays while nobody can tell what may be in it', async () => {
    const name = 'v1.remote.io';
    await scene.create<KubeObject>(apiServices, {
      metadata: { name },
      spec: {
        group: 'remote.io',
        version: 'v1',
        groupPriorityMinimum: 1000,
        versionPriority: 10,
        insecureSkipTLSVerify: true,
        service: { namespace: 'default', name: 'nowhere' },
      },
    });
    await scene.pass(2000);
    await end();
    await scene.until(async () =>
      expect((await scene.get(namespaces, '', 'room')).status?.conditions).toContainEqual(
        expect.objectContaining({
          type: 'NamespaceDeletionDiscoveryFailure',
          status: 'True',
          reason: 'DiscoveryFailed',
          message:
            'Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: remote.io/v1: stale GroupVersion discovery: remote.io/v1',
        }),
      ),
    );
    await scene.pass(30_000);
    expect(await isThere(namespaces, '', 'room')).toBe(true);
    await scene.client.delete(apiServices, '', name, scene.signal);
    await scene.pass(60_000);
    await gone();
  });

  it.each<[string, (versions: Versions) => Versions, string]>([
    [
      'leaves them out',
      (versions) =>
        versions.map((each) => ({ ...each, resources: each.resources.filter(({ resource }) => resource !== 'pods') })),
      'the server does not say that it serves pods',
    ],
    [
      'is out of date',
      (versions) => versions.map((each) => ({ ...each, freshness: 'Stale', resources: [] })),
      'Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: v1: stale GroupVersion discovery: v1',
    ],
  ])('keeps all that its pods may need where discovery %s', async (_, told, message) => {
    const leases = { group: 'coordination.k8s.io', version: 'v1', plural: 'leases', kind: 'Lease', namespaced: true };
    await runningPod(30);
    await scene.create(configMaps, { metadata: { name: 'a', namespace: 'room' } });
    await scene.create(leases, { metadata: { name: 'b', namespace: 'room' } });
    scene.altered = (request, body) =>
      request === 'GET /api' ? JSON.stringify(withVersions(JSON.parse(body) as Groups, told)) : body;
    await end();
    await scene.pass(60_000);
    expect((await scene.get(namespaces, '', 'room')).status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'NamespaceDeletionDiscoveryFailure', status: 'True', message }),
    );
    expect(await Promise.all([isThere(configMaps, 'room', 'a'), isThere(leases, 'room', 'b')])).toEqual([true, true]);
    scene.altered = undefined;
    await scene.pass(60_000);
    await leave('patient');
    await gone();
  });

  it('is ended by whoever comes after a crash', async () => {
    await scene.stopLoops();
    await scene.create(configMaps, { metadata: { name: 'a', namespace: 'room' } });
    await end();
    expect(await isThere(configMaps, 'room', 'a')).toBe(true);
    await scene.startLoops();
    await gone();
  });

  it('stays for finalizers of its own, emptied', async () => {
    const body = { metadata: { finalizers: ['example.com/hold'] } };
    await scene.client.patch(namespaces, '', 'room', { type: 'merge', body }, scene.signal);
    await end();
    await scene.until(async () => expect((await scene.get(namespaces, '', 'room')).spec?.finalizers ?? []).toEqual([]));
    scene.writes.length = 0;
    await scene.pass(60_000);
    expect(scene.writes).toEqual([]);
  });
});

it('leaves namespaces alone that are not deleted', async () => {
  await scene.create(configMaps, { metadata: { name: 'a', namespace: 'room' } });
  await scene.pass(10_000);
  expect([...scene.writes, ...scene.reads.filter((each) => each.includes('/namespaces/room'))]).toEqual([]);
});
