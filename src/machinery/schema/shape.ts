import { objectMeta } from '../../api/kinds/meta.ts';
import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { parseQuantity } from '../../api/quantity.ts';
import { parseGoDuration } from './duration.ts';
import { isBase64 } from './formats.ts';
import { goTypeOf } from './go-type.ts';
import { type Path, spell } from './path.ts';
import { describeResource } from './resource.ts';
import { describeMicroTimeError, describeTimeError, isMicroTime, parseRfc3339 } from './time.ts';

/**
 * The types of a decoded body, before anyone relies on them. Go finds these mistakes while it decodes; we do it right
 * after, so that defaults, admission and validation may take a built-in kind's fields for what the schema declares.
 * Of custom resources only what is built in (apiVersion, kind, metadata) is looked at: the rest is the validation's.
 */

/** The first place where a value is of another type than declared. */
export interface Mismatch {
  readonly path: string;
  /** What is wrong, in the words of Go's decoder. Never holds a value that could be a secret. */
  readonly sentence: string;
}

interface Walk {
  readonly path: Path;
  /** The innermost message around the value, and the fields that lead there: neither keys of maps nor indexes. */
  message: string;
  readonly fields: string[];
  found: Mismatch | undefined;
}

/** Where `known` is given, parts that are the very same in it are of the right types. */
type Check = (value: Json, walk: Walk, known?: Json) => void;

const checks = new WeakMap<Schema, Check>();
const envelopes = new WeakMap<Schema, Check>();

/**
 * Finds a value of the wrong type in a pruned object of this schema; undefined where there is none. Of an object that was
 * made of a `known` one, in which there is none, what is the same is not looked at.
 */
export function findMismatch(
  schema: Schema,
  object: Json,
  options: { readonly builtin: boolean; readonly known?: Json | undefined },
): Mismatch | undefined {
  const walk: Walk = { path: [], message: '', fields: [], found: undefined };
  const check = options.builtin ? compile(describeResource(schema)) : envelopeCheck(schema);
  check(object, walk, options.known);
  return walk.found;
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
  checks.set(schema, (value, walk, known) => check?.(value, walk, known));
  check = build(schema);
  checks.set(schema, check);
  return check;
}

function build(schema: Schema): Check {
  // Raw JSON may be anything, and an absent type means the same.
  if (schema.format === 'raw') return () => undefined;
  if (schema['x-kubernetes-int-or-string'] === true)
    return schema.format === 'quantity' ? quantityCheck : intOrStringCheck;
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
  const message = schema.name?.split('.').at(-1) ?? '';
  return (value, walk, known) => {
    if (!isObject(value)) {
      noteType(walk, value, goTypeOf(schema));
      return;
    }
    const outer = walk.message;
    const knownObject = known !== undefined && isObject(known) ? known : undefined;
    for (const key of Object.keys(value)) {
      const field = fields.get(key);
      const check = field ?? others;
      if (check === undefined || value[key] === null) continue;
      const before = knownObject?.[key];
      if (before === value[key]) continue;
      walk.path.push(key);
      if (field) {
        walk.fields.push(key);
        if (message !== '') walk.message = message;
      }
      check(value[key] as Json, walk, before);
      if (field) walk.fields.pop();
      walk.message = outer;
      walk.path.pop();
      if (walk.found) return;
    }
  };
}

function arrayCheck(schema: Schema): Check {
  const item = schema.items === undefined ? undefined : compile(schema.items);
  return (value, walk) => {
    if (!Array.isArray(value)) {
      noteType(walk, value, goTypeOf(schema));
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
  const complaint = complaintOf(schema.format ?? '');
  return (value, walk) => {
    if (typeof value !== 'string') {
      noteType(walk, value, 'string');
      return;
    }
    const sentence = complaint?.(value);
    if (sentence !== undefined) note(walk, sentence);
  };
}

function scalarCheck(type: 'number' | 'boolean', name: string): Check {
  return (value, walk) => {
    if (typeof value !== type) noteType(walk, value, name);
  };
}

const INT32_LIMIT = 2 ** 31;
const INT64_LIMIT = 2 ** 63;

function integerCheck(name: 'int32' | 'int64'): Check {
  const limit = name === 'int32' ? INT32_LIMIT : INT64_LIMIT;
  return (value, walk) => {
    const fits = typeof value === 'number' && Number.isInteger(value) && value >= -limit && value < limit;
    if (!fits) noteType(walk, value, name);
  };
}

const intOrStringCheck: Check = (value, walk) => {
  if (typeof value !== 'string') integerCheck('int32')(value, walk);
};

/** A quantity may be any number: `cpu: 0.5`. */
const quantityCheck: Check = (value, walk) => {
  const isQuantity = typeof value === 'number' || (typeof value === 'string' && parseQuantity(value) !== undefined);
  if (!isQuantity) note(walk, QUANTITY_COMPLAINT);
};

const QUANTITY_COMPLAINT =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** What Go says of a text that is not of this format; undefined for formats that it does not look at. */
function complaintOf(format: string): ((text: string) => string | undefined) | undefined {
  switch (format) {
    case 'byte':
      return (text) => (isBase64(text) ? undefined : `illegal base64 data at input byte ${firstNoBase64(text)}`);
    case 'micro-time':
      return (text) => (isMicroTime(text) ? undefined : describeMicroTimeError(text));
    case 'date-time':
      return (text) => (parseRfc3339(text) === undefined ? describeTimeError(text) : undefined);
    case 'duration':
      return (text) =>
        parseGoDuration(text) === undefined ? `time: invalid duration ${JSON.stringify(text)}` : undefined;
    default:
      return undefined;
  }
}

/** Where base64 ends to be that: at a character that is none of it, or where the last four are not complete. */
function firstNoBase64(text: string): number {
  const strange = text.search(/[^A-Za-z0-9+/]/);
  return strange < 0 ? text.length - (text.length % 4) : strange;
}

function noteType(walk: Walk, value: Json, type: string): void {
  const place = walk.message === '' ? 'Go value' : `Go struct field ${walk.message}.${walk.fields.join('.')}`;
  note(walk, `json: cannot unmarshal ${nameOf(value, type)} into ${place} of type ${type}`);
}

function note(walk: Walk, sentence: string): void {
  walk.found ??= { path: spell(walk.path), sentence };
}

/** Numbers that are no integers, or too large ones, are shown: the type is about their size. */
function nameOf(value: Json, type: string): string {
  if (Array.isArray(value)) return 'array';
  if (typeof value === 'number') return type.startsWith('int') ? `number ${value}` : 'number';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
