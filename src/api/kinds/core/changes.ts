import type { Json, JsonObject } from '../../meta.ts';
import { isSame } from '../validation.ts';
import { isObject } from './fields.ts';

/** How much of a value, and how many lines, are shown, so that an error stays readable. */
const VALUE_LENGTH_MAX = 256;
const LINES_MAX = 20;

/** What differs between two objects, one line for each side of each change: the reader of an error wants to know. */
export function changesText(old: JsonObject, updated: JsonObject): string {
  const lines: string[] = [];
  collect(old, updated, '', lines);
  const more = lines.length - LINES_MAX;
  return more > 0 ? [...lines.slice(0, LINES_MAX), `... and ${more} more lines`].join('\n') : lines.join('\n');
}

function collect(old: Json | undefined, updated: Json | undefined, path: string, lines: string[]): void {
  if (isSame(old, updated)) return;
  if (isObject(old) && isObject(updated)) {
    for (const field of [...new Set([...Object.keys(old), ...Object.keys(updated)])].sort()) {
      collect(own(old, field), own(updated, field), path === '' ? field : `${path}.${field}`, lines);
    }
  } else if (Array.isArray(old) && Array.isArray(updated)) {
    for (let index = 0; index < Math.max(old.length, updated.length); index++) {
      collect(old[index], updated[index], `${path}[${index}]`, lines);
    }
  } else {
    if (old !== undefined) lines.push(`-  ${path}: ${shorten(JSON.stringify(old))}`);
    if (updated !== undefined) lines.push(`+  ${path}: ${shorten(JSON.stringify(updated))}`);
  }
}

function own(object: JsonObject, field: string): Json | undefined {
  return Object.hasOwn(object, field) ? object[field] : undefined;
}

function shorten(text: string): string {
  return text.length > VALUE_LENGTH_MAX ? `${text.slice(0, VALUE_LENGTH_MAX)}...` : text;
}
