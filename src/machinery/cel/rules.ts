import { child, entry, type FieldError, invalid } from '../../api/field-error.ts';
import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { deepEqual } from '../equal.ts';
import { correlateItems } from '../schema/correlate.ts';
import { ERRORS_MAX } from '../schema/validation-context.ts';
import { EvaluationError } from './budget.ts';
import { type CompiledRule, compileRule, evaluateRule } from './rule.ts';
import { resourceForRules, typeOfSchema } from './schema-types.ts';
import { fromJson } from './schema-values.ts';
import type { Value } from './values.ts';

/**
 * x-kubernetes-validations of a whole schema. The tree of rules mirrors the schema, without the parts that have none;
 * the walk takes the old object along wherever old and new can be told to be the same thing.
 */

/**
 * What all rules together may cost on one object: a third of a second at worst. Kubernetes allows three times as much,
 * but there a validation keeps one of many threads busy, and here the only one.
 */
const OBJECT_COST_MAX = 3_000_000;

/** The compiled rules of a schema and all below it. */
export interface RuleSet {
  /** The rules that do not hold. With `old`, transition rules are checked and unchanged parts are excused. */
  validate(object: Json, old: Json | undefined): FieldError[];
}

interface RuleNode {
  readonly schema: Schema;
  readonly rules: readonly CompiledRule[];
  /** Values that may stay as they are: their rules were found to hold where nothing changes, and say the same again. */
  readonly steady: WeakMap<object, number>;
  readonly fields: ReadonlyMap<string, RuleNode>;
  readonly others: RuleNode | undefined;
  readonly items: RuleNode | undefined;
}

/** Compiles the rules of a resource's schema (or with `isResource` false, of any other); undefined where it has none. */
export function compileRules(schema: Schema, isResource = true): RuleSet | undefined {
  if (!hasRules(schema, new Set())) return undefined;
  const node = compileNode(isResource ? resourceForRules(schema) : schema);
  return node && { validate: (object, old) => new Walk().run(node, object, old) };
}

function hasRules(schema: Schema, seen: Set<Schema>): boolean {
  if (seen.has(schema)) return false;
  seen.add(schema);
  if (schema['x-kubernetes-validations']?.length) return true;
  const { items, additionalProperties, properties } = schema;
  if (items && hasRules(items, seen)) return true;
  if (typeof additionalProperties === 'object' && hasRules(additionalProperties, seen)) return true;
  return Object.values(properties ?? {}).some((property) => hasRules(property, seen));
}

function compileNode(given: Schema): RuleNode | undefined {
  const schema = given['x-kubernetes-embedded-resource'] === true ? resourceForRules(given) : given;
  const type = typeOfSchema(schema);
  const rules = type ? (schema['x-kubernetes-validations'] ?? []).map((rule) => compileRule(rule, schema, type)) : [];
  const fields = new Map<string, RuleNode>();
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    const node = hasRules(property, new Set()) ? compileNode(property) : undefined;
    if (node) fields.set(field, node);
  }
  const additional = schema.additionalProperties;
  const others =
    typeof additional === 'object' && hasRules(additional, new Set()) ? compileNode(additional) : undefined;
  const items = schema.items && hasRules(schema.items, new Set()) ? compileNode(schema.items) : undefined;
  if (rules.length === 0 && fields.size === 0 && !others && !items) return undefined;
  return { schema, rules, steady: new WeakMap(), fields, others, items };
}

/** Whether the part of the object that an error is about is as it was. */
type IsUnchanged = () => boolean;

class Walk {
  readonly #errors: FieldError[] = [];
  #units = OBJECT_COST_MAX;
  #isOver = false;

  run(node: RuleNode, object: Json, old: Json | undefined): FieldError[] {
    this.#visit(node, object, old, '', () => false);
    return this.#errors;
  }

  #visit(node: RuleNode, value: Json, old: Json | undefined, path: string, isParentUnchanged: IsUnchanged): void {
    if (value === null || this.#isOver || this.#errors.length >= ERRORS_MAX) return;
    // What cannot be told to be what it was is unchanged only as part of something that can.
    const isUnchanged = old === undefined ? isParentUnchanged : once(() => deepEqual(value, old));
    if (node.rules.length > 0) this.#evaluate(node, value, old, path, isUnchanged);
    if (Array.isArray(value)) this.#visitItems(node, value, old, path, isUnchanged);
    else if (typeof value === 'object') this.#visitFields(node, value, old, path, isUnchanged);
  }

  #visitItems(node: RuleNode, items: Json[], old: Json | undefined, path: string, isUnchanged: IsUnchanged): void {
    if (!node.items) return;
    const oldItem = correlateItems(node.schema, old);
    for (const [index, item] of items.entries()) {
      this.#visit(node.items, item, oldItem(item), child(path, index), isUnchanged);
    }
  }

  #visitFields(node: RuleNode, value: JsonObject, old: Json | undefined, path: string, isUnchanged: IsUnchanged): void {
    const oldObject = typeof old === 'object' && old !== null && !Array.isArray(old) ? old : {};
    for (const key of Object.keys(value)) {
      const below = node.fields.get(key) ?? node.others;
      if (!below) continue;
      const oldValue = Object.hasOwn(oldObject, key) ? oldObject[key] : undefined;
      const at = node.fields.has(key) ? child(path, key) : entry(path, key);
      this.#visit(below, value[key] as Json, oldValue, at, isUnchanged);
    }
  }

  #evaluate(node: RuleNode, value: Json, old: Json | undefined, path: string, isUnchanged: IsUnchanged): void {
    const isSame = value === old && typeof value === 'object' && value !== null;
    const known = isSame ? node.steady.get(value) : undefined;
    // What was asked before costs as if it were asked again: else an object could grow part by part beyond what any may cost.
    if (known !== undefined && known <= this.#units) {
      this.#units -= known;
      return;
    }
    const [before, unitsBefore] = [this.#errors.length, this.#units];
    const typeName = node.schema.type ?? '';
    let self: Value;
    let oldSelf: Value | undefined;
    try {
      self = fromJson(value, node.schema);
      oldSelf = old === undefined || old === null ? undefined : fromJson(old, node.schema);
    } catch (error) {
      if (!(error instanceof EvaluationError)) throw error;
      this.#errors.push(invalid(path, typeName, error.message));
      return;
    }
    for (const rule of node.rules) {
      // Transition rules have nothing to say where there was nothing before, unless they ask to.
      if (rule.usesOldSelf && oldSelf === undefined && rule.rule.optionalOldSelf !== true) continue;
      const verdict = evaluateRule(rule, { self, oldSelf, path, typeName }, this.#units);
      this.#units -= verdict.cost;
      const isExcused = !rule.usesOldSelf && !verdict.isOverBudget && isUnchanged();
      if (verdict.error && !isExcused) this.#errors.push(verdict.error);
      this.#isOver ||= verdict.isOverBudget;
      if (this.#isOver) return;
    }
    if (isSame && this.#errors.length === before) node.steady.set(value, unitsBefore - this.#units);
  }
}

function once(test: () => boolean): () => boolean {
  let result: boolean | undefined;
  return () => (result ??= test());
}
