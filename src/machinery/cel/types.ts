import type { Schema } from '../../api/schema.ts';

/** Static types of expressions. `param` stands for any type in the signatures of functions. */
export type Type =
  | { readonly kind: SimpleKind }
  | { readonly kind: 'list'; readonly element: Type }
  | { readonly kind: 'map'; readonly key: Type; readonly value: Type }
  | { readonly kind: 'optional'; readonly value: Type }
  | { readonly kind: 'object'; readonly schema: Schema }
  | { readonly kind: 'opaque'; readonly name: string }
  | { readonly kind: 'param'; readonly name: string };

export type SimpleKind =
  | 'bool'
  | 'bytes'
  | 'double'
  | 'duration'
  | 'dyn'
  | 'error'
  | 'int'
  | 'null'
  | 'string'
  | 'timestamp'
  | 'type'
  | 'uint';

export const BOOL: Type = { kind: 'bool' };
export const BYTES: Type = { kind: 'bytes' };
export const DOUBLE: Type = { kind: 'double' };
export const DURATION: Type = { kind: 'duration' };
export const DYN: Type = { kind: 'dyn' };
/** The type of what has already been reported; fits everywhere, so that one mistake is one issue. */
export const ERROR: Type = { kind: 'error' };
export const INT: Type = { kind: 'int' };
export const NULL: Type = { kind: 'null' };
export const STRING: Type = { kind: 'string' };
export const TIMESTAMP: Type = { kind: 'timestamp' };
export const TYPE: Type = { kind: 'type' };
export const UINT: Type = { kind: 'uint' };
export const A: Type = { kind: 'param', name: 'A' };
export const B: Type = { kind: 'param', name: 'B' };

export const listOf = (element: Type): Type => ({ kind: 'list', element });
export const mapOf = (key: Type, value: Type): Type => ({ kind: 'map', key, value });
export const optionalOf = (value: Type): Type => ({ kind: 'optional', value });
export const opaque = (name: string): Type => ({ kind: 'opaque', name });

export type Bindings = Map<string, Type>;

/** Whether an argument of type `actual` fits the parameter; what params stand for collects in `bindings`. */
export function fits(parameter: Type, actual: Type, bindings: Bindings): boolean {
  if (parameter.kind === 'param') return fitsParam(parameter.name, actual, bindings);
  if (isAny(parameter) || isAny(actual)) return true;
  if (actual.kind === 'null' && isNullable(parameter)) return true;
  if (parameter.kind === 'list' && actual.kind === 'list') return fits(parameter.element, actual.element, bindings);
  if (parameter.kind === 'map' && actual.kind === 'map') {
    return fits(parameter.key, actual.key, bindings) && fits(parameter.value, actual.value, bindings);
  }
  if (parameter.kind === 'optional' && actual.kind === 'optional') {
    return fits(parameter.value, actual.value, bindings);
  }
  if (parameter.kind === 'object' && actual.kind === 'object') return parameter.schema === actual.schema;
  if (parameter.kind === 'opaque' && actual.kind === 'opaque') return parameter.name === actual.name;
  return parameter.kind === actual.kind;
}

function fitsParam(name: string, actual: Type, bindings: Bindings): boolean {
  const bound = bindings.get(name);
  if (bound === undefined) {
    bindings.set(name, actual);
    return true;
  }
  const joined = join(bound, actual);
  if (joined === undefined) return false;
  bindings.set(name, joined);
  return true;
}

/** The type that both are, the more general of the two; undefined where neither is the other. */
export function join(left: Type, right: Type): Type | undefined {
  if (left.kind === 'dyn' || right.kind === 'error') return left;
  if (right.kind === 'dyn' || left.kind === 'error') return right;
  if (fits(left, right, new Map())) return isMoreGeneral(right, left) ? right : left;
  return fits(right, left, new Map()) ? right : undefined;
}

function isMoreGeneral(left: Type, right: Type): boolean {
  if (left.kind === 'dyn') return true;
  if (left.kind === 'list' && right.kind === 'list') return isMoreGeneral(left.element, right.element);
  if (left.kind === 'map' && right.kind === 'map') return isMoreGeneral(left.value, right.value);
  if (left.kind === 'optional' && right.kind === 'optional') return isMoreGeneral(left.value, right.value);
  return false;
}

/** A result type with its params replaced by what they stand for; unknown ones can be anything. */
export function substitute(type: Type, bindings: Bindings): Type {
  if (type.kind === 'param') return bindings.get(type.name) ?? DYN;
  if (type.kind === 'list') return listOf(substitute(type.element, bindings));
  if (type.kind === 'optional') return optionalOf(substitute(type.value, bindings));
  return type.kind === 'map' ? mapOf(substitute(type.key, bindings), substitute(type.value, bindings)) : type;
}

/** Whether nothing is known of the type before evaluation. */
export function isAny(type: Type): boolean {
  return type.kind === 'dyn' || type.kind === 'error';
}

function isNullable(type: Type): boolean {
  return type.kind === 'object' || type.kind === 'opaque' || type.kind === 'timestamp' || type.kind === 'duration';
}

/** The type as issues name it. */
export function spellType(type: Type): string {
  if (type.kind === 'list') return `list(${spellType(type.element)})`;
  if (type.kind === 'map') return `map(${spellType(type.key)}, ${spellType(type.value)})`;
  if (type.kind === 'optional') return `optional_type(${spellType(type.value)})`;
  if (type.kind === 'opaque' || type.kind === 'param') return type.name;
  return type.kind === 'error' ? '!error!' : type.kind;
}
