import { formatRfc3339 } from '../schema/time.ts';
import { type Budget, CHARACTERS_PER_UNIT, evaluationError } from './budget.ts';
import { fixedDouble, formatDouble, plainDouble, scientificDouble } from './format-double.ts';
import { Duration, ListValue, MapValue, Timestamp, TypeValue, typeNameOf, Uint, type Value } from './values.ts';

/** `"%s has %d".format([...])`: clauses of printf over CEL values. */

const CLAUSE = /%(?:%|(?:\.([0-9]+))?([a-zA-Z])|)/g;
const PRECISION_DEFAULT = 6;
/** JavaScript's own limit on digits after the point. */
const PRECISION_MAX = 100;

/** Fills the clauses of a template with the arguments, in order. */
export function formatText(template: string, args: ListValue, budget: Budget): string {
  let used = 0;
  budget.spend(template.length / CHARACTERS_PER_UNIT);
  const text = template.replaceAll(CLAUSE, (clause: string, digits: string | undefined, verb: string | undefined) => {
    if (clause === '%%') return '%';
    if (verb === undefined) throw evaluationError('unexpected end of string');
    if (used >= args.size) throw evaluationError(`index ${used} out of range`);
    const precision = digits === undefined ? PRECISION_DEFAULT : Number(digits);
    if (precision > PRECISION_MAX) throw evaluationError(`precision out of range in ${clause}`);
    const part = formatClause(verb, precision, args.at(used++), budget);
    budget.spend(1 + part.length / CHARACTERS_PER_UNIT);
    return part;
  });
  if (used === args.size) return text;
  throw evaluationError(`too many arguments supplied to string.format (expected ${used}, got ${args.size})`);
}

function formatClause(verb: string, precision: number, value: Value, budget: Budget): string {
  switch (verb) {
    case 's':
      return typeof value === 'string' ? value : spell(value, budget);
    case 'd':
      return wholeOf(value, 'decimal').toString();
    case 'f':
      return fixedDouble(doubleOf(value, 'fixed-point'), precision);
    case 'e':
      return scientificDouble(doubleOf(value, 'scientific'), precision);
    case 'b':
      return typeof value === 'boolean' ? String(Number(value)) : wholeOf(value, 'binary').toString(2);
    case 'o':
      return wholeOf(value, 'octal').toString(8);
    case 'x':
      return hex(value, budget);
    case 'X':
      return hex(value, budget).toUpperCase();
    default:
      throw evaluationError(`could not parse formatting clause: unrecognized formatting clause "${verb}"`);
  }
}

function wholeOf(value: Value, clause: string): bigint {
  if (typeof value === 'bigint') return value;
  if (value instanceof Uint) return value.value;
  const given = typeNameOf(value);
  throw evaluationError(`error during formatting: ${clause} clause can only be used on integers, was given ${given}`);
}

function doubleOf(value: Value, clause: string): number {
  if (typeof value === 'number') return value;
  const given = typeNameOf(value);
  throw evaluationError(`error during formatting: ${clause} clause can only be used on doubles, was given ${given}`);
}

function hex(value: Value, budget: Budget): string {
  if (typeof value !== 'string' && !(value instanceof Uint8Array)) return wholeOf(value, 'hex').toString(16);
  const bytes = Buffer.from(value as string);
  budget.spend(bytes.length / CHARACTERS_PER_UNIT);
  return bytes.toString('hex');
}

/** A value as `%s` writes it; inside lists and maps, what is no number or boolean is marked as what it is. */
function spell(value: Value, budget: Budget, isInside = false): string {
  budget.spend(1);
  const marked = (text: string, mark: string): string => (isInside ? `${mark}(${JSON.stringify(text)})` : text);
  if (typeof value === 'string') return JSON.stringify(value);
  if (value === null || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  if (typeof value === 'number') return isInside ? value.toFixed(PRECISION_DEFAULT) : formatDouble(value);
  if (value instanceof Uint) return String(value.value);
  if (value instanceof Duration) return marked(`${plainDouble(Number(value.nanoseconds) / 1e9)}s`, 'duration');
  if (value instanceof Timestamp) return marked(formatRfc3339(value.nanoseconds), 'timestamp');
  if (value instanceof TypeValue) return value.name;
  if (value instanceof Uint8Array) {
    budget.spend(value.length / CHARACTERS_PER_UNIT);
    const text = new TextDecoder().decode(value);
    return isInside ? `b${JSON.stringify(text)}` : text;
  }
  if (value instanceof ListValue) return `[${spellItems(value, budget).join(', ')}]`;
  if (value instanceof MapValue) return `{${spellEntries(value, budget).join(', ')}}`;
  throw evaluationError(
    `error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps, was given ${typeNameOf(value)}`,
  );
}

function spellItems(list: ListValue, budget: Budget): string[] {
  const items: string[] = [];
  for (let index = 0; index < list.size; index++) items.push(spell(list.at(index), budget, true));
  return items;
}

function spellEntries(map: MapValue, budget: Budget): string[] {
  const entries = map.keys().map((key) => `${spell(key, budget, true)}:${spell(map.get(key) ?? null, budget, true)}`);
  return entries.sort();
}
