import type { Schema } from '../../api/schema.ts';
import { setOwn } from '../clone.ts';

/** Keywords that hold one schema each, several, or one per name; all others are values and stay as they are. */
const SCHEMA_KEYWORDS: ReadonlySet<string> = new Set(['additionalProperties', 'items', 'not']);
const LIST_KEYWORDS: ReadonlySet<string> = new Set(['allOf', 'anyOf', 'oneOf', 'x-kubernetes-validations']);
const MAP_KEYWORDS: ReadonlySet<string> = new Set(['definitions', 'patternProperties', 'properties']);

/**
 * The schema without keywords that are null, which Go reads as absent: a copy, so that the rest of the engine need
 * only know absence. Wants keywords of the right shapes.
 */
export function withoutNulls(schema: Schema): Schema {
  const result = {};
  for (const [keyword, value] of Object.entries(schema)) {
    if (value !== null) setOwn(result, keyword, clean(keyword, value));
  }
  return result as Schema;
}

function clean(keyword: string, value: unknown): unknown {
  if (typeof value !== 'object') return value;
  if (LIST_KEYWORDS.has(keyword)) return (value as Schema[]).map(withoutNulls);
  if (MAP_KEYWORDS.has(keyword)) return mapValues(value as Record<string, Schema>);
  return SCHEMA_KEYWORDS.has(keyword) && !Array.isArray(value) ? withoutNulls(value as Schema) : value;
}

function mapValues(schemas: Readonly<Record<string, Schema>>): Record<string, Schema> {
  const result = {};
  for (const [name, schema] of Object.entries(schemas)) setOwn(result, name, withoutNulls(schema));
  return result;
}
