import { invalid, tooLong, typeInvalid } from '../../api/field-error.ts';
import type { Schema } from '../../api/schema.ts';
import { formatCheck } from './formats.ts';
import { compilePattern } from './pattern.ts';
import type { ValidationContext } from './validation-context.ts';

type StringCheck = (value: string, context: ValidationContext) => void;
type NumberCheck = (value: number, context: ValidationContext) => void;

/** Length, pattern and format of strings. The first of length and pattern that fails is reported, as in Kubernetes. */
export function compileStringCheck(schema: Schema, builtin: boolean): StringCheck | undefined {
  const { maxLength, minLength, pattern, format } = schema;
  const matches = pattern === undefined || pattern === '' ? undefined : compilePattern(pattern);
  const isOfFormat = format === undefined ? undefined : formatCheck(format, builtin);
  if (maxLength === undefined && minLength === undefined && !matches && !isOfFormat) return undefined;
  return (value, context) => {
    if (maxLength !== undefined && isLongerThan(value, maxLength)) context.add(tooLong(context.field, maxLength));
    else if (minLength !== undefined && minLength > 0 && !isLongerThan(value, minLength - 1)) {
      const { field } = context;
      context.add(invalid(field, value, `${field} in body should be at least ${minLength} chars long`));
    } else if (matches && !context.affords(matches.stepsFor(value))) {
      const { field } = context;
      context.add(invalid(field, value, `${field} in body is too long to be matched with '${pattern}'`));
    } else if (matches && !matches.test(value)) {
      const { field } = context;
      context.add(invalid(field, value, `${field} in body should match '${pattern}'`));
    }
    if (isOfFormat && !isOfFormat(value)) {
      const { field } = context;
      context.add(typeInvalid(field, value, `${field} in body must be of type ${format}: ${JSON.stringify(value)}`));
    }
  };
}

/** Lengths count code points; most strings are decided by their UTF-16 length alone. */
function isLongerThan(value: string, limit: number): boolean {
  if (value.length <= limit) return false;
  if (value.length > limit * 2) return true;
  let count = 0;
  for (const _ of value) count++;
  return count > limit;
}

/** Range and step of numbers. Formats bound built-in integers only: Kubernetes ignores them in custom resources. */
export function compileNumberCheck(schema: Schema, builtin: boolean): NumberCheck | undefined {
  const checks: NumberCheck[] = [];
  const { multipleOf, minimum, maximum } = schema;
  if (builtin && schema.type === 'integer' && schema.format === 'int32') checks.push(checkInt32);
  if (multipleOf !== undefined && multipleOf > 0) {
    checks.push((value, context) => {
      if (!isMultiple(value, multipleOf)) report(context, value, `should be a multiple of ${multipleOf}`);
    });
  }
  if (minimum !== undefined) {
    const isExclusive = schema.exclusiveMinimum === true;
    const relation = isExclusive ? 'greater than' : 'greater than or equal to';
    checks.push((value, context) => {
      if (isExclusive ? value <= minimum : value < minimum) report(context, value, `should be ${relation} ${minimum}`);
    });
  }
  if (maximum !== undefined) {
    const isExclusive = schema.exclusiveMaximum === true;
    const relation = isExclusive ? 'less than' : 'less than or equal to';
    checks.push((value, context) => {
      if (isExclusive ? value >= maximum : value > maximum) report(context, value, `should be ${relation} ${maximum}`);
    });
  }
  if (checks.length === 0) return undefined;
  if (checks.length === 1) return checks[0];
  return (value, context) => {
    for (const check of checks) check(value, context);
  };
}

function report(context: ValidationContext, value: number, detail: string): void {
  const { field } = context;
  context.add(invalid(field, value, `${field} in body ${detail}`));
}

const INT32_MAX = 2 ** 31 - 1;

function checkInt32(value: number, context: ValidationContext): void {
  if (value > INT32_MAX || value < -INT32_MAX - 1) report(context, value, 'must be of type int32');
}

/** Relative error that a quotient of doubles may carry. */
const QUOTIENT_TOLERANCE = 1e-9;

function isMultiple(value: number, factor: number): boolean {
  if (Number.isInteger(value) && Number.isInteger(factor)) return value % factor === 0;
  const quotient = factor < 1 ? (1 / factor) * value : value / factor;
  const distance = Math.abs(quotient - Math.round(quotient));
  return Number.isFinite(quotient) && distance <= QUOTIENT_TOLERANCE * Math.max(1, Math.abs(quotient));
}
