/**
 * Safe looks into objects whose shape nobody has checked yet: defaults run before validation, and validation goes on
 * after the schema has found errors, so a field may hold anything. A value of the wrong type reads as absent.
 */

/** An object whose fields may hold anything. */
export type Fields = { [field: string]: unknown };

/** The value as an object to read from; empty where it is none. */
export function fieldsOf(value: unknown): Readonly<Fields> {
  return isFields(value) ? value : {};
}

/** Whether the value is an object and not a list. */
export function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The value as a list; empty where it is none. */
export function itemsOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** The value as a text; empty where it is none. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The value as a list of texts; items of another type are left out. */
export function textsOf(value: unknown): readonly string[] {
  return itemsOf(value).filter((item) => typeof item === 'string');
}

/** The value as a number; zero where it is none. */
export function numberOf(value: unknown): number {
  return typeof value === 'number' ? value : 0;
}

/** Whether a field is left out, which `null` says too. */
export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/**
 * The object in a field, made where there is none, for defaults to write to. Where the field holds something else,
 * it is left alone for validation to refuse, and the writes go nowhere.
 */
export function openFields(parent: Fields, field: string): Fields {
  const value = parent[field];
  if (isFields(value)) return value;
  const made: Fields = {};
  if (isAbsent(value)) parent[field] = made;
  return made;
}

/** Writes a default into a field that is left out. */
export function setDefault(parent: Fields, field: string, value: unknown): void {
  if (isAbsent(parent[field])) parent[field] = value;
}

/** Writes a default into a text that is left out or empty. */
export function setDefaultText(parent: Fields, field: string, value: string): void {
  if (isAbsent(parent[field]) || parent[field] === '') parent[field] = value;
}
