import { child, duplicate, type FieldError, forbidden, invalid, notSupported, required } from '../../../field-error.ts';
import type { JsonObject, KubeObject } from '../../../meta.ts';
import {
  dns1035LabelErrors,
  dnsLabelErrors,
  dnsSubdomainErrors,
  maskTrailingDash,
  portNumberErrors,
  qualifiedNameErrors,
} from '../../../names.ts';
import { labelsErrors } from '../../../validate-meta.ts';
import { has, numberAt, objectAt, objectsAt, textAt, textMapAt, textsAt } from '../fields.ts';
import { cidrErrors, ipErrors, ipFamily, isOnePerFamily } from '../ip.ts';
import { portErrors } from '../ports.ts';
import { isExternallyAccessible } from './defaults.ts';

const AFFINITY_SECONDS_MAX = 86_400;
const DISTRIBUTIONS = ['PreferClose', 'PreferSameZone', 'PreferSameNode'];

/** What is wrong with a service. */
export function serviceErrors(service: KubeObject): FieldError[] {
  const spec = objectAt(service, 'spec') ?? {};
  return [
    ...nameErrors(service),
    ...typeErrors(spec),
    ...portsErrors(spec),
    ...labelsErrors(textMapAt(spec, 'selector'), 'spec.selector'),
    ...affinityErrors(spec),
    ...addressErrors(spec),
    ...loadBalancerErrors(spec),
    ...trafficErrors(spec),
  ];
}

/** Names of services become DNS labels that must begin with a letter. */
function nameErrors(service: KubeObject): FieldError[] {
  const { name = '', generateName = '' } = service.metadata;
  const errors = dns1035LabelErrors(name).map((message) => invalid('metadata.name', name, message));
  if (name === '') return [];
  if (generateName === '') return errors;
  const prefix = maskTrailingDash(generateName);
  return [
    ...dns1035LabelErrors(prefix).map((message) => invalid('metadata.generateName', generateName, message)),
    ...errors,
  ];
}

function isHeadless(spec: JsonObject): boolean {
  return textsAt(spec, 'clusterIPs')[0] === 'None';
}

function typeErrors(spec: JsonObject): FieldError[] {
  const type = textAt(spec, 'type');
  const errors: FieldError[] = [];
  if (objectsAt(spec, 'ports').length === 0 && !isHeadless(spec) && type !== 'ExternalName') {
    errors.push(required('spec.ports'));
  }
  if (isHeadless(spec) && (type === 'LoadBalancer' || type === 'NodePort')) {
    errors.push(invalid('spec.clusterIPs[0]', 'None', `may not be set to 'None' for ${type} services`));
  }
  if (type !== 'ExternalName') return errors;
  for (const field of ['clusterIPs', 'ipFamilies', 'ipFamilyPolicy']) {
    if (has(spec, field)) errors.push(forbidden(child('spec', field), 'may not be set for ExternalName services'));
  }
  const name = textAt(spec, 'externalName').replace(/\.$/, '');
  if (name === '') return [...errors, required('spec.externalName')];
  return [...errors, ...dnsSubdomainErrors(name).map((message) => invalid('spec.externalName', name, message))];
}

function portsErrors(spec: JsonObject): FieldError[] {
  const ports = objectsAt(spec, 'ports');
  const names = new Set<string>();
  const numbers = new Set<string>();
  const nodePorts = new Set<string>();
  return ports.flatMap((port, index) => {
    const path = child('spec.ports', index);
    const protocol = textAt(port, 'protocol');
    const number = numberAt(port, 'port') ?? 0;
    const nodePort = numberAt(port, 'nodePort') ?? 0;
    const errors = [...portNameErrors(port, path, ports.length > 1, names), ...portFieldErrors(port, path)];
    if (nodePort !== 0) {
      if (textAt(spec, 'type') === 'ClusterIP') {
        errors.push(forbidden(child(path, 'nodePort'), "may not be used when `type` is 'ClusterIP'"));
      }
      if (nodePorts.has(`${protocol}/${nodePort}`)) errors.push(duplicate(child(path, 'nodePort'), nodePort));
      nodePorts.add(`${protocol}/${nodePort}`);
    }
    if (numbers.has(`${protocol}/${number}`)) errors.push(duplicate(path, { port: number, protocol }));
    numbers.add(`${protocol}/${number}`);
    return errors;
  });
}

function portNameErrors(port: JsonObject, path: string, isNeeded: boolean, names: Set<string>): FieldError[] {
  const name = textAt(port, 'name');
  const namePath = child(path, 'name');
  if (name === '') return isNeeded ? [required(namePath)] : [];
  const errors = dnsLabelErrors(name).map((message) => invalid(namePath, name, message));
  if (names.has(name)) errors.push(duplicate(namePath, name));
  names.add(name);
  return errors;
}

function portFieldErrors(port: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const number = numberAt(port, 'port');
  if (number !== undefined) {
    for (const message of portNumberErrors(number)) errors.push(invalid(child(path, 'port'), number, message));
  }
  errors.push(...portErrors(port['targetPort'], child(path, 'targetPort')));
  if (has(port, 'appProtocol')) {
    const protocol = textAt(port, 'appProtocol');
    const protocolPath = child(path, 'appProtocol');
    for (const message of qualifiedNameErrors(protocol)) errors.push(invalid(protocolPath, protocol, message));
  }
  return errors;
}

function affinityErrors(spec: JsonObject): FieldError[] {
  if (textAt(spec, 'sessionAffinity') !== 'ClientIP') return [];
  const path = 'spec.sessionAffinityConfig.clientIP.timeoutSeconds';
  const seconds = numberAt(objectAt(objectAt(spec, 'sessionAffinityConfig'), 'clientIP'), 'timeoutSeconds');
  if (seconds !== undefined && seconds > 0 && seconds <= AFFINITY_SECONDS_MAX) return [];
  return [invalid(path, seconds, `must be greater than 0 and less than ${AFFINITY_SECONDS_MAX}`)];
}

function addressErrors(spec: JsonObject): FieldError[] {
  const errors = textsAt(spec, 'externalIPs').flatMap((address, index) =>
    ipErrors(address, child('spec.externalIPs', index)),
  );
  if (textAt(spec, 'type') === 'ExternalName') return errors;
  const path = 'spec.clusterIPs';
  const first = textAt(spec, 'clusterIP');
  const addresses = textsAt(spec, 'clusterIPs');
  if (first === '' && addresses.length > 0) {
    errors.push(invalid(path, addresses, 'must be empty when `clusterIP` is not specified'));
  } else if (first !== '' && addresses[0] !== first) {
    errors.push(invalid(path, addresses, 'first value must match `clusterIP`'));
  }
  if (addresses[0] === 'None') {
    if (addresses.length > 1) errors.push(invalid(path, addresses, "'None' must be the first and only value"));
    return errors;
  }
  const malformed = addresses.flatMap((address, index) => ipErrors(address, child(path, index)));
  if (addresses.length > 2) errors.push(invalid(path, addresses, 'may only hold up to 2 values'));
  else if (malformed.length === 0 && !isOnePerFamily(addresses.map(ipFamily))) {
    errors.push(invalid(path, addresses, 'may specify no more than one IP for each IP family'));
  }
  return [...errors, ...malformed, ...familyErrors(spec)];
}

function familyErrors(spec: JsonObject): FieldError[] {
  const seen = new Set<string>();
  return textsAt(spec, 'ipFamilies').flatMap((family, index) => {
    const path = child('spec.ipFamilies', index);
    const errors = family === 'IPv4' || family === 'IPv6' ? [] : [notSupported(path, family, ['IPv4', 'IPv6'])];
    if (seen.has(family)) errors.push(duplicate(path, family));
    seen.add(family);
    return errors;
  });
}

function loadBalancerErrors(spec: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const isLoadBalancer = textAt(spec, 'type') === 'LoadBalancer';
  const ranges = textsAt(spec, 'loadBalancerSourceRanges');
  const rangesPath = 'spec.LoadBalancerSourceRanges';
  const detail = "may only be used when `type` is 'LoadBalancer'";
  if (ranges.length > 0 && !isLoadBalancer) errors.push(forbidden(rangesPath, detail));
  ranges.forEach((range, index) => errors.push(...cidrErrors(range.trim(), child(rangesPath, index))));
  for (const field of ['allocateLoadBalancerNodePorts', 'loadBalancerClass']) {
    if (has(spec, field) && !isLoadBalancer) errors.push(forbidden(child('spec', field), detail));
  }
  return errors;
}

function trafficErrors(spec: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const external = textAt(spec, 'externalTrafficPolicy');
  if (external !== '' && !isExternallyAccessible(spec)) {
    const detail = 'may only be set for externally-accessible services';
    errors.push(invalid('spec.externalTrafficPolicy', external, detail));
  }
  const healthPort = numberAt(spec, 'healthCheckNodePort') ?? 0;
  if (healthPort !== 0 && !(textAt(spec, 'type') === 'LoadBalancer' && external === 'Local')) {
    const detail = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'";
    errors.push(invalid('spec.healthCheckNodePort', healthPort, detail));
  }
  const distribution = spec['trafficDistribution'];
  if (typeof distribution === 'string' && !DISTRIBUTIONS.includes(distribution)) {
    errors.push(notSupported('spec.trafficDistribution', distribution, DISTRIBUTIONS));
  }
  return errors;
}

/** Addresses stay for life, unless the service begins or ends to be a name only. */
export function serviceUpdateErrors(service: KubeObject, old: KubeObject): FieldError[] {
  const spec = objectAt(service, 'spec') ?? {};
  const oldSpec = objectAt(old, 'spec') ?? {};
  if (textAt(spec, 'type') === 'ExternalName' || textAt(oldSpec, 'type') === 'ExternalName') return [];
  const addresses = textsAt(spec, 'clusterIPs');
  const oldAddresses = textsAt(oldSpec, 'clusterIPs');
  if (oldAddresses.length === 0) return [];
  if (addresses[0] === oldAddresses[0]) return [];
  return [invalid('spec.clusterIPs[0]', addresses, 'may not change once set')];
}
