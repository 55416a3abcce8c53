import { evaluationError } from './budget.ts';
import type { Typed } from './frame.ts';
import { listOf, mapOf, type Type } from './types.ts';
import { ArrayList, EntryMap, OptionalValue, type Value } from './values.ts';

/** Lists and maps that an expression spells out. */

/** An element; an optional one (`[?x]`) is left out where it has no value. */
export interface Element extends Typed {
  readonly isOptional: boolean;
  readonly at: number;
}

/** `[a, ?b]`. */
export function compileList(elements: readonly Element[], type: Type): Typed {
  return {
    type: listOf(type),
    run: (frame) => {
      frame.budget.spend(1 + elements.length);
      return new ArrayList(elements.flatMap(({ run, isOptional }) => present(run(frame), isOptional)));
    },
  };
}

/** `{a: b, ?c: d}`; of equal keys the last one stands. */
export function compileMap(keys: readonly Element[], values: readonly Element[], key: Type, value: Type): Typed {
  return {
    type: mapOf(key, value),
    run: (frame) => {
      frame.budget.spend(1 + 2 * keys.length);
      const map = new EntryMap();
      for (const [index, { run, isOptional }] of values.entries()) {
        const name = keys[index]?.run(frame) ?? null;
        for (const part of present(run(frame), isOptional)) {
          if (!map.set(name, part)) throw evaluationError('unsupported key type');
        }
      }
      return map;
    },
  };
}

function present(value: Value, isOptional: boolean): Value[] {
  if (!isOptional) return [value];
  if (!(value instanceof OptionalValue)) throw evaluationError('no such overload');
  return value.value === undefined ? [] : [value.value];
}
