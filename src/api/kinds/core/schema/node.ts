import { bool, int32, int64, list, listMap, map, message, quantity, set, str, time } from '../../../schema.ts';
import { taint } from './scheduling.ts';
import { CORE } from './package.ts';

/** Schemas of a node's states. */

const configMapNodeConfigSource = message(
  `${CORE}.ConfigMapNodeConfigSource`,
  "A config map of the kubelet's settings; no longer used.",
  {
    namespace: [1, str()],
    name: [2, str()],
    uid: [3, str()],
    resourceVersion: [4, str()],
    kubeletConfigKey: [5, str()],
  },
  { required: ['namespace', 'name', 'kubeletConfigKey'] },
);

const nodeConfigSource = message(
  `${CORE}.NodeConfigSource`,
  "Where the kubelet's settings come from; no longer used.",
  {
    configMap: [2, configMapNodeConfigSource, 'The config map.'],
  },
);

const nodeConfigStatus = message(`${CORE}.NodeConfigStatus`, 'Which settings the kubelet uses; no longer used.', {
  assigned: [1, nodeConfigSource],
  active: [2, nodeConfigSource],
  lastKnownGood: [3, nodeConfigSource],
  error: [4, str()],
});

export const nodeSpec = message(`${CORE}.NodeSpec`, 'What a node is to be.', {
  podCIDR: [1, str(), "Range of the addresses of the node's pods."],
  externalID: [2, str(), 'No longer used.'],
  providerID: [3, str(), 'What the cloud provider calls the node.'],
  unschedulable: [4, bool(), 'Whether new pods are kept off; set by kubectl cordon.'],
  taints: [5, list(taint), 'Keep pods off that do not tolerate them.'],
  configSource: [6, nodeConfigSource, 'No longer used.'],
  podCIDRs: [7, set(str()), "Ranges of the addresses of the node's pods, one for each family."],
});

const nodeCondition = message(
  `${CORE}.NodeCondition`,
  "One aspect of a node's state.",
  {
    type: [1, str({ default: '' }), 'What aspect this is, e.g. Ready.'],
    status: [2, str({ default: '' }), 'True, False or Unknown.'],
    lastHeartbeatTime: [3, time(), 'When this was last reported.'],
    lastTransitionTime: [4, time(), 'When the status last changed.'],
    reason: [5, str(), 'One word for the cause.'],
    message: [6, str(), 'The cause in words.'],
  },
  { required: ['type', 'status'] },
);

const nodeAddress = message(
  `${CORE}.NodeAddress`,
  'An address of a node.',
  {
    type: [1, str({ default: '' }), 'Hostname, InternalIP, ExternalIP, InternalDNS or ExternalDNS.'],
    address: [2, str({ default: '' }), 'The address.'],
  },
  { required: ['type', 'address'] },
);

const daemonEndpoint = message(
  `${CORE}.DaemonEndpoint`,
  'A port of a daemon.',
  {
    Port: [1, int32({ default: 0 }), 'The port.'],
  },
  { required: ['Port'] },
);

const nodeDaemonEndpoints = message(`${CORE}.NodeDaemonEndpoints`, "Ports of the node's daemons.", {
  kubeletEndpoint: [1, daemonEndpoint, 'Port of the kubelet.'],
});

const nodeSwapStatus = message(`${CORE}.NodeSwapStatus`, "The node's swap.", {
  capacity: [1, int64({ pointer: true }), 'Bytes of swap.'],
});

const nodeSystemInfo = message(
  `${CORE}.NodeSystemInfo`,
  'What a node consists of.',
  {
    machineID: [1, str({ default: '' }), 'Machine ID.'],
    systemUUID: [2, str({ default: '' }), 'UUID of the hardware.'],
    bootID: [3, str({ default: '' }), 'Boot ID.'],
    kernelVersion: [4, str({ default: '' }), 'Version of the kernel.'],
    osImage: [5, str({ default: '' }), "Name of the operating system's release."],
    containerRuntimeVersion: [6, str({ default: '' }), 'Version of the container runtime.'],
    kubeletVersion: [7, str({ default: '' }), 'Version of the kubelet.'],
    kubeProxyVersion: [8, str({ default: '' }), 'No longer used.'],
    operatingSystem: [9, str({ default: '' }), 'Operating system.'],
    architecture: [10, str({ default: '' }), 'Architecture.'],
    swap: [11, nodeSwapStatus, "The node's swap."],
  },
  {
    required: [
      'machineID',
      'systemUUID',
      'bootID',
      'kernelVersion',
      'osImage',
      'containerRuntimeVersion',
      'kubeletVersion',
      'kubeProxyVersion',
      'operatingSystem',
      'architecture',
    ],
  },
);

const containerImage = message(`${CORE}.ContainerImage`, 'An image on a node.', {
  names: [1, list(str()), 'Names of the image.'],
  sizeBytes: [2, int64(), 'Size of the image.'],
});

const attachedVolume = message(
  `${CORE}.AttachedVolume`,
  'A volume attached to a node.',
  {
    name: [1, str({ default: '' }), 'Name of the volume.'],
    devicePath: [2, str({ default: '' }), 'Path of the device.'],
  },
  { required: ['name', 'devicePath'] },
);

const nodeRuntimeHandlerFeatures = message(`${CORE}.NodeRuntimeHandlerFeatures`, 'What a runtime handler can do.', {
  recursiveReadOnlyMounts: [1, bool({ pointer: true }), 'Whether it can mount read-only all the way down.'],
  userNamespaces: [2, bool({ pointer: true }), 'Whether it can use user namespaces.'],
});

const nodeRuntimeHandler = message(`${CORE}.NodeRuntimeHandler`, 'A runtime handler of a node.', {
  name: [1, str(), 'Name of the handler; empty for the default one.'],
  features: [2, nodeRuntimeHandlerFeatures, 'What it can do.'],
});

const nodeFeatures = message(`${CORE}.NodeFeatures`, "What a node's runtime can do.", {
  supplementalGroupsPolicy: [1, bool({ pointer: true }), 'Whether it supports the policy for supplementary groups.'],
});

export const nodeStatus = message(`${CORE}.NodeStatus`, 'The observed state of a node.', {
  capacity: [1, map(quantity()), 'All resources of the node.'],
  allocatable: [2, map(quantity()), 'Resources that pods can have.'],
  phase: [3, str(), 'No longer used.'],
  conditions: [4, listMap(['type'], nodeCondition), "Aspects of the node's state."],
  addresses: [5, listMap(['type'], nodeAddress), 'Addresses of the node.'],
  daemonEndpoints: [6, nodeDaemonEndpoints, "Ports of the node's daemons."],
  nodeInfo: [7, nodeSystemInfo, 'What the node consists of.'],
  images: [8, list(containerImage), 'Images on the node.'],
  volumesInUse: [9, list(str()), 'Volumes that the node has mounted.'],
  volumesAttached: [10, list(attachedVolume), 'Volumes attached to the node.'],
  config: [11, nodeConfigStatus, 'No longer used.'],
  runtimeHandlers: [12, list(nodeRuntimeHandler), 'Runtime handlers of the node.'],
  features: [13, nodeFeatures, 'What the runtime can do.'],
});
