import { affinity, toleration, topologySpreadConstraint } from '../kinds/core/schema/scheduling.ts';
import { borrowed, choice, type Infer, kept, listOf, long, mapOf, needed, object, text } from '../typed-schema.ts';
import { domain } from './domain.ts';
import { EVICTION_STRATEGIES } from './eviction-strategy.ts';
import { network } from './networks.ts';
import { utilityVolume, volume } from './volumes.ts';

/** What a guest is. Where it may run is said in the words of pods, since it is passed on to the launcher pod as it is. */

/** As many as KubeVirt takes of each. */
const AT_MOST = { maxItems: 256 };

/** The spec of a VirtualMachineInstance, and of a VirtualMachine's template. */
export const virtualMachineInstanceSpec = object('What the guest is, and where it may run.', {
  domain: needed(domain),
  volumes: listOf("Contents of the guest's disks.", volume, AT_MOST),
  networks: listOf('Networks that the guest is on.', network, AT_MOST),
  evictionStrategy: choice(
    "What happens when the guest has to leave its node: it is shut down; it moves or stays; it moves or is shut down; others see to it. The cluster's by default.",
    EVICTION_STRATEGIES,
  ),
  terminationGracePeriodSeconds: long('How long the guest may take to shut down before it is cut off; 30 by default.'),
  startStrategy: choice('Paused: the guest is held before its first instruction.', ['Paused']),
  nodeSelector: mapOf('Labels that the node must have.', text('A value.')),
  affinity: borrowed('Rules about nodes, and about pods to be near to or away from.', affinity),
  tolerations: listOf('Taints that the launcher pod tolerates.', borrowed('A taint.', toleration)),
  topologySpreadConstraints: listOf(
    'How launcher pods are spread over the nodes.',
    borrowed('A rule.', topologySpreadConstraint),
  ),
  priorityClassName: text("The launcher pod's priority class."),
  schedulerName: text('Who chooses the node.'),
  architecture: text('The processor architecture, such as amd64.'),
  hostname: text("The guest's name; that of the object by default."),
  subdomain: text("The domain in which the guest's name can be looked up."),
  dnsPolicy: choice('Where names are looked up.', ['ClusterFirst', 'ClusterFirstWithHostNet', 'Default', 'None']),
  dnsConfig: kept('More about where names are looked up.'),
  livenessProbe: kept('How to see that the guest still works; it is stopped when it does not.'),
  readinessProbe: kept('How to see that the guest is ready.'),
  accessCredentials: listOf('Keys and passwords that are put into the guest.', kept('A key or a password.'), AT_MOST),
  resourceClaims: listOf('Devices that are claimed for the launcher pod.', kept('A claim.')),
  utilityVolumes: listOf('Claims for the launcher itself.', utilityVolume),
});

export type VirtualMachineInstanceSpec = Infer<typeof virtualMachineInstanceSpec>;
