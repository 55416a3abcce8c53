import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../meta.ts';
import { cells, changed, created, lines, object } from './kinds.fixture.ts';
import { limitRangeDefinition } from './limit-range.ts';
import { resourceQuotaDefinition } from './resource-quota.ts';

describe('ResourceQuota', () => {
  const { strategy } = resourceQuotaDefinition;
  const quota = (spec: JsonObject): ReturnType<typeof object> =>
    created(resourceQuotaDefinition, object('ResourceQuota', { spec }));
  const check = (spec: JsonObject): string[] => lines(strategy?.validate?.(quota(spec)) ?? []);

  it('accepts compute, counts and objects of any kind', () => {
    const hard = {
      cpu: '1',
      'limits.memory': '1Gi',
      pods: '10',
      'count/deployments.apps': '5',
      'requests.example.com/gpu': 1,
    };
    expect(check({ hard })).toEqual([]);
    expect(quota({ hard: { cpu: 1.5 } })['spec']).toEqual({ hard: { cpu: '1500m' } });
  });

  it.each<[JsonObject, string]>([
    [{ hard: { cpu: '-1' } }, 'spec.hard[cpu]: Invalid value: "-1": must be greater than or equal to 0'],
    [{ hard: { pods: '1.5' } }, 'spec.hard[pods]: Invalid value: "1500m": must be an integer'],
    [{ hard: { storage: '1' } }, 'spec.hard[storage]: Invalid value: "storage": must be a standard resource for quota'],
    [{ scopes: ['Some'] }, 'spec.scopes: Invalid value: ["Some"]: unsupported scope'],
    [
      { hard: { cpu: '1' }, scopes: ['BestEffort'] },
      'spec.scopes: Invalid value: ["BestEffort"]: unsupported scope applied to resource',
    ],
    [
      { scopes: ['Terminating', 'NotTerminating'] },
      'spec.scopes: Invalid value: ["Terminating","NotTerminating"]: conflicting scopes',
    ],
    [
      { scopeSelector: { matchExpressions: [{ scopeName: 'PriorityClass', operator: 'In' }] } },
      `spec.scopeSelector.matchExpressions.values: Required value: must be at least one value when \`operator\` is 'In' or 'NotIn' for scope selector`,
    ],
    [
      { scopeSelector: { matchExpressions: [{ scopeName: 'BestEffort', operator: 'In', values: ['x'] }] } },
      `spec.scopeSelector.matchExpressions.operator: Invalid value: "In": must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity`,
    ],
  ])('refuses %j', (spec, message) => {
    expect(check(spec)).toEqual([message]);
  });

  it('keeps its scopes', () => {
    const old = quota({ scopes: ['BestEffort'] });
    const update = (changes: { readonly [path: string]: unknown }): string[] =>
      lines(strategy?.validateUpdate?.(changed(old, changes), old) ?? []);
    expect(update({ 'spec.hard': { pods: '1' } })).toEqual([]);
    expect(update({ 'spec.scopes': ['NotBestEffort'] })).toEqual([
      'spec.scopes: Invalid value: ["NotBestEffort"]: field is immutable',
    ]);
  });

  it('shows use and limits', () => {
    const status = {
      hard: { pods: '10', cpu: '2', 'limits.cpu': '4' },
      used: { cpu: '500m', 'limits.cpu': '1' },
    };
    expect(cells(resourceQuotaDefinition, object('ResourceQuota', { status }), 0)).toEqual([
      'a',
      'cpu: 500m/2, pods: 0/10',
      'limits.cpu: 1/4',
      '<unknown>',
    ]);
  });
});

describe('LimitRange', () => {
  const { strategy } = limitRangeDefinition;
  const range = (limit: JsonObject): ReturnType<typeof object> =>
    created(limitRangeDefinition, object('LimitRange', { spec: { limits: [limit] } }));
  const check = (limit: JsonObject): string[] => lines(strategy?.validate?.(range(limit)) ?? []);

  it('completes defaults of containers', () => {
    expect(range({ type: 'Container', max: { cpu: '2000m' }, min: { memory: '1Mi' } })['spec']).toEqual({
      limits: [
        {
          type: 'Container',
          max: { cpu: '2' },
          min: { memory: '1Mi' },
          default: { cpu: '2' },
          defaultRequest: { cpu: '2', memory: '1Mi' },
        },
      ],
    });
  });

  const path = 'spec.limits[0]';
  it.each<[JsonObject, string]>([
    [{ type: 'Node' }, `${path}.type: Invalid value: "Node": must be a standard limit type or fully qualified`],
    [
      { type: 'Pod', min: { cpu: '2' }, max: { cpu: '1' } },
      `${path}.min[cpu]: Invalid value: "2": min value 2 is greater than max value 1`,
    ],
    [{ type: 'Pod', default: { cpu: '1' } }, `${path}.default: Forbidden: may not be specified when \`type\` is 'Pod'`],
    [
      { type: 'Container', default: { cpu: '3' }, max: { cpu: '2' }, defaultRequest: { cpu: '1' } },
      `${path}.default[cpu]: Invalid value: "3": default value 3 is greater than max value 2`,
    ],
    [
      { type: 'PersistentVolumeClaim' },
      `${path}.limits: Required value: either minimum or maximum storage value is required, but neither was provided`,
    ],
    [
      { type: 'Pod', maxLimitRequestRatio: { cpu: '500m' } },
      `${path}.maxLimitRequestRatio[cpu]: Invalid value: "500m": ratio 500m is less than 1`,
    ],
    [
      { type: 'Pod', min: { cpu: '1' }, max: { cpu: '2' }, maxLimitRequestRatio: { cpu: '3' } },
      `${path}.maxLimitRequestRatio[cpu]: Invalid value: "3": ratio 3 is greater than max/min = 2.000000`,
    ],
    [
      { type: 'Container', default: { 'example.com/gpu': '2' }, defaultRequest: { 'example.com/gpu': '1' } },
      `${path}.defaultRequest[example.com/gpu]: Invalid value: "1": default value 2 must equal to defaultRequest value 1 in example.com/gpu`,
    ],
  ])('refuses %j', (limit, message) => {
    expect(check(limit)).toEqual([message]);
  });

  it('has each type once', () => {
    const twice = object('LimitRange', { spec: { limits: [{ type: 'Pod' }, { type: 'Pod' }] } });
    expect(lines(strategy?.validate?.(twice) ?? [])).toEqual(['spec.limits[1].type: Duplicate value: "Pod"']);
  });

  it('shows when it was created', () => {
    const creationTimestamp = '2026-01-01T00:00:00Z';
    expect(cells(limitRangeDefinition, object('LimitRange', {}, { creationTimestamp }), 0)).toEqual([
      'a',
      creationTimestamp,
    ]);
  });
});
