import type { Schema } from '../../api/schema.ts';

/** How a value travels in protobuf. `opaque` is what our schemas describe too loosely to read. */
export type Shape =
  | 'string'
  | 'int32'
  | 'int64'
  | 'bool'
  | 'double'
  | 'bytes'
  | 'time'
  | 'micro-time'
  | 'duration'
  | 'quantity'
  | 'int-or-string'
  | 'raw'
  | 'message'
  | 'map'
  | 'list'
  | 'opaque';

/** What the decoder needs to know of one field. */
export interface FieldPlan {
  readonly name: string;
  readonly shape: Shape;
  readonly schema: Schema;
  /** Whether JSON would show this field even when it is zero. */
  readonly keepsZero: boolean;
}

/** A message by field number; a number is a field of its own or an embedded struct whose fields JSON inlines. */
export interface MessagePlan {
  readonly fields: ReadonlyMap<number, FieldPlan>;
  readonly embedded: ReadonlyMap<number, MessagePlan>;
}

/** Keyed by the properties, since `message()` copies the schema around them into every field that uses it. */
const plans = new WeakMap<object, MessagePlan>();

/** The plan of an object schema with properties; built once for each. */
export function planOf(schema: Schema): MessagePlan {
  const properties = schema.properties ?? {};
  let plan = plans.get(properties);
  if (plan === undefined) {
    plan = buildPlan(properties, new Set(schema.required));
    plans.set(properties, plan);
  }
  return plan;
}

function buildPlan(properties: { readonly [field: string]: Schema }, required: ReadonlySet<string>): MessagePlan {
  const fields = new Map<number, FieldPlan>();
  const embedded = new Map<number, { fields: Map<number, FieldPlan>; embedded: Map<number, MessagePlan> }>();
  for (const [name, schema] of Object.entries(properties)) {
    if (schema.protobuf === undefined) continue;
    const shape = shapeOf(schema);
    // A number that may be a text is a struct in Go, so that JSON shows it even when it is zero.
    const keepsZero = schema.pointer === true || required.has(name) || shape === 'int-or-string';
    const field = { name, schema, shape, keepsZero };
    if (schema.embedded === undefined) {
      fields.set(schema.protobuf, field);
      continue;
    }
    let inner = embedded.get(schema.embedded);
    if (inner === undefined) {
      inner = { fields: new Map(), embedded: new Map() };
      embedded.set(schema.embedded, inner);
    }
    inner.fields.set(schema.protobuf, field);
  }
  return { fields, embedded };
}

const FORMATS: ReadonlyMap<string, Shape> = new Map([
  ['byte', 'bytes'],
  ['date-time', 'time'],
  ['micro-time', 'micro-time'],
  ['duration', 'duration'],
  ['quantity', 'quantity'],
  ['int-or-string', 'int-or-string'],
  ['raw', 'raw'],
  ['int64', 'int64'],
]);

const TYPES: ReadonlyMap<string, Shape> = new Map([
  ['string', 'string'],
  ['integer', 'int32'],
  ['number', 'double'],
  ['boolean', 'bool'],
]);

/** How values of a schema travel. */
export function shapeOf(schema: Schema): Shape {
  const scalar = FORMATS.get(schema.format ?? '') ?? TYPES.get(schema.type ?? '');
  if (scalar !== undefined) return scalar;
  if (schema.type === 'array') return schema.items === undefined ? 'opaque' : 'list';
  if (typeof schema.additionalProperties === 'object') return 'map';
  return schema.properties === undefined ? 'opaque' : 'message';
}
