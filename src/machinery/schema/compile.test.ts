import { Ajv } from 'ajv';
import {
  array,
  assert,
  boolean,
  constantFrom,
  dictionary,
  integer,
  letrec,
  oneof,
  option,
  property,
  record,
  tuple,
  uniqueArray,
} from 'fast-check';
import { describe, expect, it } from 'vitest';
import { objectSchema } from '../../api/kinds/meta.ts';
import type { Json, JsonObject } from '../../api/meta.ts';
import { int32, message, quantity, type Schema, str, time } from '../../api/schema.ts';
import { compileSchema } from './compile.ts';

describe('compileSchema', () => {
  it('compiles a schema once per way of reading it', () => {
    const schema: Schema = { type: 'object', properties: { a: { type: 'string' } } };
    expect(compileSchema(schema)).toBe(compileSchema(schema));
    expect(compileSchema(schema, { builtin: true })).toBe(compileSchema(schema, { builtin: true }));
    expect(compileSchema(schema, { builtin: true })).not.toBe(compileSchema(schema));
  });

  it('checks metadata as Go types it, and the names that a CRD restricts', () => {
    const schema: Schema = {
      type: 'object',
      properties: { metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 3 } } } },
    };
    const errors = compileSchema(schema).validate({
      apiVersion: 'v1',
      kind: 'K',
      metadata: { name: 'long', labels: { a: 1 }, creationTimestamp: 'yesterday', generation: 'x' },
    });
    expect(errors.map((error) => error.field)).toEqual([
      'metadata.name',
      'metadata.labels.a',
      'metadata.creationTimestamp',
      'metadata.generation',
    ]);
  });

  it('checks embedded resources: their type, their kind, their metadata', () => {
    const template: Schema = {
      type: 'object',
      'x-kubernetes-embedded-resource': true,
      'x-kubernetes-preserve-unknown-fields': true,
    };
    const schema: Schema = { type: 'object', properties: { list: { type: 'array', items: template } } };
    const validate = (value: Json): string[] =>
      compileSchema(schema)
        .validate({ list: [value] })
        .map((error) => `${error.field}: ${error.message}`);
    expect(validate({ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { labels: { a: 'b' } }, spec: {} })).toEqual(
      [],
    );
    expect(validate({})).toEqual(['list[0].apiVersion: Required value', 'list[0].kind: Required value']);
    expect(validate({ apiVersion: 'a/b/c', kind: 'K' })[0]).toContain('list[0].apiVersion: Invalid value: "a/b/c"');
    expect(validate({ apiVersion: 'v1', kind: 'not a kind' })[0]).toContain('list[0].kind: Invalid value');
    expect(validate({ apiVersion: 'v1', kind: 'K', metadata: { labels: { 'bad key!': '' } } })[0]).toMatch(
      /^list\[0\]\.metadata\.labels: Invalid value/,
    );
    expect(validate({ apiVersion: 'v1', kind: 'K', metadata: { labels: [] } })[0]).toContain('list[0].metadata.labels');
  });

  it('reads null keywords as absent ones', () => {
    const schema = { type: 'object', properties: { a: { type: 'string', items: null, pattern: null, default: null } } };
    const compiled = compileSchema(schema as unknown as Schema);
    const object = { a: 'x', b: 1 };
    expect(compiled.prune(object)).toEqual(['b']);
    compiled.applyDefaults(object);
    expect(object).toEqual({ a: 'x' });
    expect(compiled.validate(object)).toEqual([]);
  });
});

describe('built-in kinds', () => {
  const schema = objectSchema('Thing', '', {
    spec: [
      2,
      message('ThingSpec', '', {
        count: [1, int32({ minimum: 0 })],
        memory: [2, quantity()],
        at: [3, time()],
        name: [4, str()],
      }),
    ],
  });
  const validate = (spec: Json): string[] =>
    compileSchema(schema, { builtin: true })
      .validate({ apiVersion: 'v1', kind: 'Thing', metadata: { name: 'n' }, spec })
      .map((error) => `${error.field}: ${error.message}`);

  it('bound their integers and read their formats as Go does', () => {
    expect(validate({ count: 2_147_483_647, memory: '1.5Gi', at: '2020-01-01T00:00:00Z' })).toEqual([]);
    expect(validate({ count: 2_147_483_648 })).toEqual([
      'spec.count: Invalid value: 2147483648: spec.count in body must be of type int32',
    ]);
    expect(validate({ memory: 'lots', at: 'then' })).toEqual([
      'spec.memory: Invalid value: "lots": spec.memory in body must be of type quantity: "lots"',
      'spec.at: Invalid value: "then": spec.at in body must be of type date-time: "then"',
    ]);
    expect(validate({ memory: 1, count: -1 })).toEqual([
      'spec.count: Invalid value: -1: spec.count in body should be greater than or equal to 0',
    ]);
  });
});

describe('validation agrees with ajv on whether an object is valid', () => {
  const bound = option(integer({ min: 0, max: 3 }), { nil: undefined });
  const names = constantFrom('a', 'b', 'c');
  const nullable = option(boolean(), { nil: undefined });
  const { schemas } = letrec<{ schemas: Schema }>((tie) => ({
    schemas: oneof(
      { depthSize: 'small', withCrossShrink: true },
      record({ minLength: bound, maxLength: bound, nullable }).map((rest): Schema => ({ type: 'string', ...rest })),
      record({ enum: uniqueArray(constantFrom<Json[]>('a', 'bb', ''), { minLength: 1 }) }).map(
        (rest): Schema => ({ type: 'string', ...rest }),
      ),
      record({ pattern: constantFrom('^a', 'b$', '^[ab]+$') }).map((rest): Schema => ({ type: 'string', ...rest })),
      tuple(constantFrom('integer' as const, 'number' as const), bound, bound, constantFrom(1, 2, 3)).map(
        ([type, minimum, maximum, multipleOf]): Schema => ({ type, minimum, maximum, multipleOf }),
      ),
      tuple(tie('schemas'), bound, bound).map(
        ([items, minItems, maxItems]): Schema => ({ type: 'array', items, minItems, maxItems }),
      ),
      tuple(tie('schemas'), bound, bound).map(
        ([additionalProperties, minProperties, maxProperties]): Schema => ({
          type: 'object',
          additionalProperties,
          minProperties,
          maxProperties,
        }),
      ),
      tuple(dictionary(names, tie('schemas')), array(names, { maxLength: 2 }), nullable).map(
        ([properties, required, isNullable]): Schema => ({
          type: 'object',
          properties: { ...properties },
          required: [...new Set(required)],
          nullable: isNullable,
        }),
      ),
      tuple(
        constantFrom('anyOf' as const, 'oneOf' as const, 'allOf' as const),
        array(names, { minLength: 1, maxLength: 3 }),
      ).map(
        ([junctor, required]): Schema => ({
          type: 'object',
          [junctor]: required.map((name) => ({ required: [name] })),
        }),
      ),
      names.map((name): Schema => ({ type: 'object', not: { required: [name] } })),
    ),
  }));
  const { values } = letrec<{ values: Json }>((tie) => ({
    values: oneof(
      { depthSize: 'small' },
      constantFrom<Json[]>('', 'a', 'ab', 'bb', '😀😀😀', 0, 1, 2, 3, -1, 1.5, 6, true, null),
      array(tie('values'), { maxLength: 4 }),
      dictionary(names, tie('values')),
    ),
  }));

  it('for any schema and object', () => {
    const ajv = new Ajv({ strict: false, unicodeRegExp: true, logger: false });
    let valid = 0;
    assert(
      property(schemas, array(values, { minLength: 5, maxLength: 5 }), (field, objects) => {
        const schema: Schema = { type: 'object', properties: { field } };
        const oracle = ajv.compile(JSON.parse(JSON.stringify(schema)));
        for (const value of objects) {
          const isValid = compileSchema(schema).validate({ field: value }).length === 0;
          expect(isValid).toBe(oracle({ field: value }));
          if (isValid) valid++;
        }
      }),
      { numRuns: 500 },
    );
    expect(valid).toBeGreaterThan(50);
  });
});

describe('what is the very same in an object that is known', () => {
  const part: Schema = {
    type: 'object',
    properties: { name: { type: 'string' }, size: { type: 'integer', default: 1 } },
  };
  const schema: Schema = {
    type: 'object',
    properties: { spec: part, status: part, list: { type: 'array', items: part } },
  };
  const compiled = compileSchema(schema);

  it('is left alone, and all the rest is pruned and defaulted', () => {
    const known = { spec: Object.freeze({ name: 'a', stray: 1 }), status: { name: 'b' } } as unknown as JsonObject;
    const object = { ...known, status: { name: 'c', stray: 1 }, list: [{ stray: 2 }] } as Json;
    expect(compiled.prune(object, known)).toEqual(['list[0].stray', 'status.stray']);
    compiled.applyDefaults(object, known);
    expect(object).toEqual({ spec: { name: 'a', stray: 1 }, status: { name: 'c', size: 1 }, list: [{ size: 1 }] });
  });
});
