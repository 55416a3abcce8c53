import { type FieldError, invalid } from '../../field-error.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { enumeration, int32, int64, intOrString, listMap, map, message, time } from '../../schema.ts';
import { ageColumn, column, countColumn, nameColumn } from '../columns.ts';
import { ensureObject, type Fields, has, objectAt } from '../core/fields.ts';
import { builtin, condition, labelSelector, objectSchema } from '../meta.ts';
import { intOrPercentErrors, labelSelectorErrors, nonNegativeErrors, percentLimitErrors } from '../validation.ts';

const POLICY = 'io.k8s.api.policy.v1';

const podDisruptionBudgetSpec = message(`${POLICY}.PodDisruptionBudgetSpec`, 'The wanted limit.', {
  minAvailable: [1, intOrString(), 'Pods that have to stay available after an eviction, as a number or a percentage.'],
  selector: [
    2,
    { ...labelSelector, 'x-kubernetes-patch-strategy': 'replace' },
    'The pods that the budget covers; an empty selector covers all of the namespace, none covers nothing.',
  ],
  maxUnavailable: [3, intOrString(), 'Pods that may be unavailable after an eviction, as a number or a percentage.'],
  unhealthyPodEvictionPolicy: [
    4,
    enumeration(['AlwaysAllow', 'IfHealthyBudget'], { pointer: true }),
    'IfHealthyBudget or AlwaysAllow: when pods that are not ready may be evicted.',
  ],
});

const podDisruptionBudgetStatus = message(
  `${POLICY}.PodDisruptionBudgetStatus`,
  'What the budget allows now.',
  {
    observedGeneration: [1, int64(), 'The generation that the controller has acted on.'],
    disruptedPods: [
      2,
      map(time()),
      'Pods whose eviction was granted and has not been seen to happen, with the time of the grant.',
    ],
    disruptionsAllowed: [3, int32(), 'How many evictions are allowed now.'],
    currentHealthy: [4, int32(), 'Pods that are healthy now.'],
    desiredHealthy: [5, int32(), 'Pods that have to stay healthy.'],
    expectedPods: [6, int32(), 'Pods that the budget counts.'],
    conditions: [7, listMap(['type'], condition), 'Aspects of the current state, one of each type.'],
  },
  { required: ['disruptionsAllowed', 'currentHealthy', 'desiredHealthy', 'expectedPods'] },
);

const podDisruptionBudget = objectSchema(
  `${POLICY}.PodDisruptionBudget`,
  'How many of a set of pods may be taken away on purpose at the same time.',
  {
    spec: [2, podDisruptionBudgetSpec, 'What is asked for.'],
    status: [3, podDisruptionBudgetStatus, 'What was observed.'],
  },
);

function specErrors(spec: Fields | undefined): FieldError[] {
  const errors = labelSelectorErrors(objectAt(spec, 'selector'), 'spec.selector');
  if (has(spec, 'minAvailable') && has(spec, 'maxUnavailable')) {
    errors.unshift(invalid('spec', spec, 'minAvailable and maxUnavailable cannot be both set'));
  }
  for (const field of ['minAvailable', 'maxUnavailable']) {
    const path = `spec.${field}`;
    errors.push(...intOrPercentErrors(spec?.[field], path), ...percentLimitErrors(spec?.[field], path));
  }
  return errors;
}

/** A limit as it was written, or that there is none. */
function limitText(spec: Fields | undefined, field: string): string {
  const value = spec?.[field];
  return typeof value === 'string' || typeof value === 'number' ? String(value) : 'N/A';
}

/** policy/v1 PodDisruptionBudget. */
export const podDisruptionBudgetDefinition: ResourceDefinition = builtin({
  group: 'policy',
  version: 'v1',
  plural: 'poddisruptionbudgets',
  kind: 'PodDisruptionBudget',
  namespaced: true,
  needsResourceVersion: true,
  shortNames: ['pdb'],
  schema: podDisruptionBudget,
  hasStatus: true,
  hasGeneration: true,
  columns: [
    nameColumn,
    column('Min Available', 'string', 'Pods that have to stay available.', (spec) => limitText(spec, 'minAvailable')),
    column('Max Unavailable', 'string', 'Pods that may be unavailable.', (spec) => limitText(spec, 'maxUnavailable')),
    countColumn('Allowed Disruptions', 'Evictions that are allowed now.', 'disruptionsAllowed'),
    ageColumn,
  ],
  strategy: {
    applyDefaults(object) {
      ensureObject(object, 'spec');
    },
    prepareForCreate(object) {
      object.status = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
    },
    validate: (object) => specErrors(objectAt(object, 'spec')),
    validateStatusUpdate: (object) =>
      nonNegativeErrors(
        objectAt(object, 'status'),
        'status',
        'disruptionsAllowed',
        'currentHealthy',
        'desiredHealthy',
        'expectedPods',
      ),
  },
});
