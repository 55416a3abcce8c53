import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json, JsonObject } from '../../api/meta.ts';
import { type Schema, int32, list, listMap, map, message, set, str } from '../../api/schema.ts';
import { ApiError } from '../../api/status.ts';
import { applyStrategicMergePatch } from './strategic-merge-patch.ts';

const item: Schema = message('MergeItem', 'An item.', {
  name: [1, str()],
  value: [2, str()],
  number: [3, int32()],
  simpleMap: [4, map(str())],
  tags: [5, set(str())],
});

const schema: Schema = message('Thing', 'Everything that merging knows.', {
  name: [1, str()],
  value: [2, str()],
  other: [3, str()],
  simpleMap: [4, map(str())],
  mergeItem: [5, item],
  mergingList: [
    6,
    listMap(['name'], { ...item, properties: { ...item.properties, mergingList: listMap(['name'], item) } }),
  ],
  nonMergingList: [7, list(item)],
  mergingIntList: [8, set(int32())],
  nonMergingIntList: [9, list(int32())],
  keyless: [10, list(item, { 'x-kubernetes-patch-strategy': 'merge' })],
  replacingItem: [11, { ...item, 'x-kubernetes-patch-strategy': 'replace' }],
  retainKeysItem: [12, { ...item, 'x-kubernetes-patch-strategy': 'retainKeys' }],
  ports: [
    13,
    listMap(['port', 'protocol'], message('Port', '', { port: [1, int32()], protocol: [2, str()], name: [3, str()] })),
  ],
  raw: [14, { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }],
});

function patched(document: Json, patch: Json): Json {
  return applyStrategicMergePatch(document, patch, schema);
}

interface Case {
  readonly name: string;
  readonly document: Json;
  readonly patch: Json;
  readonly expected: Json;
}

const APPLIES: readonly Case[] = [
  { name: 'add new field', document: { name: '1' }, patch: { value: '1' }, expected: { name: '1', value: '1' } },
  {
    name: 'remove field and add new field',
    document: { name: '1' },
    patch: { value: '1', name: null },
    expected: { value: '1' },
  },
  { name: 'null of a missing field is nothing', document: {}, patch: { name: null }, expected: {} },
  {
    name: 'nulls in new values are dropped',
    document: {},
    patch: { simpleMap: { a: '1', b: null }, nonMergingList: [{ name: 'a', value: null }] },
    expected: { simpleMap: { a: '1' }, nonMergingList: [{ name: 'a' }] },
  },
  {
    name: 'merge of maps',
    document: { simpleMap: { key1: '1', key2: '1' } },
    patch: { simpleMap: { key2: null, key3: '3' } },
    expected: { simpleMap: { key1: '1', key3: '3' } },
  },
  {
    name: 'replace map by directive',
    document: { simpleMap: { key1: '1' } },
    patch: { simpleMap: { $patch: 'replace', key2: '2' } },
    expected: { simpleMap: { key2: '2' } },
  },
  {
    name: 'delete map by directive',
    document: { simpleMap: { key1: '1' } },
    patch: { simpleMap: { $patch: 'delete' } },
    expected: { simpleMap: {} },
  },
  {
    name: 'a map whose strategy is replace',
    document: { replacingItem: { name: 'a', value: '1' } },
    patch: { replacingItem: { name: 'b' } },
    expected: { replacingItem: { name: 'b' } },
  },
  {
    name: 'merge lists of scalars: patch order first, server items where they stood',
    document: { mergingIntList: [1, 2, 3] },
    patch: { mergingIntList: [4, 2] },
    expected: { mergingIntList: [4, 1, 2, 3] },
  },
  {
    name: 'replace non merging list',
    document: { nonMergingIntList: [1, 2] },
    patch: { nonMergingIntList: [3] },
    expected: { nonMergingIntList: [3] },
  },
  {
    name: 'delete from list of scalars',
    document: { mergingIntList: [1, 2, 3, 4] },
    patch: { '$deleteFromPrimitiveList/mergingIntList': [2, 4, 7] },
    expected: { mergingIntList: [1, 3] },
  },
  {
    name: 'delete from and add to a list of scalars, with an order',
    document: { mergingIntList: [1, 2, 3] },
    patch: {
      '$setElementOrder/mergingIntList': [4, 3, 1],
      '$deleteFromPrimitiveList/mergingIntList': [2],
      mergingIntList: [4],
    },
    expected: { mergingIntList: [4, 3, 1] },
  },
  {
    name: 'merge lists of maps by key',
    document: { mergingList: [{ name: '1', value: 'a' }, { name: '2' }] },
    patch: {
      mergingList: [
        { name: '3', value: '3' },
        { name: '1', number: 5 },
      ],
    },
    expected: {
      mergingList: [{ name: '3', value: '3' }, { name: '1', value: 'a', number: 5 }, { name: '2' }],
    },
  },
  {
    name: 'merge lists of maps, nested',
    document: { mergingList: [{ name: '1', mergingList: [{ name: 'x', value: 'a' }] }] },
    patch: { mergingList: [{ name: '1', mergingList: [{ name: 'x', value: null }, { name: 'y' }] }] },
    expected: { mergingList: [{ name: '1', mergingList: [{ name: 'x' }, { name: 'y' }] }] },
  },
  {
    name: 'delete all duplicate entries in a merging list',
    document: { mergingList: [{ name: '1' }, { name: '1', value: 'b' }, { name: '2' }] },
    patch: { mergingList: [{ name: '1', $patch: 'delete' }] },
    expected: { mergingList: [{ name: '2' }] },
  },
  {
    name: 'replace list by directive',
    document: { mergingList: [{ name: '1' }, { name: '2' }] },
    patch: { mergingList: [{ name: '3' }, { $patch: 'replace' }] },
    expected: { mergingList: [{ name: '3' }] },
  },
  {
    name: 'a list that the object lacks is taken without its directives',
    document: {},
    patch: {
      mergingList: [
        { name: '1', $patch: 'delete' },
        { name: '2', tags: ['a'], '$setElementOrder/tags': ['a'] },
      ],
    },
    expected: { mergingList: [{ name: '2', tags: ['a'] }] },
  },
  {
    name: 'what is new takes the place of what goes, behind what only the server has',
    document: { mergingList: [{ name: 'theirs' }, { name: 'old' }] },
    patch: {
      '$setElementOrder/mergingList': [{ name: 'new' }],
      mergingList: [{ name: 'new' }, { $patch: 'delete', name: 'old' }],
    },
    expected: { mergingList: [{ name: 'theirs' }, { name: 'new' }] },
  },
  {
    name: 'what is new comes before what only the server has, where nothing goes',
    document: { mergingList: [{ name: 'theirs' }] },
    patch: { '$setElementOrder/mergingList': [{ name: 'new' }], mergingList: [{ name: 'new' }] },
    expected: { mergingList: [{ name: 'new' }, { name: 'theirs' }] },
  },
  {
    name: 'order of merged items with server only items',
    document: { mergingList: [{ name: 'a' }, { name: 's1' }, { name: 'b' }, { name: 's2' }] },
    patch: {
      '$setElementOrder/mergingList': [{ name: 'b' }, { name: 'a' }, { name: 'c' }],
      mergingList: [{ name: 'c' }],
    },
    expected: { mergingList: [{ name: 's1' }, { name: 'b' }, { name: 'a' }, { name: 'c' }, { name: 's2' }] },
  },
  {
    name: 'order without changes to the items',
    document: { mergingList: [{ name: 'a' }, { name: 'b' }] },
    patch: { '$setElementOrder/mergingList': [{ name: 'b' }, { name: 'a' }] },
    expected: { mergingList: [{ name: 'b' }, { name: 'a' }] },
  },
  {
    name: 'order with a deletion',
    document: { mergingList: [{ name: 'a' }, { name: 'b' }, { name: 'c' }] },
    patch: {
      '$setElementOrder/mergingList': [{ name: 'c' }, { name: 'a' }],
      mergingList: [{ name: 'b', $patch: 'delete' }],
    },
    expected: { mergingList: [{ name: 'c' }, { name: 'a' }] },
  },
  {
    name: 'an order for a list that nobody has',
    document: { name: 'a' },
    patch: { '$setElementOrder/mergingList': [{ name: 'b' }] },
    expected: { name: 'a' },
  },
  {
    name: 'retainKeys map clears what it does not name',
    document: { retainKeysItem: { name: 'a', value: '1', number: 5 } },
    patch: { retainKeysItem: { $retainKeys: ['name', 'number'], name: 'b' } },
    expected: { retainKeysItem: { name: 'b', number: 5 } },
  },
  {
    name: 'kubectl patch of ports merges by the first key only',
    document: { ports: [{ port: 53, protocol: 'TCP', name: 'dns' }] },
    patch: { ports: [{ port: 53, protocol: 'UDP' }] },
    expected: { ports: [{ port: 53, protocol: 'UDP', name: 'dns' }] },
  },
  {
    name: 'raw JSON merges its maps and replaces its lists',
    document: { raw: { a: { b: 1 }, list: [1, 2] } },
    patch: { raw: { a: { c: 2 }, list: [3] } },
    expected: { raw: { a: { b: 1, c: 2 }, list: [3] } },
  },
  {
    name: 'a value of another type replaces',
    document: { simpleMap: { a: '1' } },
    patch: { simpleMap: ['x'] },
    expected: { simpleMap: ['x'] },
  },
  {
    name: 'the whole object replaced by directive',
    document: { name: 'a', value: 'b' },
    patch: { $patch: 'replace', name: 'c' },
    expected: { name: 'c' },
  },
];

describe('applyStrategicMergePatch', () => {
  it.each(APPLIES)('$name', ({ document, patch, expected }) => {
    const before = JSON.stringify([document, patch]);
    expect(patched(document, patch)).toEqual(expected);
    expect(JSON.stringify([document, patch])).toBe(before);
  });

  const REFUSED: readonly [name: string, document: Json, patch: Json, code: number, message: RegExp][] = [
    ['a patch that is a list', {}, [], 400, /^invalid JSON document$/],
    [
      'merge list without merge key value',
      { mergingList: [{ name: '1' }] },
      { mergingList: [{ value: 'a' }] },
      400,
      /^map: .* does not contain declared merge key: name$/,
    ],
    [
      'merge list without merge key in the schema',
      { keyless: [{ name: '1' }] },
      { keyless: [{ name: '2' }] },
      400,
      /^cannot merge lists without merge key for MergeItem$/,
    ],
    [
      'delete without merge key value',
      { mergingList: [{ name: '1' }] },
      { mergingList: [{ $patch: 'delete' }] },
      400,
      /does not contain declared merge key: name$/,
    ],
    [
      'an unknown directive in a map',
      { simpleMap: {} },
      { simpleMap: { $patch: 'merge' } },
      400,
      /^unknown patch type: "merge"/,
    ],
    [
      'an unknown directive in a list',
      { mergingList: [{ name: '1' }] },
      { mergingList: [{ name: '1', $patch: 'upsert' }] },
      400,
      /^unknown patch type: "upsert"/,
    ],
    [
      'the merge directive in a list',
      { mergingList: [{ name: '1' }] },
      { mergingList: [{ name: '1', $patch: 'merge' }] },
      400,
      /^merging lists cannot yet be specified in the patch$/,
    ],
    [
      'retainKeys that misses a field of the patch',
      { retainKeysItem: { name: 'a' } },
      { retainKeysItem: { $retainKeys: ['name'], value: 'b' } },
      400,
      /^invalid patch format of retainKeys$/,
    ],
    [
      'retainKeys that is no list',
      { retainKeysItem: { name: 'a' } },
      { retainKeysItem: { $retainKeys: 'name' } },
      400,
      /^invalid patch format of retainKeys$/,
    ],
    [
      'an order that misses an item of the patch',
      { mergingIntList: [1] },
      { '$setElementOrder/mergingIntList': [1, 2], mergingIntList: [3] },
      400,
      /doesn't match \$setElementOrder list/,
    ],
    [
      'an order that contradicts the patch',
      { mergingIntList: [1] },
      { '$setElementOrder/mergingIntList': [1, 2], mergingIntList: [2, 1] },
      400,
      /doesn't match \$setElementOrder list/,
    ],
    ['a directive without field', {}, { $setElementOrder: [] }, 400, /^invalid patch format of setElementOrder list$/],
    ['a deletion without field', {}, { $deleteFromPrimitiveList: [] }, 400, /^invalid patch format of primitive list$/],
    [
      'items of different types',
      { mergingIntList: [1] },
      { mergingIntList: ['1'] },
      400,
      /^list element types are not identical/,
    ],
    ['lists of lists', { mergingIntList: [[1]] }, { mergingIntList: [[2]] }, 422, /^the server rejected our request/],
  ];
  it.each(REFUSED)('refuses %s', (_name, document, patch, code, message) => {
    expect(() => patched(document, patch)).toThrow(message);
    try {
      patched(document, patch);
    } catch (error) {
      expect(error).toMatchObject({ code });
    }
  });

  it('treats __proto__ as data', () => {
    const patch = JSON.parse('{"raw": {"__proto__": {"polluted": true}}}') as Json;
    expect(JSON.stringify(patched({ raw: {} }, patch))).toBe('{"raw":{"__proto__":{"polluted":true}}}');
    expect(({} as JsonObject)['polluted']).toBeUndefined();
  });

  it('merges long lists in linear time', () => {
    const items = Array.from({ length: 20_000 }, (_, index) => ({ name: `n${index}` }));
    const order = [...items].reverse();
    const merged = patched({ mergingList: items }, { mergingList: order, '$setElementOrder/mergingList': order });
    expect((merged as JsonObject)['mergingList']).toEqual(order);
  });

  it('throws nothing but ApiError and changes no argument, whatever comes', () => {
    const keys = fc.constantFrom(
      'mergingList',
      'mergingIntList',
      'simpleMap',
      'raw',
      'name',
      '__proto__',
      '$patch',
      '$retainKeys',
      '$setElementOrder/mergingList',
      '$setElementOrder/mergingIntList',
      '$deleteFromPrimitiveList/mergingIntList',
    );
    const { tree } = fc.letrec((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        fc.constantFrom(null, 1, 'a', 'delete', 'replace'),
        fc.array(tie('tree'), { maxLength: 3 }),
        fc.dictionary(keys, tie('tree'), { maxKeys: 4 }),
      ),
    })) as { tree: fc.Arbitrary<Json> };
    fc.assert(
      fc.property(fc.dictionary(keys, tree), fc.dictionary(keys, tree), (document, patch) => {
        const before = JSON.stringify([document, patch]);
        try {
          patched(document, patch);
        } catch (error) {
          expect(error).toBeInstanceOf(ApiError);
        }
        expect(JSON.stringify([document, patch])).toBe(before);
      }),
      { numRuns: 2000 },
    );
  });
});
