import type { JsonObject, KubeObject } from '../../../meta.ts';
import { isSame } from '../../validation.ts';
import { ensureObject, has, numberAt, objectAt, objectsAt, setDefault, textAt, textsAt } from '../fields.ts';

const AFFINITY_SECONDS = 10_800;
const WITH_ADDRESS = ['ClusterIP', 'NodePort', 'LoadBalancer'];
const WITH_NODE_PORTS = ['NodePort', 'LoadBalancer'];

/** Whether clients outside the cluster can reach the service. */
export function isExternallyAccessible(spec: JsonObject): boolean {
  const type = textAt(spec, 'type');
  return WITH_NODE_PORTS.includes(type) || (type === 'ClusterIP' && textsAt(spec, 'externalIPs').length > 0);
}

/** Defaults of a service. No addresses are allocated: services are stored, and nothing forwards packets. */
export function applyServiceDefaults(service: KubeObject): void {
  const spec = ensureObject(service, 'spec');
  if (spec === undefined) return;
  setDefault(spec, 'sessionAffinity', 'None');
  setDefault(spec, 'type', 'ClusterIP');
  applyAffinityDefaults(spec);
  for (const port of objectsAt(spec, 'ports')) {
    setDefault(port, 'protocol', 'TCP');
    const target = port['targetPort'];
    if (!has(port, 'targetPort') || target === 0 || target === '') port['targetPort'] = port['port'] ?? 0;
  }
  const type = textAt(spec, 'type');
  if (isExternallyAccessible(spec)) setDefault(spec, 'externalTrafficPolicy', 'Cluster');
  if (WITH_ADDRESS.includes(type)) setDefault(spec, 'internalTrafficPolicy', 'Cluster');
  if (type === 'LoadBalancer') setDefault(spec, 'allocateLoadBalancerNodePorts', true);
  mirrorAddress(spec);
  const status = ensureObject(service, 'status');
  if (status !== undefined) ensureObject(status, 'loadBalancer');
}

function applyAffinityDefaults(spec: JsonObject): void {
  if (textAt(spec, 'sessionAffinity') === 'None') delete spec['sessionAffinityConfig'];
  if (textAt(spec, 'sessionAffinity') !== 'ClientIP') return;
  const timeout = numberAt(objectAt(objectAt(spec, 'sessionAffinityConfig'), 'clientIP'), 'timeoutSeconds');
  if (timeout === undefined) spec['sessionAffinityConfig'] = { clientIP: { timeoutSeconds: AFFINITY_SECONDS } };
}

/** The one address is also the first of the list. */
function mirrorAddress(spec: JsonObject): void {
  const address = textAt(spec, 'clusterIP');
  if (address !== '' && textsAt(spec, 'clusterIPs').length === 0) spec['clusterIPs'] = [address];
}

/** Keeps the address that a client left out, and drops what a change of type has made meaningless. */
export function carryOver(service: KubeObject, old: KubeObject): void {
  const spec = objectAt(service, 'spec');
  const oldSpec = objectAt(old, 'spec');
  if (spec === undefined || oldSpec === undefined) return;
  const type = textAt(spec, 'type') || 'ClusterIP';
  const oldType = textAt(oldSpec, 'type');
  if (WITH_ADDRESS.includes(type) && WITH_ADDRESS.includes(oldType)) keepAddress(spec, oldSpec);
  if (!WITH_ADDRESS.includes(type) && WITH_ADDRESS.includes(oldType)) {
    dropUnchanged(spec, oldSpec, 'clusterIP', 'clusterIPs', 'ipFamilies', 'ipFamilyPolicy');
  }
  if (!WITH_NODE_PORTS.includes(type) && WITH_NODE_PORTS.includes(oldType)) {
    dropNodePorts(spec, oldSpec);
    dropUnchanged(spec, oldSpec, 'externalTrafficPolicy', 'healthCheckNodePort');
  }
  if (type !== 'LoadBalancer' && oldType === 'LoadBalancer') {
    dropUnchanged(spec, oldSpec, 'allocateLoadBalancerNodePorts', 'loadBalancerClass');
  }
}

function keepAddress(spec: JsonObject, oldSpec: JsonObject): void {
  if (textAt(spec, 'clusterIP') !== '' || textsAt(spec, 'clusterIPs').length > 0) return;
  for (const field of ['clusterIP', 'clusterIPs']) {
    const value = oldSpec[field];
    if (value !== undefined) spec[field] = value;
  }
}

function dropUnchanged(spec: JsonObject, oldSpec: JsonObject, ...fields: readonly string[]): void {
  for (const field of fields) if (isSame(spec[field], oldSpec[field])) delete spec[field];
}

function dropNodePorts(spec: JsonObject, oldSpec: JsonObject): void {
  const ports = objectsAt(spec, 'ports');
  const numbers = (each: JsonObject): number => numberAt(each, 'nodePort') ?? 0;
  if (!isSame(ports.map(numbers), objectsAt(oldSpec, 'ports').map(numbers))) return;
  for (const port of ports) delete port['nodePort'];
}
