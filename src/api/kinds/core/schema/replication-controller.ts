import { int32, int64, listMap, map, message, str, time } from '../../../schema.ts';
import { podTemplateSpec } from '../pod-template.ts';
import { CORE } from './package.ts';

/** Schemas of a replication controller's states. */

export const replicationControllerSpec = message(
  `${CORE}.ReplicationControllerSpec`,
  'What a controller is to keep running.',
  {
    replicas: [1, int32({ default: 1, pointer: true }), 'How many pods; 1 by default.'],
    selector: [2, map(str(), { 'x-kubernetes-map-type': 'atomic' }), "Labels of the pods; the template's by default."],
    template: [3, podTemplateSpec, 'The pod to make.'],
    minReadySeconds: [4, int32(), 'Seconds that a pod must be ready to count as available.'],
  },
);

const replicationControllerCondition = message(
  `${CORE}.ReplicationControllerCondition`,
  "One aspect of a controller's state.",
  {
    type: [1, str({ default: '' }), 'What aspect this is.'],
    status: [2, str({ default: '' }), 'True, False or Unknown.'],
    lastTransitionTime: [3, time(), 'When the status last changed.'],
    reason: [4, str(), 'One word for the cause.'],
    message: [5, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

export const replicationControllerStatus = message(
  `${CORE}.ReplicationControllerStatus`,
  'The observed state of a controller.',
  {
    replicas: [1, int32({ default: 0 }), 'How many pods there are.'],
    fullyLabeledReplicas: [2, int32(), 'How many have all labels of the template.'],
    observedGeneration: [3, int64(), 'The generation that this was observed at.'],
    readyReplicas: [4, int32(), 'How many are ready.'],
    availableReplicas: [5, int32(), 'How many are available.'],
    conditions: [6, listMap(['type'], replicationControllerCondition), "Aspects of the controller's state."],
  },
  { required: ['replicas'] },
);
