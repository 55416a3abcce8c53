import type { JsonObject } from '../../meta.ts';
import { isSame } from '../validation.ts';

/** How much of a value is shown, so that an error stays readable. */
const VALUE_LENGTH_MAX = 256;

/** What differs between two objects, field by field as lines of a diff: the reader of an error wants to know. */
export function changesText(old: JsonObject, updated: JsonObject): string {
  const fields = [...new Set([...Object.keys(old), ...Object.keys(updated)])].sort();
  const lines: string[] = [];
  for (const field of fields) {
    const before = Object.hasOwn(old, field) ? old[field] : undefined;
    const after = Object.hasOwn(updated, field) ? updated[field] : undefined;
    if (isSame(before, after)) continue;
    if (before !== undefined) lines.push(`-  ${field}: ${shorten(JSON.stringify(before))}`);
    if (after !== undefined) lines.push(`+  ${field}: ${shorten(JSON.stringify(after))}`);
  }
  return lines.join('\n');
}

function shorten(text: string): string {
  return text.length > VALUE_LENGTH_MAX ? `${text.slice(0, VALUE_LENGTH_MAX)}...` : text;
}
