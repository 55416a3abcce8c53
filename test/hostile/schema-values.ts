import * as fc from 'fast-check';
import type { Json } from '../../src/api/meta.ts';
import type { Schema } from '../../src/api/schema.ts';
import { anyJson, numbers, objectOf, words } from './wild-values.ts';

const DEPTH_MAX = 6;

/** A value that fits the schema by type, more often than not, and makes no sense otherwise. */
export function valueOf(schema: Schema, depth = 0): fc.Arbitrary<Json> {
  return fc.oneof({ weight: 30, arbitrary: fitting(schema, depth) }, { weight: 1, arbitrary: anyJson });
}

function fitting(schema: Schema, depth: number): fc.Arbitrary<Json> {
  if (schema.enum && schema.enum.length > 0)
    return fc.oneof({ weight: 5, arbitrary: fc.constantFrom(...schema.enum) }, { weight: 1, arbitrary: words });
  if (schema['x-kubernetes-int-or-string'] === true) return fc.oneof(words, numbers);
  switch (schema.type) {
    case 'object':
      return objectValue(schema, depth);
    case 'array':
      return depth > DEPTH_MAX || !schema.items
        ? fc.constant([])
        : fc.array(lazily(schema.items, depth), { maxLength: 3 });
    case 'string':
      return schema.format === 'date-time' || schema.format === 'micro-time'
        ? fc.oneof(fc.constant('2026-01-01T00:00:00Z'), words)
        : words;
    case 'integer':
      return fc.oneof({ weight: 4, arbitrary: fc.integer({ min: 0, max: 100 }) }, { weight: 1, arbitrary: numbers });
    case 'number':
      return numbers;
    case 'boolean':
      return fc.boolean();
    case undefined:
      return anyJson;
    default:
      return schema.type satisfies never;
  }
}

function objectValue(schema: Schema, depth: number): fc.Arbitrary<Json> {
  const properties = Object.entries(schema.properties ?? {});
  const { additionalProperties } = schema;
  if (depth > DEPTH_MAX || (properties.length === 0 && typeof additionalProperties !== 'object')) return anyJson;
  if (properties.length === 0)
    return fc
      .array(fc.tuple(words, lazily(additionalProperties as Schema, depth)), { maxLength: 3 })
      .map((entries) => objectOf(entries));
  const needed = new Set(schema.required);
  const some = fc.subarray(properties, { minLength: 0, maxLength: Math.min(4, properties.length) });
  return some.chain((chosen) => {
    const fields = [...new Map([...properties.filter(([field]) => needed.has(field)), ...chosen])];
    const entries = fields.map(([field, each]) => lazily(each, depth).map((value) => [field, value] as const));
    return fc.tuple(...entries).map(objectOf);
  });
}

/** Schemas are large, and some contain themselves: only what is chosen is built. */
function lazily(schema: Schema, depth: number): fc.Arbitrary<Json> {
  return fc.constant(undefined).chain(() => valueOf(schema, depth + 1));
}
