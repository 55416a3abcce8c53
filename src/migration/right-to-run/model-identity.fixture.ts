/**
 * What lets the model tell millions of worlds apart in a short time: of equal values there is one object mostly, which is made once, and
 * has a number.
 */

const ids = new Map<string, number>();
const idsOfObjects = new WeakMap<object, number>();

/** The same number for two values exactly when they say the same. Cheap for objects that were seen before. */
export function idOf(value: object | undefined): number {
  if (value === undefined) return 0;
  const known = idsOfObjects.get(value);
  if (known !== undefined) return known;
  const text = JSON.stringify(value);
  const id = ids.get(text) ?? ids.size + 1;
  ids.set(text, id);
  idsOfObjects.set(value, id);
  return id;
}

/** Whether two values are the same in what they say. */
export function isEqual(one: object | undefined, other: object | undefined): boolean {
  return one === other || idOf(one) === idOf(other);
}

/** The one empty list. */
export const NONE: readonly never[] = [];

const made = new Map<string, object>();

/** What was made for this key before, or is now. The key has to say all that it is made from. */
export function once<T extends object>(key: string, make: () => T): T {
  const known = made.get(key);
  if (known !== undefined) return known as T;
  const value = make();
  made.set(key, value);
  return value;
}

/** A text for so many small numbers: made in one go, it costs less than one of digits. */
export const keyOfNumbers = (a: number, b: number, c: number, d: number, e: number, f: number, g = 0): string =>
  String.fromCharCode(a, a >> 16, b, b >> 16, c, c >> 16, d, d >> 16, e, e >> 16, f, f >> 16, g, g >> 16);
