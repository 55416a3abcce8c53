import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../../meta.ts';
import { endpointsDefinition } from '../endpoints.ts';
import { cells, changed, created, lines, object } from '../kinds.fixture.ts';
import { serviceDefinition } from './definition.ts';

const { strategy } = serviceDefinition;
const service = (spec: JsonObject, name = 'web'): ReturnType<typeof object> =>
  created(serviceDefinition, object('Service', { spec: { ports: [{ port: 80 }], ...spec } }, { name }));
const check = (spec: JsonObject, name = 'web'): string[] => lines(strategy?.validate?.(service(spec, name)) ?? []);

describe('Service', () => {
  it('is a ClusterIP with ports of TCP by default, without an address', () => {
    expect(service({})['spec']).toEqual({
      type: 'ClusterIP',
      sessionAffinity: 'None',
      internalTrafficPolicy: 'Cluster',
      ports: [{ port: 80, protocol: 'TCP', targetPort: 80 }],
    });
    expect(service({})['status']).toEqual({ loadBalancer: {} });
    expect(check({})).toEqual([]);
  });

  it.each<[JsonObject, JsonObject]>([
    [{ ports: [{ port: 80, targetPort: 0 }] }, { ports: [{ targetPort: 80 }] }],
    [{ ports: [{ port: 80, targetPort: 'http' }] }, { ports: [{ targetPort: 'http' }] }],
    [{ clusterIP: 'None' }, { clusterIPs: ['None'] }],
    [{ type: 'NodePort' }, { externalTrafficPolicy: 'Cluster' }],
    [{ type: 'LoadBalancer' }, { allocateLoadBalancerNodePorts: true, externalTrafficPolicy: 'Cluster' }],
    [{ sessionAffinity: 'ClientIP' }, { sessionAffinityConfig: { clientIP: { timeoutSeconds: 10_800 } } }],
  ])('completes %j', (spec, expected) => {
    const completed = service(spec);
    expect(completed['spec']).toMatchObject(expected);
    expect(strategy?.validate?.(completed)).toEqual([]);
  });

  it.each<[JsonObject, string | RegExp]>([
    [{ ports: [] }, 'spec.ports: Required value'],
    [{ ports: [{ port: 0 }] }, 'spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive'],
    [{ ports: [{ port: 1 }, { port: 2, name: 'b' }] }, 'spec.ports[0].name: Required value'],
    [
      {
        ports: [
          { port: 1, name: 'a' },
          { port: 2, name: 'a' },
        ],
      },
      'spec.ports[1].name: Duplicate value: "a"',
    ],
    [
      {
        ports: [
          { port: 1, name: 'a' },
          { port: 1, name: 'b' },
        ],
      },
      'spec.ports[1]: Duplicate value: {"port":1,"protocol":"TCP"}',
    ],
    [
      { ports: [{ port: 1, nodePort: 30_000 }] },
      `spec.ports[0].nodePort: Forbidden: may not be used when \`type\` is 'ClusterIP'`,
    ],
    [{ ports: [{ port: 1, targetPort: 'UP' }] }, /^spec\.ports\[0\]\.targetPort: Invalid value: "UP"/],
    [
      { clusterIP: 'x' },
      'spec.clusterIPs[0]: Invalid value: "x": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
    [
      { clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.2'] },
      'spec.clusterIPs: Invalid value: ["10.0.0.2"]: first value must match `clusterIP`',
    ],
    [
      { type: 'NodePort', clusterIP: 'None' },
      `spec.clusterIPs[0]: Invalid value: "None": may not be set to 'None' for NodePort services`,
    ],
    [{ type: 'ExternalName' }, 'spec.externalName: Required value'],
    [
      { type: 'ExternalName', externalName: 'a.b.', clusterIP: '10.0.0.1' },
      'spec.clusterIPs: Forbidden: may not be set for ExternalName services',
    ],
    [
      { externalTrafficPolicy: 'Local' },
      'spec.externalTrafficPolicy: Invalid value: "Local": may only be set for externally-accessible services',
    ],
    [
      { loadBalancerSourceRanges: ['10.0.0.0/8'] },
      `spec.LoadBalancerSourceRanges: Forbidden: may only be used when \`type\` is 'LoadBalancer'`,
    ],
    [
      { sessionAffinity: 'ClientIP', sessionAffinityConfig: { clientIP: { timeoutSeconds: 0 } } },
      'spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be greater than 0 and less than 86400',
    ],
    [
      { trafficDistribution: 'x' },
      'spec.trafficDistribution: Unsupported value: "x": supported values: "PreferClose", "PreferSameZone", "PreferSameNode"',
    ],
    [{ selector: { a: '!' } }, /^spec\.selector: Invalid value: "!"/],
  ])('refuses %j', (spec, message) => {
    const errors = check(spec);
    if (typeof message === 'string') expect(errors).toContain(message);
    else expect(errors.join('\n')).toMatch(message);
  });

  it('has a name that begins with a letter', () => {
    expect(check({}, '1a')).toEqual([
      `metadata.name: Invalid value: "1a": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`,
    ]);
  });

  it('keeps its address', () => {
    const old = service({ clusterIP: '10.0.0.1' });
    const replaced = changed(old, { 'spec.clusterIP': undefined, 'spec.clusterIPs': undefined });
    strategy?.prepareForUpdate?.(replaced, old);
    expect(replaced['spec']).toMatchObject({ clusterIP: '10.0.0.1', clusterIPs: ['10.0.0.1'] });
    const other = changed(old, { 'spec.clusterIP': '10.0.0.2', 'spec.clusterIPs': ['10.0.0.2'] });
    expect(lines(strategy?.validateUpdate?.(other, old) ?? [])).toEqual([
      'spec.clusterIPs[0]: Invalid value: ["10.0.0.2"]: may not change once set',
    ]);
  });

  it('drops what another type has no use for', () => {
    const old = service({ type: 'NodePort', ports: [{ port: 80, nodePort: 30_000 }], clusterIP: '10.0.0.1' });
    const plain = changed(old, { 'spec.type': 'ClusterIP' });
    strategy?.prepareForUpdate?.(plain, old);
    expect(strategy?.validate?.(plain)).toEqual([]);
    const name = changed(old, { 'spec.type': 'ExternalName', 'spec.externalName': 'a.b' });
    strategy?.prepareForUpdate?.(name, old);
    expect(strategy?.validate?.(name)).toEqual([]);
    expect(strategy?.validateUpdate?.(name, old)).toEqual([]);
  });

  it.each<[JsonObject, JsonObject, unknown[]]>([
    [{}, {}, ['web', 'ClusterIP', '<none>', '<none>', '80/TCP', '<unknown>', '<none>']],
    [
      { clusterIP: 'None', ports: [], selector: { b: '2', a: '1' } },
      {},
      ['web', 'ClusterIP', 'None', '<none>', '<none>', '<unknown>', 'a=1,b=2'],
    ],
    [
      { type: 'LoadBalancer', ports: [{ port: 80, nodePort: 30_000 }] },
      {},
      ['web', 'LoadBalancer', '<none>', '<pending>', '80:30000/TCP', '<unknown>', '<none>'],
    ],
    [
      { type: 'LoadBalancer', externalIPs: ['2.2.2.2'] },
      { loadBalancer: { ingress: [{ ip: '1.1.1.1' }, { hostname: 'lb' }] } },
      ['web', 'LoadBalancer', '<none>', '1.1.1.1,lb,2.2.2.2', '80/TCP', '<unknown>', '<none>'],
    ],
    [
      { type: 'ExternalName', externalName: 'a.b', ports: [] },
      {},
      ['web', 'ExternalName', '<none>', 'a.b', '<none>', '<unknown>', '<none>'],
    ],
  ])('shows %j', (spec, status, row) => {
    expect(cells(serviceDefinition, { ...service(spec), status }, 0)).toEqual(row);
  });
});

describe('Endpoints', () => {
  const endpoints = (subset: JsonObject): ReturnType<typeof object> =>
    created(endpointsDefinition, object('Endpoints', { subsets: [subset] }));
  const check = (subset: JsonObject): string[] =>
    lines(endpointsDefinition.strategy?.validate?.(endpoints(subset)) ?? []);

  it('are TCP by default', () => {
    expect(endpoints({ addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 80 }] })['subsets']).toMatchObject([
      { ports: [{ protocol: 'TCP' }] },
    ]);
  });

  it.each<[JsonObject, string]>([
    [{}, 'subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`'],
    [
      { addresses: [{ ip: '' }] },
      'subsets[0].addresses[0].ip: Invalid value: "": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)',
    ],
    [
      { addresses: [{ ip: '127.0.0.1' }] },
      'subsets[0].addresses[0].ip: Invalid value: "127.0.0.1": may not be in the loopback range (127.0.0.0/8, ::1/128)',
    ],
    [
      { notReadyAddresses: [{ ip: 'fe80::1' }] },
      'subsets[0].notReadyAddresses[0].ip: Invalid value: "fe80::1": may not be in the link-local range (169.254.0.0/16, fe80::/10)',
    ],
    [
      { addresses: [{ ip: '10.0.0.1' }], ports: [{ port: 1, name: 'a' }, { port: 2 }] },
      'subsets[0].ports[1].name: Required value',
    ],
  ])('refuses %j', (subset, message) => {
    expect(check(subset)).toEqual([message]);
  });

  it('show the first three', () => {
    const addresses = ['10.0.0.1', '10.0.0.2', '2001:db8::1', '10.0.0.4'].map((ip) => ({ ip }));
    const shown = (subset: JsonObject): unknown => cells(endpointsDefinition, endpoints(subset), 0)[1];
    expect(shown({ addresses, ports: [{ port: 80 }] })).toBe('10.0.0.1:80,10.0.0.2:80,[2001:db8::1]:80 + 1 more...');
    expect(shown({ addresses: addresses.slice(0, 1) })).toBe('10.0.0.1');
    expect(cells(endpointsDefinition, object('Endpoints', {}), 0)[1]).toBe('<none>');
  });
});
