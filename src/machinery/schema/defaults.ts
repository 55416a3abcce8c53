import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { clone, setOwn } from '../clone.ts';

/**
 * Static defaults, applied in place: into every object that is there, and into what a default itself brings. For
 * custom resources a null that its schema does not allow counts as absent: replaced by the default, or dropped.
 */

/** Where `known` is given, parts that are the very same in it have their defaults. */
type ApplyDefaults = (value: Json, known?: Json) => void;

interface FieldPlan {
  /** Undefined where nothing below can change, so that whole subtrees are skipped. */
  readonly below: ApplyDefaults | undefined;
  readonly replacesNull: boolean;
  readonly default: Json | undefined;
}

interface NodePlan {
  readonly fields: ReadonlyMap<string, FieldPlan>;
  readonly defaulted: readonly (readonly [string, Json])[];
  readonly others: FieldPlan | undefined;
  readonly items: FieldPlan | undefined;
}

/** Compiles the defaults of a schema; undefined where it has none to apply. */
export function compileDefaults(schema: Schema, builtin: boolean): ApplyDefaults | undefined {
  return new Compiler(builtin).compile(schema);
}

class Compiler {
  readonly #builtin: boolean;
  readonly #known = new Map<Schema, ApplyDefaults | undefined>();

  constructor(builtin: boolean) {
    this.#builtin = builtin;
  }

  compile(schema: Schema): ApplyDefaults | undefined {
    if (this.#known.has(schema)) return this.#known.get(schema);
    let compiled: ApplyDefaults | undefined;
    this.#known.set(schema, (value, known) => compiled?.(value, known));
    compiled = this.#node(schema);
    this.#known.set(schema, compiled);
    return compiled;
  }

  #node(schema: Schema): ApplyDefaults | undefined {
    const fields = new Map<string, FieldPlan>();
    const defaulted: [string, Json][] = [];
    for (const [field, property] of Object.entries(schema.properties ?? {})) {
      const plan = this.#field(property);
      if (plan) fields.set(field, plan);
      if (property.default !== undefined) defaulted.push([field, property.default]);
    }
    const additional = schema.additionalProperties;
    const others = typeof additional === 'object' ? this.#field(additional) : undefined;
    const items = schema.items === undefined ? undefined : this.#field(schema.items);
    if (fields.size === 0 && defaulted.length === 0 && !others && !items) return undefined;
    const plan: NodePlan = { fields, defaulted, others, items };
    return (value, known) => {
      if (typeof value !== 'object' || value === null || value === known) return;
      if (Array.isArray(value)) defaultItems(value, plan);
      else defaultFields(value, plan, isObject(known) ? known : undefined);
    };
  }

  #field(schema: Schema): FieldPlan | undefined {
    const below = this.compile(schema);
    const replacesNull = !this.#builtin && schema.nullable !== true;
    if (!below && !replacesNull) return undefined;
    return { below, replacesNull, default: schema.default };
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function defaultFields(value: JsonObject, plan: NodePlan, known: JsonObject | undefined): void {
  for (const [field, preset] of plan.defaulted) {
    if (!Object.hasOwn(value, field)) setOwn(value, field, clone(preset));
  }
  for (const key of Object.keys(value)) {
    const field = plan.fields.get(key) ?? plan.others;
    if (field === undefined) continue;
    if (value[key] === null && field.replacesNull) {
      if (field.default === undefined) {
        delete value[key];
        continue;
      }
      setOwn(value, key, clone(field.default));
    }
    field.below?.(value[key] as Json, known?.[key]);
  }
}

function defaultItems(items: Json[], plan: NodePlan): void {
  const item = plan.items;
  if (item === undefined) return;
  for (let index = 0; index < items.length; index++) {
    if (items[index] === null && item.replacesNull && item.default !== undefined) items[index] = clone(item.default);
    item.below?.(items[index] as Json);
  }
}
