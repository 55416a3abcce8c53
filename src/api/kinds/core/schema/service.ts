import { condition } from '../../meta.ts';
import { bool, enumeration, int32, intOrString, list, listMap, map, message, str } from '../../../schema.ts';
import { objectReference } from './references.ts';
import { CORE } from './package.ts';

/** Schemas of services and of what stands behind them. */

const servicePort = message(
  `${CORE}.ServicePort`,
  'A port of a service.',
  {
    name: [1, str(), 'Name of the port; required where there are several.'],
    protocol: [2, enumeration(['SCTP', 'TCP', 'UDP'], { default: 'TCP' }), 'TCP, UDP or SCTP; TCP by default.'],
    port: [3, int32(), "The port's number."],
    targetPort: [4, intOrString(), "Number or name of the pods' port; the same number by default."],
    nodePort: [5, int32(), 'Port of every node that leads to the service.'],
    appProtocol: [6, str({ pointer: true }), 'What is spoken on the port.'],
  },
  { required: ['port'] },
);

const clientIPConfig = message(`${CORE}.ClientIPConfig`, 'Settings of affinity by client address.', {
  timeoutSeconds: [1, int32({ pointer: true }), 'Seconds that the affinity lasts; 10800 by default.'],
});

const sessionAffinityConfig = message(`${CORE}.SessionAffinityConfig`, 'Settings of the session affinity.', {
  clientIP: [1, clientIPConfig, 'Settings of affinity by client address.'],
});

export const serviceSpec = message(`${CORE}.ServiceSpec`, 'What a service is to be.', {
  ports: [1, listMap(['port', 'protocol'], servicePort), 'Ports of the service.'],
  selector: [2, map(str(), { 'x-kubernetes-map-type': 'atomic' }), 'Labels of the pods that serve.'],
  clusterIP: [3, str(), 'Address of the service; None for a headless one.'],
  type: [
    4,
    enumeration(['ClusterIP', 'ExternalName', 'LoadBalancer', 'NodePort']),
    'ClusterIP, NodePort, LoadBalancer or ExternalName; ClusterIP by default.',
  ],
  externalIPs: [5, list(str()), 'More addresses that lead to the service.'],
  sessionAffinity: [7, enumeration(['ClientIP', 'None']), 'None or ClientIP; None by default.'],
  loadBalancerIP: [8, str(), 'Address asked of the load balancer.'],
  loadBalancerSourceRanges: [9, list(str()), 'Clients that the load balancer lets in.'],
  externalName: [10, str(), 'DNS name that an ExternalName service stands for.'],
  externalTrafficPolicy: [11, enumeration(['Cluster', 'Local']), 'Cluster, or Local to keep traffic on its node.'],
  healthCheckNodePort: [12, int32(), 'Port for health checks, with the policy Local.'],
  publishNotReadyAddresses: [13, bool(), 'Whether pods that are not ready are listed.'],
  sessionAffinityConfig: [14, sessionAffinityConfig, 'Settings of the session affinity.'],
  ipFamilyPolicy: [
    17,
    enumeration(['PreferDualStack', 'RequireDualStack', 'SingleStack'], { pointer: true }),
    'SingleStack, PreferDualStack or RequireDualStack.',
  ],
  clusterIPs: [18, list(str()), 'Addresses of the service, one for each family.'],
  ipFamilies: [19, list(str()), 'IPv4, IPv6 or both.'],
  allocateLoadBalancerNodePorts: [20, bool({ pointer: true }), 'Whether node ports are allocated for a load balancer.'],
  loadBalancerClass: [21, str({ pointer: true }), 'Who implements the load balancer.'],
  internalTrafficPolicy: [
    22,
    enumeration(['Cluster', 'Local'], { pointer: true }),
    'Cluster, or Local to keep traffic on its node.',
  ],
  trafficDistribution: [23, str({ pointer: true }), 'A preference among endpoints, e.g. PreferClose.'],
});

const portStatus = message(
  `${CORE}.PortStatus`,
  "The state of a load balancer's port.",
  {
    port: [1, int32({ default: 0 }), 'The port.'],
    protocol: [2, str({ default: '' }), 'TCP, UDP or SCTP.'],
    error: [3, str({ pointer: true }), 'Why it does not work.'],
  },
  { required: ['port', 'protocol'] },
);

const loadBalancerIngress = message(`${CORE}.LoadBalancerIngress`, 'An address of a load balancer.', {
  ip: [1, str(), 'The address.'],
  hostname: [2, str(), 'The host name.'],
  ipMode: [3, enumeration(['Proxy', 'VIP'], { pointer: true }), 'VIP or Proxy.'],
  ports: [4, list(portStatus), 'State of the ports.'],
});

const loadBalancerStatus = message(`${CORE}.LoadBalancerStatus`, 'The state of a load balancer.', {
  ingress: [1, list(loadBalancerIngress), 'Its addresses.'],
});

export const serviceStatus = message(`${CORE}.ServiceStatus`, 'The observed state of a service.', {
  loadBalancer: [1, loadBalancerStatus, 'The state of the load balancer.'],
  conditions: [2, listMap(['type'], condition), "Aspects of the service's state."],
});

const endpointAddress = message(
  `${CORE}.EndpointAddress`,
  'An address that serves.',
  {
    ip: [1, str(), 'The address.'],
    targetRef: [2, objectReference, 'The object behind it.'],
    hostname: [3, str(), 'Host name of it.'],
    nodeName: [4, str({ pointer: true }), 'The node that it is on.'],
  },
  { required: ['ip'], 'x-kubernetes-map-type': 'atomic' },
);

const endpointPort = message(
  `${CORE}.EndpointPort`,
  'A port that serves.',
  {
    name: [1, str(), 'Name of the port, as in the service.'],
    port: [2, int32(), "The port's number."],
    protocol: [3, enumeration(['SCTP', 'TCP', 'UDP']), 'TCP, UDP or SCTP; TCP by default.'],
    appProtocol: [4, str({ pointer: true }), 'What is spoken on the port.'],
  },
  { required: ['port'], 'x-kubernetes-map-type': 'atomic' },
);

export const endpointSubset = message(`${CORE}.EndpointSubset`, 'Addresses that share ports.', {
  addresses: [1, list(endpointAddress), 'Addresses that are ready.'],
  notReadyAddresses: [2, list(endpointAddress), 'Addresses that are not ready.'],
  ports: [3, list(endpointPort), 'The ports.'],
});
