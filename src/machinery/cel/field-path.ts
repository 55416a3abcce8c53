import { child, entry } from '../../api/field-error.ts';
import type { Schema } from '../../api/schema.ts';

/** A rule's `fieldPath`: fields and map keys below the rule's own place, such as `.spec['my-key'].name`. */

const STEP = /\.([^.[\]']+)|\['((?:[^'\\]|\\.)*)'\]/y;
const ESCAPES: ReadonlyMap<string, string> = new Map([
  ['a', '\u0007'],
  ['b', '\b'],
  ['f', '\f'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['v', '\v'],
  ["'", "'"],
  ['\\', '\\'],
]);

/** The path as errors spell it; undefined where it is malformed or leads to no field of the schema. */
export function normalizeFieldPath(path: string, schema: Schema): string | undefined {
  let current: Schema | undefined = schema;
  let spelled = '';
  let at = 0;
  while (at < path.length) {
    STEP.lastIndex = at;
    const match = STEP.exec(path);
    const name = match && (match[1] ?? unescape(match[2] ?? ''));
    if (!match || name === undefined || name === null || current === undefined) return undefined;
    const properties: Schema['properties'] = current.properties;
    if (properties !== undefined) {
      if (!Object.hasOwn(properties, name)) return undefined;
      spelled = child(spelled, name);
      current = properties[name];
    } else if (typeof current.additionalProperties === 'object') {
      spelled = entry(spelled, name);
      current = current.additionalProperties;
    } else return undefined;
    at += match[0].length;
  }
  return spelled;
}

function unescape(text: string): string | undefined {
  let isValid = true;
  const plain = text.replaceAll(/\\(.)/gs, (_, letter: string) => {
    const char = ESCAPES.get(letter);
    if (char === undefined) isValid = false;
    return char ?? '';
  });
  return isValid ? plain : undefined;
}
