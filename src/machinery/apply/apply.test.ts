import { describe, expect, it } from 'vitest';
import { objectSchema } from '../../api/kinds/meta.ts';
import type { Json, KubeObject, ManagedFieldsEntry } from '../../api/meta.ts';
import { type Schema, anything, int32, intOrString, list, listMap, map, message, set, str } from '../../api/schema.ts';
import { ApiError } from '../../api/status.ts';
import { clone } from '../clone.ts';
import { type Application, applyObject, checkApplied } from './apply.ts';
import { trackUpdate } from './managed-fields.ts';

const item = message('Item', '', {
  name: [1, str()],
  value: [2, str()],
  port: [3, int32()],
  protocol: [4, str({ default: 'TCP' })],
});

const schema: Schema = objectSchema('Thing', '', {
  spec: [
    2,
    message('ThingSpec', '', {
      replicas: [1, int32()],
      string: [2, str()],
      items: [3, listMap(['name'], item)],
      ports: [4, listMap(['port', 'protocol'], item)],
      tags: [5, set(str())],
      atomicList: [6, list(str())],
      struct: [7, item],
      map: [8, map(str())],
      atomicMap: [9, map(str(), { 'x-kubernetes-map-type': 'atomic' })],
      raw: [10, anything()],
      free: [11, { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }],
      either: [12, intOrString()],
      recursive: [13, map(map(str()))],
    }),
  ],
  status: [3, message('ThingStatus', '', { phase: [1, str()] })],
});

const T1 = '2026-01-01T00:00:01Z';
const T2 = '2026-01-01T00:00:02Z';

type Spec = Record<string, Json>;

function thing(spec: Spec | undefined, more: Partial<KubeObject> = {}): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Thing',
    metadata: { name: 'x', namespace: 'ns' },
    ...(spec === undefined ? {} : { spec }),
    ...more,
  };
}

function apply(live: KubeObject | undefined, applied: KubeObject, more: Partial<Application> = {}): KubeObject {
  const before = JSON.stringify([live, applied]);
  const input: Application = {
    live,
    applied,
    schema,
    manager: 'default',
    force: false,
    apiVersion: 'apps/v1',
    subresource: '',
    time: T1,
    ...more,
  };
  try {
    checkApplied(input);
    return applyObject(input);
  } finally {
    expect(JSON.stringify([live, applied])).toBe(before);
  }
}

/** A history of writes of `spec`; the last state. */
type Step = readonly [kind: 'apply' | 'force' | 'update', manager: string, spec: Spec];

function play(...steps: readonly Step[]): KubeObject | undefined {
  let live: KubeObject | undefined;
  for (const [kind, manager, spec] of steps) live = playStep(live, kind, manager, spec);
  return live;
}

function playStep(live: KubeObject | undefined, kind: Step[0], manager: string, spec: Spec): KubeObject {
  if (kind !== 'update') return apply(live, thing(spec), { manager, force: kind === 'force' });
  const updated = thing(spec);
  const input = { live, updated, schema, manager, apiVersion: 'apps/v1', subresource: '', time: T1 };
  updated.metadata.managedFields = trackUpdate(input);
  return updated;
}

function owned(object: KubeObject | undefined): Record<string, unknown> {
  const entries = object?.metadata.managedFields ?? [];
  return Object.fromEntries(entries.map((entry) => [entry.manager, entry.fieldsV1['f:spec']]));
}

function errorOf(run: () => unknown): ApiError {
  try {
    run();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('applyObject, histories of structured-merge-diff', () => {
  interface History {
    readonly name: string;
    readonly steps: readonly Step[];
    readonly spec: Spec | undefined;
    readonly owned?: Record<string, unknown>;
  }
  const HISTORIES: readonly History[] = [
    {
      name: 'leaf_apply_twice',
      steps: [
        ['apply', 'default', { replicas: 1, string: 'string' }],
        ['apply', 'default', { replicas: 2, string: 'string' }],
      ],
      spec: { replicas: 2, string: 'string' },
      owned: { default: { 'f:replicas': {}, 'f:string': {} } },
    },
    {
      name: 'leaf_apply_update_apply_no_conflict',
      steps: [
        ['apply', 'default', { replicas: 1, string: 'string' }],
        ['update', 'controller', { replicas: 1, string: 'string', atomicList: ['a'] }],
        ['apply', 'default', { replicas: 2, string: 'string' }],
      ],
      spec: { replicas: 2, string: 'string', atomicList: ['a'] },
      owned: { default: { 'f:replicas': {}, 'f:string': {} }, controller: { 'f:atomicList': {} } },
    },
    {
      name: 'leaf_apply_update_apply_with_conflict, forced',
      steps: [
        ['apply', 'default', { replicas: 1, string: 'string' }],
        ['update', 'controller', { replicas: 1, string: 'controller string', atomicList: ['a'] }],
        ['force', 'default', { replicas: 2, string: 'user string' }],
      ],
      spec: { replicas: 2, string: 'user string', atomicList: ['a'] },
      owned: { default: { 'f:replicas': {}, 'f:string': {} }, controller: { 'f:atomicList': {} } },
    },
    {
      name: 'leaf_apply_twice_remove',
      steps: [
        ['apply', 'default', { replicas: 1, string: 'string' }],
        ['apply', 'default', { string: 'new string' }],
      ],
      spec: { string: 'new string' },
      owned: { default: { 'f:string': {} } },
    },
    {
      name: 'update_apply_omits',
      steps: [
        ['apply', 'default', { replicas: 2 }],
        ['update', 'controller', { replicas: 1 }],
        ['apply', 'default', {}],
      ],
      spec: { replicas: 1 },
      owned: { controller: { 'f:replicas': {} }, default: {} },
    },
    {
      name: 'same_value_no_conflict: both own it',
      steps: [
        ['apply', 'one', { string: 'same' }],
        ['apply', 'two', { string: 'same' }],
      ],
      spec: { string: 'same' },
      owned: { one: { 'f:string': {} }, two: { 'f:string': {} } },
    },
    {
      name: 'unset_scalar_shared_with_applier',
      steps: [
        ['apply', 'one', { string: 'a' }],
        ['apply', 'two', { string: 'a', replicas: 1 }],
        ['apply', 'one', {}],
      ],
      spec: { string: 'a', replicas: 1 },
      owned: { one: {}, two: { 'f:string': {}, 'f:replicas': {} } },
    },
    {
      name: 'unset_scalar_shared_with_updater',
      steps: [
        ['update', 'updater', { string: 'a' }],
        ['apply', 'one', { string: 'a' }],
        ['apply', 'one', {}],
      ],
      spec: { string: 'a' },
    },
    {
      name: 'apply_update_apply_no_overlap: sets belong to many',
      steps: [
        ['apply', 'default', { tags: ['a', 'c'] }],
        ['update', 'controller', { tags: ['a', 'b', 'c', 'd'] }],
        ['apply', 'default', { tags: ['a', 'aprime', 'c', 'cprime'] }],
      ],
      spec: { tags: ['a', 'b', 'aprime', 'c', 'd', 'cprime'] },
      owned: {
        default: { 'f:tags': { 'v:"a"': {}, 'v:"aprime"': {}, 'v:"c"': {}, 'v:"cprime"': {} } },
        controller: { 'f:tags': { 'v:"b"': {}, 'v:"d"': {} } },
      },
    },
    {
      name: 'apply_twice_remove: set items',
      steps: [
        ['apply', 'default', { tags: ['a', 'b', 'c', 'd'] }],
        ['apply', 'default', { tags: ['a', 'c'] }],
      ],
      spec: { tags: ['a', 'c'] },
    },
    {
      name: 'remove_one_keep_one: list items of two appliers',
      steps: [
        ['apply', 'one', { items: [{ name: 'a' }, { name: 'b' }] }],
        ['apply', 'two', { items: [{ name: 'c' }] }],
        ['apply', 'one', { items: [{ name: 'a' }] }],
      ],
      spec: { items: [{ name: 'a' }, { name: 'c' }] },
    },
    {
      name: 'remove_one_keep_one_with_dangling_subitem: what a controller wrote goes with the item',
      steps: [
        ['apply', 'one', { items: [{ name: 'a' }, { name: 'b', value: 'x' }] }],
        ['update', 'controller', { items: [{ name: 'a' }, { name: 'b', value: 'x', port: 1 }] }],
        ['apply', 'one', { items: [{ name: 'a' }] }],
      ],
      spec: { items: [{ name: 'a' }] },
    },
    {
      name: 'remove_one_keep_one_with_sub_item: an item that two appliers share stays',
      steps: [
        ['apply', 'one', { items: [{ name: 'a', value: 'x' }] }],
        ['apply', 'two', { items: [{ name: 'a', port: 1 }] }],
        ['apply', 'one', { items: [] }],
      ],
      spec: { items: [{ name: 'a', port: 1 }] },
    },
    {
      name: 'struct_apply_remove_all',
      steps: [
        ['apply', 'default', { struct: { name: 'a', port: 1 } }],
        ['apply', 'default', { replicas: 1 }],
      ],
      spec: { replicas: 1 },
    },
    {
      name: 'struct_apply_update_remove_all: the updater keeps its part',
      steps: [
        ['apply', 'default', { struct: { name: 'a', port: 1 } }],
        ['update', 'controller', { struct: { name: 'a', port: 1, value: 'v' } }],
        ['apply', 'default', {}],
      ],
      spec: { struct: { value: 'v' } },
    },
    {
      name: 'multiple_appliers_recursive_map: maps are merged entry by entry',
      steps: [
        ['apply', 'one', { recursive: { a: { b: '1' }, c: { d: '2' } } }],
        ['apply', 'two', { recursive: { a: { x: '3' } } }],
        ['apply', 'one', { recursive: { c: { d: '2' } } }],
      ],
      spec: { recursive: { a: { x: '3' }, c: { d: '2' } } },
    },
    {
      name: 'apply_twice_list_is_atomic',
      steps: [
        ['apply', 'default', { atomicList: ['a', 'b'], atomicMap: { a: '1' } }],
        ['apply', 'default', { atomicList: ['c'], atomicMap: { b: '2' } }],
      ],
      spec: { atomicList: ['c'], atomicMap: { b: '2' } },
      owned: { default: { 'f:atomicList': {}, 'f:atomicMap': {} } },
    },
    {
      name: 'deduced: preserved fields merge as maps with atomic lists',
      steps: [
        ['apply', 'one', { free: { a: { b: 1, c: [1] } } }],
        ['apply', 'two', { free: { a: { d: 2 } } }],
        ['apply', 'one', { free: { a: { c: [2] } } }],
      ],
      spec: { free: { a: { c: [2], d: 2 } } },
      owned: {
        one: { 'f:free': { 'f:a': { '.': {}, 'f:c': {} } } },
        two: { 'f:free': { 'f:a': { '.': {}, 'f:d': {} } } },
      },
    },
    {
      name: 'raw JSON is atomic',
      steps: [
        ['apply', 'one', { raw: { a: 1, b: 2 } }],
        ['apply', 'one', { raw: { c: 3 } }],
      ],
      spec: { raw: { c: 3 } },
      owned: { one: { 'f:raw': {} } },
    },
    {
      name: 'default_keys: an item may leave out a key that has a default',
      steps: [
        ['apply', 'one', { ports: [{ port: 80, value: 'a' }] }],
        ['apply', 'two', { ports: [{ port: 80, protocol: 'TCP', name: 'b' }] }],
        ['apply', 'one', { ports: [{ port: 80 }] }],
      ],
      spec: { ports: [{ port: 80, protocol: 'TCP', name: 'b' }] },
    },
  ];
  it.each(HISTORIES)('$name', ({ steps, spec, owned: expected }) => {
    const object = play(...steps);
    expect(object?.['spec']).toEqual(spec);
    if (expected !== undefined) expect(owned(object)).toEqual(expected);
  });
});

describe('the order of merged lists (typed/merge_test)', () => {
  const ORDERS: readonly [live: string, applied: string, expected: string][] = [
    ['abc', '', 'abc'],
    ['', 'abc', 'abc'],
    ['ab', 'ba', 'ba'],
    ['abc', 'def', 'abcdef'],
    ['abc', 'cdef', 'abcdef'],
    ['abcgf', 'cdef', 'abcgdef'],
    ['cdef', 'ace', 'acdef'],
    ['abcxyz', 'def', 'abcxyzdef'],
    ['abcxyz', 'defxyz', 'abcdefxyz'],
    ['cagf', 'cfag', 'cfag'],
    ['abcd', 'defa', 'bcdefa'],
    ['cdefghij', '2h3e4kl', 'cdfg2hij3e4kl'],
    ['abcdefghij', '1b2h3e4kl', 'a1bcdfg2hij3e4kl'],
  ];
  it.each(ORDERS)('%j with %j is %j', (live, applied, expected) => {
    const base = playStep(undefined, 'update', 'controller', { tags: live.split('') });
    expect(apply(base, thing({ tags: applied.split('') }))['spec']).toEqual({ tags: expected.split('') });
    const items = (names: string): Spec => ({ items: names.split('').map((name) => ({ name })) });
    const keyed = playStep(undefined, 'update', 'controller', items(live));
    expect(apply(keyed, thing(items(applied)))['spec']).toEqual(items(expected));
  });
});

describe('conflicts', () => {
  it('names the owner and the field (TestUpdateApplyConflict)', () => {
    const live = play(['update', 'kubectl-client-side-apply', { replicas: 1 }]);
    const error = errorOf(() => apply(live, thing({ replicas: 2 })));
    expect(error.toStatus()).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      code: 409,
      reason: 'Conflict',
      message: 'Apply failed with 1 conflict: conflict with "kubectl-client-side-apply" using apps/v1: .spec.replicas',
      details: {
        causes: [
          {
            reason: 'FieldManagerConflict',
            message: 'conflict with "kubectl-client-side-apply" using apps/v1',
            field: '.spec.replicas',
          },
        ],
      },
    });
  });

  it('lists several by owner (TestNewConflictError)', () => {
    const live = play(
      ['update', 'updater', { replicas: 1, items: [{ name: 'a', port: 1 }] }],
      ['apply', 'applier', { string: 'a' }],
    );
    const error = errorOf(() => apply(live, thing({ replicas: 2, string: 'b', items: [{ name: 'a', port: 2 }] })));
    expect(error.message).toBe(
      [
        'Apply failed with 3 conflicts: conflicts with "applier":',
        '- .spec.string',
        'conflicts with "updater" using apps/v1:',
        '- .spec.replicas',
        '- .spec.items[name="a"].port',
      ].join('\n'),
    );
    expect(error.details?.causes?.map(({ field }) => field)).toEqual([
      '.spec.string',
      '.spec.replicas',
      '.spec.items[name="a"].port',
    ]);
  });

  it('names the subresource', () => {
    const live = thing({ replicas: 1 });
    const entry: ManagedFieldsEntry = {
      manager: 'scaler',
      operation: 'Update',
      apiVersion: 'apps/v1',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:spec': { 'f:replicas': {} } },
      subresource: 'scale',
    };
    live.metadata.managedFields = [entry];
    expect(errorOf(() => apply(live, thing({ replicas: 2 }))).message).toBe(
      'Apply failed with 1 conflict: conflict with "scaler" with subresource "scale" using apps/v1: .spec.replicas',
    );
  });

  it('is none where the value is the same, or the field is atomic and nobody else has it', () => {
    const live = play(['update', 'updater', { replicas: 1, atomicList: ['a'] }]);
    expect(apply(live, thing({ replicas: 1, atomicList: ['a'] }))['spec']).toEqual({ replicas: 1, atomicList: ['a'] });
    expect(errorOf(() => apply(live, thing({ atomicList: ['b'] }))).code).toBe(409);
  });

  it('gives forced fields to the applier alone', () => {
    const live = play(['apply', 'one', { replicas: 1, string: 'a' }]);
    const forced = apply(live, thing({ replicas: 2 }), { manager: 'two', force: true });
    expect(owned(forced)).toEqual({ one: { 'f:string': {} }, two: { 'f:replicas': {} } });
  });

  it('forgets an owner that lost everything', () => {
    const live = play(['apply', 'one', { replicas: 1 }]);
    expect(Object.keys(owned(apply(live, thing({ replicas: 2 }), { manager: 'two', force: true })))).toEqual(['two']);
  });
});

describe('times', () => {
  it('keeps the time of an apply that changes nothing (TestManagedFieldsApplyWithoutChangesDoesNotModifyTime)', () => {
    const live = apply(undefined, thing({ replicas: 1 }));
    expect(apply(live, thing({ replicas: 1 }), { time: T2 })).toEqual(live);
    const changed = apply(live, thing({ replicas: 2 }), { time: T2 });
    expect(changed.metadata.managedFields).toMatchObject([{ manager: 'default', time: T2 }]);
  });

  it('has no time for an applier that only agreed', () => {
    const live = apply(undefined, thing({ replicas: 1 }));
    const agreed = apply(live, thing({ replicas: 1 }), { manager: 'two', time: T2 });
    expect(agreed.metadata.managedFields?.map(({ manager, time }) => [manager, time])).toEqual([
      ['two', undefined],
      ['default', T1],
    ]);
  });

  it('sorts appliers before updaters, then by time (TestSortEncodedManagedFields)', () => {
    const live = play(['update', 'updater', { replicas: 1 }], ['apply', 'b', { string: 'x' }]);
    const object = apply(live, thing({ tags: ['t'] }), { manager: 'a', time: T2 });
    expect(object.metadata.managedFields?.map(({ manager }) => manager)).toEqual(['b', 'a', 'updater']);
  });
});

describe('objects that were not tracked', () => {
  it('gives what was there to before-first-apply (TestUpdateBeforeFirstApply)', () => {
    const object = apply(thing({ replicas: 1, string: 'a' }), thing({ replicas: 1 }));
    expect(owned(object)).toEqual({
      'before-first-apply': { 'f:replicas': {}, 'f:string': {} },
      default: { 'f:replicas': {} },
    });
  });

  it('conflicts with it', () => {
    expect(errorOf(() => apply(thing({ replicas: 1 }), thing({ replicas: 2 }))).message).toContain(
      'conflict with "before-first-apply" using apps/v1: .spec.replicas',
    );
  });
});

describe('what can be applied', () => {
  it('creates (TestApplyNewObject), owning neither name nor namespace', () => {
    const object = apply(undefined, thing({ replicas: 1 }));
    expect(object).toEqual({
      ...thing({ replicas: 1 }),
      metadata: {
        name: 'x',
        namespace: 'ns',
        managedFields: [
          {
            manager: 'default',
            operation: 'Apply',
            apiVersion: 'apps/v1',
            time: T1,
            fieldsType: 'FieldsV1',
            fieldsV1: { 'f:spec': { 'f:replicas': {} } },
          },
        ],
      },
    });
  });

  it("never takes out the server's own metadata", () => {
    const labelled = thing({}, { metadata: { name: 'x', namespace: 'ns', labels: { a: 'b' } } });
    const live = apply(undefined, labelled);
    Object.assign(live.metadata, { uid: 'u', resourceVersion: '1' });
    const bare = { apiVersion: 'apps/v1', kind: 'Thing' } as KubeObject;
    expect(apply(live, bare).metadata).toEqual({ name: 'x', namespace: 'ns', uid: 'u', resourceVersion: '1' });
  });

  it('leaves no entry for an applier that owns nothing', () => {
    expect(apply(undefined, thing(undefined)).metadata).not.toHaveProperty('managedFields');
  });

  it('refuses managed fields (TestApplyFailsWithManagedFields)', () => {
    for (const managedFields of [[], [{} as ManagedFieldsEntry]]) {
      const applied = thing({}, { metadata: { name: 'x', managedFields } });
      const error = errorOf(() => apply(undefined, applied));
      expect([error.code, error.message]).toEqual([400, 'metadata.managedFields must be nil']);
    }
  });

  it('refuses another version (TestVersionCheck)', () => {
    const error = errorOf(() => apply(undefined, thing({}, { apiVersion: 'apps/v2' })));
    expect([error.code, error.message]).toEqual([400, 'invalid object type: apps/v2, Kind=Thing']);
  });

  const REFUSED: readonly [name: string, spec: Json, sentence: string][] = [
    [
      'duplicates by key',
      { items: [{ name: 'a' }, { name: 'a' }] },
      '.spec.items: duplicate entries for key [name="a"]',
    ],
    [
      'duplicates by defaulted key',
      { ports: [{ port: 1 }, { port: 1, protocol: 'TCP' }] },
      '.spec.ports: duplicate entries for key [port=1,protocol="TCP"]',
    ],
    ['duplicates in a set', { tags: ['a', 'a'] }, '.spec.tags: duplicate entries for key [="a"]'],
    [
      'items without keys',
      { items: [{ value: 'a' }] },
      '.spec.items: element 0: associative list with keys has an element that omits all key fields ["name"] (and doesn\'t have default values for any key fields)',
    ],
    ['null items', { items: [null] }, '.spec.items: element 0: associative list with keys may not have a null element'],
    [
      'scalar items',
      { items: ['a'] },
      '.spec.items: element 0: associative list with keys may not have non-map elements',
    ],
    [
      'null in a set',
      { tags: [null] },
      ".spec.tags: element 0: associative list without keys has an element that's an explicit null",
    ],
    ['undeclared fields', { repicas: 1 }, '.spec.repicas: field not declared in schema'],
    ['a string for a number', { replicas: '1' }, '.spec.replicas: expected numeric (int or float), got string'],
    ['a number for a string', { string: 5 }, '.spec.string: expected string, got &value.valueUnstructured{Value:5}'],
    ['a list for a map', { map: ['a'] }, '.spec.map: expected map, got &{["a"]}'],
    ['a map for a list', { tags: {} }, '.spec.tags: expected list, got &{{}}'],
    ['a map for a scalar', { either: {} }, '.spec.either: expected any scalar, got &{{}}'],
    [
      'several mistakes',
      { replicas: '1', atomicList: [1] },
      'errors:\n  .spec.replicas: expected numeric (int or float), got string\n  .spec.atomicList[0]: expected string, got &value.valueUnstructured{Value:1}',
    ],
  ];
  it.each(REFUSED)('refuses %s with 400', (_name, spec, sentence) => {
    const error = errorOf(() => apply(undefined, thing(spec as Spec)));
    expect(error.code).toBe(400);
    expect(error.message).toBe(`failed to create typed patch object (ns/x; apps/v1, Kind=Thing): ${sentence}`);
  });

  it('takes null anywhere else, numbers or strings where both may be, and free fields', () => {
    const spec: Spec = { replicas: null, either: '80%', free: { any: [{ thing: null }] }, raw: { x: [1, 'a'] } };
    expect(apply(undefined, thing(spec))['spec']).toEqual(spec);
  });

  it('does not mind duplicates in the live object', () => {
    const live = play(['update', 'controller', { tags: ['a', 'b', 'b'] }]);
    expect(apply(live, thing({ tags: ['b', 'c'] }), { force: true })['spec']).toEqual({ tags: ['a', 'b', 'c'] });
  });
});

describe('subresources', () => {
  it('does not own what its endpoint resets', () => {
    const applied = thing({ replicas: 1 }, { status: { phase: 'A' } });
    const main = apply(undefined, applied, { resetFields: [['status']] });
    expect(main.metadata.managedFields?.[0]?.fieldsV1).toEqual({ 'f:spec': { 'f:replicas': {} } });
    const status = apply(main, applied, { subresource: 'status', resetFields: [['spec']] });
    expect(status.metadata.managedFields?.map(({ subresource, fieldsV1 }) => [subresource, fieldsV1])).toEqual([
      ['status', { 'f:status': { 'f:phase': {} } }],
      [undefined, { 'f:spec': { 'f:replicas': {} } }],
    ]);
  });
});

describe('from client-side to server-side apply', () => {
  const ANNOTATION = 'kubectl.kubernetes.io/last-applied-configuration';

  function clientApplied(spec: Spec, lastApplied = JSON.stringify(thing(spec))): KubeObject {
    const object = thing(spec);
    object.metadata.annotations = { [ANNOTATION]: lastApplied };
    const input = { live: undefined, updated: object, schema, apiVersion: 'apps/v1', subresource: '', time: T1 };
    object.metadata.managedFields = trackUpdate({ ...input, manager: 'kubectl-client-side-apply' });
    return object;
  }

  it('lets kubectl change what it applied before, and keeps the annotation (TestApplyUsingLastAppliedAnnotation)', () => {
    const object = apply(clientApplied({ replicas: 1, string: 'a' }), thing({ replicas: 2, string: 'a' }), {
      manager: 'kubectl',
    });
    expect(object['spec']).toEqual({ replicas: 2, string: 'a' });
    expect(object.metadata.annotations?.[ANNOTATION]).toBe(
      '{"apiVersion":"apps/v1","kind":"Thing","metadata":{"name":"x","namespace":"ns"},"spec":{"replicas":2,"string":"a"}}\n',
    );
  });

  it('still conflicts on what others changed since', () => {
    const live = clientApplied({ replicas: 1, string: 'a' });
    const scaled = clone(live);
    scaled['spec'] = { replicas: 5, string: 'a' };
    scaled.metadata.managedFields = trackUpdate({
      live,
      updated: scaled,
      schema,
      manager: 'autoscaler',
      apiVersion: 'apps/v1',
      subresource: '',
      time: T2,
    });
    const error = errorOf(() => apply(scaled, thing({ replicas: 2, string: 'b' }), { manager: 'kubectl' }));
    expect(error.message).toBe(
      'Apply failed with 1 conflict: conflict with "autoscaler" using apps/v1: .spec.replicas',
    );
  });

  it('is for kubectl only', () => {
    expect(errorOf(() => apply(clientApplied({ replicas: 1 }), thing({ replicas: 2 }), { manager: 'flux' })).code).toBe(
      409,
    );
  });

  it.each(['{', '[]', '{"apiVersion":"apps/v2"}', ''])('makes nothing of the annotation %j', (annotation) => {
    const live = clientApplied({ replicas: 1 }, annotation);
    expect(errorOf(() => apply(live, thing({ replicas: 2 }), { manager: 'kubectl' })).code).toBe(409);
  });
});

describe('objects that are wrong everywhere', () => {
  it('are refused by their first few mistakes', () => {
    const map = Object.fromEntries(Array.from({ length: 200_000 }, (_, index) => [`k${index}`, [index]]));
    const error = errorOf(() => apply(undefined, thing({ map: map as unknown as Json })));
    expect(error.code).toBe(400);
    expect(error.message.match(/expected string/g)?.length).toBeLessThanOrEqual(100);
  });
});

describe('hostile keys', () => {
  it('are data', () => {
    const spec = JSON.parse(
      '{"map": {"__proto__": "a", "constructor": "b"}, "free": {"__proto__": {"polluted": 1}}}',
    ) as Spec;
    const live = apply(undefined, thing(spec));
    expect(JSON.stringify(live['spec'])).toBe(JSON.stringify(spec));
    expect(owned(live)).toEqual({
      default: {
        'f:map': { 'f:__proto__': {}, 'f:constructor': {} },
        'f:free': { 'f:__proto__': { '.': {}, 'f:polluted': {} } },
      },
    });
    const gone = apply(live, thing({ map: { constructor: 'b' } as unknown as Json }));
    expect(JSON.stringify(gone['spec'])).toBe('{"map":{"constructor":"b"}}');
    expect(({} as Record<string, unknown>)['polluted']).toBeUndefined();
  });
});
