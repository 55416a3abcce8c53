import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../api/meta.ts';
import { formatQuantity } from '../api/quantity.ts';
import { trackedNames, usageOf } from './quota.ts';

const PODS = { group: '', plural: 'pods' };
const NOW_MS = Date.UTC(2026, 0, 1, 0, 1, 0);

function usage(resource: { group: string; plural: string }, fields: Record<string, unknown>): Record<string, string> {
  const { metadata, ...rest } = fields;
  const object: KubeObject = { apiVersion: 'v1', kind: 'X', metadata: { name: 'x', ...(metadata as object) }, ...rest };
  return Object.fromEntries([...usageOf(resource, object, NOW_MS)].map(([name, each]) => [name, formatQuantity(each)]));
}

describe('usageOf', () => {
  it('measures a pod in every name that quotas have for it', () => {
    const resources = {
      requests: { cpu: '1', memory: '1Gi', 'hugepages-2Mi': '4Mi', 'nvidia.com/gpu': '2', 'ephemeral-storage': '1Gi' },
      limits: { cpu: '2', memory: '2Gi', 'nvidia.com/gpu': '2' },
    };
    expect(usage(PODS, { spec: { containers: [{ resources }] } })).toEqual({
      'count/pods': '1',
      pods: '1',
      cpu: '1',
      'requests.cpu': '1',
      'limits.cpu': '2',
      memory: '1Gi',
      'requests.memory': '1Gi',
      'limits.memory': '2Gi',
      'ephemeral-storage': '1Gi',
      'requests.ephemeral-storage': '1Gi',
      'hugepages-2Mi': '4Mi',
      'requests.hugepages-2Mi': '4Mi',
      'requests.nvidia.com/gpu': '2',
    });
  });

  it.each([
    ['running', { status: { phase: 'Running' } }, true],
    ['finished', { status: { phase: 'Succeeded' } }, false],
    ['failed', { status: { phase: 'Failed' } }, false],
    [
      'terminating in time',
      { metadata: { deletionTimestamp: '2026-01-01T00:00:50Z', deletionGracePeriodSeconds: 30 } },
      true,
    ],
    [
      'terminating for too long',
      { metadata: { deletionTimestamp: '2026-01-01T00:00:20Z', deletionGracePeriodSeconds: 30 } },
      false,
    ],
  ])('a pod that is %s', (_, fields, isCharged) => {
    expect(usage(PODS, { spec: { containers: [] }, ...fields })).toEqual({
      'count/pods': '1',
      ...(isCharged ? { pods: '1' } : {}),
    });
  });

  it('rounds claimed storage up to whole bytes and takes what was allocated if that is more', () => {
    const resource = { group: '', plural: 'persistentvolumeclaims' };
    const spec = { resources: { requests: { storage: '1500m' } } };
    expect(usage(resource, { spec })['requests.storage']).toBe('2');
    const status = { allocatedResources: { storage: '1Gi' } };
    expect(usage(resource, { spec, status })['requests.storage']).toBe('1Gi');
  });

  it('counts other kinds by resource and group', () => {
    expect(usage({ group: 'apps', plural: 'deployments' }, {})).toEqual({ 'count/deployments.apps': '1' });
    expect(usage({ group: '', plural: 'secrets' }, {})).toEqual({ 'count/secrets': '1', secrets: '1' });
    expect(usage({ group: 'example.com', plural: 'pods' }, {})).toEqual({ 'count/pods.example.com': '1' });
  });
});

describe('trackedNames', () => {
  const all = [
    'pods',
    'count/pods',
    'requests.cpu',
    'requests.nvidia.com/gpu',
    'requests.storage',
    'hugepages-1Gi',
    'services',
    'configmaps',
    'count/deployments.apps',
    'gold.storageclass.storage.k8s.io/requests.storage',
  ];

  it.each([
    [PODS, ['count/pods', 'hugepages-1Gi', 'pods', 'requests.cpu', 'requests.nvidia.com/gpu']],
    [
      { group: '', plural: 'persistentvolumeclaims' },
      ['gold.storageclass.storage.k8s.io/requests.storage', 'requests.storage'],
    ],
    [{ group: '', plural: 'services' }, ['services']],
    [{ group: '', plural: 'configmaps' }, ['configmaps']],
    [{ group: 'apps', plural: 'deployments' }, ['count/deployments.apps']],
    [{ group: 'example.com', plural: 'services' }, []],
  ])('of %o', (resource, expected) => {
    expect(trackedNames(resource, all)).toEqual(expected);
  });
});
