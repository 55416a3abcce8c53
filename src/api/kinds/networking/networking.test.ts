import { describe, expect, it } from 'vitest';
import { created, createErrors } from '../test-kinds.ts';
import { ingressDefinition } from './ingress.ts';
import { networkPolicyDefinition } from './network-policy.ts';

describe('a NetworkPolicy', () => {
  it('is about what it has rules for', () => {
    expect(created(networkPolicyDefinition, { spec: {} })).toMatchObject({ spec: { policyTypes: ['Ingress'] } });
    expect(created(networkPolicyDefinition, { spec: { egress: [{}] } })).toMatchObject({
      spec: { policyTypes: ['Ingress', 'Egress'] },
    });
    expect(created(networkPolicyDefinition, { spec: { policyTypes: ['Egress'] } })).toMatchObject({
      spec: { policyTypes: ['Egress'] },
    });
  });

  it.each<[object, string[]]>([
    [{ ingress: [{ ports: [{ port: 80, endPort: 90 }], from: [{ podSelector: {}, namespaceSelector: {} }] }] }, []],
    [
      { egress: [{ ports: [{ port: 'http' }], to: [{ ipBlock: { cidr: '10.0.0.0/8', except: ['10.1.0.0/16'] } }] }] },
      [],
    ],
    [{ ingress: [{ from: [{}] }] }, ['spec.ingress[0].from[0]: Required value: must specify a peer']],
    [
      { egress: [{ to: [{ ipBlock: { cidr: '10.0.0.0/8' }, podSelector: {} }] }] },
      ['spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer'],
    ],
    [
      { ingress: [{ ports: [{ endPort: 90 }] }] },
      ['spec.ingress[0].ports[0].endPort: Invalid value: 90: may not be specified when `port` is not specified'],
    ],
    [
      { ingress: [{ ports: [{ port: 90, endPort: 80 }] }] },
      ['spec.ingress[0].ports[0].endPort: Invalid value: 90: must be greater than or equal to `port`'],
    ],
    [
      { policyTypes: ['Sideways'] },
      ['spec.policyTypes[0]: Unsupported value: "Sideways": supported values: "Ingress", "Egress"'],
    ],
  ])('with %j', (spec, errors) => {
    expect(createErrors(networkPolicyDefinition, { spec: { podSelector: {}, ...spec } })).toEqual(errors);
  });

  it('has ranges that are ranges', () => {
    const spec = { podSelector: {}, ingress: [{ from: [{ ipBlock: { cidr: 'x' } }] }] };
    expect(createErrors(networkPolicyDefinition, { spec })).toHaveLength(1);
  });
});

describe('an Ingress', () => {
  const backend = { service: { name: 's', port: { number: 80 } } };
  const ruleWith = (path: object): object => ({
    rules: [{ http: { paths: [{ pathType: 'Prefix', path: '/', backend, ...path }] } }],
  });

  it.each<[object, string[]]>([
    [{ defaultBackend: backend }, []],
    [{ ...ruleWith({}), tls: [{ hosts: ['*.example.com'], secretName: 's' }] }, []],
    [ruleWith({ pathType: 'ImplementationSpecific', path: '' }), []],
    [{}, ['spec: Invalid value: null: either `defaultBackend` or `rules` must be specified']],
    [{ defaultBackend: {} }, ['spec.defaultBackend: Invalid value: "": resource or service backend is required']],
    [
      { defaultBackend: { service: { name: 's', port: {} } } },
      ['spec.defaultBackend: Required value: port name or number is required'],
    ],
    [
      { defaultBackend: { service: { name: 's', port: { name: 'a', number: 1 } } } },
      ['spec.defaultBackend: Invalid value: "": cannot set both port name & port number'],
    ],
    [ruleWith({ path: 'x' }), ['spec.rules[0].http.paths[0].path: Invalid value: "x": must be an absolute path']],
    [ruleWith({ path: '/a//b' }), [`spec.rules[0].http.paths[0].path: Invalid value: "/a//b": must not contain '//'`]],
    [ruleWith({ path: '/a/..' }), [`spec.rules[0].http.paths[0].path: Invalid value: "/a/..": cannot end with '/..'`]],
    [
      { rules: [{ host: '1.2.3.4' }] },
      ['spec.rules[0].host: Invalid value: "1.2.3.4": must be a DNS name, not an IP address'],
    ],
  ])('with %j', (spec, errors) => {
    expect(createErrors(ingressDefinition, { spec })).toEqual(errors);
  });

  it('has wildcards at the beginning only', () => {
    expect(createErrors(ingressDefinition, { spec: { rules: [{ host: 'a.*.com' }] } })).toHaveLength(1);
    expect(createErrors(ingressDefinition, { spec: { rules: [{ host: '*.a.com' }] } })).toEqual([]);
  });
});
