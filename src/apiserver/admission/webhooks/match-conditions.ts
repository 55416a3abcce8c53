import type { Json } from '../../../api/meta.ts';
import { compileExpression, type Expression } from '../../../machinery/cel/expression.ts';
import type { AdmissionAttributes } from '../../registry/contract.ts';
import type { CompiledWebhook, MatchCondition } from './configuration.ts';
import { reviewRequest } from './review.ts';
import type { Invocation } from './source.ts';
import { convert } from './versions.ts';

/** Match conditions: CEL expressions that can spare a webhook a request. */

/** Whether the webhook wants the request, or why that cannot be told. */
export type Verdict = { readonly matches: boolean } | { readonly error: string };

type Condition = { readonly expression: Expression } | { readonly error: string };

/** What a condition can look at. */
export const CONDITION_VARIABLES = ['object', 'oldObject', 'request'];

const compiledConditions = new WeakMap<CompiledWebhook, readonly Condition[]>();

/** Evaluates all conditions: one that is false spares the webhook whatever the others do; a failure is the policy's affair. */
export function evaluateMatchConditions(invocation: Invocation, attributes: AdmissionAttributes): Verdict {
  const { compiled } = invocation;
  if ((compiled.webhook.matchConditions ?? []).length === 0) return { matches: true };
  const bindings = bindingsFor(invocation, attributes);
  const errors: string[] = [];
  for (const condition of conditionsOf(compiled)) {
    const outcome = evaluate(condition, bindings);
    if (outcome === false) return { matches: false };
    if (outcome !== true) errors.push(outcome.error);
  }
  if (errors.length === 0) return { matches: true };
  if (compiled.failsOpen) return { matches: false };
  return { error: errors.length === 1 ? (errors[0] ?? '') : `[${errors.join(', ')}]` };
}

function evaluate(condition: Condition, bindings: Record<string, Json | undefined>): boolean | { error: string } {
  if ('error' in condition) return condition;
  try {
    const value = condition.expression.evaluate(bindings);
    return typeof value === 'boolean' ? value : { error: `expected a bool, got ${JSON.stringify(value)}` };
  } catch (error) {
    return { error: (error as Error).message };
  }
}

/** Compiled when first needed, and then kept as long as the configuration does not change. */
function conditionsOf(compiled: CompiledWebhook): readonly Condition[] {
  let conditions = compiledConditions.get(compiled);
  if (!conditions) {
    conditions = (compiled.webhook.matchConditions ?? []).map(compile);
    compiledConditions.set(compiled, conditions);
  }
  return conditions;
}

function compile({ expression }: MatchCondition): Condition {
  try {
    return { expression: compileExpression(expression, CONDITION_VARIABLES) };
  } catch (error) {
    return { error: `compilation error: ${(error as Error).message}` };
  }
}

function bindingsFor(invocation: Invocation, attributes: AdmissionAttributes): Record<string, Json | undefined> {
  const { object, oldObject, target } = attributes;
  const shown = (each: typeof object): Json | undefined =>
    each && (convert(each, target.definition, invocation.definition) as unknown as Json);
  return {
    object: shown(object),
    oldObject: shown(oldObject),
    request: reviewRequest(invocation, attributes) as unknown as Json,
  };
}
