import type { ManagedFieldsEntry, ObjectMeta } from './meta.ts';

/** The condition by which a pod is told why it is about to be deleted, and since when it says so. */

export const DISRUPTION_TARGET = 'DisruptionTarget';

const CONDITION_KEY = `k:{"type":"${DISRUPTION_TARGET}"}`;

/** The entries of those who said why. No other field tells when: a transition time survives a change of the reason. */
export function disruptionEntries({ managedFields = [] }: ObjectMeta): ManagedFieldsEntry[] {
  return managedFields.filter(({ fieldsV1 }) => {
    const condition = below(below(below(fieldsV1, 'f:status'), 'f:conditions'), CONDITION_KEY);
    return below(condition, 'f:reason') !== undefined;
  });
}

function below(value: unknown, key: string): unknown {
  const isObject = typeof value === 'object' && value !== null && Object.hasOwn(value, key);
  return isObject ? (value as Record<string, unknown>)[key] : undefined;
}
