import { child, type FieldError } from '../field-error.ts';
import type { Schema } from '../schema.ts';

/** Fields of an object that its schema keeps and does not know, by their paths. What is in maps is anybody's. */
export function unknownFieldErrors(value: unknown, schema: Schema, path: string): FieldError[] {
  const { properties } = schema;
  if (!properties || typeof value !== 'object' || value === null || Array.isArray(value)) return [];
  return Object.entries(value).flatMap(([field, each]) => {
    const known = Object.hasOwn(properties, field) ? properties[field] : undefined;
    if (known) return unknownFieldErrors(each, known, child(path, field));
    return [{ type: 'FieldValueNotSupported', field: child(path, field), message: 'unknown field' } as const];
  });
}
