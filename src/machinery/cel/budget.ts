/**
 * What an evaluation may cost. Every step of a program pays, in units of about one simple operation, so that no rule
 * on no object can keep the server busy; who runs out is stopped, and nothing in the expression can catch that.
 */
export class Budget {
  #remaining: number;

  constructor(units: number) {
    this.#remaining = units;
  }

  get remaining(): number {
    return this.#remaining;
  }

  /** Pays, or throws a BudgetExceeded. */
  spend(units: number): void {
    this.#remaining -= units;
    if (this.#remaining < 0) throw new BudgetExceeded('operation cancelled: actual cost limit exceeded');
  }
}

/** The program was stopped because it cost too much. */
export class BudgetExceeded extends Error {
  override readonly name = 'BudgetExceeded';
}

/** Characters that cost one unit to walk, as in cel-go. */
export const CHARACTERS_PER_UNIT = 10;

/** An evaluation that failed: a missing key, an overflow, an argument of the wrong type. */
export class EvaluationError extends Error {
  override readonly name: string = 'EvaluationError';
}

/**
 * An EvaluationError without a stack trace: macros and logical operators absorb errors item by item, and the trace
 * would cost more than the evaluation.
 */
export function evaluationError(message: string): EvaluationError {
  const error = Object.create(EvaluationError.prototype) as EvaluationError;
  Object.defineProperties(error, { name: { value: 'EvaluationError' }, message: { value: message } });
  return error;
}
