/**
 * Reads what somebody else has sent, into a shape of ours. Fields that are not asked for are left behind: a later version
 * may say more. Whatever is too long, too much or something else is refused, with the place at which it is.
 */
export type Reader<T> = (value: unknown, path: string) => T;

/** What was sent is not what it should be. */
export class ShapeError extends Error {
  constructor(path: string, wanted: string) {
    super(`${path || 'what was sent'} is not ${wanted}`);
    this.name = 'ShapeError';
  }
}

type Fields<Shape extends object> = { readonly [Key in keyof Shape]-?: Reader<Shape[Key]> };

export function text(lengthMax: number, lengthMin = 1): Reader<string> {
  return (value, path) => {
    if (typeof value === 'string' && value.length >= lengthMin && value.length <= lengthMax) return value;
    throw new ShapeError(path, `text of ${lengthMin} to ${lengthMax} characters`);
  };
}

export function integer(min: number, max: number): Reader<number> {
  return (value, path) => {
    if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max) return value as number;
    throw new ShapeError(path, `a whole number from ${min} to ${max}`);
  };
}

export const flag: Reader<boolean> = (value, path) => {
  if (typeof value === 'boolean') return value;
  throw new ShapeError(path, 'true or false');
};

export function choice<const Choice extends string>(...choices: readonly Choice[]): Reader<Choice> {
  return (value, path) => {
    const found = choices.find((each) => each === value);
    if (found === undefined) throw new ShapeError(path, `one of ${choices.join(', ')}`);
    return found;
  };
}

export function listOf<T>(item: Reader<T>, countMax: number): Reader<readonly T[]> {
  return (value, path) => {
    if (!Array.isArray(value) || value.length > countMax) throw new ShapeError(path, `a list of up to ${countMax}`);
    return value.map((each, index) => item(each, `${path}[${index}]`));
  };
}

/** By names that the sender chose. */
export function mapOf<T>(item: Reader<T>, countMax: number, keyLengthMax: number): Reader<Readonly<Record<string, T>>> {
  return (value, path) => {
    const entries = Object.entries(plain(value, path));
    if (entries.length > countMax) throw new ShapeError(path, `a map of up to ${countMax}`);
    const result = Object.create(null) as Record<string, T>;
    for (const [key, each] of entries)
      result[text(keyLengthMax)(key, `a key of ${path}`)] = item(each, `${path}.${key}`);
    return result;
  };
}

/** What may be left out. */
export function optional<T>(reader: Reader<T>): Reader<T | undefined> {
  return (value, path) => (value === undefined || value === null ? undefined : reader(value, path));
}

export function shape<Shape extends object>(fields: Fields<Shape>): Reader<Shape> {
  const readers = Object.entries(fields) as [string, Reader<unknown>][];
  return (value, path) => {
    const sent = plain(value, path);
    const result: Record<string, unknown> = {};
    for (const [name, reader] of readers) {
      const read = reader(Object.hasOwn(sent, name) ? sent[name] : undefined, path === '' ? name : `${path}.${name}`);
      if (read !== undefined) result[name] = read;
    }
    return result as Shape;
  };
}

/** One of several shapes, told apart by `kind`. */
export function oneOf<Shape extends { readonly kind: string }>(
  readers: {
    readonly [Kind in Shape['kind']]: Reader<Extract<Shape, { readonly kind: Kind }>>;
  },
): Reader<Shape> {
  const byKind = new Map(Object.entries(readers) as [string, Reader<Shape>][]);
  return (value, path) => {
    const { kind } = plain(value, path);
    const reader = typeof kind === 'string' ? byKind.get(kind) : undefined;
    if (!reader) throw new ShapeError(path === '' ? 'kind' : `${path}.kind`, `one of ${[...byKind.keys()].join(', ')}`);
    return reader(value, path);
  };
}

function plain(value: unknown, path: string): Record<string, unknown> {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  throw new ShapeError(path, 'an object');
}
