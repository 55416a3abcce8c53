import { beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { testEnv } from '../../env/test.ts';
import { AdmissionChain } from '../admission/chain.ts';
import { budgets, pods, quotas, userContext } from '../admission/fake-registry.fixture.ts';
import { ResourceQuotaAdmission } from '../admission/resource-quota.ts';
import { Catalog } from '../registry/catalog.ts';
import { ResourceRegistry } from '../registry/registry.ts';
import { MemoryEngine } from '../storage/memory-engine.ts';
import { Store } from '../storage/store.ts';
import { bindPod } from './binding.ts';
import { evictPod } from './eviction.ts';

/** Bindings, evictions and quotas at once, on the real registry and store: what the fake promises has to hold there. */

const env = testEnv();
const context = userContext();
const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
const names = Array.from({ length: 50 }, (_, index) => `p${index}`);
let registry: ResourceRegistry;

const targetOf = (definition: typeof pods, name: string, subresource?: string) => ({
  definition: registry.definition(definition.group, definition.version, definition.plural) ?? definition,
  namespace: 'ns',
  name,
  ...(subresource === undefined ? {} : { subresource }),
});

function make(definition: typeof pods, name: string, fields: object): Promise<KubeObject> {
  const apiVersion = definition.group === '' ? 'v1' : `${definition.group}/v1`;
  const object = { apiVersion, kind: definition.kind, metadata: { name, labels: { app: 'db' } }, ...fields };
  return registry.create(context, targetOf(definition, name), object);
}

const stored = (bucket: string, name: string) => registry.view(bucket).get('ns', name);
const passed = (outcomes: readonly PromiseSettledResult<unknown>[]) =>
  outcomes.filter((each) => each.status === 'fulfilled').length;

beforeEach(async () => {
  const onFatal = (error: unknown): never => {
    throw error;
  };
  const store = await Store.open(new MemoryEngine(), { onFatal });
  const catalog = new Catalog([pods, budgets, quotas].map((each) => ({ ...each, schema: anything })));
  registry = new ResourceRegistry({
    env,
    store,
    catalog,
    admission: (made) => new AdmissionChain([new ResourceQuotaAdmission(made, env.clock)]),
  });
});

describe('on the real registry', () => {
  it('a quota admits exactly what fits of many creates', async () => {
    await make(quotas, 'q', { spec: { hard: { pods: '20' } } });
    const outcomes = await Promise.allSettled(names.map((name) => make(pods, name, { spec: { containers: [] } })));
    expect(passed(outcomes)).toBe(20);
    expect(stored('resourcequotas', 'q')?.['status']).toEqual({ hard: { pods: '20' }, used: { pods: '20' } });
    expect(registry.view('pods').list('ns')).toHaveLength(20);
  });

  it('a pod is bound once', async () => {
    await make(pods, 'p', { spec: { containers: [] } });
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
    const ready = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    for (const name of names) {
      await make(pods, name, { spec: { nodeName: 'n1', containers: [] }, status: ready });
    }
    const status = { observedGeneration: 0, disruptionsAllowed: 3, currentHealthy: 50, desiredHealthy: 47 };
    await make(budgets, 'b', { spec: { selector: { matchLabels: { app: 'db' } } }, status });
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
