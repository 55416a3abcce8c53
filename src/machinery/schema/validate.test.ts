import { describe, expect, it } from 'vitest';
import type { Json } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { compileSchema } from './compile.ts';
import { ERRORS_MAX } from './validation-context.ts';

/** What is wrong with `value` as the field `f` of an object, as kubectl would print it. */
function errors(schema: Schema, value: Json, old?: Json): string[] {
  const compiled = compileSchema({ type: 'object', properties: { f: schema } });
  const found = compiled.validate({ f: value }, old === undefined ? undefined : { f: old });
  return found.map((error) => `${error.field}: ${error.message}`);
}

const str: Schema = { type: 'string' };
const int: Schema = { type: 'integer' };

describe('keywords', () => {
  const typed = (expected: string, actual: string): string =>
    `f: Invalid value: "${actual}": f in body must be of type ${expected}: "${actual}"`;

  it.each<[string, Schema, Json, string[]]>([
    ['string', str, 'a', []],
    ['string', str, 1, [typed('string', 'integer')]],
    ['string', str, null, [typed('string', 'null')]],
    ['integer', int, 1, []],
    ['integer', int, 1e3, []],
    ['integer', int, -9223372036854775808, []],
    ['integer', int, 1.5, [typed('integer', 'number')]],
    ['integer', int, 1e300, [typed('integer', 'number')]],
    ['integer', int, '1', [typed('integer', 'string')]],
    ['number', { type: 'number' }, 1, []],
    ['number', { type: 'number' }, 1.5, []],
    ['number', { type: 'number' }, true, [typed('number', 'boolean')]],
    ['boolean', { type: 'boolean' }, false, []],
    ['boolean', { type: 'boolean' }, 'true', [typed('boolean', 'string')]],
    ['object', { type: 'object' }, {}, []],
    ['object', { type: 'object' }, [], [typed('object', 'array')]],
    ['array', { type: 'array' }, [], []],
    ['array', { type: 'array' }, {}, [typed('array', 'object')]],
    ['int-or-string', { 'x-kubernetes-int-or-string': true }, 1, []],
    ['int-or-string', { 'x-kubernetes-int-or-string': true }, '1', []],
    ['int-or-string', { 'x-kubernetes-int-or-string': true }, 1.5, [typed('integer,string', 'number')]],
    ['nullable', { ...str, nullable: true }, null, []],
    ['no type', { 'x-kubernetes-preserve-unknown-fields': true }, null, []],
    ['int32 in a custom resource', { ...int, format: 'int32' }, 3_000_000_000, []],
  ])('type %s', (_, schema, value, expected) => {
    expect(errors(schema, value)).toEqual(expected);
  });

  it.each<[string, Schema, Json, string[]]>([
    ['minLength', { ...str, minLength: 2 }, 'a', ['f: Invalid value: "a": f in body should be at least 2 chars long']],
    [
      'minLength of code points',
      { ...str, minLength: 2 },
      '😀',
      ['f: Invalid value: "😀": f in body should be at least 2 chars long'],
    ],
    ['maxLength', { ...str, maxLength: 2 }, 'abc', ['f: Too long: may not be more than 2 bytes']],
    ['maxLength of code points', { ...str, maxLength: 2 }, '😀😀', []],
    ['pattern', { ...str, pattern: '^a+$' }, 'ab', [`f: Invalid value: "ab": f in body should match '^a+$'`]],
    ['pattern anywhere', { ...str, pattern: 'b' }, 'abc', []],
    ['enum', { ...str, enum: ['a', 'b'] }, 'c', ['f: Unsupported value: "c": supported values: "a", "b"']],
    ['enum of numbers', { ...int, enum: [1, 2] }, 3, ['f: Unsupported value: 3: supported values: "1", "2"']],
    ['enum of objects', { type: 'object', enum: [{ a: [1] }] }, { a: [1] }, []],
    ['minimum', { ...int, minimum: 1 }, 0, ['f: Invalid value: 0: f in body should be greater than or equal to 1']],
    ['minimum met', { ...int, minimum: 1 }, 1, []],
    [
      'exclusiveMinimum',
      { ...int, minimum: 1, exclusiveMinimum: true },
      1,
      ['f: Invalid value: 1: f in body should be greater than 1'],
    ],
    ['maximum', { ...int, maximum: 1 }, 2, ['f: Invalid value: 2: f in body should be less than or equal to 1']],
    [
      'exclusiveMaximum',
      { ...int, maximum: 1, exclusiveMaximum: true },
      1,
      ['f: Invalid value: 1: f in body should be less than 1'],
    ],
    ['multipleOf', { ...int, multipleOf: 3 }, 4, ['f: Invalid value: 4: f in body should be a multiple of 3']],
    ['multipleOf fractions', { type: 'number', multipleOf: 0.1 }, 0.3, []],
    ['minItems', { type: 'array', minItems: 1 }, [], ['f: Invalid value: 0: f in body should have at least 1 items']],
    ['maxItems', { type: 'array', maxItems: 1 }, [1, 2], ['f: Too many: 2: must have at most 1 item']],
    [
      'uniqueItems',
      { type: 'array', uniqueItems: true },
      [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
      [`f: Invalid value: "": f in body shouldn't contain duplicates`],
    ],
    [
      'minProperties',
      { type: 'object', minProperties: 1 },
      {},
      ['f: Invalid value: 0: f in body should have at least 1 properties'],
    ],
    [
      'maxProperties',
      { type: 'object', maxProperties: 1 },
      { a: 1, b: 2 },
      ['f: Too many: 2: must have at most 1 item'],
    ],
    ['required', { type: 'object', required: ['a', 'b'] }, { a: null }, ['f.b: Required value']],
    [
      'required of a name that objects inherit',
      { type: 'object', required: ['toString'] },
      {},
      ['f.toString: Required value'],
    ],
    [
      'items',
      { type: 'array', items: int },
      [1, 'x'],
      ['f[1]: Invalid value: "string": f[1] in body must be of type integer: "string"'],
    ],
    [
      'additionalProperties',
      { type: 'object', additionalProperties: int },
      { k: 'x' },
      ['f.k: Invalid value: "string": f.k in body must be of type integer: "string"'],
    ],
    ['format', { ...str, format: 'ipv4' }, 'x', ['f: Invalid value: "x": f in body must be of type ipv4: "x"']],
    ['unknown format', { ...str, format: 'nope' }, 'x', []],
  ])('%s', (_, schema, value, expected) => {
    expect(errors(schema, value)).toEqual(expected);
  });

  it.each<[string, Schema, Json, string[]]>([
    ['anyOf met', { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] }, { b: 1 }, []],
    [
      'anyOf',
      { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      {},
      [': Invalid value: "": "f" must validate at least one schema (anyOf)', 'f.a: Required value'],
    ],
    [
      'oneOf none',
      { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      {},
      [
        ': Invalid value: "": "f" must validate one and only one schema (oneOf). Found none valid',
        'f.a: Required value',
      ],
    ],
    [
      'oneOf two',
      { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 1, b: 1 },
      [': Invalid value: "": "f" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ],
    [
      'allOf',
      { ...int, allOf: [{ minimum: 1 }, { maximum: 5 }] },
      9,
      [
        'f: Invalid value: 9: f in body should be less than or equal to 5',
        ': Invalid value: "": "f" must validate all the schemas (allOf)',
      ],
    ],
    [
      'not',
      { type: 'object', not: { required: ['a'] } },
      { a: 1 },
      [': Invalid value: "": "f" must not validate the schema (not)'],
    ],
    [
      'int-or-string as it is written out',
      {
        'x-kubernetes-int-or-string': true,
        anyOf: [{ type: 'integer' }, { type: 'string' }],
      },
      true,
      [
        'f: Invalid value: "boolean": f in body must be of type integer,string: "boolean"',
        ': Invalid value: "": "f" must validate at least one schema (anyOf)',
        'f: Invalid value: "boolean": f in body must be of type integer: "boolean"',
      ],
    ],
  ])('%s', (_, schema, value, expected) => {
    expect(errors(schema, value)).toEqual(expected);
  });

  it('are all checked, not only the first that fails', () => {
    const schema: Schema = { ...str, enum: ['a'] };
    expect(errors(schema, 3)).toEqual([
      'f: Invalid value: "integer": f in body must be of type string: "integer"',
      'f: Unsupported value: 3: supported values: "a"',
    ]);
  });
});

describe('lists of type set and map', () => {
  const set: Schema = { type: 'array', items: str, 'x-kubernetes-list-type': 'set' };
  const keyed = (...keys: string[]): Schema => ({
    type: 'array',
    items: { type: 'object', properties: { a: str, b: str } },
    'x-kubernetes-list-type': 'map',
    'x-kubernetes-list-map-keys': keys,
  });

  it.each<[string, Schema, Json, string[]]>([
    ['a set', set, ['a', 'b'], []],
    ['a set with a repeat', set, ['a', 'b', 'a', 'a'], ['f[2]: Duplicate value: "a"']],
    ['a keyed list', keyed('a'), [{ a: 'x' }, { a: 'y' }], []],
    [
      'a repeated key',
      keyed('a'),
      [
        { a: 'x', b: '1' },
        { a: 'x', b: '2' },
      ],
      ['f[1]: Duplicate value: {"a":"x"}'],
    ],
    ['two items without the key', keyed('a'), [{}, {}], ['f[1]: Duplicate value: {}']],
    [
      'several keys',
      keyed('a', 'b'),
      [
        { a: 'x', b: '1' },
        { a: 'x', b: '2' },
      ],
      [],
    ],
    [
      'several keys repeated',
      keyed('a', 'b'),
      [
        { a: 'x', b: '1' },
        { b: '1', a: 'x' },
      ],
      ['f[1]: Duplicate value: {"a":"x","b":"1"}'],
    ],
  ])('%s', (_, schema, value, expected) => {
    expect(errors(schema, value)).toEqual(expected);
  });

  it('stay as wrong as they were', () => {
    expect(errors(set, ['a', 'a', 'b'], ['a', 'a'])).toEqual([]);
    expect(errors(set, ['a', 'a'], ['a'])).toEqual(['f[1]: Duplicate value: "a"']);
  });
});

describe('ratcheting', () => {
  const limited: Schema = { type: 'object', properties: { a: { ...str, maxLength: 1 }, b: str } };

  it('excuses what was wrong before and did not change', () => {
    expect(errors(limited, { a: 'long', b: '2' }, { a: 'long', b: '1' })).toEqual([]);
    expect(errors(limited, { a: 'longer', b: '2' }, { a: 'long', b: '1' })).toHaveLength(1);
    expect(errors(limited, { a: 'long' }, {})).toHaveLength(1);
  });

  it('does not even look at what is the very same as before', () => {
    const same = {
      get a(): string {
        throw new Error('looked at');
      },
    };
    expect(() => errors(limited, same, {})).toThrow('looked at');
    expect(errors(limited, same, same)).toEqual([]);
  });

  it('excuses a missing field only with the object that lacks it', () => {
    const schema: Schema = { type: 'object', required: ['a'], properties: { a: str, b: str } };
    expect(errors(schema, { b: '1' }, { b: '1' })).toEqual([]);
    expect(errors(schema, { b: '2' }, { b: '1' })).toEqual(['f.a: Required value']);
  });

  it('follows items of keyed lists by their keys and treats other lists as one value', () => {
    const item: Schema = { type: 'object', properties: { n: str, v: { ...int, minimum: 5 } } };
    const list: Schema = { type: 'array', items: item };
    const keyed: Schema = { ...list, 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': ['n'] };
    const old = [
      { n: 'a', v: 1 },
      { n: 'b', v: 9 },
    ];
    const now = [
      { n: 'b', v: 9 },
      { n: 'c', v: 6 },
      { n: 'a', v: 1 },
    ];
    expect(errors(keyed, now, old)).toEqual([]);
    expect(errors(list, now, old)).toHaveLength(1);
    expect(errors(list, old, old)).toEqual([]);
  });

  it('never turns a branch that did not fit into one that does', () => {
    const schema: Schema = {
      type: 'object',
      properties: { a: str, b: str },
      not: { properties: { a: { enum: ['x'] } }, required: ['a'] },
    };
    expect(errors(schema, { a: 'y', b: '2' }, { a: 'y', b: '1' })).toEqual([]);
  });
});

describe('limits', () => {
  it('stops after a bounded number of errors', () => {
    const value = Array.from({ length: 10_000 }, () => 'x');
    expect(errors({ type: 'array', items: int }, value)).toHaveLength(ERRORS_MAX);
  });

  it('walks objects a thousand levels deep', () => {
    const node: { -readonly [key in keyof Schema]: Schema[key] } = { type: 'object', required: ['leaf'] };
    const recursive = node as Schema;
    node.properties = { leaf: int, next: recursive };
    node.allOf = [{ minProperties: 1 }];
    let value: Json = { leaf: 1 };
    let old: Json = { leaf: 1 };
    for (let depth = 0; depth < 1000; depth++) {
      value = { leaf: depth === 0 ? 'wrong' : 1, next: value };
      old = { leaf: 1, next: old };
    }
    const compiled = compileSchema(recursive, { builtin: true });
    expect(compiled.prune(value)).toEqual([]);
    compiled.applyDefaults(value);
    expect(compiled.validate(value).filter((error) => error.field !== '')).toHaveLength(1);
    expect(compiled.validate(value, old).filter((error) => error.field !== '')).toHaveLength(1);
    expect(compiled.validate(value, value)).toEqual([]);
  });
});
