/**
 * One step of a field path, in the spelling of FieldsV1: `f:name` for a field, `k:{"port":80}` for the item of a keyed
 * list, `v:"x"` for an item of a set, `i:3` for an index. The spelling is canonical (keys sorted, no spaces), so two
 * elements are the same exactly when their strings are.
 */

import type { Json, JsonObject } from '../../api/meta.ts';
import { setOwn } from '../clone.ts';

export type PathElement = string;

/**
 * Field elements by name. Each is the key of many objects: one that is put together anew has to be looked up among all
 * strings of the process first, for each of the hundreds of fields that a write looks at.
 */
const elements = new Map<string, PathElement>();
/** Far more than the fields of all kinds; what goes beyond are keys of maps, of which there may be any number. */
const ELEMENTS_MAX = 20_000;
/** Longer names are nobody's fields. */
const NAME_LENGTH_MAX = 128;

export function fieldElement(name: string): PathElement {
  const known = elements.get(name);
  if (known !== undefined) return known;
  const element = `f:${name}`;
  if (elements.size < ELEMENTS_MAX && name.length <= NAME_LENGTH_MAX) elements.set(name, element);
  return element;
}

/** The item of a keyed list whose key fields have these values; the names come sorted. */
export function keyElement(fields: readonly (readonly [name: string, value: Json])[]): PathElement {
  let text = '';
  for (const [name, value] of fields) {
    text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${canonicalJson(value)}`;
  }
  return `k:{${text}}`;
}

export function valueElement(value: Json): PathElement {
  return `v:${canonicalJson(value)}`;
}

/** The name that a field element spells, undefined for other elements. */
export function fieldNameOf(element: PathElement): string | undefined {
  return element.startsWith('f:') ? element.slice(2) : undefined;
}

/**
 * An element as others may have spelled it, in our spelling. Undefined for elements of a kind that we do not know (they
 * are ignored, so that a later version may have more); throws a SyntaxError when malformed.
 */
export function canonicalElement(element: string): PathElement | undefined {
  if (element[1] !== ':') throw new SyntaxError(`missing colon: ${element}`);
  const content = element.slice(2);
  switch (element.charAt(0)) {
    case 'f':
      return element;
    case 'k': {
      const fields = JSON.parse(content) as Json;
      if (typeof fields !== 'object' || fields === null || Array.isArray(fields)) {
        throw new SyntaxError(`the key is not an object: ${element}`);
      }
      return keyElement(Object.entries(fields).sort(([a], [b]) => compareStrings(a, b)));
    }
    case 'v':
      return valueElement(JSON.parse(content) as Json);
    case 'i':
      if (!/^[+-]?[0-9]+$/.test(content)) throw new SyntaxError(`the index is not a number: ${element}`);
      return `i:${Number(content)}`;
    default:
      return undefined;
  }
}

/** An element as messages show it: `.spec`, `[name="a",port=80]`, `[="x"]`, `[3]`. */
export function showElement(element: PathElement): string {
  const content = element.slice(2);
  switch (element.charAt(0)) {
    case 'f':
      return `.${content}`;
    case 'k': {
      const fields = Object.entries(JSON.parse(content) as JsonObject);
      return `[${fields.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(',')}]`;
    }
    case 'v':
      return `[=${content}]`;
    default:
      return `[${content}]`;
  }
}

/**
 * Elements in Kubernetes' order: fields by name, then keys, values and indexes by what they hold; the `.` of a set's
 * node before all. Answers the argument itself when it is in order.
 */
export function sortElements(elements: PathElement[]): PathElement[] {
  if (elements.every((element, index) => index === 0 || (elements[index - 1] as PathElement) < element)) {
    // Fields sort as their spelling does. Keys and values do not always ("10" is before "9"), unless there is but one.
    if (elements.length < 2 || isField(elements.at(-1) as PathElement)) return elements;
  }
  if (elements.every(isField)) return elements.toSorted();
  const parsed = elements.map((element) => ({ element, rank: rank(element), content: contentOf(element) }));
  parsed.sort((a, b) => a.rank - b.rank || compareContents(a.rank, a.content, b.content));
  const sorted = parsed.map(({ element }) => element);
  return sorted.every((element, index) => element === elements[index]) ? elements : sorted;
}

const FIRST_RANKS = '.fkvi';
const KEY_RANK = FIRST_RANKS.indexOf('k');

function rank(element: PathElement): number {
  return FIRST_RANKS.indexOf(element.charAt(0));
}

function isField(element: PathElement): boolean {
  return rank(element) < KEY_RANK;
}

function contentOf(element: PathElement): Json {
  return isField(element) ? element : (JSON.parse(element.slice(2)) as Json);
}

function compareContents(rank: number, a: Json, b: Json): number {
  return rank === KEY_RANK ? compareKeys(a as JsonObject, b as JsonObject) : compareValues(a, b);
}

function compareKeys(a: JsonObject, b: JsonObject): number {
  const [fieldsA, fieldsB] = [Object.entries(a), Object.entries(b)];
  for (const [index, [name, value]] of fieldsA.entries()) {
    const other = fieldsB[index];
    if (other === undefined) return 1;
    const order = compareStrings(name, other[0]) || compareValues(value, other[1]);
    if (order !== 0) return order;
  }
  return fieldsA.length - fieldsB.length;
}

function compareValues(a: Json, b: Json): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b;
  if (typeof a === 'string' && typeof b === 'string') return compareStrings(a, b);
  const order = typeRank(a) - typeRank(b);
  return order === 0 ? compareStrings(canonicalJson(a), canonicalJson(b)) : order;
}

function typeRank(value: Json): number {
  if (value === null) return 5;
  if (Array.isArray(value)) return 3;
  return ['number', 'string', 'boolean', '', 'object'].indexOf(typeof value);
}

function compareStrings(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

function canonicalJson(value: Json): string {
  return JSON.stringify(typeof value === 'object' ? sorted(value) : value);
}

function sorted(value: Json): Json {
  if (typeof value !== 'object' || value === null) return value;
  if (Array.isArray(value)) return value.map(sorted);
  const copy: JsonObject = {};
  for (const key of Object.keys(value).sort()) setOwn(copy, key, sorted(value[key] as Json));
  return copy;
}
