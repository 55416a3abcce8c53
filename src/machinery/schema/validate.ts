import { objectMeta } from '../../api/kinds/meta.ts';
import { invalid, notSupported, required, tooMany, typeInvalid } from '../../api/field-error.ts';
import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { deepEqual } from '../equal.ts';
import { correlateItems } from './correlate.ts';
import { compileLogic } from './validate-logic.ts';
import { compileNumberCheck, compileStringCheck } from './validate-scalar.ts';
import { describeResource } from './resource.ts';
import type { ValidationContext } from './validation-context.ts';

/**
 * The value validations of OpenAPI, compiled to closures, worded as Kubernetes words them for custom resources.
 *
 * Each check also gets the old value where the two can be told to be the same thing (`undefined` where not): errors
 * of a part that did not change are dropped, so that a schema can become stricter without blocking updates of
 * objects that were valid before (Kubernetes calls it ratcheting).
 */
export type Check = (value: Json, old: Json | undefined, context: ValidationContext) => void;

interface Compiled {
  readonly builtin: boolean;
  readonly checks: WeakMap<Schema, Check>;
}

const compiledCustom: Compiled = { builtin: false, checks: new WeakMap() };
const compiledBuiltin: Compiled = { builtin: true, checks: new WeakMap() };

/** Compiles a schema's checks; nodes that schemas share are compiled once. */
export function compileCheck(given: Schema, isResource: boolean, builtin: boolean): Check {
  const schema = isResource && given.type === 'object' ? describeResource(given) : given;
  return compileNode(schema, builtin ? compiledBuiltin : compiledCustom);
}

function compileNode(given: Schema, compiled: Compiled): Check {
  const isEmbedded = given['x-kubernetes-embedded-resource'] === true && given.type === 'object';
  const schema = isEmbedded ? describeResource(given) : given;
  const known = compiled.checks.get(schema);
  if (known) return known;
  let check: Check | undefined;
  // A schema that contains itself finds this stand-in instead of compiling for ever.
  compiled.checks.set(schema, (value, old, context) => check?.(value, old, context));
  check = buildCheck(schema, compiled);
  compiled.checks.set(schema, check);
  return check;
}

function buildCheck(schema: Schema, compiled: Compiled): Check {
  // Metadata is read as Go reads it, whoever embeds it.
  const compile = (child: Schema): Check =>
    compileNode(child, child.name === objectMeta.name ? compiledBuiltin : compiled);
  const checkType = compileTypeCheck(schema);
  const checkLogic = compileLogic(schema, compile);
  const checkString = compileStringCheck(schema, compiled.builtin);
  const checkNumber = compileNumberCheck(schema, compiled.builtin);
  const checkArray = compileArrayCheck(schema, compile);
  const checkObject = compileObjectCheck(schema, compile);
  const checkEnum = compileEnumCheck(schema);
  return (value, old, context) => {
    // Nothing is held against what did not change; of most updates that is nearly all, and the very same in memory.
    if (value === old) return;
    const before = context.errors.length;
    checkType?.(value, context);
    if (value !== null) {
      checkLogic?.(value, old, context);
      if (typeof value === 'string') checkString?.(value, context);
      else if (typeof value === 'number') checkNumber?.(value, context);
      else if (Array.isArray(value)) checkArray?.(value, old, context);
      else if (typeof value === 'object') checkObject?.(value, old, context);
    }
    checkEnum?.(value, context);
    const isWorse = context.errors.length > before && !(old !== undefined && deepEqual(value, old));
    if (!isWorse) context.errors.length = before;
  };
}

function compileTypeCheck(schema: Schema): ((value: Json, context: ValidationContext) => void) | undefined {
  const expected = schema['x-kubernetes-int-or-string'] === true ? 'integer,string' : schema.type;
  if (expected === undefined) return undefined;
  const isNullable = schema.nullable === true;
  return (value, context) => {
    const actual = typeName(value);
    if (actual === expected || (actual === 'null' && isNullable)) return;
    if (actual === 'integer' && expected !== 'string' && expected.startsWith('integer')) return;
    if (actual === 'integer' && expected === 'number') return;
    if (actual === 'string' && expected === 'integer,string') return;
    const { field } = context;
    context.add(typeInvalid(field, actual, `${field} in body must be of type ${expected}: "${actual}"`));
  };
}

/** Beyond this a JSON number is no integer to Go: it does not fit an int64. */
const INT64_LIMIT = 2 ** 63;

function typeName(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  if (typeof value !== 'number') return typeof value;
  return Number.isInteger(value) && Math.abs(value) <= INT64_LIMIT ? 'integer' : 'number';
}

function compileEnumCheck(schema: Schema): ((value: Json, context: ValidationContext) => void) | undefined {
  const allowed = schema.enum;
  if (allowed === undefined || allowed.length === 0) return undefined;
  const scalars = new Set<Json>(allowed.filter((each) => typeof each !== 'object'));
  const compounds = allowed.filter((each) => typeof each === 'object' && each !== null);
  const names = allowed.map((each) => (typeof each === 'string' ? each : JSON.stringify(each)));
  return (value, context) => {
    if (scalars.has(value)) return;
    if (typeof value === 'object' && compounds.some((each) => deepEqual(each, value))) return;
    context.add(notSupported(context.field, value, names));
  };
}

type ArrayCheck = (value: Json[], old: Json | undefined, context: ValidationContext) => void;

function compileArrayCheck(schema: Schema, compile: (schema: Schema) => Check): ArrayCheck | undefined {
  const { minItems, maxItems, uniqueItems } = schema;
  const item = schema.items === undefined ? undefined : compile(schema.items);
  if (item === undefined && minItems === undefined && maxItems === undefined && uniqueItems !== true) return undefined;
  return (value, old, context) => {
    if (item) {
      const oldItem = correlateItems(schema, old);
      for (let index = 0; index < value.length && !context.isFull; index++) {
        context.path.push(index);
        item(value[index] as Json, oldItem(value[index] as Json), context);
        context.path.pop();
      }
    }
    const { length } = value;
    if (minItems !== undefined && length < minItems) {
      const { field } = context;
      context.add(invalid(field, length, `${field} in body should have at least ${minItems} items`));
    }
    if (maxItems !== undefined && length > maxItems) context.add(tooMany(context.field, length, maxItems));
    if (uniqueItems === true && hasDuplicates(value)) {
      const { field } = context;
      context.add(invalid(field, '', `${field} in body shouldn't contain duplicates`));
    }
  };
}

/** By text rather than pairwise, which would be quadratic. */
function hasDuplicates(items: readonly Json[]): boolean {
  return new Set(items.map(canonical)).size < items.length;
}

/** JSON text that is the same for equal values, whatever the order of their keys. */
export function canonical(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  const fields = Object.keys(value).sort();
  return `{${fields.map((field) => `${JSON.stringify(field)}:${canonical(value[field] as Json)}`).join()}}`;
}

type ObjectCheck = (value: JsonObject, old: Json | undefined, context: ValidationContext) => void;

function compileObjectCheck(schema: Schema, compile: (schema: Schema) => Check): ObjectCheck | undefined {
  const fields = new Map<string, Check>();
  for (const [field, property] of Object.entries(schema.properties ?? {})) fields.set(field, compile(property));
  const additional = schema.additionalProperties;
  const others = typeof additional === 'object' ? compile(additional) : undefined;
  const isClosed = additional === false;
  const checkSize = compileSizeCheck(schema);
  const needed = schema.required ?? [];
  if (fields.size === 0 && !others && !isClosed && !checkSize && needed.length === 0) return undefined;
  return (value, old, context) => {
    checkSize?.(value, context);
    const oldObject = isObject(old) ? old : undefined;
    for (const key of Object.keys(value)) {
      if (context.isFull) return;
      const check = fields.get(key) ?? others;
      if (check) {
        context.path.push(key);
        check(value[key] as Json, oldField(oldObject, key, context), context);
        context.path.pop();
      } else if (isClosed) {
        const { field } = context;
        context.add(invalid(field, key, `${field}.${key} in body is a forbidden property`));
      }
    }
    for (const field of needed) {
      if (!Object.hasOwn(value, field)) {
        context.path.push(field);
        context.add(required(context.field));
        context.path.pop();
      }
    }
  };
}

function compileSizeCheck(schema: Schema): ((value: JsonObject, context: ValidationContext) => void) | undefined {
  const { minProperties, maxProperties } = schema;
  if (minProperties === undefined && maxProperties === undefined) return undefined;
  return (value, context) => {
    const size = Object.keys(value).length;
    if (minProperties !== undefined && size < minProperties) {
      const { field } = context;
      context.add(invalid(field, size, `${field} in body should have at least ${minProperties} properties`));
    }
    if (maxProperties !== undefined && size > maxProperties) context.add(tooMany(context.field, size, maxProperties));
  };
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A root's apiVersion and kind are never excused as unchanged: both sides were read in the same version. */
function oldField(old: JsonObject | undefined, key: string, context: ValidationContext): Json | undefined {
  if (old === undefined || !Object.hasOwn(old, key)) return undefined;
  if (context.path.length === 1 && (key === 'apiVersion' || key === 'kind')) return undefined;
  return old[key];
}
