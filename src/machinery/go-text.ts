import type { Json } from '../api/meta.ts';

/** JSON values in the words of Go programs, which kubectl users know from Kubernetes' messages. */

/** A value as Go's `%v` prints it: `map[a:1 b:[x y] c:<nil>]`. */
export function goText(value: Json): string {
  if (value === null) return '<nil>';
  if (Array.isArray(value)) return `[${value.map(goText).join(' ')}]`;
  if (typeof value !== 'object') return String(value);
  const entries = Object.keys(value)
    .sort()
    .map((key) => `${key}:${goText(value[key] as Json)}`);
  return `map[${entries.join(' ')}]`;
}

/** What Go's decoder calls a value: `object`, `array`, `string`, `number`, `bool` or `null`. */
export function goNameOf(value: Json): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}
