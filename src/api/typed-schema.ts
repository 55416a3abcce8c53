/**
 * Builders of schemas that know the TypeScript type of their values, so that a field of a custom kind is written once:
 * its type is inferred from the same words that become the CRD's OpenAPI schema. They emit only what Kubernetes accepts
 * in a CRD, and a schema of a built-in kind can be borrowed for a field that is passed on to one.
 *
 * Fields may be absent unless `needed` says otherwise, since that is how it is with nearly all fields of Kubernetes.
 */

import type { JsonObject } from './meta.ts';
import type { Schema } from './schema.ts';

declare const TYPE: unique symbol;

/** A schema whose values have the type T. */
export type Shape<T> = Schema & { readonly [TYPE]?: T };

/** A field that must be present. */
export interface Needed<T> {
  readonly needed: Shape<T>;
}

/** The type of the values that a shape describes. */
export type Infer<S> = S extends Shape<infer T> ? T : never;

/** A quantity as it is on the wire: YAML makes a number of `memory: 1`. */
export type QuantityValue = string | number;

type Fields = { readonly [field: string]: Shape<unknown> | Needed<unknown> };
type FieldType<F> = F extends Needed<infer T> ? T : Infer<F>;
type NeededNames<F> = { [K in keyof F]: F[K] extends Needed<unknown> ? K : never }[keyof F];
type Flat<T> = { [K in keyof T]: T[K] };
type ObjectType<F> = Flat<
  { [K in NeededNames<F>]: FieldType<F[K]> } & { [K in Exclude<keyof F, NeededNames<F>>]?: FieldType<F[K]> }
>;

type Extra = Partial<Schema>;

/** What Kubernetes reads as a quantity, up to its size. */
const QUANTITY_PATTERN = '^[+-]?([0-9]+(\\.[0-9]*)?|\\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$';

/** Any text. */
export const text = (description: string, extra: Extra = {}): Shape<string> => ({
  type: 'string',
  description,
  ...extra,
});

/** One of a few texts. */
export const choice = <const V extends readonly string[]>(
  description: string,
  values: V,
  extra: Extra = {},
): Shape<V[number]> => ({ type: 'string', description, enum: values, ...extra });

/** A whole number of 32 bits. */
export const integer = (description: string, extra: Extra = {}): Shape<number> => ({
  type: 'integer',
  format: 'int32',
  description,
  ...extra,
});

/** A whole number of 64 bits. */
export const long = (description: string, extra: Extra = {}): Shape<number> => ({
  type: 'integer',
  format: 'int64',
  description,
  ...extra,
});

/** A whole number from zero, as Go's uint32. */
export const count = (description: string, extra: Extra = {}): Shape<number> =>
  long(description, { minimum: 0, maximum: 4_294_967_295, ...extra });

/** Yes or no. */
export const flag = (description: string): Shape<boolean> => ({ type: 'boolean', description });

/** A moment in RFC 3339; null, as Go writes zero times, is kept. */
export const moment = (description: string): Shape<string> => ({
  type: 'string',
  format: 'date-time',
  nullable: true,
  description,
});

/** An amount such as `2Gi` or `500m`. */
export const quantity = (description: string): Shape<QuantityValue> => ({
  description,
  anyOf: [{ type: 'integer' }, { type: 'string' }],
  pattern: QUANTITY_PATTERN,
  'x-kubernetes-int-or-string': true,
});

/** A list that is replaced as a whole. */
export const listOf = <T>(description: string, items: Shape<T>, extra: Extra = {}): Shape<T[]> => ({
  type: 'array',
  description,
  items,
  'x-kubernetes-list-type': 'atomic',
  ...extra,
});

/** A list whose items are told apart by one of their needed fields. */
export const listByKey = <T>(description: string, key: keyof T & string, items: Shape<T>): Shape<T[]> =>
  listOf(description, items, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': [key] });

/** Values by names that users choose. */
export const mapOf = <T>(description: string, values: Shape<T>): Shape<Record<string, T>> => ({
  type: 'object',
  description,
  additionalProperties: values,
});

/** Marks a field of an object as one that must be present. */
export const needed = <T>(shape: Shape<T>): Needed<T> => ({ needed: shape });

/** An object of exactly these fields: others are pruned, or refused where the client asks for that. */
export function object<const F extends Fields>(
  description: string,
  fields: F,
  extra: Extra = {},
): Shape<ObjectType<F>> {
  const properties: Record<string, Schema> = {};
  const required: string[] = [];
  for (const [name, field] of Object.entries(fields)) {
    if (isNeeded(field)) required.push(name);
    properties[name] = isNeeded(field) ? field.needed : field;
  }
  return { type: 'object', description, properties, ...(required.length > 0 ? { required } : {}), ...extra };
}

function isNeeded(field: Shape<unknown> | Needed<unknown>): field is Needed<unknown> {
  return 'needed' in field;
}

/** An object of which we know these fields, and keep all others as they are. */
export const openObject = <const F extends Fields>(description: string, fields: F): Shape<ObjectType<F>> =>
  object(description, fields, { 'x-kubernetes-preserve-unknown-fields': true });

/** An object that we keep, whatever is in it, and do not look into. */
export const kept = (description: string): Shape<JsonObject> => ({
  type: 'object',
  description,
  'x-kubernetes-preserve-unknown-fields': true,
});

/** What only the schemas of built-in kinds have, and no CRD may. */
const BUILTIN_KEYWORDS: ReadonlySet<string> = new Set([
  'name',
  'protobuf',
  'embedded',
  'pointer',
  'x-kubernetes-patch-strategy',
  'x-kubernetes-patch-merge-key',
]);
const BUILTIN_FORMATS: ReadonlySet<string> = new Set(['raw', 'int-or-string', 'quantity', 'micro-time']);

/** The schema of a built-in kind's object, for a field that is passed on to it as it is. */
export const borrowed = (description: string, builtin: Schema): Shape<JsonObject> => ({
  ...portable(builtin),
  description,
});

function portable(schema: Schema): Schema {
  const entries = Object.entries(schema)
    .filter(([keyword]) => !BUILTIN_KEYWORDS.has(keyword))
    .filter(([keyword, value]) => keyword !== 'format' || !BUILTIN_FORMATS.has(String(value)));
  return {
    ...(Object.fromEntries(entries) as Schema),
    ...(schema.properties ? { properties: portableProperties(schema.properties) } : {}),
    ...(schema.items ? { items: portable(schema.items) } : {}),
    ...(typeof schema.additionalProperties === 'object'
      ? { additionalProperties: portable(schema.additionalProperties) }
      : {}),
  };
}

function portableProperties(properties: { readonly [field: string]: Schema }): { readonly [field: string]: Schema } {
  return Object.fromEntries(Object.entries(properties).map(([field, schema]) => [field, portable(schema)]));
}
