import { type FieldError, invalid, notSupported, required } from '../../field-error.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { int32, int64, intOrString, listMap, message, str, time } from '../../schema.ts';
import { ageColumn, column, containerColumns, countColumn, nameColumn, selectorColumn } from '../columns.ts';
import { ensureObject, type Fields, objectAt, setDefault, textAt } from '../core/fields.ts';
import { labelsText } from '../core/labels-text.ts';
import { podTemplateSpec } from '../core/pod-template.ts';
import { builtin, labelSelector, objectSchema } from '../meta.ts';
import {
  immutableErrors,
  intOrPercentErrors,
  intOrPercentValue,
  nonNegativeErrors,
  percentLimitErrors,
} from '../validation.ts';
import { APPS, countErrors, selectorErrors, specWithTemplateDefaults, templateErrors } from './workload.ts';

const rollingUpdateDaemonSet = message(`${APPS}.RollingUpdateDaemonSet`, 'How a rolling update goes on.', {
  maxUnavailable: [1, intOrString(), 'Pods that may be missing during the update, as a number or a percentage.'],
  maxSurge: [2, intOrString(), 'Nodes that may run an old and a new pod at once, as a number or a percentage.'],
});

const daemonSetUpdateStrategy = message(
  `${APPS}.DaemonSetUpdateStrategy`,
  'How pods are replaced when the template changes.',
  {
    type: [1, str(), 'RollingUpdate or OnDelete.'],
    rollingUpdate: [2, rollingUpdateDaemonSet, 'Parameters of a rolling update.'],
  },
);

const daemonSetSpec = message(
  `${APPS}.DaemonSetSpec`,
  'The wanted state of a DaemonSet.',
  {
    selector: [
      1,
      labelSelector,
      'Which pods belong to this DaemonSet; it has to match the template and cannot change.',
    ],
    template: [2, podTemplateSpec, 'What the pods look like.'],
    updateStrategy: [3, daemonSetUpdateStrategy, 'How pods are replaced when the template changes.'],
    minReadySeconds: [4, int32(), 'Seconds for which a new pod has to be ready before it counts as available.'],
    revisionHistoryLimit: [6, int32({ pointer: true }), 'How many old revisions are kept for a rollback.'],
  },
  { required: ['selector', 'template'] },
);

const daemonSetCondition = message(
  `${APPS}.DaemonSetCondition`,
  "One aspect of a DaemonSet's state.",
  {
    type: [1, str(), 'What aspect this is.'],
    status: [2, str(), 'True, False or Unknown.'],
    lastTransitionTime: [3, time(), 'When the status last changed.'],
    reason: [4, str(), 'One word for the cause.'],
    message: [5, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

const daemonSetStatus = message(
  `${APPS}.DaemonSetStatus`,
  'The observed state of a DaemonSet.',
  {
    currentNumberScheduled: [1, int32(), 'Nodes that run a pod and should.'],
    numberMisscheduled: [2, int32(), 'Nodes that run a pod and should not.'],
    desiredNumberScheduled: [3, int32(), 'Nodes that should run a pod.'],
    numberReady: [4, int32(), 'Nodes whose pod is ready.'],
    observedGeneration: [5, int64(), 'The generation that the controller has acted on.'],
    updatedNumberScheduled: [6, int32(), 'Nodes whose pod is of the newest template.'],
    numberAvailable: [7, int32(), 'Nodes whose pod has been ready for minReadySeconds.'],
    numberUnavailable: [8, int32(), 'Nodes that should have an available pod and have none.'],
    collisionCount: [9, int32({ pointer: true }), 'How often a name derived from the template was already taken.'],
    conditions: [10, listMap(['type'], daemonSetCondition), 'Aspects of the current state, one of each type.'],
  },
  { required: ['currentNumberScheduled', 'numberMisscheduled', 'desiredNumberScheduled', 'numberReady'] },
);

const daemonSet = objectSchema(`${APPS}.DaemonSet`, 'Runs one pod on each of a set of nodes.', {
  spec: [2, daemonSetSpec, 'What is asked for.'],
  status: [3, daemonSetStatus, 'What was observed.'],
});

function updateStrategyErrors(strategy: Fields | undefined): FieldError[] {
  const type = textAt(strategy, 'type');
  if (type === 'OnDelete') return [];
  if (type !== 'RollingUpdate') return [notSupported('spec.updateStrategy', strategy, ['RollingUpdate', 'OnDelete'])];
  const path = 'spec.updateStrategy.rollingUpdate';
  const { maxUnavailable, maxSurge } = objectAt(strategy, 'rollingUpdate') ?? {};
  const errors = [
    ...intOrPercentErrors(maxUnavailable, `${path}.maxUnavailable`),
    ...intOrPercentErrors(maxSurge, `${path}.maxSurge`),
    ...percentLimitErrors(maxUnavailable, `${path}.maxUnavailable`),
    ...percentLimitErrors(maxSurge, `${path}.maxSurge`),
  ];
  const hasUnavailable = intOrPercentValue(maxUnavailable) !== 0;
  const hasSurge = intOrPercentValue(maxSurge) !== 0;
  if (hasUnavailable && hasSurge) {
    errors.push(invalid(`${path}.maxSurge`, maxSurge, 'may not be set when maxUnavailable is non-zero'));
  } else if (!hasUnavailable && !hasSurge) {
    errors.push(required(`${path}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'));
  }
  return errors;
}

/** apps/v1 DaemonSet. */
export const daemonSetDefinition: ResourceDefinition = builtin({
  group: 'apps',
  version: 'v1',
  plural: 'daemonsets',
  kind: 'DaemonSet',
  namespaced: true,
  shortNames: ['ds'],
  categories: ['all'],
  schema: daemonSet,
  hasStatus: true,
  hasGeneration: true,
  columns: [
    nameColumn,
    countColumn('Desired', 'Nodes that should run a pod.', 'desiredNumberScheduled'),
    countColumn('Current', 'Nodes that run a pod and should.', 'currentNumberScheduled'),
    countColumn('Ready', 'Nodes whose pod is ready.', 'numberReady'),
    countColumn('Up-to-date', 'Nodes whose pod is of the newest template.', 'updatedNumberScheduled'),
    countColumn('Available', 'Nodes whose pod is available.', 'numberAvailable'),
    column('Node Selector', 'string', 'Labels of the nodes that should run a pod.', (spec) =>
      labelsText(objectAt(objectAt(spec, 'template'), 'spec'), 'nodeSelector'),
    ),
    ageColumn,
    ...containerColumns(),
    selectorColumn,
  ],
  strategy: {
    applyDefaults(object) {
      const spec = specWithTemplateDefaults(object);
      if (spec === undefined) return;
      setDefault(spec, 'revisionHistoryLimit', 10);
      const strategy = ensureObject(spec, 'updateStrategy');
      if (strategy === undefined) return;
      setDefault(strategy, 'type', 'RollingUpdate');
      const rollingUpdate = strategy['type'] === 'RollingUpdate' ? ensureObject(strategy, 'rollingUpdate') : undefined;
      if (rollingUpdate === undefined) return;
      setDefault(rollingUpdate, 'maxUnavailable', 1);
      setDefault(rollingUpdate, 'maxSurge', 0);
    },
    prepareForCreate(object) {
      object.status = { currentNumberScheduled: 0, numberMisscheduled: 0, desiredNumberScheduled: 0, numberReady: 0 };
    },
    validate(object) {
      const spec = objectAt(object, 'spec');
      return [
        ...nonNegativeErrors(spec, 'spec', 'minReadySeconds', 'revisionHistoryLimit'),
        ...selectorErrors(spec, 'daemonset'),
        ...templateErrors(objectAt(spec, 'template'), 'DaemonSet'),
        ...updateStrategyErrors(objectAt(spec, 'updateStrategy')),
      ];
    },
    validateUpdate: (object, old) =>
      immutableErrors(objectAt(object, 'spec')?.['selector'], objectAt(old, 'spec')?.['selector'], 'spec.selector'),
    validateStatusUpdate: (object) =>
      countErrors(
        objectAt(object, 'status'),
        [
          'currentNumberScheduled',
          'numberMisscheduled',
          'desiredNumberScheduled',
          'numberReady',
          'updatedNumberScheduled',
          'numberAvailable',
          'numberUnavailable',
        ],
        [],
      ),
  },
});
