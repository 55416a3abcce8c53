import { describe, expect, it } from 'vitest';
import { testEnv } from '../env/test.ts';
import { EXPECTATION_MS_MAX, Expectations } from './expectations.ts';

describe('expectations', () => {
  it('are met by as many creations as were expected', () => {
    const expectations = new Expectations(testEnv().clock);
    expect(expectations.isSatisfied('a')).toBe(true);
    expectations.expect('a', { creations: 2 });
    expectations.creationObserved('b');
    expectations.creationObserved('a');
    expect(expectations.isSatisfied('a')).toBe(false);
    expectations.creationObserved('a');
    expect(expectations.isSatisfied('a')).toBe(true);
    expectations.creationObserved('a');
    expect(expectations.isSatisfied('a')).toBe(true);
  });

  it('are met by creations that failed, several at once', () => {
    const expectations = new Expectations(testEnv().clock);
    expectations.expect('a', { creations: 5 });
    expectations.creationObserved('a', 5);
    expect(expectations.isSatisfied('a')).toBe(true);
  });

  it('count a deletion once, however often it is seen', () => {
    const expectations = new Expectations(testEnv().clock);
    expectations.expect('a', { deletions: ['u1', 'u2'] });
    for (const uid of ['u1', 'u1', 'other']) expectations.deletionObserved('a', uid);
    expect(expectations.isSatisfied('a')).toBe(false);
    expectations.deletionObserved('a', 'u2');
    expect(expectations.isSatisfied('a')).toBe(true);
  });

  it('wait for creations and deletions alike', () => {
    const expectations = new Expectations(testEnv().clock);
    expectations.expect('a', { creations: 1, deletions: ['u1'] });
    expectations.creationObserved('a');
    expect(expectations.isSatisfied('a')).toBe(false);
    expectations.deletionObserved('a', 'u1');
    expect(expectations.isSatisfied('a')).toBe(true);
  });

  it('are given up after five minutes', () => {
    const { clock } = testEnv();
    const expectations = new Expectations(clock);
    expectations.expect('a', { creations: 1 });
    expect(expectations.expiresInMs('a')).toBe(EXPECTATION_MS_MAX + 1);
    clock.advance(EXPECTATION_MS_MAX);
    expect(expectations.isSatisfied('a')).toBe(false);
    clock.advance(expectations.expiresInMs('a') ?? 0);
    expect(expectations.isSatisfied('a')).toBe(true);
    expect(expectations.expiresInMs('a')).toBeUndefined();
  });

  it('are replaced by new ones, and forgotten when told to', () => {
    const expectations = new Expectations(testEnv().clock);
    expectations.expect('a', { creations: 3 });
    expectations.expect('a', { creations: 1 });
    expectations.creationObserved('a');
    expect(expectations.isSatisfied('a')).toBe(true);
    expectations.expect('a', { deletions: ['u1'] });
    expectations.forget('a');
    expect(expectations.isSatisfied('a')).toBe(true);
  });

  it('of nothing are met', () => {
    const expectations = new Expectations(testEnv().clock);
    expectations.expect('a', {});
    expect(expectations.isSatisfied('a')).toBe(true);
  });
});
