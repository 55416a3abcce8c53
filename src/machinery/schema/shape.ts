import { objectMeta } from '../../api/kinds/meta.ts';
import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { formatCheck } from './formats.ts';
import { type Path, spell } from './path.ts';
import { describeResource } from './resource.ts';

/**
 * The types of a decoded body, before anyone relies on them. Go finds these mistakes while it decodes; we do it right
 * after, so that defaults, admission and validation may take a built-in kind's fields for what the schema declares.
 * Of custom resources only what is built in (apiVersion, kind, metadata) is looked at: the rest is the validation's.
 */

/** The first place where a value is of another type than declared. Never holds the value: it may be a secret. */
export interface Mismatch {
  readonly path: string;
  readonly expected: string;
  readonly actual: string;
}

interface Walk {
  readonly path: Path;
  found: Mismatch | undefined;
}

type Check = (value: Json, walk: Walk) => void;

const checks = new WeakMap<Schema, Check>();
const envelopes = new WeakMap<Schema, Check>();

/** Finds a value of the wrong type in a pruned object of this schema; undefined where there is none. */
export function findMismatch(
  schema: Schema,
  object: Json,
  options: { readonly builtin: boolean },
): Mismatch | undefined {
  const walk: Walk = { path: [], found: undefined };
  const check = options.builtin ? compile(describeResource(schema)) : envelopeCheck(schema);
  check(object, walk);
  return walk.found;
}

/** A mismatch as Go's decoder words it. */
export function describeMismatch({ path, expected, actual }: Mismatch): string {
  return `json: cannot unmarshal ${actual} into field ${path === '' ? '<root>' : path} of type ${expected}`;
}

function envelopeCheck(schema: Schema): Check {
  const known = envelopes.get(schema);
  if (known) return known;
  const { apiVersion, kind } = describeResource(schema).properties ?? {};
  const check = compile({
    type: 'object',
    properties: { ...(apiVersion && kind ? { apiVersion, kind } : {}), metadata: objectMeta },
  });
  envelopes.set(schema, check);
  return check;
}

function compile(schema: Schema): Check {
  const known = checks.get(schema);
  if (known) return known;
  let check: Check | undefined;
  // A schema that contains itself finds this stand-in instead of compiling for ever.
  checks.set(schema, (value, walk) => check?.(value, walk));
  check = build(schema);
  checks.set(schema, check);
  return check;
}

function build(schema: Schema): Check {
  // Raw JSON may be anything, and an absent type means the same.
  if (schema.format === 'raw') return () => undefined;
  if (schema['x-kubernetes-int-or-string'] === true) return intOrStringCheck(schema.format === 'quantity');
  switch (schema.type) {
    case 'object':
      return objectCheck(schema);
    case 'array':
      return arrayCheck(schema);
    case 'string':
      return stringCheck(schema);
    case 'integer':
      return integerCheck(schema.format === 'int32' ? 'int32' : 'int64');
    case 'number':
      return scalarCheck('number', 'float64');
    case 'boolean':
      return scalarCheck('boolean', 'bool');
    case undefined:
      return () => undefined;
    default:
      return schema.type satisfies never;
  }
}

function objectCheck(schema: Schema): Check {
  const fields = new Map<string, Check>();
  for (const [field, property] of Object.entries(schema.properties ?? {})) fields.set(field, compile(property));
  const additional = schema.additionalProperties;
  const others = typeof additional === 'object' ? compile(additional) : undefined;
  return (value, walk) => {
    if (!isObject(value)) {
      note(walk, value, 'object');
      return;
    }
    for (const key of Object.keys(value)) {
      const check = fields.get(key) ?? others;
      if (check === undefined || value[key] === null) continue;
      walk.path.push(key);
      check(value[key] as Json, walk);
      walk.path.pop();
      if (walk.found) return;
    }
  };
}

function arrayCheck(schema: Schema): Check {
  const item = schema.items === undefined ? undefined : compile(schema.items);
  return (value, walk) => {
    if (!Array.isArray(value)) {
      note(walk, value, 'array');
      return;
    }
    if (item === undefined) return;
    for (let index = 0; index < value.length && !walk.found; index++) {
      walk.path.push(index);
      item(value[index] as Json, walk);
      walk.path.pop();
    }
  };
}

function stringCheck(schema: Schema): Check {
  // Other formats are left to validation, which names the value; of bytes the value is often a secret.
  const isBase64 = schema.format === 'byte' ? formatCheck('byte', true) : undefined;
  return (value, walk) => {
    if (typeof value !== 'string') note(walk, value, 'string');
    else if (isBase64 && !isBase64(value)) note(walk, value, 'base64 bytes');
  };
}

function scalarCheck(type: 'number' | 'boolean', name: string): Check {
  return (value, walk) => {
    if (typeof value !== type) note(walk, value, name);
  };
}

const INT32_LIMIT = 2 ** 31;
const INT64_LIMIT = 2 ** 63;

function integerCheck(name: 'int32' | 'int64'): Check {
  const limit = name === 'int32' ? INT32_LIMIT : INT64_LIMIT;
  return (value, walk) => {
    const fits = typeof value === 'number' && Number.isInteger(value) && value >= -limit && value < limit;
    if (!fits) note(walk, value, name);
  };
}

function intOrStringCheck(isQuantity: boolean): Check {
  return (value, walk) => {
    // A quantity may be any number: `cpu: 0.5`.
    const isNumber = typeof value === 'number' && (isQuantity || Number.isInteger(value));
    if (!isNumber && typeof value !== 'string') note(walk, value, isQuantity ? 'quantity' : 'int or string');
  };
}

function note(walk: Walk, value: Json, expected: string): void {
  walk.found ??= { path: spell(walk.path), expected, actual: nameOf(value) };
}

/** Numbers are shown: they are short, and a type such as int32 is about their size. */
function nameOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'number' ? `number ${value}` : typeof value;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
