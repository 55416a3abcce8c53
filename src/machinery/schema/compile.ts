import { type FieldError, type FieldErrorType, invalid } from '../../api/field-error.ts';
import type { Json } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { compileRules } from '../cel/rules.ts';
import { compileDefaults } from './defaults.ts';
import { compileEmbeddedCheck } from './embedded.ts';
import { compileListCheck } from './list-type.ts';
import { withoutNulls } from './normalize.ts';
import { compilePrune } from './prune.ts';
import { compileCheck } from './validate.ts';
import { ERRORS_MAX, unique, ValidationContext } from './validation-context.ts';

/** What a schema does to the objects of its kind. */
export interface CompiledSchema {
  /**
   * Removes unknown fields in place; answers their paths (`spec.foo`, `spec.containers[0].bar`), sorted. What is the very
   * same in a `known` object, which has been pruned, is left alone.
   */
  prune(object: Json, known?: Json): string[];
  /** Fills static defaults in place. Wants a pruned object. What is the very same in a `known` one has them already. */
  applyDefaults(object: Json, known?: Json): void;
  /**
   * What is wrong with the object, the worst hundred at most. With the `old` object of an update, parts that did not
   * change are not held against it, and transition rules are checked.
   */
  validate(object: Json, old?: Json): FieldError[];
}

export interface CompileOptions {
  /** Built-in kinds are read as Go reads them: null is absence, int32 is a bound. */
  readonly builtin?: boolean;
}

const custom = new WeakMap<Schema, CompiledSchema>();
const builtin = new WeakMap<Schema, CompiledSchema>();

/** Compiles the schema of a kind's objects, once per schema object. CRD schemas must have no structural errors. */
export function compileSchema(schema: Schema, options: CompileOptions = {}): CompiledSchema {
  const cache = options.builtin === true ? builtin : custom;
  const known = cache.get(schema);
  if (known) return known;
  const compiled = options.builtin === true ? compile(schema, true) : compile(withoutNulls(schema), false);
  cache.set(schema, compiled);
  return compiled;
}

function compile(schema: Schema, isBuiltin: boolean): CompiledSchema {
  const prune = compilePrune(schema, true, isBuiltin);
  const applyDefaults = compileDefaults(schema, isBuiltin);
  const check = compileCheck(schema, true, isBuiltin);
  // Built-in kinds say themselves which lists must not repeat: a pod may name an environment variable twice.
  const checkLists = isBuiltin ? undefined : compileListCheck(schema);
  const checkEmbedded = compileEmbeddedCheck(schema);
  const rules = compileRules(schema);
  const listErrors = (object: Json, old?: Json): FieldError[] => {
    const context = new ValidationContext();
    checkLists?.(object, old, context);
    return context.errors;
  };
  return {
    prune,
    applyDefaults: (object, known) => applyDefaults?.(object, known),
    validate(object, old) {
      const context = new ValidationContext();
      check(object, old, context);
      const repeated = listErrors(object, old);
      // Repeats that were there before do not block an update.
      const isNew = repeated.length > 0 && (old === undefined || listErrors(old).length === 0);
      if (context.errors.length === 0) checkEmbedded?.(object, context);
      const errors = isNew ? [...context.errors, ...repeated] : context.errors;
      if (rules) errors.push(...(errors.some(isBlocking) ? [UNCHECKED] : rules.validate(object, old)));
      return errors.length < 2 ? errors : unique(errors).slice(0, ERRORS_MAX);
    },
  };
}

/** Rules may assume that objects have the declared shape: they are not run on those that have not. */
const BLOCKING: ReadonlySet<FieldErrorType> = new Set<FieldErrorType>([
  'FieldValueNotSupported',
  'FieldValueRequired',
  'FieldValueTooLong',
  'FieldValueTooMany',
  'FieldValueTypeInvalid',
]);

const UNCHECKED = invalid(
  '',
  null,
  'some validation rules were not checked because the object was invalid; correct the existing errors to complete validation',
);

function isBlocking(error: FieldError): boolean {
  return BLOCKING.has(error.type);
}
