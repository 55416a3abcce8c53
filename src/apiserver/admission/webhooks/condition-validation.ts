import { child, type FieldError, invalid } from '../../../api/field-error.ts';
import type { KubeObject } from '../../../api/meta.ts';
import type { ResourceDefinition } from '../../../api/resource.ts';
import { compileExpression } from '../../../machinery/cel/expression.ts';
import type { Webhook } from './configuration.ts';
import { CONDITION_VARIABLES } from './match-conditions.ts';

/** A kind of webhook configurations that refuses match conditions which could never be evaluated. */
export function withConditionValidation(definition: ResourceDefinition): ResourceDefinition {
  const { strategy } = definition;
  return {
    ...definition,
    strategy: {
      ...strategy,
      validate: (object, old) => [...(strategy?.validate?.(object, old) ?? []), ...conditionErrors(object)],
    },
  };
}

function conditionErrors(configuration: KubeObject): FieldError[] {
  const { webhooks } = configuration as KubeObject & { readonly webhooks?: readonly Webhook[] };
  return (webhooks ?? []).flatMap(({ matchConditions = [] }, index) =>
    matchConditions.flatMap(({ expression }, position) => {
      const path = child(child(child('webhooks', index), 'matchConditions'), position);
      const complaint = complaintOf(expression);
      return complaint === undefined ? [] : [invalid(child(path, 'expression'), expression, complaint)];
    }),
  );
}

function complaintOf(expression: string): string | undefined {
  // The kind itself says that it is missing.
  if (expression.trim() === '') return undefined;
  try {
    const { type } = compileExpression(expression, CONDITION_VARIABLES);
    return type === 'bool' || type === 'dyn' ? undefined : `must evaluate to bool but got ${type}`;
  } catch (error) {
    return `compilation failed: ${(error as Error).message}`;
  }
}
