import { type FieldError, invalid } from '../../api/field-error.ts';
import type { Json } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import type { Check } from './validate.ts';
import type { ValidationContext } from './validation-context.ts';

/** The junctors: allOf, anyOf, oneOf and not. Kubernetes reports their failures on the object as a whole. */
export function compileLogic(schema: Schema, compile: (schema: Schema) => Check): Check | undefined {
  const checks: Check[] = [];
  if (schema.anyOf?.length) checks.push(compileAnyOf(schema.anyOf.map(compile)));
  if (schema.oneOf?.length) checks.push(compileOneOf(schema.oneOf.map(compile)));
  if (schema.allOf?.length) checks.push(compileAllOf(schema.allOf.map(compile)));
  if (schema.not !== undefined) checks.push(compileNot(compile(schema.not)));
  if (checks.length === 0) return undefined;
  return (value, old, context) => {
    for (const check of checks) check(value, old, context);
  };
}

function compileAnyOf(branches: readonly Check[]): Check {
  return (value, old, context) => {
    let first: FieldError[] | undefined;
    for (const branch of branches) {
      const errors = attempt(branch, value, old, context);
      if (errors.length === 0) return;
      first ??= errors;
    }
    fail(context, 'must validate at least one schema (anyOf)');
    for (const error of first ?? []) context.add(error);
  };
}

function compileOneOf(branches: readonly Check[]): Check {
  return (value, _old, context) => {
    let first: FieldError[] | undefined;
    let fits = 0;
    for (const branch of branches) {
      // Without the old value: excusing an unchanged part could make a second branch fit.
      const errors = attempt(branch, value, undefined, context);
      if (errors.length === 0) fits++;
      else first ??= errors;
    }
    if (fits === 1) return;
    const found = fits === 0 ? 'Found none valid' : `Found ${fits} valid alternatives`;
    fail(context, `must validate one and only one schema (oneOf). ${found}`);
    if (fits === 0) for (const error of first ?? []) context.add(error);
  };
}

function compileAllOf(branches: readonly Check[]): Check {
  return (value, old, context) => {
    let fits = 0;
    for (const branch of branches) {
      const before = context.errors.length;
      branch(value, old, context);
      if (context.errors.length === before) fits++;
    }
    if (fits === branches.length || context.isFull) return;
    fail(context, `must validate all the schemas (allOf)${fits === 0 ? '. None validated' : ''}`);
  };
}

function compileNot(branch: Check): Check {
  return (value, _old, context) => {
    if (attempt(branch, value, undefined, context).length === 0) fail(context, 'must not validate the schema (not)');
  };
}

function attempt(branch: Check, value: Json, old: Json | undefined, context: ValidationContext): FieldError[] {
  const fork = context.fork();
  branch(value, old, fork);
  return fork.errors;
}

function fail(context: ValidationContext, detail: string): void {
  context.add(invalid('', '', `"${context.field}" ${detail}`));
}
