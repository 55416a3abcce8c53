import { child, entry, type FieldError, invalid, notSupported, required } from '../../api/field-error.ts';
import type { Schema, ValidationRule } from '../../api/schema.ts';
import { normalizeFieldPath } from './field-path.ts';
import { compileRule } from './rule.ts';
import { compileRules } from './rules.ts';
import { resourceForRules, typeOfSchema } from './schema-types.ts';

/** What is wrong with the rules of a CRD's schema: their form, their expressions, where they may look back. */

const REASONS = ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'];

/** Errors of all rules in a schema that is otherwise structural. */
export function ruleErrors(schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  check(resourceForRules(schema), path, undefined, errors);
  if (errors.length === 0) checkDefaults(schema, path, errors);
  return errors;
}

/** `uncorrelatable` is the path of the outermost list whose items have no past. */
function check(given: Schema, path: string, uncorrelatable: string | undefined, errors: FieldError[]): void {
  const schema = given['x-kubernetes-embedded-resource'] === true ? resourceForRules(given) : given;
  for (const [index, rule] of (schema['x-kubernetes-validations'] ?? []).entries()) {
    const at = child(child(path, 'x-kubernetes-validations'), index);
    const malformed = formErrors(rule, schema, at);
    errors.push(...(malformed.length > 0 ? malformed : expressionErrors(rule, schema, at, uncorrelatable)));
  }
  if (typeof schema.additionalProperties === 'object') {
    check(schema.additionalProperties, child(path, 'additionalProperties'), uncorrelatable, errors);
  }
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    check(property, entry(child(path, 'properties'), field), uncorrelatable, errors);
  }
  if (schema.items) {
    const isKeyed = schema['x-kubernetes-list-type'] === 'map';
    check(schema.items, child(path, 'items'), uncorrelatable ?? (isKeyed ? undefined : path), errors);
  }
}

function formErrors(rule: ValidationRule, schema: Schema, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const text = (rule.rule ?? '').trim();
  const message = rule.message?.trim();
  if (text === '') errors.push(required(child(path, 'rule'), 'rule is not specified'));
  else if (rule.message && message === '') {
    errors.push(invalid(child(path, 'message'), rule.message, 'must be non-empty if specified'));
  } else if (message && hasNewlines(message)) {
    errors.push(invalid(child(path, 'message'), rule.message, 'must not contain line breaks'));
  } else if (hasNewlines(text) && !message) {
    errors.push(required(child(path, 'message'), 'message must be specified if rule contains line breaks'));
  }
  if (rule.messageExpression && rule.messageExpression.trim() === '') {
    const detail = 'messageExpression must be non-empty if specified';
    errors.push(required(child(path, 'messageExpression'), detail));
  }
  if (rule.reason !== undefined && !REASONS.includes(rule.reason)) {
    errors.push(notSupported(child(path, 'reason'), rule.reason, REASONS));
  }
  const { fieldPath } = rule;
  if (fieldPath && fieldPath.trim() === '') {
    errors.push(invalid(child(path, 'fieldPath'), fieldPath, 'must be non-empty if specified'));
  }
  if (fieldPath && hasNewlines(fieldPath)) {
    errors.push(invalid(child(path, 'fieldPath'), fieldPath, 'must not contain line breaks'));
  }
  if (fieldPath && normalizeFieldPath(fieldPath, schema) === undefined) {
    errors.push(invalid(child(path, 'fieldPath'), fieldPath, 'must be a valid path'));
  }
  return errors;
}

function hasNewlines(text: string): boolean {
  return /[\n\r]/.test(text);
}

function expressionErrors(
  rule: ValidationRule,
  schema: Schema,
  path: string,
  uncorrelatable: string | undefined,
): FieldError[] {
  const type = typeOfSchema(schema);
  if (type === undefined) {
    return [invalid(child(path, 'rule'), rule.rule, 'rules need a schema that says what the value is')];
  }
  const compiled = compileRule(rule, schema, type);
  const errors: FieldError[] = [];
  if (compiled.programError !== undefined) {
    errors.push(invalid(child(path, 'rule'), wholeRule(rule), compiled.programError));
  }
  if (compiled.messageError !== undefined) {
    errors.push(invalid(child(path, 'messageExpression'), wholeRule(rule), compiled.messageError));
  }
  if (compiled.usesOldSelf && uncorrelatable !== undefined) {
    const detail = `oldSelf cannot be used on the uncorrelatable portion of the schema within ${uncorrelatable}`;
    errors.push(invalid(child(path, 'rule'), rule.rule, detail));
  }
  if (compiled.program && !compiled.usesOldSelf && rule.optionalOldSelf !== undefined) {
    const detail = 'may not be set if oldSelf is not used in rule';
    errors.push(invalid(child(path, 'optionalOldSelf'), rule.optionalOldSelf, detail));
  }
  return errors;
}

/** A rule as Kubernetes shows it where it does not compile: all of it, by the names of its own fields. */
function wholeRule(rule: ValidationRule): object {
  return {
    Rule: rule.rule,
    Message: rule.message ?? '',
    MessageExpression: rule.messageExpression ?? '',
    Reason: rule.reason ?? null,
    FieldPath: rule.fieldPath ?? '',
    OptionalOldSelf: rule.optionalOldSelf ?? null,
  };
}

/** Defaults must satisfy the rules too, both as what is there and as what has just appeared. */
function checkDefaults(schema: Schema, path: string, errors: FieldError[]): void {
  if (schema.default !== undefined) {
    const rules = compileRules(schema, false);
    const found = rules
      ? [...rules.validate(schema.default, undefined), ...rules.validate(schema.default, schema.default)]
      : [];
    const [first] = found;
    if (first) errors.push({ ...first, field: joined(child(path, 'default'), first.field) });
  }
  if (schema.items) checkDefaults(schema.items, child(path, 'items'), errors);
  for (const [field, property] of Object.entries(schema.properties ?? {})) {
    checkDefaults(property, entry(child(path, 'properties'), field), errors);
  }
}

function joined(path: string, below: string): string {
  return below === '' || below.startsWith('[') ? path + below : `${path}.${below}`;
}
