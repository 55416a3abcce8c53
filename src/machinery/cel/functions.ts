import type { Budget } from './budget.ts';
import {
  A,
  B,
  BOOL,
  BYTES,
  DOUBLE,
  DURATION,
  DYN,
  INT,
  listOf,
  mapOf,
  NULL,
  opaque,
  optionalOf,
  STRING,
  TIMESTAMP,
  TYPE,
  type Type,
  UINT,
} from './types.ts';
import type { Value } from './values.ts';

/** What a function does. It pays for what it does beyond one unit, before doing it. */
export type Implementation = (args: readonly Value[], budget: Budget) => Value;

/** One signature of a function. Methods count their receiver as the first parameter. */
export interface Overload {
  readonly name: string;
  readonly isMethod: boolean;
  readonly parameters: readonly Type[];
  readonly result: Type;
  readonly call: Implementation;
}

const WORDS: ReadonlyMap<string, Type> = new Map([
  ['A', A],
  ['B', B],
  ['bool', BOOL],
  ['bytes', BYTES],
  ['double', DOUBLE],
  ['duration', DURATION],
  ['dyn', DYN],
  ['int', INT],
  ['null', NULL],
  ['string', STRING],
  ['timestamp', TIMESTAMP],
  ['type', TYPE],
  ['uint', UINT],
  ['CIDR', opaque('net.CIDR')],
  ['Format', opaque('kubernetes.NamedFormat')],
  ['IP', opaque('net.IP')],
  ['Quantity', opaque('kubernetes.Quantity')],
  ['Semver', opaque('kubernetes.Semver')],
  ['URL', opaque('kubernetes.URL')],
]);

/**
 * Declares an overload by its signature: `size(list(A)): int` for a function, `string.size(): int` for a method,
 * `sets.contains(...)` for a function of a namespace.
 */
export function overload(signature: string, call: Implementation): Overload {
  const match = /^(?:(.+?)\.)?([a-zA-Z0-9_@+\-*/%<>=!]+)\((.*)\): (.+)$/.exec(signature);
  if (!match) throw new Error(`bad signature ${signature}`);
  const [, before, name = '', list = '', result = ''] = match;
  const isMethod = before !== undefined && !NAMESPACES.has(before);
  const parameters = splitTypes(list).map(parseType);
  return {
    name: before === undefined || isMethod ? name : `${before}.${name}`,
    isMethod,
    parameters: isMethod ? [parseType(before), ...parameters] : parameters,
    result: parseType(result),
    call,
  };
}

/** First words of functions that look like methods of a variable. */
export const NAMESPACES: ReadonlySet<string> = new Set(['format', 'ip', 'lists', 'optional', 'sets', 'strings']);

function parseType(text: string): Type {
  const match = /^(list|map|optional)\((.*)\)$/.exec(text);
  if (!match) {
    const word = WORDS.get(text);
    if (!word) throw new Error(`unknown type ${text}`);
    return word;
  }
  const [first = DYN, second = DYN] = splitTypes(match[2] ?? '').map(parseType);
  if (match[1] === 'map') return mapOf(first, second);
  return match[1] === 'list' ? listOf(first) : optionalOf(first);
}

function splitTypes(text: string): string[] {
  const parts: string[] = [];
  let depth = 0;
  let start = 0;
  for (let index = 0; index <= text.length; index++) {
    const char = text[index];
    if (char === '(') depth++;
    else if (char === ')') depth--;
    else if ((char === ',' && depth === 0) || char === undefined) {
      const part = text.slice(start, index).trim();
      if (part !== '') parts.push(part);
      start = index + 1;
    }
  }
  return parts;
}
