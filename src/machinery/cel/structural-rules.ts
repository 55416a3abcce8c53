import type { FieldError } from '../../api/field-error.ts';
import type { Schema } from '../../api/schema.ts';

/** What is wrong with the rules of a schema. */
export function ruleErrors(_schema: Schema, _path: string): FieldError[] {
  return [];
}
