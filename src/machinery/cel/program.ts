import { type Budget, EvaluationError } from './budget.ts';
import { Compiler } from './compiler.ts';
import type { Frame, Run } from './frame.ts';
import { parse } from './parser.ts';
import { Scope } from './scope.ts';
import type { Type } from './types.ts';
import type { Value } from './values.ts';

/**
 * CEL, as Kubernetes has it: an expression is parsed, checked against the types of its variables and compiled to
 * closures, in one pass over its syntax tree. A program that compiles can still fail at evaluation, but only in ways
 * that types do not show (missing keys, overflows, dyn).
 *
 * Why an interpreter of our own: rules need the types of the schema they stand in, pay for every step so that none
 * can stall the server, and match regular expressions in linear time. The libraries at hand have a global cache of
 * types, no budget, and JavaScript's regular expressions.
 */

export interface Variable {
  readonly name: string;
  readonly type: Type;
}

export interface Program {
  /** The type of the result. */
  readonly type: Type;
  /** Which of the variables the expression refers to. */
  readonly uses: ReadonlySet<string>;
  /** Evaluates with the variables' values, in the order they were declared. Throws EvaluationError or BudgetExceeded. */
  run(values: readonly (Value | undefined)[], budget: Budget): Value;
}

/** Compiles an expression over declared variables; throws a CompileError that lists what is wrong. */
export function compileProgram(source: string, variables: readonly Variable[]): Program {
  const compiler = new Compiler(source);
  const scope = new Scope();
  for (const variable of variables) scope.declare(variable.name, variable.type, compiler.newSlot());
  const { type, run } = compiler.compile(parse(source), scope);
  compiler.finish();
  return {
    type,
    uses: compiler.uses,
    run: (values, budget) => guarded(run, { slots: [...values], budget }),
  };
}

/** What the engine itself throws (a string too long, a stack too deep) is the expression's failure, not ours. */
function guarded(run: Run, frame: Frame): Value {
  try {
    return run(frame);
  } catch (error) {
    if (error instanceof RangeError || error instanceof TypeError) {
      throw new EvaluationError(`evaluation failed: ${error.message}`, { cause: error });
    }
    throw error;
  }
}
