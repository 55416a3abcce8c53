import { describe, expect, it } from 'vitest';
import { objectSchema } from '../../api/kinds/meta.ts';
import type { KubeObject, ManagedFieldsEntry } from '../../api/meta.ts';
import { type Schema, int32, list, listMap, map, message, set, str } from '../../api/schema.ts';
import { clone } from '../clone.ts';
import { type TrackedUpdate, trackUpdate } from './managed-fields.ts';

const container = message('Container', '', {
  name: [1, str()],
  image: [2, str()],
  args: [3, list(str())],
  ports: [
    4,
    listMap(
      ['containerPort', 'protocol'],
      message('Port', '', { containerPort: [1, int32()], protocol: [2, str({ default: 'TCP' })], name: [3, str()] }),
    ),
  ],
});

const schema: Schema = objectSchema('Thing', '', {
  data: [2, map(str())],
  spec: [
    3,
    message('ThingSpec', '', {
      replicas: [1, int32()],
      containers: [2, listMap(['name'], container)],
      tags: [3, set(str())],
      selector: [4, map(str(), { 'x-kubernetes-map-type': 'atomic' })],
    }),
  ],
  status: [4, message('ThingStatus', '', { phase: [1, str()] })],
});

const T1 = '2026-01-01T00:00:01Z';
const T2 = '2026-01-01T00:00:02Z';

interface Thing extends KubeObject {
  data?: Record<string, string>;
  spec?: { replicas?: number; containers?: { name: string; image?: string }[]; tags?: string[]; b?: string };
  status?: { phase?: string };
}

function thing(fields: Record<string, unknown>, metadata: KubeObject['metadata'] = {}): Thing {
  return {
    apiVersion: 'v1',
    kind: 'Thing',
    metadata: { name: 'x', namespace: 'ns', uid: 'u', ...metadata },
    ...fields,
  };
}

function track(
  live: KubeObject | undefined,
  updated: KubeObject,
  more: Partial<TrackedUpdate> = {},
): ManagedFieldsEntry[] {
  const before = JSON.stringify([live, updated]);
  const entries = trackUpdate({
    live,
    updated,
    schema,
    manager: 'm',
    apiVersion: 'v1',
    subresource: '',
    time: T1,
    ...more,
  });
  expect(JSON.stringify([live, updated])).toBe(before);
  return entries;
}

/** The object with the managed fields of its creation by `manager`. */
function created(object: Thing, manager = 'creator'): Thing {
  const copy = clone(object);
  copy.metadata.managedFields = track(undefined, object, { manager });
  return copy;
}

function fieldsOf(entries: readonly ManagedFieldsEntry[], manager: string): unknown {
  return entries.find((entry) => entry.manager === manager)?.fieldsV1;
}

/** The next state of an object: changed, and without managed fields, as most clients send it. */
function change(object: Thing, mutate: (copy: Required<Thing>) => void): Thing {
  const copy = clone(object) as Required<Thing>;
  delete copy.metadata.managedFields;
  mutate(copy);
  return copy;
}

describe('trackUpdate on create', () => {
  it('gives the creator every field, in the form that kubectl shows', () => {
    const object = thing(
      {
        data: { b: '1', a: '2' },
        spec: {
          replicas: 1,
          containers: [{ name: 'c', image: 'i', args: ['x'], ports: [{ containerPort: 80 }, { containerPort: 9 }] }],
          tags: ['t'],
          selector: { app: 'x' },
        },
      },
      { labels: { app: 'x' }, generateName: 'x-', finalizers: ['f'] },
    );
    const [entry, ...others] = track(undefined, object, { manager: 'kubectl-create' });
    expect(others).toEqual([]);
    expect(JSON.stringify(entry)).toBe(
      JSON.stringify({
        manager: 'kubectl-create',
        operation: 'Update',
        apiVersion: 'v1',
        time: T1,
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:data': { '.': {}, 'f:a': {}, 'f:b': {} },
          'f:metadata': {
            'f:finalizers': { '.': {}, 'v:"f"': {} },
            'f:generateName': {},
            'f:labels': { '.': {}, 'f:app': {} },
          },
          // What Go holds by value is there before anybody sets it: the spec itself is nobody's.
          'f:spec': {
            'f:containers': {
              '.': {},
              'k:{"name":"c"}': {
                '.': {},
                'f:args': {},
                'f:image': {},
                'f:name': {},
                'f:ports': {
                  '.': {},
                  'k:{"containerPort":9,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} },
                  'k:{"containerPort":80,"protocol":"TCP"}': { '.': {}, 'f:containerPort': {} },
                },
              },
            },
            'f:replicas': {},
            'f:selector': {},
            'f:tags': { '.': {}, 'v:"t"': {} },
          },
        },
      }),
    );
  });

  it('owns nothing of what the server sets or of the name (TestApplyStripsFields)', () => {
    const object = thing(
      {},
      {
        generation: 1,
        resourceVersion: '5',
        creationTimestamp: T1,
        deletionTimestamp: T1,
        deletionGracePeriodSeconds: 3,
        selfLink: '/x',
      },
    );
    expect(track(undefined, object)).toEqual([]);
  });

  it('names an unnamed manager unknown, and the subresource', () => {
    expect(track(undefined, thing({ data: { a: '1' } }), { manager: '', subresource: 'status' })).toMatchObject([
      { manager: 'unknown', subresource: 'status' },
    ]);
  });
});

describe('trackUpdate on update', () => {
  const live = created(thing({ data: { a: '1', b: '2' }, spec: { replicas: 1, tags: ['x'] } }));

  it('moves what changed to the updater and leaves the rest (TestTakingOverManagedFieldsDuringUpdate...)', () => {
    const entries = track(
      live,
      change(live, (copy) => {
        copy.data.b = '3';
        copy.data.c = '4';
      }),
      { time: T2 },
    );
    expect(fieldsOf(entries, 'm')).toEqual({ 'f:data': { 'f:b': {}, 'f:c': {} } });
    expect(fieldsOf(entries, 'creator')).toEqual({
      'f:data': { '.': {}, 'f:a': {} },
      'f:spec': { 'f:replicas': {}, 'f:tags': { '.': {}, 'v:"x"': {} } },
    });
    expect(entries.map(({ manager, time }) => [manager, time])).toEqual([
      ['creator', T1],
      ['m', T2],
    ]);
  });

  it('adds to what the same manager owned before', () => {
    const entries = track(
      live,
      change(live, (copy) => {
        copy.data.c = '4';
      }),
      { manager: 'creator', time: T2 },
    );
    expect(entries).toMatchObject([{ manager: 'creator', time: T2 }]);
    expect(fieldsOf(entries, 'creator')).toMatchObject({ 'f:data': { '.': {}, 'f:a': {}, 'f:b': {}, 'f:c': {} } });
  });

  it('takes removed fields from everyone, without a trace of who removed them', () => {
    const entries = track(
      live,
      change(live, (copy) => {
        delete (copy as Thing).data;
        copy.spec.tags = [];
      }),
      { time: T2 },
    );
    expect(entries).toMatchObject([{ manager: 'creator', time: T1 }]);
    expect(fieldsOf(entries, 'creator')).toEqual({ 'f:spec': { 'f:replicas': {}, 'f:tags': {} } });
  });

  it('drops entries that own nothing any more', () => {
    const mine = created(thing({ data: { a: '1' } }), 'first');
    const entries = track(
      mine,
      change(mine, (copy) => {
        delete (copy as Thing).data;
        copy.spec = { replicas: 2 };
      }),
    );
    expect(entries.map(({ manager }) => manager)).toEqual(['m']);
  });

  it('changes nothing, time included, when nothing changed (TestManagedFieldsUpdateWithoutChangesDoesNotModifyTime)', () => {
    expect(track(live, clone(live), { time: T2 })).toEqual(live.metadata.managedFields);
    const noop = change(live, (copy) => {
      copy.metadata.resourceVersion = '9';
      copy.metadata.generation = 4;
    });
    expect(track(live, noop, { time: T2 })).toEqual(live.metadata.managedFields);
    const redated = change(live, (copy) => {
      copy.metadata.managedFields = live.metadata.managedFields?.map((entry) => ({ ...entry, time: T2 })) ?? [];
    });
    expect(track(live, redated, { time: T2 })).toEqual(live.metadata.managedFields);
  });

  it('looks at times by the order that they give', () => {
    const both = change(live, (copy) => {
      copy.metadata.annotations = { a: 'b' };
    });
    both.metadata.managedFields = track(live, both, { manager: 'a', time: T2 });
    const [first, second] = both.metadata.managedFields;
    expect([first?.manager, second?.manager]).toEqual(['creator', 'a']);
    const given = (...managedFields: unknown[]): Thing =>
      change(both, (copy) => {
        copy.metadata.managedFields = managedFields as ManagedFieldsEntry[];
      });
    expect(track(both, given(second, first))).toEqual(both.metadata.managedFields);
    const redated = track(both, given({ ...first, time: T2 }, second));
    expect(redated.map(({ manager, time }) => [manager, time])).toEqual([
      ['a', T2],
      ['creator', T2],
    ]);
  });

  it('believes who says when others wrote, and changes something besides', () => {
    const redated = change(live, (copy) => {
      copy.metadata.managedFields = live.metadata.managedFields?.map((entry) => ({ ...entry, time: T2 })) ?? [];
      copy.metadata.annotations = { a: 'b' };
    });
    expect(track(live, redated).find(({ manager }) => manager === 'creator')?.time).toBe(T2);
  });

  it('does not mind the order of sets and keyed lists', () => {
    const before = created(thing({ spec: { tags: ['a', 'b'], containers: [{ name: 'x' }, { name: 'y' }] } }));
    const after = change(before, (copy) => {
      copy.spec.tags?.reverse();
      copy.spec.containers?.reverse();
    });
    expect(track(before, after, { time: T2 })).toEqual(before.metadata.managedFields);
  });

  it('owns a duplicated item as a whole', () => {
    const before = created(thing({ spec: { containers: [{ name: 'x', image: 'i' }] } }));
    const after = change(before, (copy) => {
      copy.spec.containers?.push({ name: 'x', image: 'j' });
    });
    const entries = track(before, after);
    expect(fieldsOf(entries, 'm')).toEqual({ 'f:spec': { 'f:containers': { 'k:{"name":"x"}': {} } } });
    expect(fieldsOf(entries, 'creator')).toEqual({ 'f:spec': { 'f:containers': {} } });
  });

  it('keeps owners of what cannot be changed through this endpoint (TestUpdateViaSubresources)', () => {
    const before = created(thing({ data: { a: '1' }, status: { phase: 'A' } }));
    const after = change(before, (copy) => {
      copy.status.phase = 'B';
      copy.data.a = '2';
    });
    const through = track(before, after, { subresource: 'status', resetFields: [['data'], ['metadata', 'labels']] });
    expect(fieldsOf(through, 'm')).toEqual({ 'f:status': { 'f:phase': {} } });
    expect(fieldsOf(through, 'creator')).toEqual({ 'f:data': { '.': {}, 'f:a': {} } });
    expect(through.find((entry) => entry.manager === 'm')).toMatchObject({ subresource: 'status' });
    const main = track(before, after, { resetFields: [['status']] });
    expect(fieldsOf(main, 'm')).toEqual({ 'f:data': { 'f:a': {} } });
    const labelled = change(before, (copy) => {
      copy.metadata.labels = { a: 'b' };
    });
    expect(track(before, labelled, { resetFields: [['metadata', 'labels']] })).toEqual(before.metadata.managedFields);
  });

  it('tells a manager of one endpoint from its namesake of another', () => {
    const before = created(thing({ data: { a: '1' }, status: { phase: 'A' } }), 'm');
    const after = change(before, (copy) => {
      copy.status.phase = 'B';
    });
    expect(track(before, after, { subresource: 'status' }).map(({ subresource }) => subresource)).toEqual([
      undefined,
      'status',
    ]);
    expect(track(before, after, { apiVersion: 'v2' }).map(({ apiVersion }) => apiVersion)).toEqual(['v1', 'v2']);
  });
});

describe('managed fields in the request', () => {
  const live = created(thing({ data: { a: '1' } }));

  it.each([
    ['empty list', []],
    ['list of one empty item', [{}]],
  ])('forgets all owners on an %s (TestResetManagedFields...)', (_name, managedFields) => {
    const updated = change(live, (copy) => {
      copy.data.a = '2';
      copy.metadata.managedFields = managedFields as ManagedFieldsEntry[];
    });
    expect(track(live, updated)).toEqual([]);
    expect(track(live, updated, { subresource: 'status' })).not.toEqual([]);
  });

  it('stays untracked after that, until an apply (TestNoUpdateBeforeFirstApply)', () => {
    const untracked = thing({ data: { a: '1' } });
    expect(track(untracked, thing({ data: { a: '2' } }))).toEqual([]);
  });

  it('takes entries that a client edited, in its own spelling', () => {
    const updated = change(live, (copy) => {
      copy.metadata.managedFields = [
        {
          manager: 'edited',
          operation: 'Apply',
          apiVersion: 'v1',
          time: T2,
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:spec': { 'f:containers': { 'k:{ "name" : "x" }': {} } }, 'f:data': { 'f:a': {} } },
        },
      ];
    });
    expect(JSON.stringify(track(live, updated).map(({ fieldsV1 }) => fieldsV1))).toBe(
      '[{"f:data":{"f:a":{}},"f:spec":{"f:containers":{"k:{\\"name\\":\\"x\\"}":{}}}}]',
    );
  });

  const INVALID: [string, Record<string, unknown>][] = [
    ['operation', { operation: 'Create' }],
    ['apiVersion', { apiVersion: '' }],
    ['fieldsType', { fieldsType: 'FieldsV2' }],
    ['fieldsV1', { fieldsV1: { nonsense: {} } }],
    ['manager', { manager: 5 }],
  ];
  it.each(INVALID)('keeps the live entries when an edited one has a bad %s', (_name, broken) => {
    const updated = change(live, (copy) => {
      const [entry] = live.metadata.managedFields ?? [];
      copy.metadata.managedFields = [{ ...entry, ...broken } as ManagedFieldsEntry];
    });
    expect(track(live, updated)).toEqual(live.metadata.managedFields);
  });
});

describe('many updaters (TestCapManagersManagerMergesEntries)', () => {
  it('merges the oldest beyond ten into ancient-changes', () => {
    let live = created(thing({ data: {} }), 'updater-00');
    for (let index = 1; index <= 13; index++) {
      const name = `updater-${String(index).padStart(2, '0')}`;
      const updated = change(live, (copy) => {
        copy.data[name] = 'x';
      });
      updated.metadata.managedFields = track(live, updated, { manager: name, time: `2026-01-01T00:00:${10 + index}Z` });
      live = updated;
    }
    const entries = live.metadata.managedFields ?? [];
    expect(entries).toHaveLength(10);
    expect(entries[0]).toMatchObject({ manager: 'ancient-changes', time: '2026-01-01T00:00:14Z' });
    expect(fieldsOf(entries, 'ancient-changes')).toEqual({
      'f:data': { '.': {}, 'f:updater-01': {}, 'f:updater-02': {}, 'f:updater-03': {}, 'f:updater-04': {} },
    });
    expect(entries[1]?.manager).toBe('updater-05');
  });
});

describe('schemas that change under their objects', () => {
  it('turns fields of what has become atomic into the whole', () => {
    const granular: Schema = {
      type: 'object',
      properties: {
        spec: { type: 'object', properties: { a: { type: 'object', properties: { x: str(), y: str() } } } },
      },
    };
    const atomic: Schema = {
      type: 'object',
      properties: {
        spec: { type: 'object', properties: { a: { type: 'object', 'x-kubernetes-map-type': 'atomic' }, b: str() } },
      },
    };
    const before = thing({ spec: { a: { x: '1', y: '2' } } });
    before.metadata.managedFields = track(undefined, before, { schema: granular, manager: 'creator' });
    const after = change(before, (copy) => {
      copy.spec.b = '1';
    });
    expect(fieldsOf(track(before, after, { schema: atomic }), 'creator')).toEqual({ 'f:spec': { '.': {}, 'f:a': {} } });
  });

  it("knows metadata, where a CRD's schema says nothing of it", () => {
    const crd: Schema = { type: 'object', properties: { metadata: { type: 'object' }, spec: { type: 'object' } } };
    const object = thing({}, { finalizers: ['a', 'b'] });
    expect(track(undefined, object, { schema: crd })[0]?.fieldsV1).toEqual({
      'f:metadata': { 'f:finalizers': { '.': {}, 'v:"a"': {}, 'v:"b"': {} } },
    });
  });
});

describe('a writer that writes the same fields again', () => {
  const first = thing({ spec: { replicas: 1, tags: ['a'] }, data: { a: '1' } });
  const managedFields = track(undefined, first);
  const live = thing({ spec: { replicas: 1, tags: ['a'] }, data: { a: '1' } }, { managedFields });

  it('owns the very set that it owned, at another time', () => {
    const [entry] = track(live, thing({ spec: { replicas: 2, tags: ['a'] }, data: { a: '2' } }), { time: T2 });
    expect(entry).toEqual({ ...managedFields[0], time: T2 });
    expect(entry?.fieldsV1).toBe(managedFields[0]?.fieldsV1);
  });

  it('loses what it takes away, and gains what it adds', () => {
    const next = thing({ spec: { replicas: 1, tags: ['a', 'b'] } });
    const [entry] = track(live, next, { time: T2 });
    expect(entry?.fieldsV1).toEqual(track(undefined, next)[0]?.fieldsV1);
  });
});
