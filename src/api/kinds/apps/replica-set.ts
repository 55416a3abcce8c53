import type { ResourceDefinition } from '../../resource.ts';
import { int32, int64, listMap, message, str, time } from '../../schema.ts';
import { ageColumn, column, containerColumns, countColumn, nameColumn, selectorColumn } from '../columns.ts';
import { numberAt, objectAt, setDefault } from '../core/fields.ts';
import { podTemplateSpec } from '../core/pod-template.ts';
import { builtin, labelSelector, objectSchema } from '../meta.ts';
import { immutableErrors, nonNegativeErrors } from '../validation.ts';
import {
  APPS,
  countErrors,
  scalePaths,
  scaleSubresource,
  selectorErrors,
  specWithTemplateDefaults,
  templateErrors,
} from './workload.ts';

const replicaSetSpec = message(
  `${APPS}.ReplicaSetSpec`,
  'The wanted state of a ReplicaSet.',
  {
    replicas: [1, int32({ pointer: true }), 'How many pods are wanted.'],
    minReadySeconds: [4, int32(), 'Seconds for which a new pod has to be ready before it counts as available.'],
    selector: [
      2,
      labelSelector,
      'Which pods belong to this ReplicaSet; it has to match the template and cannot change.',
    ],
    template: [3, podTemplateSpec, 'What the pods look like.'],
  },
  { required: ['selector'] },
);

const replicaSetCondition = message(
  `${APPS}.ReplicaSetCondition`,
  "One aspect of a ReplicaSet's state.",
  {
    type: [1, str(), 'What aspect this is.'],
    status: [2, str(), 'True, False or Unknown.'],
    lastTransitionTime: [3, time(), 'When the status last changed.'],
    reason: [4, str(), 'One word for the cause.'],
    message: [5, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

const replicaSetStatus = message(
  `${APPS}.ReplicaSetStatus`,
  'The observed state of a ReplicaSet.',
  {
    replicas: [1, int32(), 'Pods that match the selector and are not terminating.'],
    fullyLabeledReplicas: [2, int32(), 'Pods that carry all labels of the template.'],
    readyReplicas: [4, int32(), 'Pods that are ready.'],
    availableReplicas: [5, int32(), 'Pods that have been ready for minReadySeconds.'],
    terminatingReplicas: [7, int32({ pointer: true }), 'Pods that are on their way out.'],
    observedGeneration: [3, int64(), 'The generation that the controller has acted on.'],
    conditions: [6, listMap(['type'], replicaSetCondition), 'Aspects of the current state, one of each type.'],
  },
  { required: ['replicas'] },
);

const replicaSet = objectSchema(`${APPS}.ReplicaSet`, 'Keeps a number of like pods running.', {
  spec: [2, replicaSetSpec, 'What is asked for.'],
  status: [3, replicaSetStatus, 'What was observed.'],
});

/** apps/v1 ReplicaSet. */
export const replicaSetDefinition: ResourceDefinition = builtin({
  group: 'apps',
  version: 'v1',
  plural: 'replicasets',
  kind: 'ReplicaSet',
  namespaced: true,
  shortNames: ['rs'],
  categories: ['all'],
  schema: replicaSet,
  hasStatus: true,
  hasGeneration: true,
  subresources: [scaleSubresource],
  scale: scalePaths,
  columns: [
    nameColumn,
    column('Desired', 'integer', 'Pods that are wanted.', (spec) => numberAt(spec, 'replicas') ?? 0),
    countColumn('Current', 'Pods that exist.', 'replicas'),
    countColumn('Ready', 'Pods that are ready.', 'readyReplicas'),
    ageColumn,
    ...containerColumns(),
    selectorColumn,
  ],
  strategy: {
    applyDefaults(object) {
      const spec = specWithTemplateDefaults(object);
      if (spec !== undefined) setDefault(spec, 'replicas', 1);
    },
    prepareForCreate(object) {
      object.status = { replicas: 0 };
    },
    validate(object) {
      const spec = objectAt(object, 'spec');
      return [
        ...nonNegativeErrors(spec, 'spec', 'replicas', 'minReadySeconds'),
        ...selectorErrors(spec, 'replicaset'),
        ...templateErrors(objectAt(spec, 'template'), 'ReplicaSet'),
      ];
    },
    validateUpdate: (object, old) =>
      immutableErrors(objectAt(object, 'spec')?.['selector'], objectAt(old, 'spec')?.['selector'], 'spec.selector'),
    validateStatusUpdate: (object) =>
      countErrors(
        objectAt(object, 'status'),
        ['fullyLabeledReplicas', 'readyReplicas', 'availableReplicas', 'terminatingReplicas'],
        [
          ['fullyLabeledReplicas', 'replicas'],
          ['readyReplicas', 'replicas'],
          ['availableReplicas', 'replicas'],
          ['availableReplicas', 'readyReplicas'],
        ],
      ),
  },
});
