import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { setOwn } from '../clone.ts';
import { type Path, spell } from './path.ts';
import { describeResource } from './resource.ts';

/**
 * Pruning: what the schema does not know is removed in place. Built-in kinds (and the metadata of all kinds) are read
 * as Go reads them: null is absence, a null inside a list or map is the zero of what belongs there, and a list or map
 * that is empty and need not be there is not there.
 */

interface Walk {
  readonly path: Path;
  readonly dropped: string[];
}

/** Where `known` is given, parts that are the very same in it have been pruned before. */
type Prune = (value: Json, walk: Walk, known?: Json) => void;

/** Makes what Go has in the place of a null: a new one each time, since objects are changed in place. */
type Zero = () => Json;

interface ObjectPlan {
  readonly fields: ReadonlyMap<string, Prune>;
  /** For keys that are no fields; undefined: they are unknown. */
  readonly others: Prune | undefined;
  readonly keepsUnknown: boolean;
  readonly dropsNulls: boolean;
  /** Lists and maps that Go leaves out when they are empty; the wrong one of the two is kept for validation to refuse. */
  readonly omitted: ReadonlyMap<string, 'list' | 'map'>;
  /** What a null entry of a map becomes where nulls are dropped; undefined: it goes. */
  readonly nullEntry: Zero | undefined;
}

const keepAll: Prune = () => {};

/** As many unknown fields as Kubernetes tells of: a body may be nothing but those. */
const DROPPED_REPORTED_MAX = 100;

/**
 * Compiles the removal of unknown fields; the function answers the paths that it removed (the first hundred), sorted. Of a
 * value that was made of a `known` one, which was pruned by this very function, what is the same is left alone.
 */
export function compilePrune(
  schema: Schema,
  isResource: boolean,
  builtin: boolean,
): (value: Json, known?: Json) => string[] {
  const prune = new Compiler(builtin).compile(schema, isResource);
  return (value, known) => {
    const walk: Walk = { path: [], dropped: [] };
    prune(value, walk, known);
    return walk.dropped.sort();
  };
}

class Compiler {
  readonly #builtin: boolean;
  readonly #known = new Map<Schema, Prune>();

  constructor(builtin: boolean) {
    this.#builtin = builtin;
  }

  compile(given: Schema | undefined, isResource = false): Prune {
    if (given === undefined) return pruneUntyped;
    if (given.format === 'raw') return keepAll;
    const resource = isResource || given['x-kubernetes-embedded-resource'] === true;
    const schema = resource && given.type === 'object' ? describeResource(given) : given;
    const known = this.#known.get(schema);
    if (known) return known;
    let compiled: Prune | undefined;
    // A schema that contains itself finds this stand-in instead of compiling for ever.
    this.#known.set(schema, (value, walk, known) => compiled?.(value, walk, known));
    compiled = this.#node(schema, resource);
    this.#known.set(schema, compiled);
    return compiled;
  }

  #node(schema: Schema, isResource: boolean): Prune {
    const plan = this.#objectPlan(schema, isResource);
    const items = schema.items === undefined ? undefined : this.compile(schema.items);
    const nullItem = plan.dropsNulls && schema.items ? zeroOf(schema.items) : undefined;
    return (value, walk, known) => {
      if (typeof value !== 'object' || value === null || value === known) return;
      if (Array.isArray(value))
        pruneItems(value, items ?? (plan.keepsUnknown ? keepAll : pruneUntyped), nullItem, walk);
      else pruneObject(value, plan, walk, isObject(known) ? known : undefined);
    };
  }

  #objectPlan(schema: Schema, isResource: boolean): ObjectPlan {
    const fields = new Map<string, Prune>();
    for (const [field, property] of Object.entries(schema.properties ?? {})) {
      // Metadata is decoded into Go's ObjectMeta for custom resources too.
      const compiler = isResource && field === 'metadata' && !this.#builtin ? new Compiler(true) : this;
      fields.set(field, compiler.compile(property));
    }
    const additional = schema.additionalProperties;
    const keepsUnknown = schema['x-kubernetes-preserve-unknown-fields'] === true;
    return {
      fields,
      others: additional ? this.compile(additional === true ? undefined : additional) : undefined,
      keepsUnknown,
      dropsNulls: this.#builtin && !keepsUnknown,
      omitted: new Map(this.#builtin && !keepsUnknown ? omittedWhenEmpty(schema) : []),
      nullEntry: typeof additional === 'object' ? zeroOf(additional) : undefined,
    };
  }
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function pruneObject(value: JsonObject, plan: ObjectPlan, walk: Walk, known: JsonObject | undefined): void {
  for (const key of Object.keys(value)) {
    const child = value[key] as Json;
    const prune = plan.fields.get(key) ?? plan.others;
    if (prune === undefined) {
      if (plan.keepsUnknown) continue;
      noteDropped(walk, key);
      delete value[key];
    } else if (child === null) {
      if (plan.dropsNulls) dropNull(value, key, plan);
    } else if (typeof child === 'object') {
      walk.path.push(key);
      prune(child, walk, known?.[key]);
      walk.path.pop();
      if (plan.omitted.get(key) === emptyKindOf(child)) delete value[key];
    }
  }
}

/** Which container this is an empty one of; `full` where it has something in it. */
function emptyKindOf(value: Json[] | JsonObject): 'list' | 'map' | 'full' {
  if (Array.isArray(value)) return value.length === 0 ? 'list' : 'full';
  return Object.keys(value).length === 0 ? 'map' : 'full';
}

/** Structs are never left out: that there is one may be all that they say (`emptyDir: {}`). */
function omittedWhenEmpty({ properties = {}, required = [] }: Schema): [string, 'list' | 'map'][] {
  return Object.entries(properties).flatMap(
    ([name, { type, additionalProperties, properties: fields }]): [string, 'list' | 'map'][] => {
      if (required.includes(name)) return [];
      if (type === 'array') return [[name, 'list']];
      return type === 'object' && additionalProperties !== undefined && fields === undefined ? [[name, 'map']] : [];
    },
  );
}

function noteDropped({ path, dropped }: Walk, key: string): void {
  if (dropped.length < DROPPED_REPORTED_MAX) dropped.push(spell([...path, key]));
}

function dropNull(value: JsonObject, key: string, plan: ObjectPlan): void {
  if (plan.fields.has(key) || plan.nullEntry === undefined) delete value[key];
  else setOwn(value, key, plan.nullEntry());
}

function pruneItems(items: Json[], prune: Prune, nullItem: Zero | undefined, walk: Walk): void {
  for (let index = 0; index < items.length; index++) {
    const item = items[index] as Json;
    if (item === null) {
      if (nullItem !== undefined) items[index] = nullItem();
    } else if (typeof item === 'object') {
      walk.path.push(index);
      prune(item, walk);
      walk.path.pop();
    }
  }
}

/** Where the schema says nothing of a value's inside (`additionalProperties: true`), nothing inside is known. */
function pruneUntyped(value: Json, walk: Walk): void {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    pruneItems(value, pruneUntyped, undefined, walk);
    return;
  }
  for (const key of Object.keys(value)) {
    noteDropped(walk, key);
    delete value[key];
  }
}

function zeroOf(schema: Schema): Zero | undefined {
  if (schema.nullable === true || schema.format === 'raw') return undefined;
  if (schema['x-kubernetes-int-or-string'] === true) return () => (schema.format === 'quantity' ? '0' : 0);
  switch (schema.type) {
    case 'object':
      return () => ({});
    case 'string':
      return () => '';
    case 'boolean':
      return () => false;
    case 'integer':
    case 'number':
      return () => 0;
    case 'array':
    case undefined:
      return undefined;
    default:
      return schema.type satisfies never;
  }
}
