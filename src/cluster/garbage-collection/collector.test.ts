import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject, ObjectMeta, OwnerReference } from '../../api/meta.ts';
import { keyOf, type Resource } from '../../kube/resource.ts';
import { LoopScene } from '../loops.fixture.ts';
import { customResourceDefinitions } from '../resources.ts';
import { garbageCollectionLoop } from './loop.ts';

const core = (plural: string, kind: string): Resource => ({ group: '', version: 'v1', plural, kind, namespaced: true });
const configMaps = core('configmaps', 'ConfigMap');
const secrets = core('secrets', 'Secret');
const gadgets: Resource = { group: 'e.com', version: 'v1', plural: 'gadgets', kind: 'Gadget', namespaced: true };
const clusterRoles: Resource = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'clusterroles',
  kind: 'ClusterRole',
  namespaced: false,
};

let scene: LoopScene;

beforeEach(async () => {
  scene = new LoopScene(garbageCollectionLoop);
  await scene.start();
  await scene.namespace('room');
  await scene.pass(2000);
  scene.writes.length = 0;
  scene.reads.length = 0;
});

afterEach(() => scene.stop());

const make = (resource: Resource, name: string, owners: readonly OwnerReference[] = [], more: ObjectMeta = {}) =>
  scene.create(resource, {
    metadata: { name, ...(resource.namespaced ? { namespace: 'room' } : {}), ownerReferences: [...owners], ...more },
  });
const referenceTo = ({ apiVersion, kind, metadata }: KubeObject, more: Partial<OwnerReference> = {}) => ({
  apiVersion,
  kind,
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
  ...more,
});
const find = (resource: Resource, name: string, namespace = 'room'): Promise<KubeObject | undefined> =>
  scene.get(resource, resource.namespaced ? namespace : '', name).catch(() => undefined);
const isGone = (resource: Resource, name: string): Promise<void> =>
  scene.until(async () => expect(await find(resource, name)).toBeUndefined());
const ownersOf = async (resource: Resource, name: string): Promise<string[] | undefined> =>
  (await find(resource, name))?.metadata.ownerReferences?.map((each) => each.name);
const remove = (resource: Resource, name: string, propagationPolicy?: 'Orphan' | 'Background' | 'Foreground') => {
  const options = propagationPolicy ? { propagationPolicy } : {};
  return scene.client.delete(resource, resource.namespaced ? 'room' : '', name, scene.signal, options);
};

const SCHEMA = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };

async function define(): Promise<void> {
  await scene.create<KubeObject>(customResourceDefinitions, {
    metadata: { name: 'gadgets.e.com' },
    spec: {
      group: 'e.com',
      scope: 'Namespaced',
      names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: SCHEMA }],
    },
  });
  await scene.until(async () => expect(await scene.client.list(gadgets, {}, scene.signal)).toBeDefined());
  await scene.pass(2000);
}

describe('in the background', () => {
  it('dependents follow their owner, and theirs follow them', async () => {
    const top = await make(configMaps, 'top');
    const middle = await make(secrets, 'middle', [referenceTo(top)]);
    await make(configMaps, 'bottom', [referenceTo(middle)]);
    await make(configMaps, 'stranger');
    await remove(configMaps, 'top');
    await isGone(secrets, 'middle');
    await isGone(configMaps, 'bottom');
    expect(await find(configMaps, 'stranger')).toBeDefined();
    expect(scene.writes).toEqual([
      'DELETE /api/v1/namespaces/room/secrets/middle',
      'DELETE /api/v1/namespaces/room/configmaps/bottom',
    ]);
  });

  it('an owner is asked for once, however many dependents it had', async () => {
    const owner = await make(configMaps, 'owner');
    for (let index = 0; index < 20; index++) await make(secrets, `s${index}`, [referenceTo(owner)]);
    await remove(configMaps, 'owner');
    await scene.until(async () => {
      const { items } = await scene.client.list(secrets, { namespace: 'room' }, scene.signal);
      expect(items).toEqual([]);
    });
    expect(scene.reads.filter((each) => each.includes('/configmaps/owner'))).toHaveLength(1);
  });

  it('another object of the same name is no owner', async () => {
    const owner = await make(configMaps, 'owner');
    await scene.stopLoops();
    await make(secrets, 'dependent', [referenceTo(owner)]);
    await remove(configMaps, 'owner');
    await make(configMaps, 'owner');
    await scene.startLoops();
    await isGone(secrets, 'dependent');
    expect(await find(configMaps, 'owner')).toBeDefined();
  });

  it('whoever has another owner only loses the one that is gone', async () => {
    const [a, b] = [await make(configMaps, 'a'), await make(configMaps, 'b')];
    await make(secrets, 'shared', [referenceTo(a), referenceTo(b)]);
    await remove(configMaps, 'a');
    await scene.until(async () => expect(await ownersOf(secrets, 'shared')).toEqual(['b']));
    await remove(configMaps, 'b');
    await isGone(secrets, 'shared');
  });

  it('nobody is asked while all is well', async () => {
    const owner = await make(configMaps, 'owner');
    await make(secrets, 'dependent', [referenceTo(owner)]);
    await scene.pass(3000);
    await scene.stopLoops();
    scene.reads.length = 0;
    await scene.startLoops();
    await scene.pass(20_000);
    expect(scene.writes).toEqual([]);
    expect(scene.reads.filter((each) => each.includes('/namespaces/room/'))).toEqual([]);
  });
});

describe('in the foreground', () => {
  const blocking = { blockOwnerDeletion: true };

  it('an owner goes after those who block it, and theirs before them', async () => {
    const top = await make(configMaps, 'top');
    const middle = await make(secrets, 'middle', [referenceTo(top, blocking)]);
    await make(configMaps, 'bottom', [referenceTo(middle, blocking)], { finalizers: ['example.com/hold'] });
    await make(configMaps, 'free', [referenceTo(top)]);
    await remove(configMaps, 'top', 'Foreground');
    await isGone(configMaps, 'free');
    await scene.until(async () => expect((await find(configMaps, 'bottom'))?.metadata.deletionTimestamp).toBeDefined());
    expect((await find(secrets, 'middle'))?.metadata.finalizers).toEqual(['foregroundDeletion']);
    expect((await find(configMaps, 'top'))?.metadata.finalizers).toEqual(['foregroundDeletion']);
    const patch = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await scene.client.patch(configMaps, 'room', 'bottom', patch, scene.signal);
    await isGone(secrets, 'middle');
    await isGone(configMaps, 'top');
  });

  it('an owner does not wait for those who do not block it', async () => {
    const owner = await make(configMaps, 'owner');
    await make(secrets, 'free', [referenceTo(owner)], { finalizers: ['example.com/hold'] });
    await remove(configMaps, 'owner', 'Foreground');
    await isGone(configMaps, 'owner');
  });

  it('an owner lets go of those whom another one owns', async () => {
    const [a, b] = [await make(configMaps, 'a'), await make(configMaps, 'b')];
    await make(secrets, 'shared', [referenceTo(a, blocking), referenceTo(b, blocking)]);
    await remove(configMaps, 'a', 'Foreground');
    await isGone(configMaps, 'a');
    expect(await ownersOf(secrets, 'shared')).toEqual(['b']);
  });

  it('a circle comes to its end', async () => {
    const one = await make(configMaps, 'one');
    const two = await make(configMaps, 'two', [referenceTo(one, blocking)]);
    const body = { metadata: { ownerReferences: [referenceTo(two, blocking)] } };
    await scene.client.patch(configMaps, 'room', 'one', { type: 'merge', body }, scene.signal);
    await scene.settle();
    await remove(configMaps, 'one', 'Foreground');
    await isGone(configMaps, 'one');
    await isGone(configMaps, 'two');
  });

  it('goes on after a crash', async () => {
    const owner = await make(configMaps, 'owner');
    await make(secrets, 'dependent', [referenceTo(owner, blocking)]);
    await scene.stopLoops();
    await remove(configMaps, 'owner', 'Foreground');
    expect(await find(configMaps, 'owner')).toBeDefined();
    await scene.startLoops();
    await isGone(configMaps, 'owner');
    await isGone(secrets, 'dependent');
  });
});

describe('orphans', () => {
  it('are none where their owner has come to be deleted in another way, though nobody has heard of it yet', async () => {
    const owner = await make(configMaps, 'owner');
    await make(secrets, 'dependent', [referenceTo(owner, { blockOwnerDeletion: true })]);
    scene.lost = /^GET \/api\/v1\/namespaces\/room\/secrets/;
    await remove(configMaps, 'owner', 'Orphan');
    await scene.pass(1000);
    scene.hold('configmaps');
    await remove(configMaps, 'owner', 'Foreground');
    scene.lost = undefined;
    await scene.pass(10_000);
    expect(await ownersOf(secrets, 'dependent')).toEqual(['owner']);
    await scene.release('configmaps');
    await isGone(secrets, 'dependent');
    await isGone(configMaps, 'owner');
  });

  it('stay, without an owner', async () => {
    const [owner, other] = [await make(configMaps, 'owner'), await make(configMaps, 'other')];
    await make(secrets, 'orphan', [referenceTo(owner)]);
    await make(secrets, 'shared', [referenceTo(owner), referenceTo(other)]);
    await remove(configMaps, 'owner', 'Orphan');
    await isGone(configMaps, 'owner');
    await scene.pass(5000);
    expect(await ownersOf(secrets, 'orphan')).toBeUndefined();
    expect(await find(secrets, 'orphan')).toBeDefined();
    expect(await ownersOf(secrets, 'shared')).toEqual(['other']);
  });

  it("are not looked for outside their owner's namespace, where nothing can be its dependent", async () => {
    const owner = await make(configMaps, 'owner');
    await make(clusterRoles, 'wide', [referenceTo(owner)]);
    await scene.pass(2000);
    scene.reads.length = 0;
    await remove(configMaps, 'owner', 'Orphan');
    await isGone(configMaps, 'owner');
    expect(scene.reads.filter((each) => each.includes('/secrets'))).not.toEqual([]);
    expect(scene.reads.filter((each) => /\/(clusterroles|nodes|namespaces)\?/.test(each))).toEqual([]);
    expect(await ownersOf(clusterRoles, 'wide')).toEqual(['owner']);
  });

  it('are spared though nobody has seen them yet', async () => {
    const owner = await make(configMaps, 'owner');
    await scene.settle();
    scene.hold('secrets');
    await make(secrets, 'unseen', [referenceTo(owner)]);
    await remove(configMaps, 'owner', 'Orphan');
    await isGone(configMaps, 'owner');
    await scene.release('secrets');
    await scene.pass(5000);
    expect(await find(secrets, 'unseen')).toBeDefined();
  });
});

describe('with watches that are behind', () => {
  it('the dependent of an owner that was not seen yet is spared', async () => {
    scene.hold('configmaps');
    const owner = await make(configMaps, 'owner');
    await make(secrets, 'dependent', [referenceTo(owner)]);
    await scene.pass(30_000);
    expect(await find(secrets, 'dependent')).toBeDefined();
    await scene.release('configmaps');
    await scene.pass(1000);
    scene.reads.length = 0;
    await scene.pass(60_000);
    expect(scene.reads.filter((each) => each.includes('/namespaces/'))).toEqual([]);
    await remove(configMaps, 'owner');
    await isGone(secrets, 'dependent');
  });

  it('one that has found another owner meanwhile is spared', async () => {
    const [a, b] = [await make(configMaps, 'a'), await make(configMaps, 'b')];
    await make(secrets, 'moved', [referenceTo(a)]);
    await scene.settle();
    scene.hold('secrets');
    const body = { metadata: { ownerReferences: [referenceTo(b)] } };
    await scene.client.patch(secrets, 'room', 'moved', { type: 'merge', body }, scene.signal);
    await remove(configMaps, 'a');
    await scene.pass(30_000);
    expect(await ownersOf(secrets, 'moved')).toEqual(['b']);
    expect(scene.writes).toEqual([]);
  });

  it('an owner that came and went unseen leaves nothing behind', async () => {
    scene.hold('configmaps');
    const owner = await make(configMaps, 'owner');
    await make(secrets, 'dependent', [referenceTo(owner)]);
    await scene.pass(2000);
    await remove(configMaps, 'owner');
    await scene.pass(10_000);
    expect(await find(secrets, 'dependent')).toBeUndefined();
  });
});

describe('references that lead nowhere', () => {
  it('into another namespace are said to, and whoever has no other goes', async () => {
    await scene.namespace('elsewhere');
    const owner = await make(configMaps, 'owner', [], { namespace: 'elsewhere' });
    await scene.settle();
    await make(secrets, 'dependent', [referenceTo(owner)]);
    await isGone(secrets, 'dependent');
    const { uid } = owner.metadata;
    await scene.until(async () =>
      expect(await scene.events('room')).toEqual([
        `dependent Warning OwnerRefInvalidNamespace: ownerRef [v1/ConfigMap, namespace: room, name: owner, uid: ${uid}] does not exist in namespace "room"`,
      ]),
    );
    expect(await find(configMaps, 'owner', 'elsewhere')).toBeDefined();
  });

  it('from what has no namespace into one are said to, and whoever has one stays', async () => {
    const owner = await make(configMaps, 'owner');
    await make(clusterRoles, 'role', [referenceTo(owner)]);
    await make(clusterRoles, 'lost', [{ ...referenceTo(owner), uid: 'nobody' }]);
    await scene.pass(5000);
    await remove(configMaps, 'owner');
    await scene.pass(30_000);
    expect(await find(clusterRoles, 'role')).toBeDefined();
    expect(await find(clusterRoles, 'lost')).toBeDefined();
    expect((await scene.events('default')).map((each) => each.split(':')[0])).toEqual(
      expect.arrayContaining(['role Warning OwnerRefInvalidNamespace', 'lost Warning OwnerRefInvalidNamespace']),
    );
  });

  it('to a kind that nobody knows keep whoever has one, and nobody is asked about the others', async () => {
    const known = { apiVersion: 'v1', kind: 'ConfigMap', name: 'nobody', uid: 'nobody' };
    await make(secrets, 'keeps', [known, { apiVersion: 'e.com/v9', kind: 'Unknown', name: 'x', uid: 'x' }]);
    await scene.pass(120_000);
    expect(await find(secrets, 'keeps')).toBeDefined();
    expect(scene.reads.filter((each) => each.includes('/configmaps/nobody'))).toHaveLength(1);
  });

  it('to the right UID under a wrong name are worth nothing', async () => {
    const owner = await make(configMaps, 'owner');
    await make(secrets, 'right', [referenceTo(owner)]);
    await make(secrets, 'wrong', [referenceTo(owner, { name: 'other' })]);
    await isGone(secrets, 'wrong');
    expect(await find(secrets, 'right')).toBeDefined();
  });
});

describe('custom resources', () => {
  it('are collected as soon as they are served', async () => {
    await define();
    const owner = await make(configMaps, 'owner');
    const gadget = await make(gadgets, 'gadget', [referenceTo(owner)]);
    await make(secrets, 'part', [referenceTo(gadget)]);
    await make(gadgets, 'shared', [referenceTo(owner), referenceTo(await make(configMaps, 'other'))]);
    await remove(configMaps, 'owner');
    await isGone(gadgets, 'gadget');
    await isGone(secrets, 'part');
    await scene.until(async () => expect(await ownersOf(gadgets, 'shared')).toEqual(['other']));
  });

  it('take their dependents with them when they are served no more', async () => {
    await define();
    await make(secrets, 'part', [referenceTo(await make(gadgets, 'gadget'))]);
    await scene.pass(2000);
    await remove(customResourceDefinitions, 'gadgets.e.com');
    await isGone(customResourceDefinitions, 'gadgets.e.com');
    await scene.pass(5000);
    await isGone(secrets, 'part');
  });

  it('block their owner, too, while another version takes over', async () => {
    await define();
    const owner = await make(configMaps, 'owner');
    const held = { finalizers: ['example.com/hold'] };
    await make(gadgets, 'held', [referenceTo(owner, { blockOwnerDeletion: true })], held);
    await remove(configMaps, 'owner', 'Foreground');
    await scene.until(async () => expect((await find(gadgets, 'held'))?.metadata.deletionTimestamp).toBeDefined());
    scene.hold('gadgets');
    const versions = ['v1', 'v2'].map((name) => ({ name, served: true, storage: name === 'v1', schema: SCHEMA }));
    const patch = { type: 'merge', body: { spec: { versions } } } as const;
    await scene.client.patch(customResourceDefinitions, '', 'gadgets.e.com', patch, scene.signal);
    await scene.pass(5000);
    await scene.release('gadgets');
    await scene.pass(5000);
    expect(await find(configMaps, 'owner')).toBeDefined();
    const unheld = { type: 'merge', body: { metadata: { finalizers: null } } } as const;
    await scene.client.patch(gadgets, 'room', 'held', unheld, scene.signal);
    await isGone(configMaps, 'owner');
  });

  it('are watched while they are served, and no longer', async () => {
    await define();
    await remove(customResourceDefinitions, 'gadgets.e.com');
    await isGone(customResourceDefinitions, 'gadgets.e.com');
    await scene.pass(60_000);
    scene.reads.length = 0;
    await scene.pass(60_000);
    expect(scene.reads.filter((each) => each.includes(gadgets.plural))).toEqual([]);
  });
});

it('collects many at once', async () => {
  const owner = await make(configMaps, 'owner');
  const made = await Promise.all(
    Array.from({ length: 300 }, (_, index) => make(secrets, `s${index}`, [referenceTo(owner)])),
  );
  expect(new Set(made.map(keyOf)).size).toBe(300);
  await remove(configMaps, 'owner');
  await scene.until(async () =>
    expect((await scene.client.list(secrets, { namespace: 'room' }, scene.signal)).items).toEqual([]),
  );
});
