import { int64, list, listMap, message, str, time } from '../../../schema.ts';
import { containerStatus } from './container-status.ts';
import { CORE } from './package.ts';

/** The schema of a pod's observed state. */

const podCondition = message(
  `${CORE}.PodCondition`,
  "One aspect of a pod's state.",
  {
    type: [1, str({ default: '' }), 'What aspect this is, e.g. Ready.'],
    status: [2, str({ default: '' }), 'True, False or Unknown.'],
    lastProbeTime: [3, time(), 'When this was last looked at.'],
    lastTransitionTime: [4, time(), 'When the status last changed.'],
    reason: [5, str(), 'One word for the cause.'],
    message: [6, str(), 'The cause in words.'],
    observedGeneration: [7, int64(), 'The generation that this was observed at.'],
  },
  { required: ['type', 'status'] },
);

const podIP = message(
  `${CORE}.PodIP`,
  'An address of the pod.',
  {
    ip: [1, str(), 'The address.'],
  },
  { required: ['ip'] },
);

const hostIP = message(
  `${CORE}.HostIP`,
  'An address of the host.',
  {
    ip: [1, str(), 'The address.'],
  },
  { required: ['ip'] },
);

const podResourceClaimStatus = message(
  `${CORE}.PodResourceClaimStatus`,
  'The claim made for an entry of resourceClaims.',
  {
    name: [1, str(), 'Name of the entry.'],
    resourceClaimName: [2, str({ pointer: true }), 'Name of the claim.'],
  },
  { required: ['name'] },
);

const containerExtendedResourceRequest = message(
  `${CORE}.ContainerExtendedResourceRequest`,
  'Which claim serves an extended resource of a container.',
  {
    containerName: [1, str(), 'The container.'],
    resourceName: [2, str(), 'The extended resource.'],
    requestName: [3, str(), 'The request in the claim.'],
  },
  { required: ['containerName', 'resourceName', 'requestName'] },
);

const podExtendedResourceClaimStatus = message(
  `${CORE}.PodExtendedResourceClaimStatus`,
  "The claim made for the pod's extended resources.",
  {
    requestMappings: [1, list(containerExtendedResourceRequest), 'Which request serves which container.'],
    resourceClaimName: [2, str(), 'Name of the claim.'],
  },
  { required: ['requestMappings', 'resourceClaimName'] },
);

export const podStatus = message(`${CORE}.PodStatus`, 'The observed state of a pod.', {
  phase: [1, str(), 'Pending, Running, Succeeded, Failed or Unknown.'],
  conditions: [2, listMap(['type'], podCondition), "Aspects of the pod's state."],
  message: [3, str(), 'Why the pod is in this state, in words.'],
  reason: [4, str(), 'One word for it, e.g. Evicted.'],
  hostIP: [5, str(), 'Address of the node.'],
  podIP: [6, str(), 'Address of the pod.'],
  startTime: [7, time(), 'When the kubelet acknowledged the pod.'],
  containerStatuses: [8, list(containerStatus), 'State of the containers.'],
  qosClass: [9, str(), 'Guaranteed, Burstable or BestEffort.'],
  initContainerStatuses: [10, list(containerStatus), 'State of the init containers.'],
  nominatedNodeName: [11, str(), 'The node where others make way for this pod.'],
  podIPs: [12, listMap(['ip'], podIP), 'Addresses of the pod.'],
  ephemeralContainerStatuses: [13, list(containerStatus), 'State of the ephemeral containers.'],
  resize: [14, str(), 'How far a resize is.'],
  resourceClaimStatuses: [
    15,
    listMap(['name'], podResourceClaimStatus, { 'x-kubernetes-patch-strategy': 'merge,retainKeys' }),
    'The claims made for the pod.',
  ],
  hostIPs: [
    16,
    list(hostIP, { 'x-kubernetes-patch-strategy': 'merge', 'x-kubernetes-patch-merge-key': 'ip' }),
    'Addresses of the node.',
  ],
  observedGeneration: [17, int64(), 'The generation that this was observed at.'],
  extendedResourceClaimStatus: [18, podExtendedResourceClaimStatus, 'The claim made for extended resources.'],
});
