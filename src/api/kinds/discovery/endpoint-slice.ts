import { child, duplicate, type FieldError, invalid, required, tooMany } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import { dnsLabelErrors, dnsSubdomainErrors, qualifiedNameErrors } from '../../names.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { bool, enumeration, int32, list, map, message, set, str } from '../../schema.ts';
import { ageColumn, column, nameColumn, shortList } from '../columns.ts';
import { type Fields, has, numberAt, objectsAt, textAt, textsAt } from '../core/fields.ts';
import { ipErrors, ipFamily } from '../core/ip.ts';
import { objectReference } from '../core/schema/references.ts';
import { builtin, objectSchema } from '../meta.ts';
import { immutableErrors } from '../validation.ts';

const DISCOVERY = 'io.k8s.api.discovery.v1';
const ENDPOINTS_MAX = 1000;
const ADDRESSES_MAX = 100;
const PORTS_MAX = 20_000;

const endpointConditions = message(`${DISCOVERY}.EndpointConditions`, 'What state an endpoint is in.', {
  ready: [1, bool({ pointer: true }), 'Whether it takes traffic.'],
  serving: [2, bool({ pointer: true }), 'Whether it can take traffic, terminating or not.'],
  terminating: [3, bool({ pointer: true }), 'Whether it is on its way out.'],
});

const forZone = message(
  `${DISCOVERY}.ForZone`,
  'A zone that should use an endpoint.',
  {
    name: [1, str(), "The zone's name."],
  },
  { required: ['name'] },
);

const forNode = message(
  `${DISCOVERY}.ForNode`,
  'A node that should use an endpoint.',
  {
    name: [1, str(), "The node's name."],
  },
  { required: ['name'] },
);

const endpointHints = message(`${DISCOVERY}.EndpointHints`, 'Who should use an endpoint.', {
  forZones: [1, list(forZone), 'The zones that should use it.'],
  forNodes: [2, list(forNode), 'The nodes that should use it.'],
});

const endpoint = message(
  `${DISCOVERY}.Endpoint`,
  'One place where the service is served.',
  {
    addresses: [1, set(str(), { 'x-kubernetes-patch-strategy': undefined }), "Its addresses, all of the slice's type."],
    conditions: [2, endpointConditions, 'What state it is in.'],
    hostname: [3, str({ pointer: true }), 'Its name in DNS.'],
    targetRef: [4, objectReference, 'The object behind it, a pod as a rule.'],
    deprecatedTopology: [5, map(str()), 'Labels of the place; no longer filled.'],
    nodeName: [6, str({ pointer: true }), 'The node that it is on.'],
    zone: [7, str({ pointer: true }), 'The zone that it is in.'],
    hints: [8, endpointHints, 'Who should use it.'],
  },
  { required: ['addresses'] },
);

const endpointPort = message(
  `${DISCOVERY}.EndpointPort`,
  'A port of all endpoints of the slice.',
  {
    name: [1, str({ pointer: true, default: '' }), 'Its name, unique in the slice.'],
    protocol: [2, enumeration(['SCTP', 'TCP', 'UDP'], { pointer: true, default: 'TCP' }), 'TCP, UDP or SCTP.'],
    port: [3, int32({ pointer: true }), 'Its number.'],
    appProtocol: [4, str({ pointer: true }), 'What is spoken on it.'],
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

const endpointSlice = objectSchema(
  `${DISCOVERY}.EndpointSlice`,
  'Part of the places where a service is served.',
  {
    addressType: [4, enumeration(['FQDN', 'IPv4', 'IPv6']), 'IPv4, IPv6 or FQDN; it cannot be changed.'],
    endpoints: [2, list(endpoint), 'The places.'],
    ports: [3, list(endpointPort), 'The ports of all of them.'],
  },
  { required: ['addressType', 'endpoints'] },
);

function addressErrors(address: string, addressType: string, path: string): FieldError[] {
  if (addressType === 'FQDN') return dnsSubdomainErrors(address).map((detail) => invalid(path, address, detail));
  const errors = ipErrors(address, path);
  if (errors.length > 0) return errors;
  const family = addressType === 'IPv6' ? 6 : 4;
  return ipFamily(address) === family ? [] : [invalid(path, address, `must be an IPv${family} address`)];
}

function endpointErrors(endpoint: Fields, addressType: string, path: string): FieldError[] {
  const addresses = textsAt(endpoint, 'addresses');
  const addressesPath = child(path, 'addresses');
  const errors: FieldError[] = [];
  if (has(endpoint, 'addresses') && addresses.length === 0) {
    errors.push(required(addressesPath, 'must contain at least 1 address'));
  }
  if (addresses.length > ADDRESSES_MAX) errors.push(tooMany(addressesPath, addresses.length, ADDRESSES_MAX));
  addresses.forEach((address, index) =>
    errors.push(...addressErrors(address, addressType, child(addressesPath, index))),
  );
  if (has(endpoint, 'hostname')) {
    const hostname = textAt(endpoint, 'hostname');
    errors.push(...dnsLabelErrors(hostname).map((detail) => invalid(child(path, 'hostname'), hostname, detail)));
  }
  return errors;
}

function portsErrors(slice: KubeObject): FieldError[] {
  const ports = objectsAt(slice, 'ports');
  if (ports.length > PORTS_MAX) return [tooMany('ports', ports.length, PORTS_MAX)];
  const names = new Set<string>();
  return ports.flatMap((port, index) => {
    const path = child('ports', index);
    const name = textAt(port, 'name');
    const errors = name === '' ? [] : dnsLabelErrors(name).map((detail) => invalid(child(path, 'name'), name, detail));
    if (names.has(name)) errors.push(duplicate(child(path, 'name'), name));
    names.add(name);
    const protocol = textAt(port, 'appProtocol');
    if (protocol === '') return errors;
    return [
      ...errors,
      ...qualifiedNameErrors(protocol).map((detail) => invalid(child(path, 'appProtocol'), protocol, detail)),
    ];
  });
}

function sliceErrors(slice: KubeObject): FieldError[] {
  const endpoints = objectsAt(slice, 'endpoints');
  if (endpoints.length > ENDPOINTS_MAX) return [tooMany('endpoints', endpoints.length, ENDPOINTS_MAX)];
  const addressType = textAt(slice, 'addressType');
  return [
    ...portsErrors(slice),
    ...endpoints.flatMap((endpoint, index) => endpointErrors(endpoint, addressType, child('endpoints', index))),
  ];
}

/** discovery.k8s.io/v1 EndpointSlice, stored and served. */
export const endpointSliceDefinition: ResourceDefinition = builtin({
  group: 'discovery.k8s.io',
  version: 'v1',
  plural: 'endpointslices',
  kind: 'EndpointSlice',
  namespaced: true,
  schema: endpointSlice,
  hasGeneration: true,
  columns: [
    nameColumn,
    column('AddressType', 'string', 'What the addresses are.', (_spec, _status, slice) => textAt(slice, 'addressType')),
    column('Ports', 'string', 'Ports of the endpoints.', (_spec, _status, slice) =>
      shortList(
        objectsAt(slice, 'ports').map((port) => String(numberAt(port, 'port') ?? (textAt(port, 'name') || '*'))),
      ),
    ),
    column('Endpoints', 'string', 'Addresses of the endpoints.', (_spec, _status, slice) =>
      shortList(objectsAt(slice, 'endpoints').flatMap((endpoint) => textsAt(endpoint, 'addresses'))),
    ),
    ageColumn,
  ],
  strategy: {
    validate: sliceErrors,
    validateUpdate: (slice, old) => immutableErrors(slice.addressType, old.addressType, 'addressType'),
  },
});
