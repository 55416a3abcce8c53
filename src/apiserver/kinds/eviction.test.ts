import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { TestRegistry, userContext } from '../registry/registry.fixture.ts';
import type { WriteContext } from '../registry/contract.ts';
import { evictPod } from './eviction.ts';

const NOW_MS = Date.UTC(2026, 2, 1, 12, 0, 0);
const NOW = '2026-03-01T12:00:00Z';

function pod(
  name: string,
  more: { phase?: string; ready?: boolean; labels?: Record<string, string> } = {},
): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'ns', labels: more.labels ?? { app: 'db' } },
    spec: { nodeName: 'n1', containers: [{ name: 'a', image: 'b' }] },
    status: {
      qosClass: 'BestEffort',
      phase: more.phase ?? 'Running',
      conditions: [{ type: 'Ready', status: more.ready === false ? 'False' : 'True' }],
    },
  };
}

function budget(
  name: string,
  status: Record<string, unknown>,
  more: { selector?: object; policy?: string; generation?: number } = {},
): KubeObject {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace: 'ns', generation: more.generation ?? 1 },
    spec: {
      selector: more.selector ?? { matchLabels: { app: 'db' } },
      ...(more.policy === undefined ? {} : { unhealthyPodEvictionPolicy: more.policy }),
    },
    status: {
      observedGeneration: 1,
      disruptionsAllowed: 1,
      currentHealthy: 3,
      desiredHealthy: 2,
      expectedPods: 3,
      ...status,
    },
  };
}

async function scene(objects: { pods?: KubeObject[]; budgets?: KubeObject[] }): Promise<TestRegistry> {
  const registry = await TestRegistry.open();
  for (const each of objects.pods ?? []) await registry.put(each);
  for (const each of objects.budgets ?? []) await registry.put(each);
  return registry;
}

function evict(
  registry: TestRegistry,
  name: string,
  deleteOptions?: Record<string, unknown>,
  context: Partial<WriteContext> = {},
) {
  const eviction: KubeObject = {
    apiVersion: 'policy/v1',
    kind: 'Eviction',
    metadata: { name, namespace: 'ns' },
    ...(deleteOptions ? { deleteOptions } : {}),
  };
  return evictPod({ registry, context: userContext(context), namespace: 'ns', name, eviction, nowMs: NOW_MS });
}

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error = await promise.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(ApiError);
  return error as ApiError;
}

const statusOf = (registry: TestRegistry, name: string) =>
  registry.view('poddisruptionbudgets.policy').get('ns', name)?.['status'] as Record<string, unknown>;
/** Whether the pod is there to stay; one that is evicted ends in peace. */
const stays = (registry: TestRegistry, name: string) => {
  const found = registry.view('pods').get('ns', name);
  return found !== undefined && found.metadata.deletionTimestamp === undefined;
};

describe('eviction: what the budget says', () => {
  it('deletes a pod without a budget and answers a Status', async () => {
    const registry = await scene({ pods: [pod('a')] });
    await expect(evict(registry, 'a')).resolves.toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Success',
      code: 201,
    });
    expect(stays(registry, 'a')).toBe(false);
  });

  it('charges the budget, notes the pod, and deletes it', async () => {
    const registry = await scene({ pods: [pod('a')], budgets: [budget('b', { disruptionsAllowed: 2 })] });
    await evict(registry, 'a');
    expect(statusOf(registry, 'b')).toMatchObject({ disruptionsAllowed: 1, disruptedPods: { a: NOW } });
    expect(statusOf(registry, 'b')['conditions']).toBeUndefined();
    expect(stays(registry, 'a')).toBe(false);
  });

  it('says in a condition that the last disruption was taken', async () => {
    const registry = await scene({ pods: [pod('a')], budgets: [budget('b', { disruptionsAllowed: 1 })] });
    await evict(registry, 'a');
    expect(statusOf(registry, 'b')).toMatchObject({
      disruptionsAllowed: 0,
      conditions: [
        {
          type: 'DisruptionAllowed',
          status: 'False',
          reason: 'InsufficientPods',
          observedGeneration: 1,
          lastTransitionTime: NOW,
        },
      ],
    });
  });

  it('refuses with 429, the cause and no retry time when nothing is allowed', async () => {
    const registry = await scene({
      pods: [pod('a')],
      budgets: [budget('b', { disruptionsAllowed: 0, currentHealthy: 2 })],
    });
    const error = await failure(evict(registry, 'a'));
    expect(error.toStatus()).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      code: 429,
      reason: 'TooManyRequests',
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      details: {
        causes: [
          { reason: 'DisruptionBudget', message: 'The disruption budget b needs 2 healthy pods and has 2 currently' },
        ],
      },
    });
    expect(stays(registry, 'a')).toBe(true);
    expect(registry.writes).toBe(0);
  });

  it('asks to come back in 10 s while the controller has not seen the newest spec', async () => {
    const registry = await scene({ pods: [pod('a')], budgets: [budget('b', {}, { generation: 2 })] });
    const error = await failure(evict(registry, 'a'));
    expect(error.code).toBe(429);
    expect(error.details).toEqual({
      retryAfterSeconds: 10,
      causes: [
        {
          reason: 'DisruptionBudget',
          message: 'The disruption budget b is still being processed by the server.',
        },
      ],
    });
  });

  it('answers 500 when two budgets cover the pod', async () => {
    const registry = await scene({
      pods: [pod('a')],
      budgets: [
        budget('b', {}),
        budget('c', {}, { selector: { matchExpressions: [{ key: 'app', operator: 'Exists' }] } }),
      ],
    });
    const error = await failure(evict(registry, 'a'));
    expect([error.code, error.message]).toEqual([
      500,
      'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
    ]);
    expect(stays(registry, 'a')).toBe(true);
  });

  it.each([
    ['a negative allowance', { disruptionsAllowed: -1 }, 'pdb disruptions allowed is negative'],
    [
      'too many unconfirmed evictions',
      { disruptedPods: Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`p${i}`, NOW])) },
      'DisruptedPods map too big - too many evictions not confirmed by PDB controller',
    ],
  ])('answers 403 on %s', async (_, status, detail) => {
    const registry = await scene({ pods: [pod('a')], budgets: [budget('b', status)] });
    const error = await failure(evict(registry, 'a'));
    expect([error.code, error.message]).toEqual([403, `poddisruptionbudget.policy "b" is forbidden: ${detail}`]);
  });

  it('ignores budgets of other namespaces and with other or broken selectors', async () => {
    const elsewhere = budget('x', { disruptionsAllowed: 0 });
    elsewhere.metadata.namespace = 'other';
    const registry = await scene({
      pods: [pod('a')],
      budgets: [
        elsewhere,
        budget('y', { disruptionsAllowed: 0 }, { selector: { matchLabels: { app: 'web' } } }),
        budget('z', { disruptionsAllowed: 0 }, { selector: { matchExpressions: [{ key: 'app', operator: 'Huh' }] } }),
      ],
    });
    await evict(registry, 'a');
    expect(stays(registry, 'a')).toBe(false);
  });

  it('looks again when the budget goes away between the look and the charge', async () => {
    const registry = await scene({ pods: [pod('a')], budgets: [budget('b', {})] });
    const promise = evict(registry, 'a');
    await registry.drop(budget('b', {}));
    await promise;
    expect(stays(registry, 'a')).toBe(false);
  });
});

describe('eviction: pods that no budget protects', () => {
  it.each(['Pending', 'Succeeded', 'Failed'])('deletes a %s pod whatever the budget says', async (phase) => {
    const registry = await scene({ pods: [pod('a', { phase })], budgets: [budget('b', { disruptionsAllowed: 0 })] });
    await evict(registry, 'a');
    expect(stays(registry, 'a')).toBe(false);
    expect(statusOf(registry, 'b')['disruptionsAllowed']).toBe(0);
  });

  it('lets the eviction of a terminating pod pass', async () => {
    const terminating = pod('a');
    terminating.metadata.deletionTimestamp = NOW;
    terminating.metadata.deletionGracePeriodSeconds = 30;
    const registry = await scene({ pods: [terminating], budgets: [budget('b', { disruptionsAllowed: 0 })] });
    await evict(registry, 'a', { gracePeriodSeconds: 5 });
    expect(stays(registry, 'a')).toBe(false);
  });

  it('does not delete a pending pod that became ready in between', async () => {
    const registry = await scene({
      pods: [pod('a', { phase: 'Pending' })],
      budgets: [budget('b', { disruptionsAllowed: 0 })],
    });
    const promise = evict(registry, 'a');
    await registry.put(pod('a'));
    expect((await failure(promise)).code).toBe(429);
    expect(stays(registry, 'a')).toBe(true);
  });

  it.each([
    ['IfHealthyBudget by default, budget healthy', undefined, { currentHealthy: 2, desiredHealthy: 2 }, true],
    ['IfHealthyBudget, budget unhealthy', 'IfHealthyBudget', { currentHealthy: 1, desiredHealthy: 2 }, false],
    ['IfHealthyBudget, nothing desired', 'IfHealthyBudget', { currentHealthy: 0, desiredHealthy: 0 }, false],
    ['AlwaysAllow, budget unhealthy', 'AlwaysAllow', { currentHealthy: 0, desiredHealthy: 2 }, true],
  ])('unhealthy pod, %s', async (_, policy, status, isEvicted) => {
    const registry = await scene({
      pods: [pod('a', { ready: false })],
      budgets: [budget('b', { disruptionsAllowed: 0, ...status }, policy === undefined ? {} : { policy })],
    });
    const outcome = await evict(registry, 'a').then(
      () => true,
      () => false,
    );
    expect(outcome).toBe(isEvicted);
    expect(stays(registry, 'a')).toBe(!isEvicted);
    // An unhealthy pod counts for nothing, so losing it costs nothing.
    expect(statusOf(registry, 'b')['disruptionsAllowed']).toBe(0);
  });

  it('tells the client to ask again when an unhealthy pod changed in between', async () => {
    const registry = await scene({
      pods: [pod('a', { ready: false })],
      budgets: [budget('b', { disruptionsAllowed: 0 })],
    });
    const promise = evict(registry, 'a');
    await registry.put(pod('a'));
    const error = await failure(promise);
    expect([error.code, error.details?.retryAfterSeconds]).toEqual([429, 10]);
    expect(stays(registry, 'a')).toBe(true);
  });

  it('asks no budget twice: a ready pod covered by AlwaysAllow still pays', async () => {
    const registry = await scene({
      pods: [pod('a')],
      budgets: [budget('b', { disruptionsAllowed: 0 }, { policy: 'AlwaysAllow' })],
    });
    expect((await failure(evict(registry, 'a'))).code).toBe(429);
  });
});

describe('eviction: the writes', () => {
  it('marks the pod in one write and deletes it in the next, past admission', async () => {
    const registry = await scene({ pods: [pod('a')] });
    const seen: unknown[] = [];
    registry.view('pods').onChange((object) => {
      seen.push(object?.metadata.deletionTimestamp ? 'terminating' : object?.['status']);
    });
    await evict(registry, 'a');
    expect(seen).toEqual([
      {
        phase: 'Running',
        qosClass: 'BestEffort',
        conditions: [
          { type: 'Ready', status: 'True' },
          {
            type: 'DisruptionTarget',
            status: 'True',
            reason: 'EvictionByEvictionAPI',
            message: 'Eviction API: evicting',
            lastProbeTime: null,
            lastTransitionTime: NOW,
          },
        ],
      },
      'terminating',
    ]);
    expect(registry.log.map(({ verb, context, target }) => [verb, target.subresource, context.isAdmitted])).toEqual([
      ['update', 'status', true],
      ['delete', undefined, true],
    ]);
    expect(registry.log.every(({ context }) => context.user.username === 'alice')).toBe(true);
  });

  it('keeps the transition time of a condition that was True for another reason', async () => {
    const marked = pod('a');
    (marked['status'] as { conditions: unknown[] }).conditions.push({
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'PreemptionByScheduler',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
    const registry = await scene({ pods: [marked] });
    let condition: unknown;
    registry.view('pods').onChange((object) => {
      if (object) condition = (object['status'] as { conditions: unknown[] }).conditions[1];
    });
    await evict(registry, 'a');
    expect(condition).toMatchObject({ reason: 'EvictionByEvictionAPI', lastTransitionTime: '2026-01-01T00:00:00Z' });
  });

  it.each([
    ['in the query', undefined, { dryRun: true }],
    ['in the body', { dryRun: ['All'] }, {}],
    ['in both', { dryRun: ['All'] }, { dryRun: true }],
  ])('changes nothing on a dry run %s', async (_, options, context) => {
    const registry = await scene({ pods: [pod('a')], budgets: [budget('b', {})] });
    await expect(evict(registry, 'a', options, context)).resolves.toMatchObject({ status: 'Success' });
    expect(registry.writes).toBe(0);
    expect(stays(registry, 'a')).toBe(true);
    await registry.put(budget('b', { disruptionsAllowed: 0 }));
    expect((await failure(evict(registry, 'a', options, context))).code).toBe(429);
  });

  it('honours preconditions', async () => {
    const registry = await scene({ pods: [pod('a')] });
    const wrong = await failure(evict(registry, 'a', { preconditions: { uid: 'other' } }));
    expect([wrong.code, wrong.message]).toEqual([
      409,
      'Operation cannot be fulfilled on Pod "a": the UID in the precondition (other) does not match the UID in record (uid-a). The object might have been deleted and then recreated',
    ]);
    expect((await failure(evict(registry, 'a', { preconditions: { resourceVersion: '1' } }))).code).toBe(409);
    expect((await failure(evict(registry, 'a', { preconditions: { uid: 'x' }, dryRun: ['All'] }))).code).toBe(409);
    const { resourceVersion, uid } = registry.view('pods').get('ns', 'a')?.metadata ?? {};
    await evict(registry, 'a', { preconditions: { resourceVersion, uid } });
    expect(stays(registry, 'a')).toBe(false);
  });

  it('takes null for nothing', async () => {
    const registry = await scene({ pods: [pod('a'), pod('b')] });
    const bare = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'b' }, deleteOptions: null };
    await evictPod({ registry, context: userContext(), namespace: 'ns', name: 'b', eviction: bare, nowMs: NOW_MS });
    expect(stays(registry, 'b')).toBe(false);
    await evict(registry, 'a', { preconditions: { uid: null, resourceVersion: null }, gracePeriodSeconds: null });
    expect(stays(registry, 'a')).toBe(false);
  });

  it('accepts policy/v1beta1 and refuses what is no Eviction of this pod', async () => {
    const registry = await scene({ pods: [pod('a')] });
    const request = (eviction: KubeObject) =>
      evictPod({ registry, context: userContext(), namespace: 'ns', name: 'a', eviction, nowMs: NOW_MS });
    const named = await failure(request({ apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'b' } }));
    expect([named.code, named.message]).toEqual([400, 'name in URL does not match name in Eviction object']);
    expect((await failure(request({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a' } }))).code).toBe(400);
    const unsafe = { ignoreStoreReadErrorWithClusterBreakingPotential: true };
    expect((await failure(evict(registry, 'a', unsafe))).code).toBe(422);
    await request({ apiVersion: 'policy/v1beta1', kind: 'Eviction', metadata: { name: 'a' } });
    expect(stays(registry, 'a')).toBe(false);
  });

  it('answers 404 for a pod that is not there', async () => {
    const error = await failure(evict(await TestRegistry.open(), 'a'));
    expect([error.code, error.message]).toEqual([404, 'pods "a" not found']);
  });
});

describe('eviction: many at once', () => {
  it('lets exactly 3 of 50 concurrent evictions pass a budget of 3', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `p${index}`);
    const registry = await scene({
      pods: names.map((name) => pod(name)),
      budgets: [budget('b', { disruptionsAllowed: 3, currentHealthy: 50, desiredHealthy: 47 })],
    });
    const outcomes = await Promise.allSettled(names.map((name) => evict(registry, name)));
    const refused = outcomes.flatMap((each) => (each.status === 'rejected' ? [(each.reason as ApiError).code] : []));
    expect(outcomes.length - refused.length).toBe(3);
    expect(new Set(refused)).toEqual(new Set([429]));
    expect(names.filter((name) => stays(registry, name))).toHaveLength(47);
    expect(statusOf(registry, 'b')['disruptionsAllowed']).toBe(0);
    expect(Object.keys(statusOf(registry, 'b')['disruptedPods'] as object)).toHaveLength(3);
  });

  it('never exceeds the budget while a controller keeps rewriting it', async () => {
    const names = Array.from({ length: 50 }, (_, index) => `p${index}`);
    const registry = await scene({
      pods: names.map((name) => pod(name)),
      budgets: [budget('b', { disruptionsAllowed: 3, currentHealthy: 50, desiredHealthy: 47 })],
    });
    const target = {
      definition: registry.definition('policy', 'v1', 'poddisruptionbudgets')!,
      namespace: 'ns',
      name: 'b',
    };
    const stop = new AbortController();
    const controller = (async () => {
      for (let round = 0; !stop.signal.aborted; round++) {
        await registry.update(userContext(), target, (current) => {
          current.metadata.labels = { round: String(round) };
          return current;
        });
        for (let step = 0; step < 20; step++) await Promise.resolve();
      }
    })();
    const outcomes = await Promise.allSettled(names.map((name) => evict(registry, name)));
    stop.abort();
    await controller;
    expect(outcomes.filter((each) => each.status === 'fulfilled')).toHaveLength(3);
  });

  it('lets all of a large budget pass, none lost to collisions', async () => {
    const names = Array.from({ length: 100 }, (_, index) => `p${index}`);
    const registry = await scene({
      pods: names.map((name) => pod(name)),
      budgets: [budget('b', { disruptionsAllowed: 100, currentHealthy: 100, desiredHealthy: 0 })],
    });
    await Promise.all(names.map((name) => evict(registry, name)));
    expect(names.filter((name) => stays(registry, name))).toEqual([]);
    expect(statusOf(registry, 'b')['disruptionsAllowed']).toBe(0);
  });
});
