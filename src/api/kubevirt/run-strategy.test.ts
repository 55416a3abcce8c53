import { describe, expect, it } from 'vitest';
import {
  effectiveRunStrategy,
  type GuestEnd,
  isRunAgain,
  RUN_STRATEGIES,
  type RunStrategy,
  runStrategyErrors,
  type RunWish,
} from './run-strategy.ts';

describe('the run strategy', () => {
  it.each<[RunWish, RunStrategy]>([
    [{ running: true }, 'Always'],
    [{ running: false }, 'Halted'],
    [{}, 'Halted'],
    ...RUN_STRATEGIES.map((runStrategy): [RunWish, RunStrategy] => [{ runStrategy }, runStrategy]),
  ])('of %j is %s', (wish, strategy) => {
    expect(effectiveRunStrategy(wish)).toBe(strategy);
  });
  it.each<[RunWish, boolean, field: string | undefined, text: string]>([
    [{ running: true, runStrategy: 'Always' }, true, 'spec.running', 'mutually exclusive'],
    [{ running: false, runStrategy: 'Halted' }, true, 'spec.running', 'mutually exclusive'],
    [{}, true, 'spec.runStrategy', 'RunStrategy must be specified'],
    [{ runStrategy: 'WaitAsReceiver' }, false, 'spec.runStrategy', 'DecentralizedLiveMigration feature gate is not'],
    [{ runStrategy: 'WaitAsReceiver' }, true, undefined, ''],
    [{ runStrategy: 'Once' }, false, undefined, ''],
    [{ running: false }, false, undefined, ''],
  ])('%j, with migrations from elsewhere %s, is at fault in %s', (wish, isEnabled, field, text) => {
    const [error] = runStrategyErrors(wish, 'spec', isEnabled);
    expect(error?.field).toBe(field);
    expect(error?.message ?? '').toContain(text);
  });
  it.each<[RunStrategy, GuestEnd, boolean]>([
    ['Always', 'Succeeded', true],
    ['Always', 'Failed', true],
    ['RerunOnFailure', 'Succeeded', false],
    ['RerunOnFailure', 'Failed', true],
    ['Manual', 'Failed', false],
    ['Halted', 'Failed', false],
    ['Once', 'Failed', false],
    ['Once', 'Succeeded', false],
    ['WaitAsReceiver', 'Succeeded', false],
  ])('%s: a guest that %s is made anew: %s', (strategy, end, isAgain) => {
    expect(isRunAgain(strategy, end)).toBe(isAgain);
  });
});
