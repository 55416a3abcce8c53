import { duplicate, type FieldError, forbidden, invalid, required } from '../../api/field-error.ts';
import type { Schema, ValidationRule } from '../../api/schema.ts';
import { Budget, BudgetExceeded, EvaluationError } from './budget.ts';
import { normalizeFieldPath } from './field-path.ts';
import { compileProgram, type Program } from './program.ts';
import { optionalOf, type Type } from './types.ts';
import { OptionalValue, type Value } from './values.ts';

/** What one rule may cost on one value: about a tenth of a second at worst, as in Kubernetes. */
export const RULE_COST_MAX = 1_000_000;
/** Longest message that a messageExpression may make. */
const MESSAGE_BYTES_MAX = 5 * 1024;

/** One rule, compiled for the type of its `self`. */
export interface CompiledRule {
  readonly rule: ValidationRule;
  /** Undefined where the rule does not compile. */
  readonly program: Program | undefined;
  readonly programError: string | undefined;
  readonly message: Program | undefined;
  readonly messageError: string | undefined;
  /** Transition rules: they need an old value. */
  readonly usesOldSelf: boolean;
  readonly fieldPath: string;
}

/** What a rule is evaluated on. */
export interface RuleSubject {
  readonly self: Value;
  readonly oldSelf: Value | undefined;
  readonly path: string;
  /** The schema's type, which stands for the value in messages. */
  readonly typeName: string;
}

/** Compiles a rule of a schema node whose values are of type `self`. */
export function compileRule(rule: ValidationRule, schema: Schema, self: Type): CompiledRule {
  const oldSelf = rule.optionalOldSelf === true ? optionalOf(self) : self;
  const variables = [
    { name: 'self', type: self },
    { name: 'oldSelf', type: oldSelf },
  ];
  const [program, programError] = attempt(rule.rule, 'bool', 'cel expression must evaluate to a bool');
  const hasMessage = programError === undefined && (rule.messageExpression ?? '') !== '';
  const [message, messageError] = hasMessage
    ? attempt(rule.messageExpression ?? '', 'string', 'messageExpression must evaluate to a string')
    : [];
  return {
    rule,
    program,
    programError,
    message,
    messageError: messageError?.replace(/^compilation failed/, 'messageExpression compilation failed'),
    usesOldSelf: program?.uses.has('oldSelf') === true,
    fieldPath: normalizeFieldPath(rule.fieldPath ?? '', schema) ?? '',
  };

  function attempt(source: string, kind: string, mismatch: string): [Program?, string?] {
    try {
      const compiled = compileProgram(source, variables);
      return compiled.type.kind === kind ? [compiled] : [undefined, mismatch];
    } catch (error) {
      return [undefined, `compilation failed: ${(error as Error).message}`];
    }
  }
}

/** The rule as messages refer to it: its own message where it has one. */
function spellRule(rule: ValidationRule): string {
  return (rule.message?.trim() || rule.rule).trim();
}

export interface Verdict {
  readonly error: FieldError | undefined;
  readonly cost: number;
  /** Too costly: no further rule may run on this object. */
  readonly isOverBudget: boolean;
}

/** Evaluates a rule on a value within `units`. */
export function evaluateRule(compiled: CompiledRule, subject: RuleSubject, units: number): Verdict {
  const { rule, program } = compiled;
  const { path, typeName } = subject;
  const budget = new Budget(Math.min(units, RULE_COST_MAX));
  const start = budget.remaining;
  if (program === undefined) {
    const error = invalid(path, typeName, `rule compile error: ${compiled.programError ?? ''}`);
    return { error, cost: 0, isOverBudget: false };
  }
  const values = [subject.self, oldValue(rule, subject.oldSelf)];
  try {
    const isHeld = program.run(values, budget) === true;
    const error = isHeld ? undefined : failure(compiled, subject, messageOf(compiled, subject, budget));
    return { error, cost: start - budget.remaining, isOverBudget: false };
  } catch (error) {
    const isOverBudget = error instanceof BudgetExceeded;
    const detail = describe(error, rule, units < RULE_COST_MAX);
    return { error: invalid(path, typeName, detail), cost: start - budget.remaining, isOverBudget };
  }
}

function oldValue(rule: ValidationRule, oldSelf: Value | undefined): Value | undefined {
  if (rule.optionalOldSelf !== true) return oldSelf;
  return oldSelf === undefined ? OptionalValue.none : new OptionalValue(oldSelf);
}

function describe(error: unknown, rule: ValidationRule, isObjectBudget: boolean): string {
  const text = spellRule(rule);
  if (error instanceof BudgetExceeded) {
    return isObjectBudget
      ? 'validation failed due to running out of cost budget, no further validation rules will be run'
      : `'${error.message}': no further validation rules will be run due to call cost exceeds limit for rule: ${text}`;
  }
  if (!(error instanceof EvaluationError)) throw error;
  if (!error.message.startsWith('no such overload')) return `${error.message} evaluating rule: ${text}`;
  const detail = 'call arguments did not match a supported operator, function or macro signature for rule';
  return `'${error.message}': ${detail}: ${text}`;
}

/** The message of a failed rule: what its expression says, or failing that its own, or failing that the rule. */
function messageOf({ rule, message }: CompiledRule, subject: RuleSubject, budget: Budget): string {
  if (message !== undefined) {
    const made = attemptMessage(message, [subject.self, oldValue(rule, subject.oldSelf)], budget);
    if (made !== undefined) return made;
  }
  return rule.message?.trim() || `failed rule: ${spellRule(rule)}`;
}

function attemptMessage(program: Program, values: readonly (Value | undefined)[], budget: Budget): string | undefined {
  try {
    const result = program.run(values, budget);
    const text = typeof result === 'string' ? result.trim() : '';
    const isFit = text !== '' && !text.includes('\n') && Buffer.byteLength(text) <= MESSAGE_BYTES_MAX;
    return isFit ? text : undefined;
  } catch (error) {
    // A message that cannot be made does not hide that the rule failed; what costs too much still ends the run.
    if (error instanceof EvaluationError) return undefined;
    throw error;
  }
}

function failure({ rule, fieldPath }: CompiledRule, subject: RuleSubject, detail: string): FieldError {
  const path = fieldPath === '' ? subject.path : joined(subject.path, fieldPath);
  if (rule.reason === 'FieldValueForbidden') return forbidden(path, detail);
  if (rule.reason === 'FieldValueRequired') return required(path, detail);
  if (rule.reason === 'FieldValueDuplicate') return duplicate(path, subject.typeName);
  return invalid(path, subject.typeName, detail);
}

function joined(path: string, below: string): string {
  return path === '' || below.startsWith('[') ? path + below : `${path}.${below}`;
}
