import { describe, expect, it } from 'vitest';
import { created, createErrors, statusErrors } from '../test-kinds.ts';
import { podDisruptionBudgetDefinition as budgets } from './pod-disruption-budget.ts';

const selector = { matchLabels: { app: 'a' } };

describe('a PodDisruptionBudget', () => {
  it.each([{ minAvailable: 1 }, { maxUnavailable: '50%' }, {}, { minAvailable: 0, selector: {} }])(
    'is accepted with %j',
    (spec) => {
      expect(createErrors(budgets, { spec: { selector, ...spec } })).toEqual([]);
    },
  );

  it.each<[object, string]>([
    [
      { minAvailable: 1, maxUnavailable: 1 },
      'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable cannot be both set',
    ],
    [{ minAvailable: -1 }, 'spec.minAvailable: Invalid value: -1: must be greater than or equal to 0'],
    [{ maxUnavailable: '150%' }, 'spec.maxUnavailable: Invalid value: "150%": must not be greater than 100%'],
  ])('is refused with %j', (spec, error) => {
    expect(createErrors(budgets, { spec })).toEqual([error]);
  });

  it('has a spec, though nothing may be in it', () => expect(created(budgets, {})).toMatchObject({ spec: {} }));

  it('allows nothing until a controller has counted', () => {
    expect(created(budgets, { spec: {}, status: { disruptionsAllowed: 9 } }).status).toEqual({
      disruptionsAllowed: 0,
      currentHealthy: 0,
      desiredHealthy: 0,
      expectedPods: 0,
    });
  });

  it('counts from zero', () => {
    expect(statusErrors(budgets, { disruptionsAllowed: 0, currentHealthy: 1 })).toEqual([]);
    expect(statusErrors(budgets, { disruptionsAllowed: -1 })).toHaveLength(1);
  });
});
