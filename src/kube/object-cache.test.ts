import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../api/meta.ts';
import { ObjectCache, withoutManagedFields } from './object-cache.ts';

function pod(name: string, version: string, node?: string, owners: readonly string[] = []): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      namespace: 'default',
      resourceVersion: version,
      ownerReferences: owners.map((uid) => ({ apiVersion: 'v1', kind: 'Thing', name: uid, uid })),
    },
    spec: node === undefined ? {} : { nodeName: node },
  };
}

const INDEXES = {
  node: (object: KubeObject) => {
    const { nodeName } = object['spec'] as { nodeName?: string };
    return nodeName === undefined ? [] : [nodeName];
  },
  owner: ({ metadata }: KubeObject) => (metadata.ownerReferences ?? []).map(({ uid }) => uid),
};

const names = (objects: readonly KubeObject[]): (string | undefined)[] => objects.map(({ metadata }) => metadata.name);

describe('a cache', () => {
  it('takes further indexes over what it has, and refuses another function under a known name', () => {
    const cache = new ObjectCache<KubeObject>();
    cache.set(pod('a', '1', 'node-1'));
    cache.addIndexes(INDEXES);
    cache.addIndexes(INDEXES);
    cache.set(pod('b', '2', 'node-1'));
    expect(names(cache.byIndex('node', 'node-1'))).toEqual(['a', 'b']);
    expect(() => cache.addIndexes({ node: () => [] })).toThrow('there is another index node already');
  });
  it('finds by key and by every index value, and nothing where there is nothing', () => {
    const cache = new ObjectCache(INDEXES);
    cache.set(pod('a', '1', 'node-1', ['x', 'y']));
    cache.set(pod('b', '2', 'node-1', ['y', 'y']));
    cache.set(pod('c', '3'));
    expect(cache.size).toBe(3);
    expect(names([...cache.list()])).toEqual(['a', 'b', 'c']);
    expect([...cache.keys()]).toEqual(['default/a', 'default/b', 'default/c']);
    expect(names(cache.byIndex('node', 'node-1'))).toEqual(['a', 'b']);
    expect(names(cache.byIndex('owner', 'x'))).toEqual(['a']);
    expect(names(cache.byIndex('owner', 'y'))).toEqual(['a', 'b']);
    expect(cache.byIndex('owner', 'z')).toEqual([]);
    expect(cache.get('default/none')).toBeUndefined();
    cache.delete('default/none');
    expect(cache.size).toBe(3);
  });

  it('answers the newest state through an index whose values did not change', () => {
    const cache = new ObjectCache(INDEXES);
    cache.set(pod('a', '1', 'node-1'));
    cache.set(pod('a', '2', 'node-1'));
    expect(cache.byIndex('node', 'node-1')[0]?.metadata.resourceVersion).toBe('2');
  });

  it('takes any names for names', () => {
    const cache = new ObjectCache({ __proto__: INDEXES.node, constructor: INDEXES.node } as never);
    cache.set(pod('__proto__', '1', 'constructor'));
    expect(names(cache.byIndex('constructor', 'constructor'))).toEqual(['__proto__']);
    expect(cache.byIndex('constructor', '__proto__')).toEqual([]);
    expect(() => cache.byIndex('toString', 'x')).toThrow('there is no index toString');
    expect(() => new ObjectCache().byIndex('x', 'y')).toThrow('there are none');
  });

  it('stays as it was when an index function throws', () => {
    let isBroken = false;
    const cache = new ObjectCache<KubeObject>({
      node: INDEXES.node,
      odd: () => {
        if (isBroken) throw new Error('a bug');
        return ['odd'];
      },
    });
    cache.set(pod('a', '1', 'node-1'));
    isBroken = true;
    expect(() => cache.set(pod('a', '2', 'node-2'))).toThrow('a bug');
    expect(() => cache.set(pod('b', '3', 'node-1'))).toThrow('a bug');
    expect(() => cache.delete('default/a')).toThrow('a bug');
    expect(names(cache.byIndex('node', 'node-1'))).toEqual(['a']);
    expect(cache.byIndex('node', 'node-2')).toEqual([]);
    expect(cache.get('default/a')?.metadata.resourceVersion).toBe('1');
  });

  it('finds what a scan would find, whatever came and went', () => {
    const value = fc.constantFrom('p', 'q', 'r');
    const step = fc.record({
      name: fc.constantFrom('a', 'b', 'c', 'd'),
      isDeleted: fc.boolean(),
      node: fc.option(value, { nil: undefined }),
      owners: fc.array(value, { maxLength: 4 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60, size: 'max' }), (steps) => {
        const cache = new ObjectCache(INDEXES);
        const model = new Map<string, KubeObject>();
        for (const [index, { name, isDeleted, node, owners }] of steps.entries()) {
          const object = pod(name, String(index), node, owners);
          if (isDeleted) {
            cache.delete(`default/${name}`);
            model.delete(name);
          } else {
            cache.set(object);
            model.set(name, object);
          }
          for (const [index, valuesOf] of Object.entries(INDEXES)) {
            for (const value of ['p', 'q', 'r']) {
              const expected = [...model.values()].filter((each) => valuesOf(each).includes(value));
              expect(new Set(cache.byIndex(index, value))).toEqual(new Set(expected));
              expect(cache.byIndex(index, value)).toHaveLength(expected.length);
              expect(cache.countByIndex(index, value)).toBe(expected.length);
            }
          }
        }
      }),
    );
  });
});

describe('without managed fields', () => {
  it('is everything else, in a copy', () => {
    const heavy = pod('a', '1');
    heavy.metadata.managedFields = [];
    expect(withoutManagedFields(heavy)).toEqual(pod('a', '1'));
    expect(heavy.metadata.managedFields).toEqual([]);
    const light = pod('a', '1');
    expect(withoutManagedFields(light)).toBe(light);
  });

  it('is still known who told a pod that it is about to be disrupted', () => {
    const entry = (manager: string, condition: string) => ({
      manager,
      operation: 'Update' as const,
      apiVersion: 'v1',
      time: '2026-01-01T00:00:00Z',
      fieldsType: 'FieldsV1' as const,
      fieldsV1: { 'f:status': { 'f:conditions': { [`k:{"type":"${condition}"}`]: { 'f:reason': {} } } } },
    });
    const scheduler = entry('scheduler', 'DisruptionTarget');
    const heavy = { ...pod('a', '1'), status: { conditions: [{ type: 'DisruptionTarget', status: 'True' }] } };
    heavy.metadata.managedFields = [entry('kubelet', 'Ready'), scheduler];
    expect(withoutManagedFields(heavy).metadata.managedFields).toEqual([scheduler]);
    expect(withoutManagedFields({ ...heavy, status: {} }).metadata.managedFields).toBeUndefined();
  });
});
