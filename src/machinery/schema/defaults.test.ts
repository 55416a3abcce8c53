import { assert, constantFrom, dictionary, jsonValue, property } from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Json } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { clone } from '../clone.ts';
import { compileSchema } from './compile.ts';

function defaulted(schema: Schema, given: Json, builtin = false): Json {
  const value = clone(given);
  compileSchema(schema, { builtin }).applyDefaults(value);
  return value;
}

const inner: Schema = {
  type: 'object',
  properties: { port: { type: 'integer', default: 80 }, name: { type: 'string' } },
};
const schema: Schema = {
  type: 'object',
  properties: {
    count: { type: 'integer', default: 1 },
    inner,
    filled: { ...inner, default: { name: 'x' } },
    list: { type: 'array', items: inner },
    map: { type: 'object', additionalProperties: inner },
    maybe: { type: 'string', nullable: true, default: 'm' },
    plain: { type: 'string' },
    zeros: { type: 'array', items: { type: 'integer', default: 7 } },
  },
};
const base = { count: 1, filled: { name: 'x', port: 80 }, maybe: 'm' };

describe('defaults', () => {
  it.each<[string, Json, Json]>([
    ['fill what is absent, and what a default itself brings', {}, base],
    ['leave what is there', { count: 0, filled: {}, maybe: '' }, { count: 0, filled: { port: 80 }, maybe: '' }],
    ['do not create objects', { inner: {} }, { ...base, inner: { port: 80 } }],
    [
      'go into items and map values',
      { list: [{}, { port: 1 }], map: { a: {} } },
      {
        ...base,
        list: [{ port: 80 }, { port: 1 }],
        map: { a: { port: 80 } },
      },
    ],
    [
      'replace a null that the schema does not allow',
      { count: null, inner: { port: null } },
      {
        ...base,
        inner: { port: 80 },
      },
    ],
    [
      'drop such a null where there is no default',
      { plain: null, inner: { name: null } },
      {
        ...base,
        inner: { port: 80 },
      },
    ],
    ['keep a null that the schema allows', { maybe: null }, { ...base, maybe: null }],
    ['replace nulls among items', { zeros: [null, 1] }, { ...base, zeros: [7, 1] }],
    ['pass by what has the wrong type', { inner: 5, list: 'x', map: [] }, { ...base, inner: 5, list: 'x', map: [] }],
  ])('%s', (_, given, expected) => {
    expect(defaulted(schema, given)).toEqual(expected);
  });

  it('of built-in kinds do not look at nulls, which pruning has removed', () => {
    expect(defaulted(schema, { count: null, plain: null }, true)).toEqual({ ...base, count: null, plain: null });
  });

  it('are copies, so that objects never share them', () => {
    const [first, second] = [defaulted(schema, {}), defaulted(schema, {})] as { filled: { name: string } }[];
    if (first) first.filled.name = 'changed';
    expect(second?.filled.name).toBe('x');
  });

  it('can be named like what objects inherit', () => {
    const properties = JSON.parse(
      '{"__proto__": {"type": "string", "default": "p"}, "toString": {"type": "string", "default": "t"}}',
    );
    const value = defaulted({ type: 'object', properties: properties as Record<string, Schema> }, {});
    expect(JSON.stringify(value)).toBe('{"__proto__":"p","toString":"t"}');
  });

  it('are applied once and for all', () => {
    assert(
      property(dictionary(constantFrom(...Object.keys(schema.properties ?? {})), jsonValue()), (given) => {
        const once = defaulted(schema, given as Json);
        expect(defaulted(schema, once)).toEqual(once);
      }),
    );
  });
});
