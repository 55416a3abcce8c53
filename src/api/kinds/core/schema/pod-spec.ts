import { bool, enumeration, int32, int64, list, listMap, map, message, quantity, str } from '../../../schema.ts';
import { container, ephemeralContainer } from './containers.ts';
import { localObjectReference } from './references.ts';
import { resourceRequirements } from './resources.ts';
import { affinity, podSchedulingGate, toleration, topologySpreadConstraint } from './scheduling.ts';
import { podSecurityContext } from './security.ts';
import { volume } from './volumes.ts';
import { CORE } from './package.ts';

/** The schema of a pod's desired state. */

export const hostAlias = message(
  `${CORE}.HostAlias`,
  "An entry of the pod's hosts file.",
  {
    ip: [1, str(), 'The address.'],
    hostnames: [2, list(str()), 'The names of the address.'],
  },
  { required: ['ip'] },
);

export const podDNSConfigOption = message(`${CORE}.PodDNSConfigOption`, 'An option of the resolver.', {
  name: [1, str(), 'Name of the option.'],
  value: [2, str({ pointer: true }), 'Value of the option.'],
});

export const podDNSConfig = message(
  `${CORE}.PodDNSConfig`,
  "Settings of the pod's resolver, added to those of the policy.",
  {
    nameservers: [1, list(str()), 'Addresses of name servers.'],
    searches: [2, list(str()), 'Search domains.'],
    options: [3, list(podDNSConfigOption), 'Options of the resolver.'],
  },
);

export const podReadinessGate = message(
  `${CORE}.PodReadinessGate`,
  'A condition that must be true for the pod to be ready.',
  {
    conditionType: [1, str(), 'Type of the condition.'],
  },
  { required: ['conditionType'] },
);

export const podOS = message(
  `${CORE}.PodOS`,
  "The operating system of the pod's containers.",
  {
    name: [1, enumeration(['linux', 'windows']), 'linux or windows.'],
  },
  { required: ['name'] },
);

export const podResourceClaim = message(
  `${CORE}.PodResourceClaim`,
  "A claim that the pod's containers may use.",
  {
    name: [1, str(), 'Name of the claim within the pod.'],
    resourceClaimName: [3, str({ pointer: true }), 'A claim of the same namespace.'],
    resourceClaimTemplateName: [4, str({ pointer: true }), 'A template to make the claim from.'],
  },
  { required: ['name'] },
);

export const podSpec = message(
  `${CORE}.PodSpec`,
  'What a pod is to run, and how.',
  {
    volumes: [
      1,
      listMap(['name'], volume, { 'x-kubernetes-patch-strategy': 'merge,retainKeys' }),
      'Volumes that containers may mount.',
    ],
    containers: [
      2,
      listMap(['name'], container),
      'Containers of the pod, at least one; none can be added or removed later.',
    ],
    restartPolicy: [
      3,
      enumeration(['Always', 'OnFailure', 'Never']),
      'When containers are restarted: Always, OnFailure or Never; Always by default.',
    ],
    terminationGracePeriodSeconds: [
      4,
      int64({ pointer: true }),
      'Seconds between the request to stop and the kill; 30 by default.',
    ],
    activeDeadlineSeconds: [5, int64({ pointer: true }), 'Seconds that the pod may be active on its node.'],
    dnsPolicy: [
      6,
      enumeration(['ClusterFirstWithHostNet', 'ClusterFirst', 'Default', 'None']),
      'ClusterFirst, ClusterFirstWithHostNet, Default or None; ClusterFirst by default.',
    ],
    nodeSelector: [7, map(str(), { 'x-kubernetes-map-type': 'atomic' }), 'Labels that the node must have.'],
    serviceAccountName: [8, str(), 'The service account that the pod runs as.'],
    serviceAccount: [9, str(), 'Old name of serviceAccountName.'],
    nodeName: [10, str(), 'The node that the pod runs on; set by the scheduler.'],
    hostNetwork: [11, bool(), "Whether the pod uses the host's network."],
    hostPID: [12, bool(), "Whether the pod uses the host's process IDs."],
    hostIPC: [13, bool(), "Whether the pod uses the host's IPC."],
    securityContext: [14, podSecurityContext, 'Security settings of the pod.'],
    imagePullSecrets: [15, listMap(['name'], localObjectReference), 'Secrets for pulling images.'],
    hostname: [16, str(), 'Host name of the pod; its name by default.'],
    subdomain: [17, str(), "Domain of the pod under its service's."],
    affinity: [18, affinity, 'Rules about where the pod runs.'],
    schedulerName: [19, str(), 'The scheduler that places the pod; default-scheduler by default.'],
    initContainers: [
      20,
      listMap(['name'], container),
      'Containers that run one after the other before the rest starts.',
    ],
    automountServiceAccountToken: [21, bool({ pointer: true }), 'Whether a token of the service account is mounted.'],
    tolerations: [22, list(toleration), 'Taints that the pod tolerates.'],
    hostAliases: [23, listMap(['ip'], hostAlias), 'Entries for the hosts file.'],
    priorityClassName: [24, str(), 'Name of the priority class.'],
    priority: [25, int32({ pointer: true }), 'Priority; set from the class.'],
    dnsConfig: [26, podDNSConfig, 'Settings of the resolver.'],
    shareProcessNamespace: [27, bool({ pointer: true }), 'Whether containers share one process namespace.'],
    readinessGates: [28, list(podReadinessGate), 'Conditions that must be true for the pod to be ready.'],
    runtimeClassName: [29, str({ pointer: true }), 'The runtime class that runs the pod.'],
    enableServiceLinks: [
      30,
      bool({ pointer: true }),
      'Whether services appear as environment variables; true by default.',
    ],
    preemptionPolicy: [
      31,
      enumeration(['PreemptLowerPriority', 'Never'], { pointer: true }),
      'Whether the pod may displace others: PreemptLowerPriority or Never.',
    ],
    overhead: [32, map(quantity()), 'Resources that the runtime itself needs.'],
    topologySpreadConstraints: [
      33,
      listMap(['topologyKey', 'whenUnsatisfiable'], topologySpreadConstraint),
      'How the pods of a set are spread.',
    ],
    ephemeralContainers: [
      34,
      listMap(['name'], ephemeralContainer),
      'Containers added to look into the pod; through their subresource only.',
    ],
    setHostnameAsFQDN: [35, bool({ pointer: true }), 'Whether the host name is the fully qualified one.'],
    os: [36, podOS, 'The operating system of the containers.'],
    hostUsers: [37, bool({ pointer: true }), "Whether the pod uses the host's users; true by default."],
    schedulingGates: [
      38,
      listMap(['name'], podSchedulingGate),
      'Gates that hold back scheduling; they can only be removed.',
    ],
    resourceClaims: [
      39,
      listMap(['name'], podResourceClaim, { 'x-kubernetes-patch-strategy': 'merge,retainKeys' }),
      'Claims that the containers may use.',
    ],
    resources: [40, resourceRequirements, 'Resources for the pod as a whole.'],
    hostnameOverride: [41, str({ pointer: true }), "The host name, if not hostname or the pod's name."],
  },
  { required: ['containers'] },
);
