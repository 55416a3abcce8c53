import { beforeEach, describe, expect, it } from 'vitest';
import { builtin, objectSchema } from '../../api/kinds/meta.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { int32, message, str } from '../../api/schema.ts';
import { ApiError } from '../../api/status.ts';
import { testEnv } from '../../env/test.ts';
import { AdmissionChain } from '../admission/chain.ts';
import { MemoryEngine } from '../storage/memory-engine.ts';
import { Store } from '../storage/store.ts';
import { Catalog } from './catalog.ts';
import type { AdmissionPlugin, Target, WriteContext } from './contract.ts';
import { ResourceRegistry } from './registry.ts';

const widgets: ResourceDefinition = builtin({
  group: 'example.com',
  version: 'v1',
  plural: 'widgets',
  kind: 'Widget',
  namespaced: true,
  hasStatus: true,
  hasGeneration: true,
  schema: objectSchema('Widget', 'A widget.', {
    spec: [2, message('WidgetSpec', 'Its spec.', { size: [1, int32({ default: 3, minimum: 1 })], color: [2, str()] })],
    status: [3, message('WidgetStatus', 'Its status.', { phase: [1, str()] })],
  }),
});

const context: WriteContext = {
  user: { username: 'ada', groups: [] },
  dryRun: false,
  fieldManager: 'test',
  warnings: [],
  signal: new AbortController().signal,
};
const target = (name = ''): Target => ({ definition: widgets, namespace: 'default', name });
const widget = (name: string, spec: object = {}): KubeObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
});

let store: Store;
let registry: ResourceRegistry;
let plugins: AdmissionPlugin[];

beforeEach(async () => {
  plugins = [];
  store = await Store.open(new MemoryEngine(), {
    onFatal: (error) => {
      throw error;
    },
  });
  const chain = new Proxy(new AdmissionChain([]), {
    get: (_chain, method: 'mutate' | 'validate') =>
      new AdmissionChain(plugins)[method].bind(new AdmissionChain(plugins)),
  });
  registry = new ResourceRegistry({ env: testEnv(), store, catalog: new Catalog([widgets]), admission: () => chain });
});

describe('create', () => {
  it('completes identity, defaults and managed fields', async () => {
    const created = await registry.create(context, target(), { ...widget('a'), status: { phase: 'Forged' } });
    expect(created.metadata).toMatchObject({
      name: 'a',
      namespace: 'default',
      generation: 1,
      creationTimestamp: '2026-01-01T00:00:00Z',
      resourceVersion: '2',
    });
    expect(created.metadata.uid).toMatch(/^[0-9a-f-]{36}$/);
    expect(created['spec']).toEqual({ size: 3 });
    expect(created.metadata.managedFields).toMatchObject([{ manager: 'test', operation: 'Update' }]);
    expect(registry.read(target('a'))).toEqual(created);
  });
  it('generates names, and refuses a second object of one name', async () => {
    const made = await registry.create(context, target(), { ...widget(''), metadata: { generateName: 'w-' } });
    expect(made.metadata.name).toMatch(/^w-[a-z0-9]{5}$/);
    await registry.create(context, target(), widget('a'));
    await expect(registry.create(context, target(), widget('a'))).rejects.toThrow(
      'widgets.example.com "a" already exists',
    );
  });
  it.each([
    [{ ...widget('A_b') }, 'metadata.name: Invalid value'],
    [widget('a', { size: 0 }), 'spec.size: Invalid value'],
    [{ ...widget('a'), metadata: { name: 'a', namespace: 'other' } }, 'does not match the namespace'],
    [{ ...widget('a'), metadata: { name: 'a', resourceVersion: '7' } }, 'resourceVersion should not be set'],
    [{ ...widget(''), metadata: {} }, 'name or generateName is required'],
  ])('refuses %j', async (object, message) => {
    await expect(registry.create(context, target(), object as KubeObject)).rejects.toThrow(message);
    expect(store.list('widgets.example.com', {}).items).toEqual([]);
  });
  it('stores nothing on a dry run, but finds the same faults', async () => {
    const dry = { ...context, dryRun: true };
    expect((await registry.create(dry, target(), widget('a'))).metadata.uid).toBeDefined();
    expect(registry.read(target('a'))).toBeUndefined();
    await expect(registry.create(dry, target(), widget('a', { size: 0 }))).rejects.toThrow(ApiError);
  });
});

/** A mutating plug-in that does this to every object. */
const mutator = (mutate: (object: KubeObject) => void): AdmissionPlugin => ({
  name: 'mutator',
  handles: () => true,
  mutate: async ({ object }) => {
    await Promise.resolve();
    if (object) mutate(object);
  },
});

describe('admission', () => {
  it('comes before what the server decides, on create', async () => {
    plugins.push(
      mutator((object) => {
        expect(object.metadata.uid).toBeUndefined();
        Object.assign(object.metadata, { generation: 9, creationTimestamp: '2001-01-01T00:00:00Z' });
        object['status'] = { phase: 'Forged' };
      }),
    );
    const created = await registry.create(context, target(), widget('a'));
    expect(created.metadata).toMatchObject({ generation: 1, creationTimestamp: '2026-01-01T00:00:00Z' });
  });

  it('leaves what it adds without an owner, as the server does with what it decides', async () => {
    plugins.push(
      mutator((object) => {
        object.metadata.labels = { added: 'x' };
        object.metadata.managedFields = [];
      }),
    );
    const created = await registry.create(context, target(), { ...widget('a'), status: { phase: 'Forged' } });
    expect(created.metadata.labels).toEqual({ added: 'x' });
    const owned = created.metadata.managedFields?.map(({ fieldsV1 }) => Object.keys(fieldsV1 ?? {}));
    expect(owned).toEqual([['f:spec']]);
    const changed = await registry.update(context, target('a'), (current) => ({ ...current, spec: { size: 7 } }));
    expect(changed.metadata.managedFields).toHaveLength(1);
  });

  it('makes a new generation of what it changes, and reaches no status through the object', async () => {
    await registry.create(context, target(), widget('a'));
    plugins.push(
      mutator((object) => {
        object['spec'] = { ...(object['spec'] as object), color: 'red' };
        object['status'] = { phase: 'Forged' };
      }),
    );
    const changed = await registry.update(context, target('a'), (current) => {
      current.metadata.labels = { a: 'b' };
      return current;
    });
    expect(changed).toMatchObject({ metadata: { generation: 2 }, spec: { color: 'red' } });
    expect(changed['status']).toBeUndefined();
  });
});

describe('update', () => {
  it('does not count what defaults put back', async () => {
    const created = await registry.create(context, target(), widget('a'));
    const updated = await registry.update(context, target('a'), (current) => ({ ...current, spec: {} }));
    expect(updated.metadata).toEqual(created.metadata);
  });

  it('counts generations of the spec alone and keeps status and spec apart', async () => {
    await registry.create(context, target(), widget('a'));
    const changed = await registry.update(context, target('a'), (current) => ({
      ...current,
      spec: { size: 5 },
      status: { phase: 'Forged' },
    }));
    expect(changed.metadata.generation).toBe(2);
    expect(changed['status']).toBeUndefined();
    const reported = await registry.update(context, { ...target('a'), subresource: 'status' }, (current) => ({
      ...current,
      spec: { size: 9 },
      status: { phase: 'Ready' },
    }));
    expect(reported).toMatchObject({ metadata: { generation: 2 }, spec: { size: 5 }, status: { phase: 'Ready' } });
  });
  it('writes nothing when nothing changes', async () => {
    const created = await registry.create(context, target(), widget('a'));
    const same = await registry.update(context, target('a'), (current) => current);
    expect(same).toEqual(created);
    expect(store.revision).toBe(2);
  });
  it('refuses a stale version and another UID, and leaves identity alone', async () => {
    const created = await registry.create(context, target(), widget('a'));
    await registry.update(context, target('a'), (current) => ({ ...current, spec: { size: 5 } }));
    await expect(registry.update(context, target('a'), () => ({ ...created, spec: { size: 6 } }))).rejects.toThrow(
      'the object has been modified',
    );
    await expect(
      registry.update(context, target('a'), (current) => ({
        ...current,
        metadata: { ...current.metadata, uid: 'other' },
      })),
    ).rejects.toThrow('Precondition failed: UID');
    await expect(registry.update(context, target('missing'), (current) => current)).rejects.toThrow('not found');
    const moved = await registry.update(context, target('a'), (current) => ({
      ...current,
      metadata: { ...current.metadata, creationTimestamp: '1999-01-01T00:00:00Z', generation: 77 },
    }));
    expect(moved.metadata).toMatchObject({ creationTimestamp: created.metadata.creationTimestamp, generation: 2 });
  });
  it('takes many at once one after the other, each once, where nobody has to be waited for', async () => {
    await registry.create(context, target(), widget('a', { size: 1 }));
    let changes = 0;
    const grow = (current: KubeObject): KubeObject => {
      changes++;
      const { size } = current['spec'] as { size: number };
      return { ...current, spec: { size: size + 1 } };
    };
    const updated = await Promise.all(Array.from({ length: 50 }, () => registry.update(context, target('a'), grow)));
    expect(updated.map((object) => (object['spec'] as { size: number }).size).at(-1)).toBe(51);
    expect(changes).toBe(50);
  });

  it('starts again when another write comes between: no increment is lost', async () => {
    await registry.create(context, target(), widget('a', { size: 1 }));
    const increment = (current: KubeObject): KubeObject => ({
      ...current,
      spec: { size: (current['spec'] as { size: number }).size + 1 },
    });
    await Promise.all(
      Array.from({ length: 20 }, () => registry.update(context, target('a'), async (current) => increment(current))),
    );
    expect(registry.read(target('a'))).toMatchObject({ spec: { size: 21 }, metadata: { generation: 21 } });
  });
});

describe('admission', () => {
  it('mutates before validation, validates last, and owns what it changed', async () => {
    plugins = [
      {
        name: 'painter',
        handles: () => true,
        mutate: async ({ object }) => {
          if (object) (object['spec'] as { color?: string }).color = 'red';
        },
        validate: async ({ object }) => {
          if ((object?.['spec'] as { size: number } | undefined)?.size === 13)
            throw new ApiError(403, 'Forbidden', 'unlucky');
        },
      },
    ];
    expect(await registry.create(context, target(), widget('a'))).toMatchObject({ spec: { color: 'red', size: 3 } });
    await expect(registry.create(context, target(), widget('b', { size: 13 }))).rejects.toThrow('unlucky');
    expect(registry.read(target('b'))).toBeUndefined();
    expect(await registry.create({ ...context, isAdmitted: true }, target(), widget('c', { size: 13 }))).toMatchObject({
      spec: { size: 13 },
    });
  });
});

describe('delete', () => {
  it('removes, or marks until the last finalizer goes', async () => {
    await registry.create(context, target(), widget('a'));
    expect(await registry.delete(context, target('a'), {})).toMatchObject({ gone: true });
    expect(registry.read(target('a'))).toBeUndefined();
    await registry.create(context, target(), { ...widget('b'), metadata: { name: 'b', finalizers: ['x/y'] } });
    expect(await registry.delete(context, target('b'), {})).toMatchObject({ gone: false });
    expect(registry.read(target('b'))?.metadata.deletionTimestamp).toBeDefined();
    await registry.update(context, target('b'), (current) => ({
      ...current,
      metadata: { ...current.metadata, finalizers: [] },
    }));
    expect(registry.read(target('b'))).toBeUndefined();
  });
  it('honours preconditions', async () => {
    await registry.create(context, target(), widget('a'));
    await expect(registry.delete(context, target('a'), { preconditions: { uid: 'other' } })).rejects.toThrow(
      'the UID in the precondition (other) does not match the UID in record',
    );
    await expect(registry.delete(context, target('missing'), {})).rejects.toThrow('not found');
  });
});

describe('views', () => {
  it('follow every acknowledged write', async () => {
    const view = registry.view('widgets.example.com');
    const seen: string[] = [];
    view.onChange((object, old) => seen.push(`${old ? 'old' : '-'}>${object ? 'new' : '-'}`));
    await registry.create(context, target(), widget('a'));
    expect(view.get('default', 'a')).toMatchObject({ spec: { size: 3 } });
    await registry.update(context, target('a'), (current) => ({ ...current, spec: { size: 4 } }));
    expect(view.list('default')).toHaveLength(1);
    await registry.delete(context, target('a'), {});
    expect(view.list()).toEqual([]);
    expect(seen).toEqual(['->new', 'old>new', 'old>-']);
  });
});
