import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { selectorFrom } from '../../machinery/selectors.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { DisruptionBudgets, type PodDisruptionBudget } from './disruption-budgets.ts';

const BUCKET = 'poddisruptionbudgets.policy';

function budget(name: string, namespace: string, selector: object | undefined): PodDisruptionBudget {
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name, namespace },
    spec: selector === undefined ? {} : { selector },
  };
}

const key = fc.constantFrom('app', 'tier', 'constructor');
const value = fc.constantFrom('a', 'b', '');
const selector = fc.oneof(
  fc.constant(undefined),
  fc.constant({}),
  fc.record({ matchLabels: fc.dictionary(key, value, { maxKeys: 2 }) }),
  fc.record({
    matchExpressions: fc.array(
      fc.record({
        key,
        operator: fc.constantFrom('In', 'NotIn', 'Exists', 'DoesNotExist'),
        values: fc.array(value, { minLength: 1, maxLength: 2 }),
      }),
      { maxLength: 2 },
    ),
  }),
);
const step = fc.record({
  name: fc.constantFrom('x', 'y', 'z'),
  namespace: fc.constantFrom('n1', 'n2'),
  selector: fc.oneof({ weight: 4, arbitrary: selector }, { weight: 1, arbitrary: fc.constant('delete' as const) }),
});

describe('the index of disruption budgets', () => {
  it('finds what looking at every budget would find, after any history', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(step, { maxLength: 20, size: 'max' }),
        fc.dictionary(key, value, { maxKeys: 3 }),
        fc.nat(20),
        async (steps, labels, indexedAfter) => {
          const registry = await TestRegistry.open();
          let index: DisruptionBudgets | undefined;
          for (const [position, { name, namespace, selector }] of steps.entries()) {
            if (position === indexedAfter) index = new DisruptionBudgets(registry.view(BUCKET));
            if (selector === 'delete') await registry.drop(budget(name, namespace, {}));
            else await registry.put(budget(name, namespace, selector));
          }
          index ??= new DisruptionBudgets(registry.view(BUCKET));
          const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'n1', labels } };
          const expected = registry
            .view<PodDisruptionBudget>(BUCKET)
            .list('n1')
            .filter((each) => selectorFrom(each.spec?.selector).matches(labels));
          expect(index.matching(pod)).toEqual(expected);
        },
      ),
    ));

  it('selects everything with an empty selector and nothing without one', async () => {
    const registry = await TestRegistry.open();
    await registry.put(budget('all', 'ns', {}));
    await registry.put(budget('none', 'ns', undefined));
    const index = new DisruptionBudgets(registry.view(BUCKET));
    const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'ns' } };
    expect(index.matching(pod).map((each) => each.metadata.name)).toEqual(['all']);
  });

  it('looks at few where all share a label', () => {
    const budgets = Array.from({ length: 5000 }, (_, index) =>
      budget(`b${index}`, 'ns', { matchLabels: { app: 'vm', vm: `vm-${index}` } }),
    );
    const index = new DisruptionBudgets({ list: () => budgets, get: () => undefined, onChange: () => undefined });
    // Trying all for each would take longer than a test may.
    for (let number = 0; number < 5000; number++) {
      const labels = { app: 'vm', vm: `vm-${number}` };
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'ns', labels } };
      expect(index.matching(pod)).toHaveLength(1);
    }
  });
});
