import { describe, expect, it } from 'vitest';
import type { Pod } from '../../migration/fit/objects.ts';
import { decide, type Demand, demandOf, failSafe, type Observation } from './decide.ts';
import type { BudgetStatus, PodDisruptionBudget } from './objects.ts';

const NOW_MS = Date.UTC(2026, 2, 1, 12);
const at = (seconds: number): string => `${new Date(NOW_MS + seconds * 1000).toISOString().slice(0, 19)}Z`;

function pod(name: string, state: 'ready' | 'unready' | 'going' = 'ready'): Pod {
  const metadata = { name, namespace: 'n', ...(state === 'going' ? { deletionTimestamp: at(0) } : {}) };
  const conditions = [{ type: 'Ready', status: state === 'unready' ? 'False' : 'True' }];
  return { apiVersion: 'v1', kind: 'Pod', metadata, status: { phase: 'Running', conditions } };
}

function budget(status: BudgetStatus = {}, generation = 1): PodDisruptionBudget {
  return { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'b', generation }, status };
}

function of(pods: readonly Pod[], status: BudgetStatus = {}, more: Partial<Observation> = {}) {
  const demand: Demand = { expectedPods: pods.length, desiredHealthy: 1 };
  return decide({ budget: budget(status), pods, isCurrent: true, demand, nowMs: NOW_MS, ...more });
}

const condition = (status: 'True' | 'False', reason: string, lastTransitionTime = at(0)) => ({
  type: 'DisruptionAllowed',
  status,
  reason,
  message: '',
  observedGeneration: 1,
  lastTransitionTime,
});

describe('what is asked for', () => {
  const scale = async () => 7;
  it.each<[PodDisruptionBudget['spec'], Demand]>([
    [{ minAvailable: 2 }, { expectedPods: 3, desiredHealthy: 2 }],
    [{ minAvailable: '30%' }, { expectedPods: 7, desiredHealthy: 3 }],
    [{ minAvailable: '0%' }, { expectedPods: 7, desiredHealthy: 0 }],
    [{ minAvailable: '100%' }, { expectedPods: 7, desiredHealthy: 7 }],
    [{ maxUnavailable: 2 }, { expectedPods: 7, desiredHealthy: 5 }],
    [{ maxUnavailable: 9 }, { expectedPods: 7, desiredHealthy: 0 }],
    [{ maxUnavailable: '1%' }, { expectedPods: 7, desiredHealthy: 6 }],
    [{}, { expectedPods: 0, desiredHealthy: 0 }],
  ])('%j of 3 pods whose controllers want 7', async (spec, demand) => {
    expect(await demandOf(spec, 3, scale)).toEqual(demand);
  });

  it('cannot be a word', async () => {
    await expect(demandOf({ minAvailable: 'most' }, 3, scale)).rejects.toThrow('string is not a percentage');
  });
});

describe('what is allowed', () => {
  it.each<[string, readonly Pod[], Demand, number, number]>([
    ['what is healthy beyond what is desired', [pod('a'), pod('b')], { expectedPods: 2, desiredHealthy: 1 }, 2, 1],
    ['nothing where none is to spare', [pod('a')], { expectedPods: 1, desiredHealthy: 1 }, 1, 0],
    ['nothing where too few are healthy', [pod('a', 'unready')], { expectedPods: 1, desiredHealthy: 1 }, 0, 0],
    ['nothing where no pods are expected', [pod('a')], { expectedPods: 0, desiredHealthy: 0 }, 1, 0],
    ['no pods that are going', [pod('a', 'going'), pod('b')], { expectedPods: 2, desiredHealthy: 0 }, 1, 1],
  ])('is %s', (_, pods, demand, currentHealthy, disruptionsAllowed) => {
    expect(of(pods, {}, { demand }).status).toMatchObject({ ...demand, currentHealthy, disruptionsAllowed });
  });

  it('is said in full, and with a condition', () => {
    expect(of([pod('a'), pod('b')]).status).toEqual({
      observedGeneration: 1,
      disruptionsAllowed: 1,
      currentHealthy: 2,
      desiredHealthy: 1,
      expectedPods: 2,
      conditions: [condition('True', 'SufficientPods')],
    });
    expect(of([pod('a')]).status.conditions).toEqual([condition('False', 'InsufficientPods')]);
  });

  it('is not said again', () => {
    const { status } = of([pod('a'), pod('b')]);
    expect(of([pod('a'), pod('b')], status, { nowMs: NOW_MS + 5000 }).status).toBe(status);
    const newer = of([pod('a'), pod('b')], status, { budget: budget(status, 2) });
    expect(newer.status).toMatchObject({ observedGeneration: 2, conditions: [{ observedGeneration: 2 }] });
    expect(newer.status.conditions?.[0]?.lastTransitionTime).toBe(at(0));
  });

  it('is generous where it is more than what is in force', () => {
    const { status, isGenerous } = of([pod('a'), pod('b')]);
    expect(isGenerous).toBe(true);
    expect(of([pod('a'), pod('b')], status).isGenerous).toBe(false);
    expect(of([pod('a')], status).isGenerous).toBe(false);
    expect(of([pod('a'), pod('b'), pod('c')], status).isGenerous).toBe(true);
    // A status of another generation is in force no more.
    expect(of([pod('a'), pod('b')], status, { budget: budget(status, 2) }).isGenerous).toBe(true);
    expect(of([pod('a')], status, { budget: budget(status, 2) }).isGenerous).toBe(false);
  });
});

describe('evictions under way', () => {
  const noted = (...names: readonly string[]): BudgetStatus => ({
    observedGeneration: 1,
    disruptedPods: Object.fromEntries(names.map((name) => [name, at(-60)])),
  });

  it('count as done', () => {
    const { status, recheckAtMs, isGenerous } = of([pod('a'), pod('b')], noted('a'));
    expect(status).toMatchObject({ currentHealthy: 1, disruptionsAllowed: 0, disruptedPods: { a: at(-60) } });
    expect(recheckAtMs).toBe(NOW_MS + 60_001);
    expect(isGenerous).toBe(false);
  });

  it('are forgotten when the pod is going, or gone', () => {
    const { status, recheckAtMs } = of([pod('a', 'going'), pod('b')], noted('a', 'gone'));
    expect(status.disruptedPods).toBeUndefined();
    expect(recheckAtMs).toBeUndefined();
  });

  it('are not forgotten where the pods may be older than the note', () => {
    const { status } = of([pod('a', 'going'), pod('b')], noted('a', 'unknown'), { isCurrent: false });
    expect(status.disruptedPods).toEqual({ a: at(-60), unknown: at(-60) });
  });

  it('are given up after two minutes', () => {
    const late = { nowMs: NOW_MS + 60_001 };
    const { status, staying, isGenerous } = of([pod('a'), pod('b')], noted('a', 'gone'), late);
    expect(status).toMatchObject({ currentHealthy: 2, disruptionsAllowed: 1 });
    expect(status.disruptedPods).toBeUndefined();
    expect(staying.map(({ metadata }) => metadata.name)).toEqual(['a']);
    expect(isGenerous).toBe(true);
    expect(of([pod('a')], noted('a'), { nowMs: NOW_MS + 60_000 }).status.currentHealthy).toBe(0);
  });

  it('are known by any name', () => {
    const disruptedPods = JSON.parse(`{"__proto__": "${at(-60)}", "constructor": "${at(-60)}"}`) as object;
    const { status } = of([pod('__proto__'), pod('b')], { disruptedPods } as BudgetStatus);
    expect(status.currentHealthy).toBe(1);
    expect(Object.keys(status.disruptedPods ?? {})).toEqual(['__proto__']);
    expect(of([pod('constructor'), pod('toString')], noted('x')).status.currentHealthy).toBe(2);
  });
});

describe('when nobody knows', () => {
  it('nothing is allowed, and the condition says why', () => {
    const before: BudgetStatus = { ...of([pod('a'), pod('b')]).status, disruptedPods: { c: at(0) } };
    const after = failSafe(budget(before), 'found no controllers', NOW_MS + 5000);
    const message = 'found no controllers';
    const conditions = [{ ...condition('False', 'SyncFailed', at(5)), message }];
    expect(after).toEqual({ ...before, disruptionsAllowed: 0, conditions });
    expect(failSafe(budget(after), message, NOW_MS + 9000)).toBe(after);
  });

  it('a budget that was never counted has a status, too', () => {
    const { conditions, ...counts } = failSafe(budget(), 'why', NOW_MS);
    expect(counts).toEqual({ disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 });
    expect(conditions).toMatchObject([{ status: 'False', reason: 'SyncFailed', message: 'why' }]);
  });

  it('it ends when somebody does', () => {
    const failed = failSafe(budget(of([pod('a'), pod('b')]).status), 'why', NOW_MS);
    expect(of([pod('a'), pod('b')], failed).status.conditions).toEqual([condition('True', 'SufficientPods')]);
  });
});
