import { child, type FieldError, forbidden, invalid, notSupported, required } from '../../field-error.ts';
import { portNameErrors, portNumberErrors } from '../../names.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { enumeration, int32, intOrString, list, message, str } from '../../schema.ts';
import { ageColumn, column, nameColumn, selectorText } from '../columns.ts';
import { type Fields, has, numberAt, objectAt, objectsAt, textAt, textsAt } from '../core/fields.ts';
import { cidrErrors } from '../core/ip.ts';
import { builtin, labelSelector, objectSchema } from '../meta.ts';
import { labelSelectorErrors } from '../validation.ts';

const NETWORKING = 'io.k8s.api.networking.v1';
const POLICY_TYPES = ['Ingress', 'Egress'];

const networkPolicyPort = message(`${NETWORKING}.NetworkPolicyPort`, 'A port that traffic is allowed to.', {
  protocol: [1, enumeration(['SCTP', 'TCP', 'UDP'], { pointer: true, default: 'TCP' }), 'TCP, UDP or SCTP.'],
  port: [2, intOrString(), 'The port, by number or name; all when left out.'],
  endPort: [3, int32({ pointer: true }), 'The last port of a range that begins with port.'],
});

const ipBlock = message(
  `${NETWORKING}.IPBlock`,
  'A range of addresses.',
  {
    cidr: [1, str(), 'The range.'],
    except: [2, list(str()), 'Ranges within it that are left out.'],
  },
  { required: ['cidr'] },
);

const networkPolicyPeer = message(`${NETWORKING}.NetworkPolicyPeer`, 'Whom traffic is allowed from or to.', {
  podSelector: [1, labelSelector, 'Pods, by label.'],
  namespaceSelector: [2, labelSelector, 'Namespaces, by label.'],
  ipBlock: [3, ipBlock, 'A range of addresses.'],
});

const networkPolicyIngressRule = message(`${NETWORKING}.NetworkPolicyIngressRule`, 'Traffic that is allowed in.', {
  ports: [1, list(networkPolicyPort), 'The ports; all when empty.'],
  from: [2, list(networkPolicyPeer), 'The sources; all when empty.'],
});

const networkPolicyEgressRule = message(`${NETWORKING}.NetworkPolicyEgressRule`, 'Traffic that is allowed out.', {
  ports: [1, list(networkPolicyPort), 'The ports; all when empty.'],
  to: [2, list(networkPolicyPeer), 'The destinations; all when empty.'],
});

const networkPolicySpec = message(`${NETWORKING}.NetworkPolicySpec`, 'The traffic that is allowed.', {
  podSelector: [1, labelSelector, 'The pods that the policy is about.'],
  ingress: [2, list(networkPolicyIngressRule), 'Traffic that is allowed in.'],
  egress: [3, list(networkPolicyEgressRule), 'Traffic that is allowed out.'],
  policyTypes: [4, list(str()), 'Ingress, Egress or both.'],
});

const networkPolicy = objectSchema(
  `${NETWORKING}.NetworkPolicy`,
  'Traffic that a set of pods may receive and send. Stored here, enforced by whoever runs the network.',
  {
    spec: [2, networkPolicySpec, 'What is asked for.'],
  },
);

function portErrors(port: Fields, path: string): FieldError[] {
  const value = port['port'];
  const endPort = numberAt(port, 'endPort');
  const endPath = child(path, 'endPort');
  if (typeof value === 'number') {
    const errors = portNumberErrors(value).map((detail) => invalid(child(path, 'port'), value, detail));
    if (endPort === undefined) return errors;
    if (endPort < value) errors.push(invalid(endPath, value, 'must be greater than or equal to `port`'));
    return [...errors, ...portNumberErrors(endPort).map((detail) => invalid(endPath, endPort, detail))];
  }
  const state = typeof value === 'string' ? 'non-numeric' : 'not specified';
  const errors =
    endPort === undefined ? [] : [invalid(endPath, endPort, `may not be specified when \`port\` is ${state}`)];
  if (typeof value !== 'string') return errors;
  return [...errors, ...portNameErrors(value).map((detail) => invalid(child(path, 'port'), value, detail))];
}

function peerErrors(peer: Fields, path: string): FieldError[] {
  const count = ['podSelector', 'namespaceSelector', 'ipBlock'].filter((field) => has(peer, field)).length;
  const errors = [
    ...labelSelectorErrors(objectAt(peer, 'podSelector'), child(path, 'podSelector')),
    ...labelSelectorErrors(objectAt(peer, 'namespaceSelector'), child(path, 'namespaceSelector')),
    ...blockErrors(objectAt(peer, 'ipBlock'), child(path, 'ipBlock')),
  ];
  if (count === 0) errors.push(required(path, 'must specify a peer'));
  else if (count > 1 && has(peer, 'ipBlock')) {
    errors.push(forbidden(path, 'may not specify both ipBlock and another peer'));
  }
  return errors;
}

function blockErrors(block: Fields | undefined, path: string): FieldError[] {
  if (!has(block, 'cidr')) return [];
  const cidr = textAt(block, 'cidr');
  if (cidr === '') return [required(child(path, 'cidr'))];
  return [
    ...cidrErrors(cidr, child(path, 'cidr')),
    ...textsAt(block, 'except').flatMap((range, index) => cidrErrors(range, child(child(path, 'except'), index))),
  ];
}

function specErrors(spec: Fields | undefined): FieldError[] {
  const errors = labelSelectorErrors(objectAt(spec, 'podSelector'), 'spec.podSelector');
  for (const [direction, peers] of [
    ['ingress', 'from'],
    ['egress', 'to'],
  ] as const) {
    objectsAt(spec, direction).forEach((rule, index) => {
      const path = child(child('spec', direction), index);
      objectsAt(rule, 'ports').forEach((port, at) => errors.push(...portErrors(port, child(child(path, 'ports'), at))));
      objectsAt(rule, peers).forEach((peer, at) => errors.push(...peerErrors(peer, child(child(path, peers), at))));
    });
  }
  const types = textsAt(spec, 'policyTypes');
  if (types.length > POLICY_TYPES.length) {
    return [...errors, invalid('spec.policyTypes', types, 'may not specify more than two policyTypes')];
  }
  types.forEach((type, index) => {
    if (!POLICY_TYPES.includes(type)) errors.push(notSupported(child('spec.policyTypes', index), type, POLICY_TYPES));
  });
  return errors;
}

/** networking.k8s.io/v1 NetworkPolicy, stored and served; whoever runs the network enforces it. */
export const networkPolicyDefinition: ResourceDefinition = builtin({
  group: 'networking.k8s.io',
  version: 'v1',
  plural: 'networkpolicies',
  kind: 'NetworkPolicy',
  namespaced: true,
  shortNames: ['netpol'],
  schema: networkPolicy,
  hasGeneration: true,
  columns: [
    nameColumn,
    column('Pod-Selector', 'string', 'The pods that it is about.', (spec) =>
      selectorText(objectAt(spec, 'podSelector')),
    ),
    ageColumn,
  ],
  strategy: {
    applyDefaults(object) {
      const spec = objectAt(object, 'spec');
      if (spec === undefined || textsAt(spec, 'policyTypes').length > 0) return;
      spec['policyTypes'] = objectsAt(spec, 'egress').length > 0 ? ['Ingress', 'Egress'] : ['Ingress'];
    },
    validate: (object) => specErrors(objectAt(object, 'spec')),
  },
});
