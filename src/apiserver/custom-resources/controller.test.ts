import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { ApiError } from '../../api/status.ts';
import { testEnv } from '../../env/test.ts';
import { clone } from '../../machinery/clone.ts';
import { CustomResources, type StoredObject } from './controller.ts';
import { customResourceDefinitionStrategy } from './strategy.ts';
import { CLEANUP_FINALIZER, conditionOf, type CustomResourceDefinition } from './wire.ts';

function crd(plural: string, names: object = {}, spec: object = {}): CustomResourceDefinition {
  const kind = plural[0]?.toUpperCase() + plural.slice(1, -1);
  const object = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.example.com`, creationTimestamp: '2026-01-01T00:00:00Z' },
    spec: {
      group: 'example.com',
      scope: 'Namespaced',
      names: { plural, kind, ...names },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      ...spec,
    },
  } as CustomResourceDefinition;
  customResourceDefinitionStrategy.applyDefaults?.(object);
  customResourceDefinitionStrategy.prepareForCreate?.(object);
  return object;
}

/** A fake of the registry: a map of CRDs that tells its listener of every change, and a list of custom objects. */
class FakeStore {
  readonly crds = new Map<string, CustomResourceDefinition>();
  objects: StoredObject[] = [];
  statusWrites = 0;
  refuseDeletes: string | undefined;
  #listener: (object: KubeObject | undefined, old: KubeObject | undefined) => void = () => undefined;

  readonly ports = {
    crds: {
      get: (_: string, name: string) => this.crds.get(name),
      list: () => [...this.crds.values()],
      onChange: (listener: (object: KubeObject | undefined, old: KubeObject | undefined) => void) => {
        this.#listener = listener;
      },
    },
    builtins: [] as ResourceDefinition[],
    objects: () => this.objects,
    deleteObject: async (_: ResourceDefinition, namespace: string, name: string) => {
      await Promise.resolve();
      if (this.refuseDeletes) throw new ApiError(403, 'Forbidden', this.refuseDeletes);
      const index = this.objects.findIndex((each) => each.namespace === namespace && each.name === name);
      if (index < 0) throw new ApiError(404, 'NotFound', 'gone');
      if (name.startsWith('sticky')) this.objects[index] = { namespace, name, terminating: true };
      else this.objects.splice(index, 1);
    },
    updateStatus: async (name: string, change: (object: KubeObject) => void) => {
      await Promise.resolve();
      this.statusWrites++;
      const next = clone(this.crds.get(name));
      if (!next) throw new ApiError(404, 'NotFound', 'gone');
      change(next);
      this.put(next);
    },
    removeFinalizer: async (name: string, finalizer: string) => {
      await Promise.resolve();
      const next = clone(this.crds.get(name));
      if (!next) throw new ApiError(404, 'NotFound', 'gone');
      next.metadata.finalizers = next.metadata.finalizers?.filter((each) => each !== finalizer) ?? [];
      if (next.metadata.finalizers.length === 0) this.drop(name);
      else this.put(next);
    },
  };

  put(object: CustomResourceDefinition): void {
    const name = object.metadata.name ?? '';
    const old = this.crds.get(name);
    this.crds.set(name, object);
    this.#listener(object, old);
  }

  drop(name: string): void {
    const old = this.crds.get(name);
    this.crds.delete(name);
    this.#listener(undefined, old);
  }

  terminate(name: string): void {
    const next = clone(this.crds.get(name)) as CustomResourceDefinition;
    next.metadata.deletionTimestamp = '2026-01-02T00:00:00Z';
    this.put(next);
  }

  condition(name: string, type: string): { status?: string; reason?: string } {
    const object = this.crds.get(`${name}.example.com`);
    return (object && conditionOf(object, type)) ?? {};
  }
}

const settle = async (): Promise<void> => {
  for (let round = 0; round < 50; round++) await Promise.resolve();
};

function start(store = new FakeStore()) {
  const env = testEnv();
  const custom = new CustomResources(env, store.ports);
  const stop = new AbortController();
  const running = custom.run(stop.signal);
  return {
    env,
    store,
    custom,
    plurals: () => custom.definitions().map((definition) => definition.plural),
    end: async (): Promise<void> => {
      stop.abort();
      await running;
    },
  };
}

describe('custom resources', () => {
  it('serves a CRD from the moment it is stored, and writes its status in one go', async () => {
    const { store, custom, plurals, end } = start();
    let changes = 0;
    custom.onChange(() => changes++);
    store.put(crd('foos'));
    expect(plurals()).toEqual(['foos']);
    expect(changes).toBe(1);
    await settle();
    expect(store.statusWrites).toBe(1);
    expect(store.condition('foos', 'Established')).toMatchObject({ status: 'True', reason: 'InitialNamesAccepted' });
    expect(store.condition('foos', 'NamesAccepted')).toMatchObject({ status: 'True', reason: 'NoConflicts' });
    expect(store.crds.get('foos.example.com')?.status).toMatchObject({
      acceptedNames: { plural: 'foos', singular: 'foo', kind: 'Foo', listKind: 'FooList' },
      storedVersions: ['v1'],
    });
    expect(changes).toBe(1);
    await end();
  });

  it('keeps the same definition objects when only the status changes', async () => {
    const { store, custom, end } = start();
    store.put(crd('foos'));
    const [before] = custom.definitions();
    await settle();
    expect(custom.definitions()[0]).toBe(before);
    await end();
  });

  it('refuses a CRD whose kind is taken until the other is gone', async () => {
    const { store, plurals, end } = start();
    store.put(crd('foos', { shortNames: ['f'] }));
    store.put(crd('bars', { kind: 'Foo', shortNames: ['f'] }));
    await settle();
    expect(plurals()).toEqual(['foos']);
    expect(store.condition('bars', 'NamesAccepted')).toMatchObject({ status: 'False', reason: 'ListKindConflict' });
    expect(store.condition('bars', 'Established')).toMatchObject({ status: 'False', reason: 'NotAccepted' });
    store.terminate('foos.example.com');
    await settle();
    expect(plurals()).toEqual(['bars']);
    expect(store.condition('bars', 'Established').status).toBe('True');
    await end();
  });

  it('goes on serving an established CRD whose new short name is taken, under its old names', async () => {
    const { store, custom, end } = start();
    store.put(crd('foos', { shortNames: ['f'] }));
    store.put(crd('bars', { shortNames: ['b'] }));
    await settle();
    const next = clone(store.crds.get('bars.example.com')) as CustomResourceDefinition;
    Object.assign(next.spec?.names ?? {}, { shortNames: ['f', 'b'] });
    store.put(next);
    await settle();
    expect(store.condition('bars', 'NamesAccepted')).toMatchObject({
      status: 'False',
      reason: 'ShortNamesConflict',
      message: '"f" is already in use',
    });
    expect(store.condition('bars', 'Established').status).toBe('True');
    expect(custom.definitions().find((each) => each.plural === 'bars')?.shortNames).toEqual(['b']);
    await end();
  });

  it('lets no CRD take the name of a built-in resource', async () => {
    const store = new FakeStore();
    const builtin = { group: 'example.com', plural: 'foos', singular: 'foo', kind: 'Foo', listKind: 'FooList' };
    store.ports.builtins.push(builtin as ResourceDefinition);
    const { plurals, end } = start(store);
    store.put(crd('foos'));
    await settle();
    expect(plurals()).toEqual([]);
    expect(store.condition('foos', 'NamesAccepted').status).toBe('False');
    await end();
  });

  it('prefers what was established before a restart over what is merely older', async () => {
    const store = new FakeStore();
    const first = start(store);
    store.put(crd('foos'));
    await settle();
    await first.end();
    const waiting = crd('bars', { kind: 'Foo' });
    waiting.metadata.creationTimestamp = '2020-01-01T00:00:00Z';
    store.crds.set('bars.example.com', waiting);
    const second = start(store);
    expect(second.plurals()).toEqual(['foos']);
    await second.end();
  });

  it('deletes all objects of a deleted CRD before it lets it go', async () => {
    const { env, store, custom, plurals, end } = start();
    store.put(crd('foos'));
    await settle();
    for (let index = 0; index < 150; index++) {
      store.objects.push({ namespace: 'ns', name: `foo-${index}`, terminating: false });
    }
    store.objects.push({ namespace: 'ns', name: 'sticky', terminating: false });
    store.terminate('foos.example.com');
    expect(custom.definitions()[0]?.verbs).not.toContain('create');
    await settle();
    expect(store.objects.map((each) => each.name)).toEqual(['sticky']);
    expect(store.condition('foos', 'Terminating')).toMatchObject({
      status: 'True',
      reason: 'InstanceDeletionInProgress',
    });
    expect(plurals()).toEqual(['foos']);
    store.objects = [];
    env.clock.advance(500);
    await settle();
    expect(store.crds.size).toBe(0);
    expect(plurals()).toEqual([]);
    await end();
  });

  it('says why objects cannot be deleted, and tries again', async () => {
    const { env, store, end } = start();
    store.put(crd('foos'));
    await settle();
    store.objects.push({ namespace: 'ns', name: 'foo', terminating: false });
    store.refuseDeletes = 'not on my watch';
    store.terminate('foos.example.com');
    await settle();
    env.clock.advance(1_000);
    await settle();
    expect(store.condition('foos', 'Terminating')).toMatchObject({
      reason: 'InstanceDeletionFailed',
      message: 'could not issue all deletes: not on my watch',
    });
    store.refuseDeletes = undefined;
    env.clock.advance(10_000);
    await settle();
    expect(store.crds.size).toBe(0);
    await end();
  });

  it('finishes a clean-up that a restart interrupted', async () => {
    const store = new FakeStore();
    const first = start(store);
    store.put(crd('foos'));
    await settle();
    await first.end();
    store.objects.push({ namespace: '', name: 'foo', terminating: false });
    store.terminate('foos.example.com');
    expect(store.crds.get('foos.example.com')?.metadata.finalizers).toEqual([CLEANUP_FINALIZER]);
    const second = start(store);
    await settle();
    expect(store.objects).toEqual([]);
    expect(store.crds.size).toBe(0);
    await second.end();
  });
});
