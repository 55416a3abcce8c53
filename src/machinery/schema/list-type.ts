import { duplicate, invalid } from '../../api/field-error.ts';
import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { canonical } from './validate.ts';
import type { ValidationContext } from './validation-context.ts';

/**
 * Uniqueness in lists of type set (whole items) and map (their key fields). What is the very same in the old value is not
 * looked at: whatever repeats there did so before.
 */
export type ListCheck = (value: Json, old: Json | undefined, context: ValidationContext) => void;

/** Compiles the check; undefined where the schema has no such list, so that most subtrees are never walked. */
export function compileListCheck(schema: Schema): ListCheck | undefined {
  return new Compiler().compile(schema);
}

class Compiler {
  readonly #known = new Map<Schema, ListCheck | undefined>();

  compile(schema: Schema): ListCheck | undefined {
    if (this.#known.has(schema)) return this.#known.get(schema);
    let check: ListCheck | undefined;
    this.#known.set(schema, (value, old, context) => check?.(value, old, context));
    check = this.#node(schema);
    this.#known.set(schema, check);
    return check;
  }

  #node(schema: Schema): ListCheck | undefined {
    const fields = new Map<string, ListCheck>();
    for (const [field, property] of Object.entries(schema.properties ?? {})) {
      const check = this.compile(property);
      if (check) fields.set(field, check);
    }
    const additional = schema.additionalProperties;
    const others = typeof additional === 'object' ? this.compile(additional) : undefined;
    const items = schema.items === undefined ? undefined : this.compile(schema.items);
    const unique = uniqueness(schema);
    if (fields.size === 0 && !others && !items && !unique) return undefined;
    return (value, old, context) => {
      if (typeof value !== 'object' || value === null || value === old) return;
      if (Array.isArray(value)) {
        unique?.(value, context);
        if (items) checkItems(value, items, context);
      } else if (fields.size > 0 || others) {
        checkFields(value, isObject(old) ? old : undefined, fields, others, context);
      }
    };
  }
}

type ArrayCheck = (items: Json[], context: ValidationContext) => void;

function uniqueness(schema: Schema): ArrayCheck | undefined {
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  if (schema['x-kubernetes-list-type'] === 'set') return reportRepeats;
  if (schema['x-kubernetes-list-type'] !== 'map') return undefined;
  return (items, context) => {
    const stranger = items.findIndex((item) => typeof item !== 'object' || Array.isArray(item));
    if (stranger < 0) {
      const identities = items.map((item) => keysOf(item, keys));
      reportRepeats(identities, context);
      return;
    }
    context.path.push(stranger);
    context.add(invalid(context.field, items[stranger], 'must be an object for an array of list-type map'));
    context.path.pop();
  };
}

function keysOf(item: Json, keys: readonly string[]): JsonObject {
  const result: JsonObject = {};
  const object = (item ?? {}) as JsonObject;
  for (const key of keys) if (Object.hasOwn(object, key)) result[key] = object[key] as Json;
  return result;
}

/** Reports the second of each group of equals, once. */
function reportRepeats(identities: readonly Json[], context: ValidationContext): void {
  if (identities.length < 2) return;
  const seen = new Map<string, number>();
  for (const [index, identity] of identities.entries()) {
    const text = canonical(identity);
    const times = (seen.get(text) ?? 0) + 1;
    seen.set(text, times);
    if (times !== 2) continue;
    context.path.push(index);
    context.add(duplicate(context.field, identity));
    context.path.pop();
  }
}

function checkItems(items: readonly Json[], check: ListCheck, context: ValidationContext): void {
  for (let index = 0; index < items.length && !context.isFull; index++) {
    context.path.push(index);
    check(items[index] as Json, undefined, context);
    context.path.pop();
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function checkFields(
  value: JsonObject,
  old: JsonObject | undefined,
  fields: ReadonlyMap<string, ListCheck>,
  others: ListCheck | undefined,
  context: ValidationContext,
): void {
  for (const key of Object.keys(value)) {
    const check = fields.get(key) ?? others;
    if (!check || context.isFull) continue;
    context.path.push(key);
    check(value[key] as Json, old?.[key], context);
    context.path.pop();
  }
}
