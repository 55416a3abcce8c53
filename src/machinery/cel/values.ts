/**
 * Values at evaluation: int is a bigint, double a number, and what JavaScript has no type for is a class below. Lists
 * and maps are interfaces, since those of an object under validation are views of its JSON, converted on access.
 */
export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Uint8Array
  | Uint
  | Timestamp
  | Duration
  | TypeValue
  | OptionalValue
  | ListValue
  | MapValue
  | OpaqueValue;

/** An unsigned integer of 64 bits. */
export class Uint {
  readonly value: bigint;
  constructor(value: bigint) {
    this.value = value;
  }
}

/** A moment, in nanoseconds since the Unix epoch. */
export class Timestamp {
  readonly nanoseconds: bigint;
  constructor(nanoseconds: bigint) {
    this.nanoseconds = nanoseconds;
  }
}

/** A span of time in nanoseconds. */
export class Duration {
  readonly nanoseconds: bigint;
  constructor(nanoseconds: bigint) {
    this.nanoseconds = nanoseconds;
  }
}

/** A type as a value: what `type(x)` answers. */
export class TypeValue {
  readonly name: string;
  constructor(name: string) {
    this.name = name;
  }
}

/** A value or none. */
export class OptionalValue {
  static readonly none = new OptionalValue(undefined);
  readonly value: Value | undefined;
  constructor(value: Value | undefined) {
    this.value = value;
  }
}

/** A value that only its own functions can look into: quantities, URLs, addresses. */
export abstract class OpaqueValue {
  abstract readonly typeName: string;
  abstract equals(other: OpaqueValue): boolean;
}

/** A list. Sets and lists keyed by fields compare without regard to order, as Kubernetes defines for them. */
export abstract class ListValue {
  abstract readonly size: number;
  abstract at(index: number): Value;
  /** What tells items apart where their order does not matter; undefined for lists proper. */
  identity(_index: number): string | undefined {
    return undefined;
  }
  /** The list with more items at its end: for sets and keyed lists a union, in which later items replace. */
  concat(other: ListValue): ListValue {
    const items: Value[] = [];
    for (let index = 0; index < this.size; index++) items.push(this.at(index));
    for (let index = 0; index < other.size; index++) items.push(other.at(index));
    return new ArrayList(items);
  }
}

/** A list made by the expression itself. */
export class ArrayList extends ListValue {
  readonly #items: readonly Value[];
  constructor(items: readonly Value[]) {
    super();
    this.#items = items;
  }
  get size(): number {
    return this.#items.length;
  }
  at(index: number): Value {
    return this.#items[index] as Value;
  }
}

/** A map, or an object with declared fields. */
export abstract class MapValue {
  abstract readonly size: number;
  /** Undefined where there is no such key. */
  abstract get(key: Value): Value | undefined;
  abstract keys(): Value[];
  has(key: Value): boolean {
    return this.get(key) !== undefined;
  }
  /** All keys that comparing looks at: also those of fields that expressions cannot see. */
  hiddenKeys(): Value[] {
    return this.keys();
  }
  /** The value behind any of those. */
  getHidden(key: Value): Value | undefined {
    return this.get(key);
  }
}

/** A map made by the expression itself. */
export class EntryMap extends MapValue {
  readonly #entries = new Map<string, readonly [Value, Value]>();
  /** Sets an entry; answers false where this cannot be a key. */
  set(key: Value, value: Value): boolean {
    const text = keyText(key);
    if (text === undefined) return false;
    this.#entries.set(text, [key, value]);
    return true;
  }
  get size(): number {
    return this.#entries.size;
  }
  get(key: Value): Value | undefined {
    const text = keyText(key);
    return text === undefined ? undefined : this.#entries.get(text)?.[1];
  }
  keys(): Value[] {
    return Array.from(this.#entries.values(), ([key]) => key);
  }
}

/** Equal keys have equal texts, numbers of different types included; undefined for what cannot be a key. */
function keyText(key: Value): string | undefined {
  if (typeof key === 'string') return `s${key}`;
  if (typeof key === 'boolean') return `b${key}`;
  if (typeof key === 'bigint') return `n${key}`;
  if (key instanceof Uint) return `n${key.value}`;
  return typeof key === 'number' && Number.isInteger(key) ? `n${BigInt(key)}` : undefined;
}

/** The name of a value's type, as `type(x)` and errors give it. */
export function typeNameOf(value: Value): string {
  if (value === null) return 'null_type';
  if (typeof value === 'boolean') return 'bool';
  if (typeof value === 'bigint') return 'int';
  if (typeof value === 'number') return 'double';
  return typeof value === 'string' ? 'string' : classTypeName(value);
}

function classTypeName(value: Exclude<Value, null | boolean | bigint | number | string>): string {
  if (value instanceof ListValue) return 'list';
  if (value instanceof MapValue) return 'map';
  if (value instanceof Uint) return 'uint';
  if (value instanceof Uint8Array) return 'bytes';
  if (value instanceof Timestamp) return 'google.protobuf.Timestamp';
  if (value instanceof Duration) return 'google.protobuf.Duration';
  if (value instanceof OptionalValue) return 'optional_type';
  if (value instanceof TypeValue) return 'type';
  return value.typeName;
}

/** Numbers of any type as something that compares; undefined for what is no number. */
export function numberOf(value: Value): bigint | number | undefined {
  if (typeof value === 'bigint' || typeof value === 'number') return value;
  return value instanceof Uint ? value.value : undefined;
}
