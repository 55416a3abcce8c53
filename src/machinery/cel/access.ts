import { evaluationError } from './budget.ts';
import { ListValue, MapValue, OptionalValue, Uint, type Value } from './values.ts';

/** Looking into maps, objects and lists, and through optionals that hold them. */

/** The value of a field. */
export function selectField(container: Value, field: string): Value {
  if (container instanceof OptionalValue) return optionalField(container, field);
  const value = container instanceof MapValue ? container.get(field) : undefined;
  if (value === undefined) throw evaluationError(`no such key: ${field}`);
  return value;
}

/** `a.?b`: the value of a field, or none. */
export function optionalField(operand: Value, field: string): OptionalValue {
  const container = operand instanceof OptionalValue ? operand.value : operand;
  if (container === undefined) return OptionalValue.none;
  if (!(container instanceof MapValue)) throw evaluationError('no such overload');
  return optionalFrom(container.get(field));
}

function optionalFrom(value: Value | undefined): OptionalValue {
  return value === undefined ? OptionalValue.none : new OptionalValue(value);
}

/** `a[b]`: an item of a list or a value of a map. */
export function elementOf(container: Value, key: Value): Value {
  const value = lookUp(container, key);
  if (value !== undefined) return value;
  if (container instanceof ListValue) throw evaluationError(`index out of bounds: ${spellKey(key)}`);
  throw evaluationError(`no such key: ${spellKey(key)}`);
}

/** `a[?b]`: the same, or none. */
export function optionalElement(operand: Value, key: Value): OptionalValue {
  const container = operand instanceof OptionalValue ? operand.value : operand;
  return container === undefined ? OptionalValue.none : optionalFrom(lookUp(container, key));
}

function lookUp(container: Value, key: Value): Value | undefined {
  if (container instanceof MapValue) return container.get(key);
  if (!(container instanceof ListValue)) throw evaluationError(`no such key: ${spellKey(key)}`);
  const index = key instanceof Uint ? key.value : key;
  if (typeof index !== 'bigint' && !Number.isInteger(index)) throw evaluationError('unsupported index type');
  const position = Number(index);
  return position >= 0 && position < container.size ? container.at(position) : undefined;
}

function spellKey(key: Value): string {
  if (key instanceof Uint) return String(key.value);
  return typeof key === 'object' ? 'null' : String(key);
}
