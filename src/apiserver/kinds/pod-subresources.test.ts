import { beforeEach, describe, expect, it } from 'vitest';
import { apiVersionOf, type KubeObject } from '../../api/meta.ts';
import { testEnv } from '../../env/test.ts';
import { pods, quotas } from '../admission/attributes.fixture.ts';
import { builtinOf, TestRegistry, userContext } from '../registry/registry.fixture.ts';
import { ResourceQuotaAdmission } from '../admission/resource-quota.ts';
import { bindPod } from './binding.ts';
import { evictPod } from './eviction.ts';

/** Bindings, evictions and quotas, many at once. */

const env = testEnv();
const context = userContext();
const budgets = builtinOf('policy', 'poddisruptionbudgets');
const names = Array.from({ length: 50 }, (_, index) => `p${index}`);
let registry: TestRegistry;

const spec = { nodeName: 'n1', containers: [{ name: 'a', image: 'b' }] };

function object({ group, kind }: typeof pods, name: string, fields: object): KubeObject {
  const apiVersion = apiVersionOf(group, 'v1');
  return { apiVersion, kind, metadata: { name, namespace: 'ns', labels: { app: 'db' } }, ...fields };
}

/** What a client makes; it has no say in the status. */
function make(definition: typeof pods, name: string, fields: object): Promise<KubeObject> {
  return registry.create(context, { definition, namespace: 'ns', name }, object(definition, name, fields));
}

const stored = (bucket: string, name: string) => registry.view(bucket).get('ns', name);
const passed = (outcomes: readonly PromiseSettledResult<unknown>[]) =>
  outcomes.filter((each) => each.status === 'fulfilled').length;

beforeEach(async () => {
  registry = await TestRegistry.withPlugins((made) => [new ResourceQuotaAdmission(made, env.clock)]);
});

describe('of many at once', () => {
  it('a quota admits exactly what fits of many creates', async () => {
    await make(quotas, 'q', { spec: { hard: { pods: '20' } } });
    const outcomes = await Promise.allSettled(
      names.map((name) => make(pods, name, { spec: { containers: spec.containers } })),
    );
    expect(passed(outcomes)).toBe(20);
    expect(stored('resourcequotas', 'q')?.['status']).toEqual({ hard: { pods: '20' }, used: { pods: '20' } });
    expect(registry.view('pods').list('ns')).toHaveLength(20);
  });

  it('a pod is bound once', async () => {
    await make(pods, 'p', { spec: { containers: spec.containers } });
    const bind = (node: string) => {
      const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name: 'p' }, target: { name: node } };
      return bindPod({ registry, context, namespace: 'ns', name: 'p', binding, nowMs: env.clock.now() });
    };
    expect(passed(await Promise.allSettled(['n1', 'n2', 'n3', 'n4'].map(bind)))).toBe(1);
    expect(stored('pods', 'p')).toMatchObject({
      spec: { nodeName: expect.stringMatching(/^n\d$/) as string },
      status: { conditions: [{ type: 'PodScheduled', status: 'True' }] },
    });
  });

  it('a budget of 3 lets 3 of 50 evictions pass, each marked before it is deleted', async () => {
    const ready = {
      phase: 'Running',
      qosClass: 'BestEffort',
      conditions: [{ type: 'Ready', status: 'True' }],
    };
    for (const name of names) await registry.put(object(pods, name, { spec, status: ready }));
    const counts = { currentHealthy: 50, desiredHealthy: 47, expectedPods: 50 };
    const status = { observedGeneration: 0, disruptionsAllowed: 3, ...counts };
    await registry.put(object(budgets, 'b', { spec: { selector: { matchLabels: { app: 'db' } } }, status }));
    const terminating: KubeObject[] = [];
    registry.view('pods').onChange((object) => {
      if (object?.metadata.deletionTimestamp) terminating.push(object);
    });
    const outcomes = await Promise.allSettled(
      names.map((name) => {
        const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } };
        return evictPod({ registry, context, namespace: 'ns', name, eviction, nowMs: env.clock.now() });
      }),
    );
    expect(passed(outcomes)).toBe(3);
    const refusals = outcomes.flatMap((each) => (each.status === 'rejected' ? [each.reason as { code: number }] : []));
    expect(new Set(refusals.map(({ code }) => code))).toEqual(new Set([429]));
    expect(stored('poddisruptionbudgets.policy', 'b')?.['status']).toMatchObject({ disruptionsAllowed: 0 });
    expect(terminating).toHaveLength(3);
    for (const pod of terminating) {
      expect(pod['status']).toMatchObject({ conditions: [{ type: 'Ready' }, { reason: 'EvictionByEvictionAPI' }] });
    }
  });
});
