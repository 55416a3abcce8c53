import type { Json } from '../../api/meta.ts';
import { setOwn } from '../clone.ts';
import { formatRfc3339 } from '../schema/time.ts';
import { Budget } from './budget.ts';
import { plainDouble } from './format-double.ts';
import { compileProgram } from './program.ts';
import { RULE_COST_MAX } from './rule.ts';
import { fromDynamic } from './schema-values.ts';
import { DYN, spellType } from './types.ts';
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

/** A compiled expression over variables of unknown type, for webhooks' match conditions and the like. */
export interface Expression {
  /** The type of the result where it is known (`bool`), else `dyn`. */
  readonly type: string;
  /**
   * Evaluates. Variables without a value are null. Throws an Error that says why where evaluation fails, also where
   * it costs too much.
   */
  evaluate(bindings: Readonly<Record<string, Json | undefined>>): Json;
}

/** Compiles an expression over the named variables. Throws a CompileError that lists what is wrong. */
export function compileExpression(text: string, variables: readonly string[]): Expression {
  const program = compileProgram(
    text,
    variables.map((name) => ({ name, type: DYN })),
  );
  return {
    type: spellType(program.type),
    evaluate(bindings) {
      const values = variables.map((name) => fromDynamic(bindings[name] ?? null));
      return toJson(program.run(values, new Budget(RULE_COST_MAX)));
    },
  };
}

function toJson(value: Value): Json {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'object' || value === null) return value;
  if (value instanceof ListValue) {
    return Array.from({ length: value.size }, (_, index) => toJson(value.at(index)));
  }
  if (value instanceof MapValue) {
    const object = {};
    for (const key of value.keys()) {
      const name = toJson(key);
      setOwn(object, typeof name === 'string' ? name : JSON.stringify(name), toJson(value.get(key) ?? null));
    }
    return object;
  }
  if (value instanceof Uint) return Number(value.value);
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  if (value instanceof Timestamp) return formatRfc3339(value.nanoseconds);
  if (value instanceof Duration) return `${plainDouble(Number(value.nanoseconds) / 1e9)}s`;
  if (value instanceof OptionalValue) return value.value === undefined ? null : toJson(value.value);
  if (value instanceof TypeValue) return value.name;
  return value instanceof OpaqueValue ? value.typeName : null;
}
