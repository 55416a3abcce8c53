import { type FieldError, forbidden, invalid, notSupported } from '../../field-error.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { bool, int32, int64, intOrString, listMap, message, str, time } from '../../schema.ts';
import { ageColumn, column, containerColumns, nameColumn, selectorColumn } from '../columns.ts';
import { ensureObject, type Fields, has, numberAt, objectAt, setDefault, textAt } from '../core/fields.ts';
import { podTemplateSpec } from '../core/pod-template.ts';
import { builtin, labelSelector, objectSchema } from '../meta.ts';
import {
  immutableErrors,
  intOrPercentErrors,
  intOrPercentValue,
  nonNegativeErrors,
  percentLimitErrors,
} from '../validation.ts';
import {
  APPS,
  countErrors,
  scalePaths,
  scaleSubresource,
  selectorErrors,
  specWithTemplateDefaults,
  templateErrors,
} from './workload.ts';

const rollingUpdateDeployment = message(`${APPS}.RollingUpdateDeployment`, 'How a rolling update goes on.', {
  maxUnavailable: [1, intOrString(), 'Pods that may be missing during the update, as a number or a percentage.'],
  maxSurge: [
    2,
    intOrString(),
    'Pods that may exist beyond the wanted number during the update, as a number or a percentage.',
  ],
});

const deploymentStrategy = message(`${APPS}.DeploymentStrategy`, 'How old pods are replaced by new ones.', {
  type: [1, str(), 'Recreate or RollingUpdate.'],
  rollingUpdate: [2, rollingUpdateDeployment, 'Parameters of a rolling update; only for that type.'],
});

const deploymentSpec = message(
  `${APPS}.DeploymentSpec`,
  'The wanted state of a Deployment.',
  {
    replicas: [1, int32({ pointer: true }), 'How many pods are wanted.'],
    selector: [
      2,
      labelSelector,
      'Which pods belong to this Deployment; it has to match the template and cannot change.',
    ],
    template: [3, podTemplateSpec, 'What the pods look like.'],
    strategy: [
      4,
      { ...deploymentStrategy, 'x-kubernetes-patch-strategy': 'retainKeys' },
      'How old pods are replaced by new ones.',
    ],
    minReadySeconds: [5, int32(), 'Seconds for which a new pod has to be ready before it counts as available.'],
    revisionHistoryLimit: [6, int32({ pointer: true }), 'How many old revisions are kept for a rollback.'],
    paused: [7, bool(), 'Whether changes of the template are held back.'],
    progressDeadlineSeconds: [
      9,
      int32({ pointer: true }),
      'Seconds without progress after which the rollout counts as failed.',
    ],
  },
  { required: ['selector', 'template'] },
);

const deploymentCondition = message(
  `${APPS}.DeploymentCondition`,
  "One aspect of a Deployment's state.",
  {
    type: [1, str(), 'Available, Progressing or ReplicaFailure.'],
    status: [2, str(), 'True, False or Unknown.'],
    lastUpdateTime: [6, time(), 'When this was last written.'],
    lastTransitionTime: [7, time(), 'When the status last changed.'],
    reason: [4, str(), 'One word for the cause.'],
    message: [5, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

const deploymentStatus = message(`${APPS}.DeploymentStatus`, 'The observed state of a Deployment.', {
  observedGeneration: [1, int64(), 'The generation that the controller has acted on.'],
  replicas: [2, int32(), 'Pods that match the selector and are not terminating.'],
  updatedReplicas: [3, int32(), 'Of these, those of the newest template.'],
  readyReplicas: [7, int32(), 'Of these, those that are ready.'],
  availableReplicas: [4, int32(), 'Of these, those that have been ready for minReadySeconds.'],
  unavailableReplicas: [5, int32(), 'Pods that are still missing for full capacity.'],
  terminatingReplicas: [9, int32({ pointer: true }), 'Pods that are on their way out.'],
  conditions: [6, listMap(['type'], deploymentCondition), 'Aspects of the current state, one of each type.'],
  collisionCount: [8, int32({ pointer: true }), 'How often a name derived from the template was already taken.'],
});

const deployment = objectSchema(
  `${APPS}.Deployment`,
  'Keeps a number of like pods running and rolls out changes to them.',
  {
    spec: [2, deploymentSpec, 'What is asked for.'],
    status: [3, deploymentStatus, 'What was observed.'],
  },
);

function applyRollingUpdateDefaults(spec: { [field: string]: unknown }): void {
  const strategy = ensureObject(spec as never, 'strategy');
  if (strategy === undefined) return;
  setDefault(strategy, 'type', 'RollingUpdate');
  const rollingUpdate = strategy['type'] === 'RollingUpdate' ? ensureObject(strategy, 'rollingUpdate') : undefined;
  if (rollingUpdate === undefined) return;
  setDefault(rollingUpdate, 'maxUnavailable', '25%');
  setDefault(rollingUpdate, 'maxSurge', '25%');
}

function strategyErrors(strategy: Fields | undefined): FieldError[] {
  const type = textAt(strategy, 'type');
  const path = 'spec.strategy.rollingUpdate';
  if (type === 'Recreate') {
    const detail = "may not be specified when strategy `type` is 'Recreate'";
    return has(strategy, 'rollingUpdate') ? [forbidden(path, detail)] : [];
  }
  if (type !== 'RollingUpdate') return [notSupported('spec.strategy', strategy, ['Recreate', 'RollingUpdate'])];
  const { maxUnavailable, maxSurge } = objectAt(strategy, 'rollingUpdate') ?? {};
  const errors = [
    ...intOrPercentErrors(maxUnavailable, `${path}.maxUnavailable`),
    ...intOrPercentErrors(maxSurge, `${path}.maxSurge`),
    ...percentLimitErrors(maxUnavailable, `${path}.maxUnavailable`),
  ];
  if (intOrPercentValue(maxUnavailable) === 0 && intOrPercentValue(maxSurge) === 0) {
    errors.push(invalid(`${path}.maxUnavailable`, maxUnavailable, 'may not be 0 when `maxSurge` is 0'));
  }
  return errors;
}

function specErrors(spec: Fields | undefined): FieldError[] {
  const deadlineSeconds = numberAt(spec, 'progressDeadlineSeconds');
  const errors = [
    ...nonNegativeErrors(
      spec,
      'spec',
      'replicas',
      'minReadySeconds',
      'revisionHistoryLimit',
      'progressDeadlineSeconds',
    ),
    ...selectorErrors(spec, 'deployment'),
    ...templateErrors(objectAt(spec, 'template'), 'ReplicaSet'),
    ...strategyErrors(objectAt(spec, 'strategy')),
  ];
  if (deadlineSeconds !== undefined && deadlineSeconds <= (numberAt(spec, 'minReadySeconds') ?? 0)) {
    errors.push(invalid('spec.progressDeadlineSeconds', deadlineSeconds, 'must be greater than minReadySeconds'));
  }
  return errors;
}

/** apps/v1 Deployment. */
export const deploymentDefinition: ResourceDefinition = builtin({
  group: 'apps',
  version: 'v1',
  plural: 'deployments',
  kind: 'Deployment',
  namespaced: true,
  shortNames: ['deploy'],
  categories: ['all'],
  schema: deployment,
  hasStatus: true,
  hasGeneration: true,
  subresources: [scaleSubresource],
  scale: scalePaths,
  columns: [
    nameColumn,
    column('Ready', 'string', 'Pods that are ready, of those wanted.', (spec, status) => {
      return `${numberAt(status, 'readyReplicas') ?? 0}/${numberAt(spec, 'replicas') ?? 0}`;
    }),
    column(
      'Up-to-date',
      'string',
      'Pods of the newest template.',
      (_spec, status) => numberAt(status, 'updatedReplicas') ?? 0,
    ),
    column(
      'Available',
      'string',
      'Pods that are available.',
      (_spec, status) => numberAt(status, 'availableReplicas') ?? 0,
    ),
    ageColumn,
    ...containerColumns(),
    selectorColumn,
  ],
  strategy: {
    applyDefaults(object) {
      const spec = specWithTemplateDefaults(object);
      if (spec === undefined) return;
      setDefault(spec, 'replicas', 1);
      setDefault(spec, 'revisionHistoryLimit', 10);
      setDefault(spec, 'progressDeadlineSeconds', 600);
      applyRollingUpdateDefaults(spec);
    },
    prepareForCreate(object) {
      object.status = {};
    },
    prepareForStatusUpdate(object, old) {
      if (old.metadata.labels) object.metadata.labels = old.metadata.labels;
      else delete object.metadata.labels;
    },
    validate: (object) => specErrors(objectAt(object, 'spec')),
    validateUpdate: (object, old) =>
      immutableErrors(objectAt(object, 'spec')?.['selector'], objectAt(old, 'spec')?.['selector'], 'spec.selector'),
    validateStatusUpdate: (object) =>
      countErrors(
        objectAt(object, 'status'),
        ['updatedReplicas', 'readyReplicas', 'availableReplicas', 'unavailableReplicas', 'terminatingReplicas'],
        [
          ['updatedReplicas', 'replicas'],
          ['readyReplicas', 'replicas'],
          ['availableReplicas', 'replicas'],
          ['availableReplicas', 'readyReplicas'],
        ],
      ),
  },
});
