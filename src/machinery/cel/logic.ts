import { EvaluationError, evaluationError } from './budget.ts';
import type { Frame, Run, Typed } from './frame.ts';
import { BOOL, isAny, join, spellType, type Type } from './types.ts';
import type { Value } from './values.ts';

/** The operators that do not evaluate all their operands. A text says why the operands do not fit. */

/** `&&` and `||` over any number of operands. */
export function compileLogical(op: 'and' | 'or', operands: readonly Typed[]): Typed | string {
  if (!operands.every((operand) => isTruth(operand.type))) {
    const types = operands.slice(0, 2).map((operand) => spellType(operand.type));
    return `found no matching overload for '${op === 'and' ? '_&&_' : '_||_'}' applied to '(${types.join(', ')})'`;
  }
  const runs = operands.map((operand) => operand.run);
  const decisive = op === 'or';
  return { type: BOOL, run: (frame) => decide(runs, decisive, frame) };
}

/** `condition ? whenTrue : whenFalse`. */
export function compileConditional(condition: Typed, whenTrue: Typed, whenFalse: Typed): Typed | string {
  const type = join(whenTrue.type, whenFalse.type);
  if (type === undefined || !isTruth(condition.type)) {
    const types = [condition, whenTrue, whenFalse].map((part) => spellType(part.type));
    return `found no matching overload for '_?_:_' applied to '(${types.join(', ')})'`;
  }
  return {
    type,
    run: (frame) => {
      const truth = condition.run(frame);
      if (typeof truth !== 'boolean') throw evaluationError('no such overload');
      return truth ? whenTrue.run(frame) : whenFalse.run(frame);
    },
  };
}

function isTruth(type: Type): boolean {
  return type.kind === 'bool' || isAny(type);
}

/** An operand that decides wins over the failure of another. */
function decide(runs: readonly Run[], decisive: boolean, frame: Frame): Value {
  let failure: EvaluationError | undefined;
  for (const run of runs) {
    try {
      const truth = run(frame);
      if (truth === decisive) return decisive;
      if (typeof truth !== 'boolean') failure ??= evaluationError('no such overload');
    } catch (error) {
      if (!(error instanceof EvaluationError)) throw error;
      failure ??= error;
    }
  }
  if (failure) throw failure;
  return !decisive;
}
