import { child, entry, type FieldError, invalid } from '../../api/field-error.ts';
import type { Json } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { clone } from '../clone.ts';
import { compileEmbeddedCheck } from './embedded.ts';
import { compilePrune } from './prune.ts';
import { compileCheck } from './validate.ts';
import { ValidationContext } from './validation-context.ts';

/** Defaults must be values that the schema itself would accept, without unknown fields. */
export function defaultErrors(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  // A default of the whole is a resource of its own.
  checkNode({ ...schema, 'x-kubernetes-embedded-resource': true }, path, errors);
  return errors;
}

function checkNode(schema: Schema, path: string, errors: FieldError[]): void {
  if (schema.default !== undefined) errors.push(...valueErrors(schema, schema.default, child(path, 'default')));
  if (schema.items) checkNode(schema.items, child(path, 'items'), errors);
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    checkNode(property, entry(child(path, 'properties'), field), errors);
  }
}

function valueErrors(schema: Schema, value: Json, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (compilePrune(schema, false, false)(clone(value)).length > 0) {
    errors.push(invalid(path, value, 'must not have unknown fields'));
  }
  const context = new ValidationContext();
  compileCheck(schema, false, false)(value, undefined, context);
  if (context.errors.length === 0) compileEmbeddedCheck({ items: schema })?.([value], context);
  const below = context.errors.map((error) => ({ ...error, field: joined(path, error.field) }));
  return [...errors, ...below];
}

function joined(path: string, field: string): string {
  const below = field.replace(/^\[0\]\.?/, '');
  return below === '' ? path : below.startsWith('[') ? path + below : `${path}.${below}`;
}
