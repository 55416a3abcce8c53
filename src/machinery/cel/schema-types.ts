import { type Schema, str } from '../../api/schema.ts';
import { unreachable } from '../../api/unreachable.ts';
import { escapeField } from './escape.ts';
import { BOOL, BYTES, DOUBLE, DURATION, DYN, INT, listOf, mapOf, STRING, TIMESTAMP, type Type } from './types.ts';

/** What rules see of a schema: its types, and its fields under their escaped names. */

export interface Field {
  readonly name: string;
  readonly schema: Schema;
  readonly type: Type;
}

const metadata: Schema = { type: 'object', properties: { name: str(), generateName: str() } };
const resources = new WeakMap<Schema, Schema>();
const fields = new WeakMap<Schema, ReadonlyMap<string, Field>>();

/**
 * The schema of a resource as rules see it: its apiVersion, kind and names are always there, and nothing else of its
 * metadata ever is.
 */
export function resourceForRules(schema: Schema): Schema {
  const known = resources.get(schema);
  if (known) return known;
  const result: Schema = { ...schema, properties: { ...schema.properties, apiVersion: str(), kind: str(), metadata } };
  resources.set(schema, result);
  resources.set(result, result);
  return result;
}

/** The type of a schema's values; undefined where rules cannot reach them because nothing is known of them. */
export function typeOfSchema(given: Schema): Type | undefined {
  const schema = given['x-kubernetes-embedded-resource'] === true ? resourceForRules(given) : given;
  if (schema['x-kubernetes-int-or-string'] === true) return DYN;
  switch (schema.type) {
    case 'array':
      return wrap(schema.items, listOf);
    case 'object':
      if (typeof schema.additionalProperties !== 'object') return { kind: 'object', schema };
      return wrap(schema.additionalProperties, (value) => mapOf(STRING, value));
    case 'string':
      return typeOfFormat(schema.format);
    case 'boolean':
      return BOOL;
    case 'number':
      return DOUBLE;
    case 'integer':
      return INT;
    case undefined:
      return undefined;
    default:
      return unreachable(schema.type);
  }
}

function wrap(schema: Schema | undefined, make: (inner: Type) => Type): Type | undefined {
  const inner = schema === undefined ? undefined : typeOfSchema(schema);
  return inner && make(inner);
}

function typeOfFormat(format: string | undefined): Type {
  if (format === 'byte') return BYTES;
  if (format === 'duration') return DURATION;
  return format === 'date' || format === 'date-time' ? TIMESTAMP : STRING;
}

/** The fields of an object's schema by the names that rules use. */
export function fieldsOf(schema: Schema): ReadonlyMap<string, Field> {
  const known = fields.get(schema);
  if (known) return known;
  const result = new Map<string, Field>();
  for (const [name, property] of Object.entries(schema.properties ?? {})) {
    const escaped = escapeField(name);
    const type = escaped === undefined ? undefined : typeOfSchema(property);
    if (escaped !== undefined && type !== undefined) result.set(escaped, { name, schema: property, type });
  }
  fields.set(schema, result);
  return result;
}
