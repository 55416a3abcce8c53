/**
 * Structural schemas: the one description of a kind that drives pruning, defaulting, validation, patches,
 * server-side apply, protobuf bodies and OpenAPI. Built-in kinds write theirs with the builders below;
 * custom resources bring theirs in their CRD.
 */

import type { Json } from './meta.ts';

export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

export interface Schema {
  /** The OpenAPI definition's name; a named schema is published once and referred to. Built-ins only. */
  readonly name?: string;
  readonly type?: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly format?: string;
  readonly title?: string;
  readonly description?: string;
  readonly properties?: { readonly [field: string]: Schema };
  readonly items?: Schema;
  readonly additionalProperties?: Schema | boolean;
  readonly required?: readonly string[];
  readonly enum?: readonly Json[];
  readonly nullable?: boolean;
  readonly default?: Json;
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;
  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;
  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-list-type'?: 'atomic' | 'set' | 'map';
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: 'atomic' | 'granular';
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[];
  /** How strategic merge patch treats this list or map; not the same as the list type (Service.ports). */
  readonly 'x-kubernetes-patch-strategy'?: 'merge' | 'replace' | 'retainKeys' | 'merge,retainKeys';
  readonly 'x-kubernetes-patch-merge-key'?: string;
  /** This field's number in its parent's protobuf message. Built-ins only, never published. */
  readonly protobuf?: number;
  /**
   * Set where Go embeds a struct (`VolumeSource` in `Volume`): JSON has the field here, protobuf has it inside the
   * message of this number. Built-ins only, never published.
   */
  readonly embedded?: number;
  /**
   * A zero is a value here, not an absence (a pointer in Go, e.g. `replicas: 0`): protobuf bodies keep it where they
   * drop the zeros of other optional fields. Built-ins only, never published.
   */
  readonly pointer?: boolean;
}

type Extra = Partial<Schema>;

export const str = (extra: Extra = {}): Schema => ({ type: 'string', ...extra });
export const int32 = (extra: Extra = {}): Schema => ({ type: 'integer', format: 'int32', ...extra });
export const int64 = (extra: Extra = {}): Schema => ({ type: 'integer', format: 'int64', ...extra });
export const double = (extra: Extra = {}): Schema => ({ type: 'number', format: 'double', ...extra });
export const bool = (extra: Extra = {}): Schema => ({ type: 'boolean', ...extra });
/** Base64 on the wire, bytes in protobuf. */
export const bytes = (extra: Extra = {}): Schema => ({ type: 'string', format: 'byte', ...extra });
export const time = (extra: Extra = {}): Schema => ({ type: 'string', format: 'date-time', nullable: true, ...extra });
/** MicroTime: with six fractional digits, neither fewer nor more. */
export const microTime = (extra: Extra = {}): Schema => ({
  type: 'string',
  format: 'micro-time',
  nullable: true,
  ...extra,
});
/** A metav1.Duration such as `5m0s`; a number of nanoseconds in protobuf. */
export const duration = (extra: Extra = {}): Schema => ({ type: 'string', format: 'duration', ...extra });
export const quantity = (extra: Extra = {}): Schema => ({
  format: 'quantity',
  'x-kubernetes-int-or-string': true,
  ...extra,
});
export const intOrString = (extra: Extra = {}): Schema => ({
  format: 'int-or-string',
  'x-kubernetes-int-or-string': true,
  ...extra,
});
export const enumeration = (values: readonly string[], extra: Extra = {}): Schema => ({
  type: 'string',
  enum: values,
  ...extra,
});
export const map = (values: Schema, extra: Extra = {}): Schema => ({
  type: 'object',
  additionalProperties: values,
  ...extra,
});
export const list = (items: Schema, extra: Extra = {}): Schema => ({
  type: 'array',
  items,
  'x-kubernetes-list-type': 'atomic',
  ...extra,
});
export const set = (items: Schema, extra: Extra = {}): Schema => ({
  type: 'array',
  items,
  'x-kubernetes-list-type': 'set',
  'x-kubernetes-patch-strategy': 'merge',
  ...extra,
});
/** A list keyed by some of its items' fields; strategic merge uses the first key unless told otherwise. */
export const listMap = (keys: readonly string[], items: Schema, extra: Extra = {}): Schema => ({
  type: 'array',
  items,
  'x-kubernetes-list-type': 'map',
  'x-kubernetes-list-map-keys': keys,
  'x-kubernetes-patch-strategy': 'merge',
  'x-kubernetes-patch-merge-key': keys[0] ?? '',
  ...extra,
});
/** Any JSON object, kept as it is: runtime.RawExtension and the like. */
export const anything = (extra: Extra = {}): Schema => ({
  type: 'object',
  format: 'raw',
  'x-kubernetes-preserve-unknown-fields': true,
  ...extra,
});

/** A field of a message: its protobuf number, its schema, and what it is for. */
export type Field = readonly [protobuf: number, schema: Schema, description?: string];

/** A named object type. `fields` maps each JSON name to its number, schema and description. */
export function message(
  name: string,
  description: string,
  fields: { readonly [field: string]: Field },
  extra: Extra = {},
): Schema {
  const properties: Record<string, Schema> = {};
  for (const [field, [protobuf, schema, text]] of Object.entries(fields)) {
    properties[field] = { ...schema, protobuf, ...(text === undefined ? {} : { description: text }) };
  }
  return { name, type: 'object', description, properties, ...extra };
}

/** Fields of a struct that Go embeds: in JSON among their neighbours, in protobuf a message of their own. */
export function embedded(
  protobuf: number,
  fields: { readonly [field: string]: Field },
): {
  readonly [field: string]: Field;
} {
  const inlined: Record<string, Field> = {};
  for (const [field, [number, schema, ...text]] of Object.entries(fields)) {
    inlined[field] = [number, { ...schema, embedded: protobuf }, ...text];
  }
  return inlined;
}
