import { WireType } from '@bufbuild/protobuf/wire';
import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { ApiError } from '../../api/status.ts';
import { decodeJson } from '../decode.ts';
import type { Cursor } from './cursor.ts';
import { type FieldPlan, type MessagePlan, planOf, type Shape, shapeOf } from './plan.ts';
import { durationText, microTimeText, timeText } from './values.ts';

/** Reads a message up to `end` into `target`, merging into what is there as protobuf prescribes. */
export function readMessage(cursor: Cursor, end: number, schema: Schema, target: JsonObject): void {
  readFields(cursor, end, planOf(schema), target);
}

function readFields(cursor: Cursor, end: number, plan: MessagePlan, target: JsonObject): void {
  while (cursor.position < end) {
    const [number, wireType] = cursor.tag(end);
    const field = plan.fields.get(number);
    if (field !== undefined) {
      cursor.at(field.name, () => readField(cursor, end, field, wireType, target));
      continue;
    }
    const inlined = plan.embedded.get(number);
    if (inlined === undefined) {
      cursor.skip(wireType, end);
      continue;
    }
    expectWireType(cursor, wireType, WireType.LengthDelimited);
    cursor.within(end, (innerEnd) => readFields(cursor, innerEnd, inlined, target));
  }
}

function readField(cursor: Cursor, end: number, field: FieldPlan, wireType: WireType, target: JsonObject): void {
  const { name, schema } = field;
  if (field.shape === 'list') {
    const items = (target[name] ??= []) as Json[];
    readItems(cursor, end, schema.items ?? {}, wireType, items);
    return;
  }
  if (field.shape === 'map') {
    const entries = (target[name] ??= {}) as JsonObject;
    expectWireType(cursor, wireType, WireType.LengthDelimited);
    cursor.within(end, (innerEnd) => readEntry(cursor, innerEnd, schema.additionalProperties as Schema, entries));
    return;
  }
  const value = readValue(cursor, end, field.shape, schema, wireType, target[name]);
  if (field.keepsZero || !isZero(value)) target[name] = value;
  else delete target[name];
}

function isZero(value: Json): boolean {
  return value === '' || value === 0 || value === false || value === null;
}

function readItems(cursor: Cursor, end: number, schema: Schema, wireType: WireType, items: Json[]): void {
  const shape = shapeOf(schema);
  const own = WIRE_TYPES[shape];
  if (wireType === WireType.LengthDelimited && own !== WireType.LengthDelimited) {
    // Packed: scalars one after the other, without tags.
    cursor.within(end, (innerEnd) => {
      while (cursor.position < innerEnd) items.push(readValue(cursor, innerEnd, shape, schema, own, undefined));
    });
    return;
  }
  cursor.at(items.length, () => items.push(readValue(cursor, end, shape, schema, wireType, undefined)));
}

/** A map's entry is a message of key 1 and value 2; either may be left out when zero. */
function readEntry(cursor: Cursor, end: number, schema: Schema, entries: JsonObject): void {
  const shape = shapeOf(schema);
  let key = '';
  let value: Json | undefined;
  while (cursor.position < end) {
    const [number, wireType] = cursor.tag(end);
    if (number === 1) {
      expectWireType(cursor, wireType, WireType.LengthDelimited);
      key = cursor.string(end);
    } else if (number === 2) {
      value = cursor.at(key, () => readValue(cursor, end, shape, schema, wireType, value));
    } else {
      cursor.skip(wireType, end);
    }
  }
  if (key === '__proto__') throw cursor.malformed('the key "__proto__" is not accepted');
  entries[key] = value ?? zeroOf(shape);
}

/** What a map entry without a value holds. */
function zeroOf(shape: Shape): Json {
  if (shape === 'message') return {};
  if (shape === 'list') return [];
  if (shape === 'quantity') return '0';
  if (shape === 'bool') return false;
  if (shape === 'string' || shape === 'bytes') return '';
  return shape === 'int32' || shape === 'int64' || shape === 'double' || shape === 'int-or-string' ? 0 : null;
}

const WIRE_TYPES: { readonly [shape in Shape]: WireType } = {
  string: WireType.LengthDelimited,
  bytes: WireType.LengthDelimited,
  time: WireType.LengthDelimited,
  'micro-time': WireType.LengthDelimited,
  duration: WireType.LengthDelimited,
  quantity: WireType.LengthDelimited,
  'int-or-string': WireType.LengthDelimited,
  raw: WireType.LengthDelimited,
  message: WireType.LengthDelimited,
  map: WireType.LengthDelimited,
  list: WireType.LengthDelimited,
  opaque: WireType.LengthDelimited,
  int32: WireType.Varint,
  int64: WireType.Varint,
  bool: WireType.Varint,
  double: WireType.Bit64,
};

function expectWireType(cursor: Cursor, actual: WireType, expected: WireType): void {
  if (actual !== expected) throw cursor.malformed(`wire type ${actual} where ${expected} belongs`);
}

/** One value of a field, an item or a map entry. `previous` is what a repeated message merges into. */
function readValue(
  cursor: Cursor,
  end: number,
  shape: Shape,
  schema: Schema,
  wireType: WireType,
  previous: Json | undefined,
): Json {
  expectWireType(cursor, wireType, WIRE_TYPES[shape]);
  switch (shape) {
    case 'string':
      return cursor.string(end);
    case 'int32':
      return cursor.int32(end);
    case 'int64':
      return Number(cursor.int64(end));
    case 'bool':
      return cursor.bool(end);
    case 'double':
      return finite(cursor, cursor.double(end));
    case 'bytes':
      return base64(cursor.bytes(end));
    case 'message': {
      const target = (previous ?? {}) as JsonObject;
      cursor.within(end, (innerEnd) => readMessage(cursor, innerEnd, schema, target));
      return target;
    }
    case 'list':
      return readWrappedList(cursor, end, schema, (previous ?? []) as Json[]);
    case 'time':
    case 'micro-time':
      return readTime(cursor, end, shape);
    case 'duration':
      return durationText((readNumbers(cursor, end) ?? [0n])[0]);
    case 'quantity':
      return readQuantity(cursor, end);
    case 'int-or-string':
      return readIntOrString(cursor, end);
    case 'raw':
      return readRaw(cursor, end);
    case 'map':
    case 'opaque':
    default:
      throw cursor.malformed('this field is not read from protobuf; send the object as JSON');
  }
}

function finite(cursor: Cursor, value: number): number {
  if (!Number.isFinite(value)) throw cursor.malformed('a number that JSON cannot hold');
  return value;
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64');
}

/** A list where protobuf allows none (a map's value) travels as a message of items 1, as ExtraValue does. */
function readWrappedList(cursor: Cursor, end: number, schema: Schema, items: Json[]): Json[] {
  return cursor.within(end, (innerEnd) => {
    while (cursor.position < innerEnd) {
      const [number, wireType] = cursor.tag(innerEnd);
      if (number === 1) readItems(cursor, innerEnd, schema.items ?? {}, wireType, items);
      else cursor.skip(wireType, innerEnd);
    }
    return items;
  });
}

/** A message of two numbers: Timestamp{seconds, nanos} or Duration{nanoseconds}. Undefined when it is empty. */
function readNumbers(cursor: Cursor, end: number): [first: bigint, second: bigint] | undefined {
  return cursor.within(end, (innerEnd) => {
    if (cursor.position === innerEnd) return undefined;
    const numbers: [bigint, bigint] = [0n, 0n];
    while (cursor.position < innerEnd) {
      const [number, wireType] = cursor.tag(innerEnd);
      if (number > 2) {
        cursor.skip(wireType, innerEnd);
        continue;
      }
      expectWireType(cursor, wireType, WireType.Varint);
      numbers[number === 1 ? 0 : 1] = cursor.int64(innerEnd);
    }
    return numbers;
  });
}

function readTime(cursor: Cursor, end: number, shape: 'time' | 'micro-time'): Json {
  const numbers = readNumbers(cursor, end);
  if (numbers === undefined) return null;
  const [seconds, nanoseconds] = numbers;
  const text = shape === 'time' ? timeText(seconds) : microTimeText(seconds, Number(nanoseconds));
  if (text === undefined) throw cursor.malformed('a time outside of the years 1 to 9999');
  return text;
}

/** The messages of a single text or of raw bytes: field 1 of the given reader's type, the last one wins. */
function readOnly<T>(cursor: Cursor, end: number, initial: T, read: (innerEnd: number) => T): T {
  return cursor.within(end, (innerEnd) => {
    let value = initial;
    while (cursor.position < innerEnd) {
      const [number, wireType] = cursor.tag(innerEnd);
      if (number === 1) {
        expectWireType(cursor, wireType, WireType.LengthDelimited);
        value = read(innerEnd);
      } else {
        cursor.skip(wireType, innerEnd);
      }
    }
    return value;
  });
}

function readQuantity(cursor: Cursor, end: number): string {
  const text = readOnly(cursor, end, '', (innerEnd) => cursor.string(innerEnd));
  return text === '' ? '0' : text;
}

/** type 1 (0 is a number, 1 a text), intVal 2, strVal 3. */
function readIntOrString(cursor: Cursor, end: number): string | number {
  return cursor.within(end, (innerEnd) => {
    let isText = false;
    let number = 0;
    let text = '';
    while (cursor.position < innerEnd) {
      const [field, wireType] = cursor.tag(innerEnd);
      if (field > 3) {
        cursor.skip(wireType, innerEnd);
        continue;
      }
      expectWireType(cursor, wireType, field === 3 ? WireType.LengthDelimited : WireType.Varint);
      if (field === 1) isText = cursor.int64(innerEnd) !== 0n;
      else if (field === 2) number = cursor.int32(innerEnd);
      else text = cursor.string(innerEnd);
    }
    return isText ? text : number;
  });
}

/** RawExtension, FieldsV1 and apiextensions' JSON: JSON text in field 1. */
function readRaw(cursor: Cursor, end: number): Json {
  const raw = readOnly<Uint8Array | undefined>(cursor, end, undefined, (innerEnd) => cursor.bytes(innerEnd));
  if (raw === undefined || raw.length === 0) return null;
  try {
    return decodeJson(raw).value;
  } catch (error) {
    throw cursor.malformed(ApiError.from(error).message, error);
  }
}
