import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type LabelSelectorObject, selectorFrom } from '../../machinery/selectors.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { BudgetIndex } from './budget-index.ts';
import type { PodDisruptionBudget } from './objects.ts';

function budget(name: string, selector: LabelSelectorObject | undefined): PodDisruptionBudget {
  const metadata = { name, namespace: 'n' };
  return { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata, spec: selector ? { selector } : {} };
}

function pod(labels: Record<string, string>, namespace = 'n'): Pod {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace, labels } };
}

describe('the budgets of a pod', () => {
  it('are those whose selector matches, in its namespace', () => {
    const index = new BudgetIndex();
    index.set(budget('label', { matchLabels: { app: 'a' } }));
    index.set(budget('both', { matchLabels: { app: 'a', tier: 'b' } }));
    index.set(budget('set', { matchExpressions: [{ key: 'app', operator: 'In', values: ['a', 'b', 'a'] }] }));
    index.set(budget('not', { matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['b'] }] }));
    index.set(budget('all', {}));
    index.set(budget('none', undefined));
    index.set(budget('broken', { matchExpressions: [{ key: 'app', operator: 'Like' }] }));
    expect(index.keysOf(pod({ app: 'a' }))).toEqual(['n/all', 'n/label', 'n/not', 'n/set']);
    expect(index.keysOf(pod({ app: 'b', tier: 'b' }))).toEqual(['n/all', 'n/set']);
    expect(index.keysOf(pod({ app: 'a' }, 'other'))).toEqual([]);
  });

  it('follow what changes', () => {
    const all = fc.array(
      fc.record({
        name: fc.constantFrom('a', 'b', 'c'),
        isDeleted: fc.boolean(),
        matchLabels: fc.dictionary(fc.constantFrom('k', 'l', 'm'), fc.constantFrom('1', '2')),
        values: fc.option(fc.uniqueArray(fc.constantFrom('1', '2', '3'), { minLength: 1 })),
      }),
    );
    const labels = fc.dictionary(fc.constantFrom('k', 'l', 'm'), fc.constantFrom('1', '2', '3'));
    fc.assert(
      fc.property(all, labels, (steps, found) => {
        const index = new BudgetIndex();
        const model = new Map<string, LabelSelectorObject>();
        for (const { name, isDeleted, matchLabels, values } of steps) {
          const matchExpressions = values ? [{ key: 'k', operator: 'In', values }] : [];
          const selector = { matchLabels, matchExpressions };
          if (isDeleted) index.delete(budget(name, selector));
          else index.set(budget(name, selector));
          if (isDeleted) model.delete(name);
          else model.set(name, selector);
        }
        const expected = [...model].filter(([, selector]) => selectorFrom(selector).matches(found));
        expect(index.keysOf(pod(found))).toEqual(expected.map(([name]) => `n/${name}`).sort());
      }),
    );
  });

  it('cost what they are, not how many there are of all, also where all share a label', () => {
    const index = new BudgetIndex();
    let matches = 0;
    for (let number = 0; number < 10_000; number++)
      index.set(budget(`b${number}`, { matchLabels: { app: 'vm', vm: `vm-${number}` } }));
    for (let number = 0; number < 10_000; number++)
      matches += index.keysOf(pod({ app: 'vm', vm: `vm-${number}` })).length;
    // Trying all of them for each would take a hundred million matches, and longer than a test may.
    expect(matches).toBe(10_000);
  });
});
