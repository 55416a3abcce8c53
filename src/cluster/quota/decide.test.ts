import { describe, expect, it } from 'vitest';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { amountsOf } from '../../machinery/pod-resources.ts';
import type { ResourceQuota } from '../../machinery/quota.ts';
import { countedBy, countOf, decide } from './decide.ts';

const NOW_MS = Date.UTC(2026, 2, 1, 12);

function quota(hard: Record<string, string>, status: ResourceQuota['status'] = {}, more: object = {}): ResourceQuota {
  const metadata = { name: 'q', namespace: 'n' };
  return { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard, ...more }, status };
}

function pod(name: string, requests: Record<string, string> = {}, more: Partial<KubeObject> = {}): KubeObject {
  const spec = { containers: [{ name: 'c', resources: { requests } }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace: 'n' }, spec, ...more };
}

const pods = { group: '', plural: 'pods' };
const shown = (amounts: ReturnType<typeof amountsOf>): JsonObject =>
  decide(quota(keysOf(amounts)), amounts, true).status.used ?? {};
const keysOf = (amounts: ReadonlyMap<string, unknown>) =>
  Object.fromEntries([...amounts.keys()].map((name) => [name, '0']));

describe('what a quota counts', () => {
  it.each<[string, string[]]>([
    ['pods', ['pods.']],
    ['requests.cpu', ['pods.']],
    ['requests.nvidia.com/gpu', ['pods.']],
    ['services.nodeports', ['services.']],
    ['requests.storage', ['persistentvolumeclaims.']],
    ['gold.storageclass.storage.k8s.io/requests.storage', ['persistentvolumeclaims.']],
    ['secrets', ['secrets.']],
    ['count/pods', ['pods.']],
    ['count/deployments.apps', ['deployments.apps']],
    ['count/virtualmachines.kubevirt.io', ['virtualmachines.kubevirt.io']],
    ['count/events', []],
    ['nonsense', []],
  ])('under %s', (name, resources) => {
    const found = countedBy(quota({ [name]: '1' }));
    expect(found.map(({ plural, group }) => `${plural}.${group}`)).toEqual(resources);
  });
});

describe('counting', () => {
  it('adds up what there is, and says so where there is nothing', () => {
    const limits = quota({ pods: '9', 'requests.cpu': '9', 'limits.cpu': '9', 'count/pods': '9', services: '9' });
    const none = countOf(limits, pods, [], NOW_MS);
    expect(shown(none.amounts)).toEqual({ pods: '0', 'requests.cpu': '0', 'limits.cpu': '0', 'count/pods': '0' });
    const some = countOf(limits, pods, [pod('a', { cpu: '500m' }), pod('b', { cpu: '1' })], NOW_MS);
    expect(shown(some.amounts)).toEqual({ pods: '2', 'requests.cpu': '1500m', 'limits.cpu': '0', 'count/pods': '2' });
  });

  it('looks at scopes', () => {
    const limits = quota({ pods: '9' }, {}, { scopes: ['NotBestEffort'] });
    const { amounts } = countOf(limits, pods, [pod('a', { cpu: '1' }), pod('b')], NOW_MS);
    expect(shown(amounts)).toEqual({ pods: '1' });
  });

  it('leaves out finished pods, and those that are overdue; and knows when more will be', () => {
    const going = (name: string, seconds: number) => {
      const deletionTimestamp = new Date(NOW_MS + seconds * 1000).toISOString();
      return pod(name, {}, { metadata: { name, deletionTimestamp, deletionGracePeriodSeconds: 10 } });
    };
    const done = pod('done', {}, { status: { phase: 'Succeeded' } });
    const all = [pod('a'), done, going('b', 5), going('c', 60), going('late', -11)];
    const { amounts, untilMs } = countOf(quota({ pods: '9', 'count/pods': '9' }), pods, all, NOW_MS);
    expect(shown(amounts)).toEqual({ pods: '3', 'count/pods': '5' });
    expect(untilMs).toBe(NOW_MS + 15_001);
  });
});

describe('the status', () => {
  const hard = { pods: '2', 'requests.cpu': '1' };
  it('has the limits, and what is used of them', () => {
    expect(decide(quota(hard), amountsOf({ pods: 1, 'requests.cpu': '1000m', services: 3 }), true)).toEqual({
      status: { hard, used: { pods: '1', 'requests.cpu': '1' } },
      lowered: [],
    });
  });

  it('is not written again', () => {
    const status = { hard, used: { pods: '1', 'requests.cpu': '1' } };
    expect(decide(quota(hard, status), amountsOf({ pods: '1', 'requests.cpu': '1000m' }), true).status).toBe(status);
  });

  it('keeps what could not be counted, and drops what is limited no more', () => {
    const status = { hard: {}, used: { 'count/x.y': '4', secrets: '7' } };
    const limits = quota({ pods: '1', 'count/x.y': '5', 'count/z.y': '5' }, status);
    expect(decide(limits, amountsOf({ pods: 0 }), true).status.used).toEqual({ pods: '0', 'count/x.y': '4' });
  });

  it('is lowered only where that is allowed; it is raised at any time', () => {
    const status = { hard, used: { pods: '2', 'requests.cpu': '1' } };
    const counted = amountsOf({ pods: '1', 'requests.cpu': '2' });
    const { status: careful, lowered } = decide(quota(hard, status), counted, false);
    expect(careful.used).toEqual({ pods: '2', 'requests.cpu': '2' });
    expect(lowered).toEqual(['pods']);
    expect(decide(quota(hard, status), counted, true).status.used).toEqual({ pods: '1', 'requests.cpu': '2' });
  });
});
