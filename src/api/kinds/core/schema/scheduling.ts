import { labelSelector } from '../../meta.ts';
import { enumeration, int32, int64, list, message, str, time } from '../../../schema.ts';
import { nodeSelector, nodeSelectorTerm } from './references.ts';
import { CORE } from './package.ts';

/** Schemas of what decides where a pod runs. */

const preferredSchedulingTerm = message(
  `${CORE}.PreferredSchedulingTerm`,
  'A preference among nodes.',
  {
    weight: [1, int32(), 'How much it counts, 1 to 100.'],
    preference: [2, nodeSelectorTerm, 'The nodes that are preferred.'],
  },
  { required: ['weight', 'preference'] },
);

const nodeAffinity = message(`${CORE}.NodeAffinity`, 'Rules about nodes.', {
  requiredDuringSchedulingIgnoredDuringExecution: [1, nodeSelector, 'Nodes that the pod may be placed on.'],
  preferredDuringSchedulingIgnoredDuringExecution: [2, list(preferredSchedulingTerm), 'Nodes that are preferred.'],
});

const podAffinityTerm = message(
  `${CORE}.PodAffinityTerm`,
  'Pods to be near to, or away from.',
  {
    labelSelector: [1, labelSelector, 'Selects the pods.'],
    namespaces: [2, list(str()), "Their namespaces; the pod's own by default."],
    topologyKey: [3, str(), 'Node label whose equal values mean near.'],
    namespaceSelector: [4, labelSelector, 'Selects more namespaces by label.'],
    matchLabelKeys: [5, list(str()), 'Labels of the pod that the others must share.'],
    mismatchLabelKeys: [6, list(str()), 'Labels of the pod that the others must not share.'],
  },
  { required: ['topologyKey'] },
);

const weightedPodAffinityTerm = message(
  `${CORE}.WeightedPodAffinityTerm`,
  'A preference among places near other pods.',
  {
    weight: [1, int32(), 'How much it counts, 1 to 100.'],
    podAffinityTerm: [2, podAffinityTerm, 'The pods.'],
  },
  { required: ['weight', 'podAffinityTerm'] },
);

const podAffinity = message(`${CORE}.PodAffinity`, 'Rules about pods to be near to.', {
  requiredDuringSchedulingIgnoredDuringExecution: [1, list(podAffinityTerm), 'Terms that must hold.'],
  preferredDuringSchedulingIgnoredDuringExecution: [2, list(weightedPodAffinityTerm), 'Terms that are preferred.'],
});

const podAntiAffinity = message(`${CORE}.PodAntiAffinity`, 'Rules about pods to be away from.', {
  requiredDuringSchedulingIgnoredDuringExecution: [1, list(podAffinityTerm), 'Terms that must hold.'],
  preferredDuringSchedulingIgnoredDuringExecution: [2, list(weightedPodAffinityTerm), 'Terms that are preferred.'],
});

export const affinity = message(`${CORE}.Affinity`, 'Rules about where a pod runs.', {
  nodeAffinity: [1, nodeAffinity, 'Rules about nodes.'],
  podAffinity: [2, podAffinity, 'Rules about pods to be near to.'],
  podAntiAffinity: [3, podAntiAffinity, 'Rules about pods to be away from.'],
});

export const toleration = message(`${CORE}.Toleration`, 'Lets a pod run on nodes with a matching taint.', {
  key: [1, str(), 'Key of the taint; empty, with Exists, for all.'],
  operator: [2, str(), 'Exists or Equal; Equal by default.'],
  value: [3, str(), 'Value of the taint, for Equal.'],
  effect: [4, str(), 'Effect of the taint; empty for all.'],
  tolerationSeconds: [5, int64({ pointer: true }), 'How long a NoExecute taint is tolerated; for ever by default.'],
});

export const taint = message(
  `${CORE}.Taint`,
  'Keeps pods off a node unless they tolerate it.',
  {
    key: [1, str(), 'Key of the taint.'],
    value: [2, str(), 'Value of the taint.'],
    effect: [3, str(), 'NoSchedule, PreferNoSchedule or NoExecute.'],
    timeAdded: [4, time(), 'When the taint was added.'],
  },
  { required: ['key', 'effect'] },
);

export const topologySpreadConstraint = message(
  `${CORE}.TopologySpreadConstraint`,
  'How matching pods are spread over a topology.',
  {
    maxSkew: [1, int32(), 'How uneven the spread may be.'],
    topologyKey: [2, str(), 'Node label whose values are the domains.'],
    whenUnsatisfiable: [3, enumeration(['DoNotSchedule', 'ScheduleAnyway']), 'DoNotSchedule or ScheduleAnyway.'],
    labelSelector: [4, labelSelector, 'Selects the pods that count.'],
    minDomains: [5, int32({ pointer: true }), 'The least number of domains that should exist.'],
    nodeAffinityPolicy: [
      6,
      enumeration(['Honor', 'Ignore'], { pointer: true }),
      'Whether nodes that the pod cannot use count: Honor or Ignore.',
    ],
    nodeTaintsPolicy: [
      7,
      enumeration(['Honor', 'Ignore'], { pointer: true }),
      'Whether tainted nodes count: Honor or Ignore.',
    ],
    matchLabelKeys: [8, list(str()), 'Labels of the pod that the counted pods must share.'],
  },
  { required: ['maxSkew', 'topologyKey', 'whenUnsatisfiable'] },
);

export const podSchedulingGate = message(
  `${CORE}.PodSchedulingGate`,
  'Holds back the scheduling of a pod until it is removed.',
  {
    name: [1, str(), 'Name of the gate.'],
  },
  { required: ['name'] },
);
