import { child, type FieldError, invalid, required } from '../../field-error.ts';
import { dns1035LabelErrors, dnsSubdomainErrors, portNameErrors, portNumberErrors } from '../../names.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { enumeration, int32, list, message, str } from '../../schema.ts';
import { ageColumn, column, NONE, nameColumn } from '../columns.ts';
import { type Fields, has, numberAt, objectAt, objectsAt, textAt, textsAt } from '../core/fields.ts';
import { ipFamily } from '../core/ip.ts';
import { typedLocalObjectReference } from '../core/schema/references.ts';
import { builtin, objectSchema } from '../meta.ts';

const NETWORKING = 'io.k8s.api.networking.v1';

const serviceBackendPort = message(
  `${NETWORKING}.ServiceBackendPort`,
  "A service's port, by name or by number.",
  {
    name: [1, str(), "The port's name."],
    number: [2, int32(), "The port's number."],
  },
  { 'x-kubernetes-map-type': 'atomic' },
);

const ingressServiceBackend = message(
  `${NETWORKING}.IngressServiceBackend`,
  'The service that requests go to.',
  {
    name: [1, str(), "The service's name."],
    port: [2, serviceBackendPort, "The service's port."],
  },
  { required: ['name'] },
);

const ingressBackend = message(`${NETWORKING}.IngressBackend`, 'Where requests go: a service or another object.', {
  service: [4, ingressServiceBackend, 'A service.'],
  resource: [3, typedLocalObjectReference, 'An object in the same namespace.'],
});

const ingressTLS = message(`${NETWORKING}.IngressTLS`, 'Hosts that TLS is ended for.', {
  hosts: [1, list(str()), 'The hosts that the certificate is for.'],
  secretName: [2, str(), 'The secret with the certificate and its key.'],
});

const httpIngressPath = message(
  `${NETWORKING}.HTTPIngressPath`,
  'Requests by path, and where they go.',
  {
    path: [1, str(), 'The path.'],
    pathType: [
      3,
      enumeration(['Exact', 'ImplementationSpecific', 'Prefix'], { pointer: true }),
      'Exact, Prefix or ImplementationSpecific.',
    ],
    backend: [2, ingressBackend, 'Where they go.'],
  },
  { required: ['pathType', 'backend'] },
);

const httpIngressRuleValue = message(
  `${NETWORKING}.HTTPIngressRuleValue`,
  'The paths of a host.',
  {
    paths: [1, list(httpIngressPath), 'The paths.'],
  },
  { required: ['paths'] },
);

const ingressRule = message(`${NETWORKING}.IngressRule`, 'Requests for a host, and where they go.', {
  host: [1, str(), 'The host; all when empty.'],
  http: [1, { ...httpIngressRuleValue, embedded: 2 }, 'The paths of the host.'],
});

const ingressSpec = message(`${NETWORKING}.IngressSpec`, 'The requests that are let in, and where they go.', {
  ingressClassName: [4, str({ pointer: true }), 'The controller that looks after this Ingress, by class.'],
  defaultBackend: [1, ingressBackend, 'Where requests go that no rule matches.'],
  tls: [2, list(ingressTLS), 'Hosts that TLS is ended for.'],
  rules: [3, list(ingressRule), 'Requests by host.'],
});

const ingressPortStatus = message(
  `${NETWORKING}.IngressPortStatus`,
  'What became of a port.',
  {
    port: [1, int32(), 'The port.'],
    protocol: [2, str(), 'TCP, UDP or SCTP.'],
    error: [3, str({ pointer: true }), 'What is wrong with it.'],
  },
  { required: ['port', 'protocol'] },
);

const ingressLoadBalancerIngress = message(`${NETWORKING}.IngressLoadBalancerIngress`, 'A way in.', {
  ip: [1, str(), 'Its address.'],
  hostname: [2, str(), 'Its host name.'],
  ports: [4, list(ingressPortStatus), 'Its ports.'],
});

const ingressLoadBalancerStatus = message(
  `${NETWORKING}.IngressLoadBalancerStatus`,
  'Ways in through the load balancer.',
  {
    ingress: [1, list(ingressLoadBalancerIngress), 'The ways in.'],
  },
);

const ingressStatus = message(`${NETWORKING}.IngressStatus`, 'Where the Ingress can be reached.', {
  loadBalancer: [1, ingressLoadBalancerStatus, 'Ways in through the load balancer.'],
});

const ingress = objectSchema(
  `${NETWORKING}.Ingress`,
  'Requests that are let in from outside, by host and path. Stored here, enforced by an ingress controller.',
  {
    spec: [2, ingressSpec, 'What is asked for.'],
    status: [3, ingressStatus, 'What was observed.'],
  },
);

const WILDCARD_HOST = /^\*\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;

function hostErrors(host: string, path: string): FieldError[] {
  if (host === '') return [];
  if (host.includes('*')) {
    const detail = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain";
    return WILDCARD_HOST.test(host) ? [] : [invalid(path, host, detail)];
  }
  const errors = dnsSubdomainErrors(host).map((detail) => invalid(path, host, detail));
  return ipFamily(host) === undefined
    ? errors
    : [invalid(path, host, 'must be a DNS name, not an IP address'), ...errors];
}

function backendErrors(backend: Fields | undefined, path: string): FieldError[] {
  const service = objectAt(backend, 'service');
  if (has(backend, 'resource') && service !== undefined) {
    return [invalid(path, '', 'cannot set both resource and service backends')];
  }
  if (has(backend, 'resource')) return [];
  if (service === undefined) return [invalid(path, '', 'resource or service backend is required')];
  const name = textAt(service, 'name');
  const errors = has(service, 'name') && name === '' ? [required(child(path, 'service.name'))] : [];
  if (name !== '') {
    errors.push(...dns1035LabelErrors(name).map((detail) => invalid(child(path, 'service.name'), name, detail)));
  }
  return [...errors, ...backendPortErrors(objectAt(service, 'port'), path)];
}

function backendPortErrors(port: Fields | undefined, path: string): FieldError[] {
  const name = textAt(port, 'name');
  const number = numberAt(port, 'number') ?? 0;
  if (name !== '' && number !== 0) return [invalid(path, '', 'cannot set both port name & port number')];
  if (name !== '') return portNameErrors(name).map((detail) => invalid(child(path, 'service.port.name'), name, detail));
  if (number === 0) return [required(path, 'port name or number is required')];
  return portNumberErrors(number).map((detail) => invalid(child(path, 'service.port.number'), number, detail));
}

const FORBIDDEN_SEQUENCES = ['//', '/./', '/../', '%2f', '%2F'];
const FORBIDDEN_SUFFIXES = ['/..', '/.'];

function pathErrors(rule: Fields, path: string): FieldError[] {
  const value = textAt(rule, 'path');
  const valuePath = child(path, 'path');
  const isExactOrPrefix = ['Exact', 'Prefix'].includes(textAt(rule, 'pathType'));
  const errors: FieldError[] = [];
  if ((isExactOrPrefix || value !== '') && !value.startsWith('/')) {
    errors.push(invalid(valuePath, value, 'must be an absolute path'));
  }
  if (isExactOrPrefix) {
    for (const sequence of FORBIDDEN_SEQUENCES) {
      if (value.includes(sequence)) errors.push(invalid(valuePath, value, `must not contain '${sequence}'`));
    }
    for (const suffix of FORBIDDEN_SUFFIXES) {
      if (value.endsWith(suffix)) errors.push(invalid(valuePath, value, `cannot end with '${suffix}'`));
    }
  }
  return has(rule, 'backend')
    ? [...errors, ...backendErrors(objectAt(rule, 'backend'), child(path, 'backend'))]
    : errors;
}

function specErrors(spec: Fields | undefined): FieldError[] {
  const rules = objectsAt(spec, 'rules');
  const errors: FieldError[] = [];
  if (rules.length === 0 && !has(spec, 'defaultBackend')) {
    errors.push(invalid('spec', null, 'either `defaultBackend` or `rules` must be specified'));
  }
  if (has(spec, 'defaultBackend'))
    errors.push(...backendErrors(objectAt(spec, 'defaultBackend'), 'spec.defaultBackend'));
  rules.forEach((rule, index) => {
    const path = child('spec.rules', index);
    errors.push(...hostErrors(textAt(rule, 'host'), child(path, 'host')));
    const http = objectAt(rule, 'http');
    const paths = objectsAt(http, 'paths');
    if (has(http, 'paths') && paths.length === 0) errors.push(required(child(path, 'http.paths')));
    paths.forEach((each, at) => errors.push(...pathErrors(each, child(child(path, 'http.paths'), at))));
  });
  objectsAt(spec, 'tls').forEach((tls, index) => {
    const path = child(child('spec.tls', index), 'hosts');
    textsAt(tls, 'hosts').forEach((host, at) => errors.push(...hostErrors(host, child(path, at))));
  });
  return errors;
}

function hostsText(spec: Fields | undefined): string {
  const rules = objectsAt(spec, 'rules');
  const hosts = rules.map((rule) => textAt(rule, 'host')).filter((host) => host !== '');
  if (hosts.length === 0) return '*';
  return hosts.length > 3 ? `${hosts.slice(0, 3).join(',')} + ${rules.length - 3} more...` : hosts.join(',');
}

function addressText(status: Fields | undefined): string {
  const points = objectsAt(objectAt(status, 'loadBalancer'), 'ingress');
  const addresses = points
    .map((point) => textAt(point, 'ip') || textAt(point, 'hostname'))
    .filter((each) => each !== '');
  return [...new Set(addresses)].toSorted().join(',');
}

/** networking.k8s.io/v1 Ingress, stored and served; an ingress controller enforces it. */
export const ingressDefinition: ResourceDefinition = builtin({
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'ingresses',
  kind: 'Ingress',
  namespaced: true,
  shortNames: ['ing'],
  schema: ingress,
  hasStatus: true,
  hasGeneration: true,
  columns: [
    nameColumn,
    column(
      'Class',
      'string',
      'The controller that looks after it.',
      (spec) => textAt(spec, 'ingressClassName') || NONE,
    ),
    column('Hosts', 'string', 'Hosts that requests are let in for.', (spec) => hostsText(spec)),
    column('Address', 'string', 'Where it can be reached.', (_spec, status) => addressText(status)),
    column('Ports', 'string', 'Ports that are open.', (spec) => (objectsAt(spec, 'tls').length > 0 ? '80, 443' : '80')),
    ageColumn,
  ],
  strategy: {
    prepareForCreate(object) {
      object.status = { loadBalancer: {} };
    },
    validate: (object) => specErrors(objectAt(object, 'spec')),
  },
});
