import { parseGoDuration } from '../schema/duration.ts';
import { formatRfc3339, parseRfc3339 } from '../schema/time.ts';
import { CHARACTERS_PER_UNIT, evaluationError } from './budget.ts';
import { formatDouble, plainDouble } from './format-double.ts';
import { type Overload, overload } from './functions.ts';
import { duration, int, timestamp, uint } from './library-operators.ts';
import {
  type Duration,
  type ListValue,
  type MapValue,
  type Timestamp,
  TypeValue,
  typeNameOf,
  type Uint,
  type Value,
} from './values.ts';

/** Sizes and conversions: the functions of the language's definition. */

/** How many code points a string has. */
export function lengthOf(text: string): number {
  let length = 0;
  for (const _ of text) length++;
  return length;
}

function sizes(): Overload[] {
  const measures: [string, (value: Value) => number][] = [
    ['string', (value) => lengthOf(value as string)],
    ['bytes', (value) => (value as Uint8Array).length],
    ['list(A)', (value) => (value as ListValue).size],
    ['map(A, B)', (value) => (value as MapValue).size],
  ];
  return measures.flatMap(([type, measure]) => [
    overload(`size(${type}): int`, ([value]) => BigInt(measure(value as Value))),
    overload(`${type}.size(): int`, ([value]) => BigInt(measure(value as Value))),
  ]);
}

function numbers(): Overload[] {
  return [
    overload('int(int): int', ([value]) => value as bigint),
    overload('int(uint): int', ([value]) => int((value as Uint).value)),
    overload('int(double): int', ([value]) => int(truncate(value as number, 'integer overflow'))),
    overload('int(string): int', ([value]) => int(parseInteger(value as string))),
    overload('int(timestamp): int', ([value]) => floorSeconds((value as Timestamp).nanoseconds)),
    overload('int(duration): int', ([value]) => (value as Duration).nanoseconds),
    overload('uint(uint): uint', ([value]) => value as Uint),
    overload('uint(int): uint', ([value]) => uint(value as bigint)),
    overload('uint(double): uint', ([value]) => uint(truncate(value as number, 'unsigned integer overflow'))),
    overload('uint(string): uint', ([value]) => uint(parseInteger(value as string))),
    overload('double(double): double', ([value]) => value as number),
    overload('double(int): double', ([value]) => Number(value as bigint)),
    overload('double(uint): double', ([value]) => Number((value as Uint).value)),
    overload('double(string): double', ([value]) => parseDouble(value as string)),
  ];
}

function truncate(value: number, overflow: string): bigint {
  if (!Number.isFinite(value)) throw evaluationError(overflow);
  return BigInt(Math.trunc(value));
}

function floorSeconds(nanoseconds: bigint): bigint {
  const seconds = nanoseconds / 1_000_000_000n;
  return nanoseconds % 1_000_000_000n < 0n ? seconds - 1n : seconds;
}

/** Longest text of a number that is read at all. */
const NUMBER_LENGTH_MAX = 64;

function parseInteger(text: string): bigint {
  if (text.length <= NUMBER_LENGTH_MAX && /^[+-]?[0-9]+$/.test(text)) return BigInt(text.replace(/^\+/, ''));
  throw evaluationError("type conversion error from 'string' to 'int'");
}

function parseDouble(text: string): number {
  const special = /^([+-]?)(inf|infinity|nan)$/i.exec(text);
  if (special) {
    if (special[2]?.toLowerCase() === 'nan') return Number.NaN;
    return special[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
  }
  if (text.length <= 1000 && /^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?$/.test(text)) return Number(text);
  throw evaluationError("type conversion error from 'string' to 'double'");
}

function strings(): Overload[] {
  return [
    overload('string(string): string', ([value]) => value as string),
    overload('string(bool): string', ([value]) => String(value as boolean)),
    overload('string(int): string', ([value]) => String(value as bigint)),
    overload('string(uint): string', ([value]) => String((value as Uint).value)),
    overload('string(double): string', ([value]) => formatDouble(value as number)),
    overload('string(bytes): string', ([value], budget) => {
      budget.spend((value as Uint8Array).length / CHARACTERS_PER_UNIT);
      try {
        return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value as Uint8Array);
      } catch {
        throw evaluationError('invalid UTF-8 in bytes, cannot convert to string');
      }
    }),
    overload('string(timestamp): string', ([value]) => formatRfc3339((value as Timestamp).nanoseconds)),
    overload('string(duration): string', ([value]) => spellSeconds((value as Duration).nanoseconds)),
    overload('bytes(bytes): bytes', ([value]) => value as Uint8Array),
    overload('bytes(string): bytes', ([value], budget) => {
      budget.spend((value as string).length / CHARACTERS_PER_UNIT);
      return new TextEncoder().encode(value as string);
    }),
  ];
}

/** Durations convert to strings in seconds, as protobuf writes them. */
function spellSeconds(nanoseconds: bigint): string {
  return `${plainDouble(Number(nanoseconds) / 1e9)}s`;
}

const TRUTH: ReadonlyMap<string, boolean> = new Map([
  ...['1', 't', 'T', 'true', 'TRUE', 'True'].map((text) => [text, true] as const),
  ...['0', 'f', 'F', 'false', 'FALSE', 'False'].map((text) => [text, false] as const),
]);

function others(): Overload[] {
  return [
    overload('bool(bool): bool', ([value]) => value as boolean),
    overload('bool(string): bool', ([value]) => {
      const truth = TRUTH.get(value as string);
      if (truth === undefined) throw evaluationError("type conversion error from 'string' to 'bool'");
      return truth;
    }),
    overload('timestamp(timestamp): timestamp', ([value]) => value as Timestamp),
    overload('timestamp(int): timestamp', ([value]) => timestamp((value as bigint) * 1_000_000_000n)),
    overload('timestamp(string): timestamp', ([value]) => {
      const nanoseconds = parseRfc3339(value as string);
      if (nanoseconds === undefined) throw evaluationError(`parsing time ${JSON.stringify(value)}: not RFC 3339`);
      return timestamp(nanoseconds);
    }),
    overload('duration(duration): duration', ([value]) => value as Duration),
    overload('duration(int): duration', ([value]) => duration(value as bigint)),
    overload('duration(string): duration', ([value]) => {
      const nanoseconds = parseGoDuration(value as string);
      if (nanoseconds === undefined) throw evaluationError(`time: invalid duration ${JSON.stringify(value)}`);
      return duration(nanoseconds);
    }),
    overload('dyn(A): dyn', ([value]) => value as Value),
    overload('type(A): type', ([value]) => new TypeValue(typeNameOf(value as Value))),
  ];
}

export const standardFunctions: readonly Overload[] = [...sizes(), ...numbers(), ...strings(), ...others()];
