import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { ApiError } from '../../api/status.ts';
import { ManualClock } from '../../env/test.ts';
import { attributesOf, claims, configMaps, deployments, pods, quotas, services } from './attributes.fixture.ts';
import { TestRegistry, anyDefinition, userContext } from '../registry/registry.fixture.ts';
import { ResourceQuotaAdmission } from './resource-quota.ts';

function quota(name: string, hard: Record<string, string>, more: { spec?: object; status?: object } = {}): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ResourceQuota',
    metadata: { name, namespace: 'ns' },
    spec: { hard, ...more.spec },
    ...(more.status ? { status: more.status } : {}),
  };
}

function object(kind: string, name: string, fields: Record<string, unknown> = {}): KubeObject {
  return { apiVersion: 'v1', kind, metadata: { name, namespace: 'ns' }, ...fields };
}

function pod(name: string, resources: object = {}, spec: object = {}): KubeObject {
  return object('Pod', name, { spec: { containers: [{ name: 'c', resources }], ...spec } });
}

const small = { requests: { cpu: '500m', memory: '1Gi' }, limits: { cpu: '1', memory: '2Gi' } };

async function scene(...objects: KubeObject[]): Promise<{ registry: TestRegistry; plugin: ResourceQuotaAdmission }> {
  const registry = await TestRegistry.open();
  for (const each of objects) await registry.put(each);
  return { registry, plugin: new ResourceQuotaAdmission(registry, new ManualClock()) };
}

type Admit = Parameters<typeof attributesOf>[2];

async function admit(
  plugin: ResourceQuotaAdmission,
  definition: ResourceDefinition,
  subject: KubeObject | undefined,
  more: Admit = {},
): Promise<string> {
  const attributes = attributesOf(definition, subject, more);
  if (!plugin.handles(attributes)) return 'not handled';
  try {
    await plugin.validate(attributes);
    return 'admitted';
  } catch (error) {
    expect(error).toBeInstanceOf(ApiError);
    expect((error as ApiError).code).toBe(403);
    return (error as ApiError).message;
  }
}

const usedOf = (registry: TestRegistry, name: string) =>
  (registry.view('resourcequotas').get('ns', name)?.['status'] as { used?: object } | undefined)?.used;

describe('ResourceQuotaAdmission', () => {
  it('counts pods up to the limit, in the status of the quota', async () => {
    const { registry, plugin } = await scene(quota('q', { pods: '2' }));
    expect(await admit(plugin, pods, pod('a'))).toBe('admitted');
    expect(await admit(plugin, pods, pod('b'))).toBe('admitted');
    expect(await admit(plugin, pods, pod('c'))).toBe(
      'pods "c" is forbidden: exceeded quota: q, requested: pods=1, used: pods=2, limited: pods=2',
    );
    expect(registry.view('resourcequotas').get('ns', 'q')?.['status']).toEqual({
      hard: { pods: '2' },
      used: { pods: '2' },
    });
    expect(registry.log.every(({ target, context }) => target.subresource === 'status' && context.isAdmitted)).toBe(
      true,
    );
  });

  it('counts what is there already when the status does not say', async () => {
    const { registry, plugin } = await scene(quota('q', { pods: '2', 'count/configmaps': '1', 'requests.cpu': '10' }));
    await registry.put(pod('old', small));
    await registry.put({ ...pod('done', small), status: { phase: 'Succeeded' } });
    await registry.put(object('ConfigMap', 'old'));
    expect(await admit(plugin, pods, pod('a', small))).toBe('admitted');
    expect(usedOf(registry, 'q')).toEqual({ pods: '2', 'count/configmaps': '1', 'requests.cpu': '1' });
    expect(await admit(plugin, configMaps, object('ConfigMap', 'new'))).toBe(
      'configmaps "new" is forbidden: exceeded quota: q, requested: count/configmaps=1, used: count/configmaps=1, limited: count/configmaps=1',
    );
  });

  it('takes over a limit that was added or raised since the status was written', async () => {
    const status = { hard: { pods: '1' }, used: { pods: '1' } };
    const { registry, plugin } = await scene(quota('q', { pods: '2', 'count/pods': '5' }, { status }));
    await registry.put(pod('old'));
    expect(await admit(plugin, pods, pod('a'))).toBe('admitted');
    expect(usedOf(registry, 'q')).toEqual({ pods: '2', 'count/pods': '2' });
  });

  it('sums requests and limits, and says all that is exceeded', async () => {
    const { plugin } = await scene(quota('q', { 'requests.cpu': '1', 'limits.memory': '3Gi', memory: '9Gi' }));
    expect(await admit(plugin, pods, pod('a', small))).toBe('admitted');
    expect(
      await admit(plugin, pods, pod('b', { requests: { cpu: '600m', memory: '1Gi' }, limits: { memory: '1.5Gi' } })),
    ).toBe(
      'pods "b" is forbidden: exceeded quota: q, requested: limits.memory=1536Mi,requests.cpu=600m, used: limits.memory=2Gi,requests.cpu=500m, limited: limits.memory=3Gi,requests.cpu=1',
    );
  });

  it('wants cpu and memory stated by every container where they are limited', async () => {
    const { plugin } = await scene(quota('q', { 'requests.cpu': '1', 'limits.memory': '1Gi', pods: '5' }));
    const two = object('Pod', 'p', {
      spec: { containers: [{ name: 'b' }, { name: 'a' }], initContainers: [{ name: 'i', resources: small }] },
    });
    expect(await admit(plugin, pods, two)).toBe(
      'pods "p" is forbidden: failed quota: q: must specify limits.memory for: a,b; requests.cpu for: a,b',
    );
    const whole = object('Pod', 'p', {
      spec: { containers: [{ name: 'a' }], resources: { requests: { cpu: '1' }, limits: { memory: '1Gi' } } },
    });
    expect(await admit(plugin, pods, whole)).toBe('admitted');
  });

  it.each([
    ['BestEffort', pod('x'), true],
    ['BestEffort', pod('x', small), false],
    ['NotBestEffort', pod('x'), false],
    ['NotBestEffort', pod('x', { limits: { memory: '1' } }), true],
    ['Terminating', pod('x', {}, { activeDeadlineSeconds: 0 }), true],
    ['Terminating', pod('x'), false],
    ['NotTerminating', pod('x'), true],
    ['NotTerminating', pod('x', {}, { activeDeadlineSeconds: 5 }), false],
    ['PriorityClass', pod('x', {}, { priorityClassName: 'high' }), true],
    ['PriorityClass', pod('x'), false],
    ['CrossNamespacePodAffinity', pod('x'), false],
    [
      'CrossNamespacePodAffinity',
      pod(
        'x',
        {},
        { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ namespaces: ['o'] }] } } },
      ),
      true,
    ],
    ['Unheard', pod('x'), false],
  ])('scope %s', async (scope, subject, isCounted) => {
    const { plugin } = await scene(quota('q', { pods: '0' }, { spec: { scopes: [scope] } }));
    expect(await admit(plugin, pods, subject)).toBe(
      isCounted
        ? 'pods "x" is forbidden: exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0'
        : 'admitted',
    );
  });

  it.each([
    ['In', ['high'], 'high', true],
    ['In', ['high'], 'low', false],
    ['In', ['high'], undefined, false],
    ['NotIn', ['high'], 'low', true],
    ['NotIn', ['high'], undefined, true],
    ['NotIn', ['high'], 'high', false],
    ['Exists', [], 'low', true],
    ['Exists', [], undefined, false],
    ['DoesNotExist', [], undefined, true],
    ['DoesNotExist', [], 'low', false],
    ['Huh', [], 'low', false],
  ])('scope selector PriorityClass %s %j on %s', async (operator, values, className, isCounted) => {
    const scopeSelector = { matchExpressions: [{ scopeName: 'PriorityClass', operator, values }] };
    const { plugin } = await scene(quota('q', { pods: '0' }, { spec: { scopeSelector } }));
    const subject = pod('x', {}, className === undefined ? {} : { priorityClassName: className });
    expect((await admit(plugin, pods, subject)) !== 'admitted').toBe(isCounted);
  });

  it('counts any resource by name and group, and old kinds by their plain names', async () => {
    const { registry, plugin } = await scene(
      quota('q', { 'count/deployments.apps': '1', configmaps: '1', 'count/things.example.com': '0' }),
    );
    const things = anyDefinition('example.com', 'v1', 'things', 'Thing', { custom: true });
    registry.define(things);
    expect(await admit(plugin, deployments, object('Deployment', 'd'))).toBe('admitted');
    expect(await admit(plugin, deployments, object('Deployment', 'e'))).toMatch(/^deployments.apps "e" is forbidden: /);
    expect(await admit(plugin, configMaps, object('ConfigMap', 'c'))).toBe('admitted');
    expect(await admit(plugin, configMaps, object('ConfigMap', 'd'))).toMatch(/requested: configmaps=1/);
    expect(await admit(plugin, things, object('Thing', 't'))).toMatch(/requested: count\/things.example.com=1/);
    expect(await admit(plugin, quotas, quota('q2', {}))).toBe('admitted');
  });

  it('measures claims, whole and by class, and their growth', async () => {
    const { registry, plugin } = await scene(
      quota('q', {
        'requests.storage': '10Gi',
        persistentvolumeclaims: '2',
        'gold.storageclass.storage.k8s.io/requests.storage': '4Gi',
      }),
    );
    const claim = (name: string, storage: string, storageClassName?: string) =>
      object('PersistentVolumeClaim', name, { spec: { resources: { requests: { storage } }, storageClassName } });
    expect(await admit(plugin, claims, claim('a', '3Gi', 'gold'))).toBe('admitted');
    expect(await admit(plugin, claims, claim('b', '2Gi', 'gold'))).toMatch(
      /requested: gold.storageclass.storage.k8s.io\/requests.storage=2Gi, used: .*=3Gi, limited: .*=4Gi$/,
    );
    expect(await admit(plugin, claims, claim('b', '2Gi'))).toBe('admitted');
    const grow = (to: string) =>
      admit(plugin, claims, claim('b', to), { operation: 'UPDATE', oldObject: claim('b', '2Gi') });
    expect(await grow('8Gi')).toMatch(/requested: requests.storage=6Gi, used: requests.storage=5Gi/);
    expect(await grow('7Gi')).toBe('admitted');
    expect(await grow('1Gi')).toBe('admitted');
    expect(usedOf(registry, 'q')).toMatchObject({ 'requests.storage': '10Gi', persistentvolumeclaims: '2' });
  });

  it('measures services, and a change of their type', async () => {
    const { registry, plugin } = await scene(
      quota('q', { services: '5', 'services.nodeports': '2', 'services.loadbalancers': '1' }),
    );
    const service = (type: string, ports: object[], more: object = {}) =>
      object('Service', 's', { spec: { type, ports, ...more } });
    expect(await admit(plugin, services, service('ClusterIP', [{}, {}, {}]))).toBe('admitted');
    const oldObject = service('ClusterIP', [{}, {}, {}]);
    const change = (to: KubeObject) => admit(plugin, services, to, { operation: 'UPDATE', oldObject });
    expect(await change(service('NodePort', [{}, {}, {}]))).toMatch(/requested: services.nodeports=3/);
    expect(await change(service('LoadBalancer', [{}, {}]))).toBe('admitted');
    expect(usedOf(registry, 'q')).toEqual({ services: '1', 'services.nodeports': '2', 'services.loadbalancers': '1' });
    const unallocated = { allocateLoadBalancerNodePorts: false };
    expect(await change(service('LoadBalancer', [{ nodePort: 30_000 }, {}], unallocated))).toMatch(
      /requested: services.loadbalancers=1,services.nodeports=1,/,
    );
  });

  it('looks only at what can raise usage', async () => {
    const { plugin } = await scene(quota('q', { pods: '0' }));
    const events = anyDefinition('', 'v1', 'events', 'Event');
    expect(await admit(plugin, events, object('Event', 'e'))).toBe('not handled');
    expect(await admit(plugin, pods, pod('a'), { subresource: 'eviction' })).toBe('not handled');
    expect(await admit(plugin, pods, undefined, { operation: 'DELETE', oldObject: pod('a') })).toBe('not handled');
    expect(await admit(plugin, pods, pod('a'), { operation: 'UPDATE', oldObject: pod('a') })).toBe('not handled');
    const elsewhere = pod('a');
    elsewhere.metadata.namespace = 'other';
    expect(await admit(plugin, pods, elsewhere)).toBe('not handled');
  });

  it('charges a pod that an update moves into a scope', async () => {
    const { plugin } = await scene(quota('q', { pods: '0' }, { spec: { scopes: ['Terminating'] } }));
    const moved = pod('a', {}, { activeDeadlineSeconds: 5 });
    expect(await admit(plugin, pods, moved, { operation: 'UPDATE', oldObject: pod('a') })).toMatch(/exceeded quota: q/);
  });

  it('charges nothing on a dry run, but refuses all the same', async () => {
    const { registry, plugin } = await scene(quota('q', { pods: '1' }));
    const context = userContext({ dryRun: true });
    expect(await admit(plugin, pods, pod('a'), { context })).toBe('admitted');
    expect(registry.writes).toBe(0);
    expect(await admit(plugin, pods, pod('a'))).toBe('admitted');
    expect(await admit(plugin, pods, pod('b'), { context })).toMatch(/exceeded quota/);
  });

  it('refuses negative usage', async () => {
    const { plugin } = await scene(quota('q', { 'requests.cpu': '1' }));
    expect(await admit(plugin, pods, pod('a', { requests: { cpu: '-1' } }))).toBe(
      'pods "a" is forbidden: quota usage is negative for resource(s): cpu,requests.cpu',
    );
  });

  it('charges no quota when another refuses', async () => {
    const { registry, plugin } = await scene(quota('a', { pods: '5' }), quota('b', { pods: '0' }));
    expect(await admit(plugin, pods, pod('x'))).toMatch(/exceeded quota: b/);
    expect(registry.writes).toBe(0);
  });
});

describe('ResourceQuotaAdmission under concurrency', () => {
  const names = Array.from({ length: 50 }, (_, index) => `p${index}`);

  it('admits exactly as many as fit, with a few writes', async () => {
    const { registry, plugin } = await scene(quota('q', { pods: '3' }));
    const outcomes = await Promise.all(names.map((name) => admit(plugin, pods, pod(name))));
    expect(outcomes.filter((each) => each === 'admitted')).toHaveLength(3);
    expect(usedOf(registry, 'q')).toEqual({ pods: '3' });
    expect(registry.writes).toBeLessThanOrEqual(3);
  });

  it('never exceeds while somebody else writes the same status', async () => {
    const { registry, plugin } = await scene(quota('q', { pods: '20' }, { status: { used: { pods: '0' } } }));
    const target = { definition: quotas, namespace: 'ns', name: 'q', subresource: 'status' };
    // Another server charges the same quota: it takes what it can get of ten.
    let taken = 0;
    const rival = (async () => {
      for (let round = 0; round < 10; round++) {
        let isTaken = false;
        await registry.update(userContext(), target, (current) => {
          const status = current['status'] as { used: { pods: string } };
          isTaken = Number(status.used.pods) < 20;
          if (isTaken) status.used.pods = String(Number(status.used.pods) + 1);
          return current;
        });
        if (isTaken) taken++;
      }
    })();
    const outcomes: string[] = [];
    await Promise.all(
      names.map(async (name, index) => {
        for (let step = 0; step < index * 3; step++) await Promise.resolve();
        outcomes.push(await admit(plugin, pods, pod(name)));
      }),
    );
    await rival;
    expect(usedOf(registry, 'q')).toEqual({ pods: '20' });
    expect(taken).toBeGreaterThan(0);
    expect(outcomes.filter((each) => each === 'admitted')).toHaveLength(20 - taken);
  });

  it('lets everyone pass when the quota goes away under the charge', async () => {
    const { registry, plugin } = await scene(quota('q', { pods: '3' }));
    const outcome = admit(plugin, pods, pod('a'));
    await registry.drop(quota('q', {}));
    expect(await outcome).toBe('admitted');
  });

  it('answers those who wait when the store fails, and works again after', async () => {
    const { registry, plugin } = await scene(quota('q', { pods: '3' }));
    const update = registry.update.bind(registry);
    registry.update = () => Promise.reject(new Error('disk full'));
    const attributes = attributesOf(pods, pod('a'));
    await expect(plugin.validate(attributes)).rejects.toMatchObject({ code: 500 });
    registry.update = update;
    expect(await admit(plugin, pods, pod('a'))).toBe('admitted');
  });
});
