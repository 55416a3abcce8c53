import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../meta.ts';
import { cells, changed, created, lines, object } from './kinds.fixture.ts';
import { nodeDefinition } from './node.ts';

const { strategy } = nodeDefinition;
const check = (fields: JsonObject): string[] => lines(strategy?.validate?.(object('Node', fields)) ?? []);

describe('Node', () => {
  it('has as much for pods as it has, unless it says otherwise', () => {
    const node = created(nodeDefinition, object('Node', { status: { capacity: { cpu: '2000m', memory: '1024Mi' } } }));
    expect(node['status']).toEqual({
      capacity: { cpu: '2', memory: '1Gi' },
      allocatable: { cpu: '2', memory: '1Gi' },
    });
  });

  it.each<[JsonObject, JsonObject]>([
    [{ podCIDR: 'a' }, { podCIDR: 'a', podCIDRs: ['a'] }],
    [{ podCIDRs: ['a', 'b'] }, { podCIDR: 'a', podCIDRs: ['a', 'b'] }],
    [
      { podCIDR: 'a', podCIDRs: ['a', 'b'] },
      { podCIDR: 'a', podCIDRs: ['a', 'b'] },
    ],
    [
      { podCIDR: 'a', podCIDRs: ['b'] },
      { podCIDR: 'a', podCIDRs: ['a'] },
    ],
    [{}, {}],
  ])('says its range in both places: %j', (spec, expected) => {
    expect(created(nodeDefinition, object('Node', { spec }))['spec']).toEqual(expected);
  });

  it.each<[JsonObject, string | RegExp]>([
    [
      { spec: { taints: [{ key: 'a', effect: 'Never' }] } },
      'metadata.taints[0].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"',
    ],
    [{ spec: { taints: [{ key: 'a', effect: '' }] } }, 'metadata.taints[0].effect: Required value'],
    [
      { spec: { taints: [{ key: 'a b', effect: 'NoExecute' }] } },
      /^metadata\.taints\[0\]\.key: Invalid value: "a b": name/,
    ],
    [
      {
        spec: {
          taints: [
            { key: 'a', effect: 'NoExecute' },
            { key: 'a', value: 'x', effect: 'NoExecute' },
          ],
        },
      },
      'metadata.taints[1]: Duplicate value: {"key":"a","value":"x","effect":"NoExecute"}: taints must be unique by key and effect pair',
    ],
    [
      { spec: { podCIDRs: ['10.0.0.0/99'] } },
      'spec.podCIDRs[0]: Invalid value: "10.0.0.0/99": must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)',
    ],
    [
      { spec: { podCIDRs: ['10.0.0.0/24', '10.1.0.0/24'] } },
      'spec.podCIDRs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one CIDR for each IP family',
    ],
    [
      { status: { capacity: { cpu: '-1' } } },
      'status.capacity.cpu: Invalid value: "-1": must be greater than or equal to 0',
    ],
    [
      {
        status: {
          addresses: [
            { type: 'Hostname', address: 'a' },
            { type: 'Hostname', address: 'a' },
          ],
        },
      },
      'status.addresses[1]: Duplicate value: {"type":"Hostname","address":"a"}',
    ],
  ])('refuses %j', (fields, message) => {
    const errors = check(fields);
    expect(errors).toHaveLength(1);
    if (typeof message === 'string') expect(errors[0]).toBe(message);
    else expect(errors[0]).toMatch(message);
  });

  it('accepts equal keys with other effects', () => {
    expect(
      check({
        spec: {
          taints: [
            { key: 'a', effect: 'NoExecute' },
            { key: 'a', effect: 'NoSchedule' },
          ],
        },
      }),
    ).toEqual([]);
  });

  it('lets ranges and provider be set once', () => {
    const old = object('Node', { spec: { podCIDRs: ['10.0.0.0/24'], providerID: 'x' } });
    const update = (changes: { readonly [path: string]: unknown }): string[] =>
      lines(strategy?.validateUpdate?.(changed(old, changes), old) ?? []);
    expect(update({ 'spec.unschedulable': true, 'spec.taints': [] })).toEqual([]);
    expect(update({ 'spec.podCIDRs': undefined, 'spec.providerID': 'y' })).toEqual([
      'spec.podCIDRs: Forbidden: node updates may not change podCIDR except from "" to valid',
      'spec.providerID: Forbidden: node updates may not change providerID except from "" to valid',
    ]);
    const fresh = object('Node', { spec: {} });
    expect(strategy?.validateUpdate?.(old, fresh)).toEqual([]);
  });

  it('shows status and roles', () => {
    const nodeInfo = {
      kubeletVersion: 'v1.34.0',
      osImage: 'Debian',
      kernelVersion: '6.1',
      containerRuntimeVersion: 'qemu://9',
    };
    const node = object(
      'Node',
      {
        spec: { unschedulable: true },
        status: {
          nodeInfo,
          conditions: [{ type: 'Ready', status: 'True' }],
          addresses: [{ type: 'InternalIP', address: '10.0.0.1' }],
        },
      },
      {
        labels: {
          'node-role.kubernetes.io/worker': '',
          'node-role.kubernetes.io/control-plane': '',
          'kubernetes.io/role': 'x',
        },
      },
    );
    expect(cells(nodeDefinition, node, 0)).toEqual([
      'a',
      'Ready,SchedulingDisabled',
      'control-plane,worker,x',
      '<unknown>',
      'v1.34.0',
      '10.0.0.1',
      '<none>',
      'Debian',
      '6.1',
      'qemu://9',
    ]);
    const status = (conditions: JsonObject[]): unknown =>
      cells(nodeDefinition, object('Node', { status: { conditions } }), 0)[1];
    expect(status([])).toBe('Unknown');
    expect(status([{ type: 'Ready', status: 'Unknown' }])).toBe('NotReady');
    expect(cells(nodeDefinition, object('Node', {}), 0).slice(2)).toEqual([
      '<none>',
      '<unknown>',
      '',
      '<none>',
      '<none>',
      '<unknown>',
      '<unknown>',
      '<unknown>',
    ]);
  });
});
