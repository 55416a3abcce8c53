import { unreachable } from '../../api/unreachable.ts';
import type { Node } from './ast.ts';
import { parseGoDuration } from '../schema/duration.ts';
import { compilePattern } from '../schema/pattern.ts';
import { parseRfc3339 } from '../schema/time.ts';
import { type Budget, evaluationError } from './budget.ts';
import type { Implementation, Overload } from './functions.ts';
import type { Issue } from './issues.ts';
import { type Bindings, DYN, fits, isAny, spellType, substitute, type Type } from './types.ts';
import {
  Duration,
  ListValue,
  MapValue,
  OpaqueValue,
  OptionalValue,
  Timestamp,
  TypeValue,
  Uint,
  type Value,
} from './values.ts';

/** Which overload of a function a call means: decided by types where they are known, by values where they are not. */

export interface Resolved {
  readonly type: Type;
  readonly call: Implementation;
}

/** Resolves a call; undefined where no overload takes such arguments. */
export function dispatch(overloads: readonly Overload[], types: readonly Type[]): Resolved | undefined {
  const results: Type[] = [];
  const candidates = overloads.filter((overload) => {
    const bindings: Bindings = new Map();
    const isFit =
      overload.parameters.length === types.length &&
      overload.parameters.every((parameter, index) => fits(parameter, types[index] ?? DYN, bindings));
    if (isFit) results.push(substitute(overload.result, bindings));
    return isFit;
  });
  const [first] = candidates;
  const [firstResult] = results;
  if (!first || !firstResult) return undefined;
  const isSame = results.every((result) => spellType(result) === spellType(firstResult));
  const type = isSame ? firstResult : DYN;
  const isCertain = candidates.length === 1 && !types.some(isUncertain);
  return { type, call: isCertain ? first.call : dynamicCall(candidates) };
}

/** Whether values of the type can turn out to be anything, wholly or inside. */
function isUncertain(type: Type): boolean {
  if (type.kind === 'list') return isUncertain(type.element);
  if (type.kind === 'map') return isUncertain(type.key) || isUncertain(type.value);
  return type.kind === 'optional' ? isUncertain(type.value) : isAny(type);
}

function dynamicCall(candidates: readonly Overload[]): Implementation {
  return (args, budget) => {
    const fit = candidates.find(({ parameters }) =>
      parameters.every((parameter, index) => accepts(parameter, args[index] as Value, budget)),
    );
    if (!fit) throw evaluationError('no such overload');
    return fit.call(args, budget);
  };
}

/** Whether a value is of the type. Items of lists are looked at too: functions rely on them. */
function accepts(type: Type, value: Value, budget: Budget): boolean {
  switch (type.kind) {
    case 'list':
      return value instanceof ListValue && acceptsItems(type.element, value, budget);
    case 'map':
    case 'object':
      return value instanceof MapValue;
    case 'optional':
      return value instanceof OptionalValue;
    case 'opaque':
      return value instanceof OpaqueValue && value.typeName === type.name;
    case 'bool':
      return typeof value === 'boolean';
    case 'int':
      return typeof value === 'bigint';
    case 'double':
      return typeof value === 'number';
    case 'string':
      return typeof value === 'string';
    case 'uint':
      return value instanceof Uint;
    case 'bytes':
      return value instanceof Uint8Array;
    case 'timestamp':
      return value instanceof Timestamp;
    case 'duration':
      return value instanceof Duration;
    case 'type':
      return value instanceof TypeValue;
    case 'null':
      return value === null;
    case 'dyn':
    case 'error':
    case 'param':
      return true;
    default:
      return unreachable(type);
  }
}

function acceptsItems(element: Type, list: ListValue, budget: Budget): boolean {
  if (element.kind === 'dyn' || element.kind === 'param') return true;
  budget.spend(list.size);
  for (let index = 0; index < list.size; index++) if (!accepts(element, list.at(index), budget)) return false;
  return true;
}

type LiteralCheck = (text: string) => boolean;

function isPattern(text: string): boolean {
  try {
    compilePattern(text);
    return true;
  } catch {
    return false;
  }
}

/** Functions of which an argument, where it is a literal, can be told to be wrong before evaluation; and which one. */
const LITERAL_CHECKS: ReadonlyMap<string, readonly [position: number, check: LiteralCheck]> = new Map([
  ['duration', [0, (text) => parseGoDuration(text) !== undefined]],
  ['timestamp', [0, (text) => parseRfc3339(text) !== undefined]],
  ['find', [1, isPattern]],
  ['findAll', [1, isPattern]],
  ['matches', [1, isPattern]],
]);

/** What is wrong with a literal argument: a pattern that does not compile, a duration that is none. */
export function literalIssue(name: string, operands: readonly Node[]): Issue | undefined {
  const [position = 0, check] = LITERAL_CHECKS.get(name) ?? [];
  const operand = operands[position];
  if (!check || operand?.op !== 'literal' || typeof operand.value !== 'string') return undefined;
  return check(operand.value) ? undefined : { at: operand.at, message: `invalid ${name} argument` };
}
