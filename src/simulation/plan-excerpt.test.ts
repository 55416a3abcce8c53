import { describe, expect, it } from 'vitest';
import { excerpt, BadExcerpt, excerptOf } from './plan-excerpt.ts';
import { planOf } from './plan.ts';
import { podsScenario } from './scenarios/pods.ts';

describe('an excerpt of a plan', () => {
  const whole = planOf(9, podsScenario);

  it('can be told and understood', () => {
    const part = {
      ...whole,
      horizonMs: 12_345,
      faults: whole.faults.slice(1),
      strikes: whole.strikes.slice(0, 2),
      actions: whole.actions.filter((_, index) => index % 3 === 1),
    };
    expect(excerpt(whole, excerptOf(part, whole))).toEqual(part);
    expect(excerpt(whole, excerptOf(whole, whole))).toEqual(whole);
  });

  it('may leave out what there is none of', () => {
    expect(excerpt(whole, 'ms=10')).toEqual({ ...whole, horizonMs: 10, faults: [], strikes: [], actions: [] });
  });

  it.each([
    '',
    'ms',
    'ms=-1',
    'ms=x',
    'more=1',
    'strikes=9999',
    'actions=1,',
    'actions=-1',
    'actions=0x1',
    'faults=toString',
  ])('refuses %j', (text) => expect(() => excerpt(whole, text)).toThrow(BadExcerpt));
});
