import { assert, constantFrom, dictionary, jsonValue, letrec, oneof, property, record } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { objectSchema } from '../../api/kinds/meta.ts';
import type { Json, JsonObject } from '../../api/meta.ts';
import { anything, int32, list, listMap, map, message, quantity, type Schema, str, time } from '../../api/schema.ts';
import { clone } from '../clone.ts';
import { compileSchema } from './compile.ts';

function prune(schema: Schema, given: Json, builtin = false): { dropped: string[]; value: Json } {
  const value = clone(given);
  return { dropped: compileSchema(schema, { builtin }).prune(value), value };
}

describe('pruning custom resources', () => {
  const open: Schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true };
  const schema: Schema = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          known: { type: 'string' },
          list: { type: 'array', items: { type: 'object', properties: { a: { type: 'integer' } } } },
          map: { type: 'object', additionalProperties: { type: 'object', properties: { a: { type: 'integer' } } } },
          anyMap: { type: 'object', additionalProperties: true },
          open: { ...open, properties: { closed: { type: 'object', properties: { a: { type: 'integer' } } } } },
          openValue: { 'x-kubernetes-preserve-unknown-fields': true },
        },
      },
    },
  };

  it.each<[string, Json, string[], Json]>([
    ['keeps what is known', { spec: { known: 'a' } }, [], { spec: { known: 'a' } }],
    [
      'drops the rest',
      { spec: { known: 'a', foo: { bar: 1 } }, top: 1 },
      ['spec.foo', 'top'],
      { spec: { known: 'a' } },
    ],
    [
      'looks into items',
      { spec: { list: [{ a: 1 }, { b: 2 }] } },
      ['spec.list[1].b'],
      { spec: { list: [{ a: 1 }, {}] } },
    ],
    ['looks into maps', { spec: { map: { k: { a: 1, b: 2 } } } }, ['spec.map.k.b'], { spec: { map: { k: { a: 1 } } } }],
    [
      'knows nothing inside untyped values',
      { spec: { anyMap: { k: { a: 1 }, l: 1 } } },
      ['spec.anyMap.k.a'],
      {
        spec: { anyMap: { k: {}, l: 1 } },
      },
    ],
    [
      'keeps unknown fields where asked to, and prunes below known ones',
      {
        spec: { open: { x: { y: [1] }, closed: { a: 1, b: 2 } }, openValue: [{ z: 1 }] },
      },
      ['spec.open.closed.b'],
      { spec: { open: { x: { y: [1] }, closed: { a: 1 } }, openValue: [{ z: 1 }] } },
    ],
    ['keeps nulls', { spec: { known: null } }, [], { spec: { known: null } }],
    [
      'treats names of the language as data',
      JSON.parse('{"__proto__":{"a":1},"constructor":1,"spec":{"toString":1}}'),
      ['__proto__', 'constructor', 'spec.toString'],
      { spec: {} },
    ],
  ])('%s', (_, given, dropped, value) => {
    expect(prune(schema, given)).toEqual({ dropped, value });
  });

  it('knows apiVersion, kind and metadata of every resource, whatever the CRD says', () => {
    const metadata = { name: 'n', labels: { a: 'b' }, nope: 1, creationTimestamp: null, ownerReferences: [{ x: 1 }] };
    const given = { apiVersion: 'v1', kind: 'K', metadata, spec: {} };
    expect(prune(schema, given)).toEqual({
      dropped: ['metadata.nope', 'metadata.ownerReferences[0].x'],
      value: {
        apiVersion: 'v1',
        kind: 'K',
        metadata: { name: 'n', labels: { a: 'b' }, ownerReferences: [{}] },
        spec: {},
      },
    });
    const restricting: Schema = {
      type: 'object',
      properties: { metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 3 } } } },
    };
    expect(prune(restricting, { metadata: { name: 'n', labels: { a: 'b' } } }).dropped).toEqual([]);
  });

  it('knows them of embedded resources too, but not of other objects', () => {
    const embedding: Schema = {
      type: 'object',
      properties: {
        template: {
          type: 'object',
          'x-kubernetes-embedded-resource': true,
          properties: { spec: { type: 'object', properties: { a: { type: 'string' } } } },
        },
        plain: { type: 'object', properties: { a: { type: 'string' } } },
      },
    };
    const resource = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x', bad: 1 }, spec: { a: '1', b: 2 }, c: 3 };
    expect(prune(embedding, { template: resource, plain: { kind: 'x' } }).dropped).toEqual([
      'plain.kind',
      'template.c',
      'template.metadata.bad',
      'template.spec.b',
    ]);
  });
});

describe('pruning built-in kinds', () => {
  const item = message('Item', '', { name: [1, str()], at: [2, time()], more: [3, list(str())] });
  const schema = objectSchema('Thing', '', {
    spec: [
      2,
      message(
        'Spec',
        '',
        {
          count: [1, int32()],
          items: [2, listMap(['name'], item)],
          raw: [3, anything()],
          limits: [4, map(quantity())],
          words: [5, list(str())],
          tags: [6, map(str())],
          empty: [7, message('Empty', '', { words: [1, list(str())] })],
          needed: [8, list(str())],
        },
        { required: ['needed'] },
      ),
    ],
  });

  it.each<[string, JsonObject, string[], JsonObject]>([
    [
      'drops nulls, which Go reads as absent',
      { count: null, items: [{ name: 'a', at: null }] },
      [],
      {
        items: [{ name: 'a' }],
      },
    ],
    [
      'reads null scalars in lists and maps as zeros',
      { words: [null, 'a'], tags: { a: null } },
      [],
      {
        words: ['', 'a'],
        tags: { a: '' },
      },
    ],
    [
      'leaves raw values alone',
      { raw: { a: null, b: [null, { c: null }] } },
      [],
      {
        raw: { a: null, b: [null, { c: null }] },
      },
    ],
    [
      'leaves out lists and maps that are empty, as Go does, but no structs, and nothing that must be there',
      { words: [], tags: {}, limits: { bad: null }, empty: {}, needed: [], items: [{ name: 'a', more: [] }] },
      [],
      { limits: { bad: '0' }, empty: {}, needed: [], items: [{ name: 'a' }] },
    ],
    [
      'keeps what is empty but of the wrong type, for validation to refuse',
      { words: {}, tags: [] },
      [],
      { words: {}, tags: [] },
    ],
    [
      'names what it drops',
      { items: [{ name: 'a', bad: 1 }], other: null },
      ['spec.items[0].bad', 'spec.other'],
      {
        items: [{ name: 'a' }],
      },
    ],
  ])('%s', (_, spec, dropped, expected) => {
    const metadata = { name: 'n', annotations: null, labels: {}, finalizers: [] };
    const given = { apiVersion: 'v1', kind: 'Thing', metadata, spec };
    const value = { apiVersion: 'v1', kind: 'Thing', metadata: { name: 'n' }, spec: expected };
    expect(prune(schema, given, true)).toEqual({ dropped, value });
  });
});

describe('pruning much', () => {
  it('removes everything unknown, and tells of a hundred', () => {
    const object = Object.fromEntries(Array.from({ length: 200_000 }, (_, index) => [`x${index}`, 1]));
    const { dropped, value } = prune({ type: 'object', properties: {} }, object, true);
    expect(dropped).toHaveLength(100);
    expect(value).toEqual({});
  });
});

describe('pruning anything', () => {
  const { node } = letrec<{ node: Schema }>((tie) => ({
    node: oneof(
      { depthSize: 'small' },
      constantFrom<Schema[]>({ type: 'string' }, { type: 'integer' }, { 'x-kubernetes-preserve-unknown-fields': true }),
      tie('node').map((items): Schema => ({ type: 'array', items })),
      tie('node').map((additionalProperties): Schema => ({ type: 'object', additionalProperties })),
      dictionary(constantFrom('a', 'b', 'c'), tie('node')).map(
        (properties): Schema => ({ type: 'object', properties: { ...properties } }),
      ),
    ),
  }));
  const objects = dictionary(constantFrom('a', 'b', 'c', 'd'), jsonValue());

  it('is idempotent, and what is left has nothing unknown', () => {
    assert(
      property(record({ schema: node, object: objects }), ({ schema, object }) => {
        const root: Schema = { type: 'object', properties: { a: schema, b: schema } };
        const once = prune(root, { ...object } as Json);
        const twice = prune(root, once.value);
        expect(twice.dropped).toEqual([]);
        expect(twice.value).toEqual(once.value);
      }),
    );
  });
});
