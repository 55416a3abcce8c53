import { describe, expect, it } from 'vitest';
import type { FieldError } from '../field-error.ts';
import {
  immutableErrors,
  intOrPercentErrors,
  intOrPercentValue,
  isEmptySelector,
  isSame,
  labelSelectorErrors,
  percentLimitErrors,
  selectorMatches,
} from './validation.ts';

const textOf = (errors: readonly FieldError[]): string[] => errors.map((error) => `${error.field}: ${error.message}`);

describe('intOrPercentErrors', () => {
  it.each([0, 1, '0%', '100%', '150%', undefined, null])('accepts %j', (value) => {
    expect(intOrPercentErrors(value, 'x')).toEqual([]);
  });

  it.each([-1, '', 'x', '10', '10%%', '-1%', '1.5%'])('refuses %j', (value) => {
    expect(intOrPercentErrors(value, 'x')).toHaveLength(1);
  });

  it('has a limit for percentages only', () => {
    expect(percentLimitErrors(200, 'x')).toEqual([]);
    expect(percentLimitErrors('100%', 'x')).toEqual([]);
    expect(textOf(percentLimitErrors('101%', 'x'))).toEqual([
      'x: Invalid value: "101%": must not be greater than 100%',
    ]);
    expect([0, 7, '7%', 'x', undefined].map(intOrPercentValue)).toEqual([0, 7, 7, 0, 0]);
  });
});

describe('label selectors', () => {
  it.each([
    [{ matchLabels: { app: 'a' } }, true],
    [{ matchLabels: { app: 'b' } }, false],
    [{ matchLabels: { other: 'a' } }, false],
    [{}, true],
    [undefined, true],
    [{ matchExpressions: [{ key: 'app', operator: 'In', values: ['a', 'b'] }] }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'NotIn', values: ['a'] }] }, false],
    [{ matchExpressions: [{ key: 'none', operator: 'NotIn', values: ['a'] }] }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'Exists' }] }, true],
    [{ matchExpressions: [{ key: 'app', operator: 'DoesNotExist' }] }, false],
    [{ matchExpressions: [{ key: 'none', operator: 'DoesNotExist' }] }, true],
    [{ matchExpressions: [{ key: 'constructor', operator: 'Exists' }] }, false],
    [{ matchLabels: { app: 'a' }, matchExpressions: [{ key: 'x', operator: 'Exists' }] }, false],
  ])('%j', (selector, matches) => {
    expect(selectorMatches(selector, [['app', 'a']])).toBe(matches);
  });

  it.each<[object, string[]]>([
    [{ matchLabels: { app: 'a' } }, []],
    [
      { matchExpressions: [{ key: 'a', operator: 'In' }] },
      ["s.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'Exists', values: ['x'] }] },
      ["s.matchExpressions[0].values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"],
    ],
    [
      { matchExpressions: [{ key: 'a', operator: 'Like' }] },
      ['s.matchExpressions[0].operator: Invalid value: "Like": not a valid selector operator'],
    ],
  ])('is checked: %j', (selector, errors) => {
    expect(textOf(labelSelectorErrors(selector as never, 's'))).toEqual(errors);
  });

  it('has well-formed keys and values', () => {
    const selector = {
      matchLabels: { 'bad key': 'bad value!' },
      matchExpressions: [{ key: '-', operator: 'In', values: ['ok', '-'] }],
    };
    const fields = labelSelectorErrors(selector, 's').map((error) => error.field);
    expect(fields).toContain('s.matchLabels');
    expect(fields).toContain('s.matchExpressions[0].key');
    expect(fields).toContain('s.matchExpressions[0].values[1]');
  });

  it('is empty only without any requirement', () => {
    expect(isEmptySelector(undefined)).toBe(true);
    expect(isEmptySelector({ matchLabels: {} })).toBe(true);
    expect(isEmptySelector({ matchLabels: { a: 'b' } })).toBe(false);
    expect(isEmptySelector({ matchExpressions: [{}] })).toBe(false);
  });
});

describe('isSame', () => {
  it.each([
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [{ a: 1 }, { a: 1, b: null }, true],
    [{ a: 1 }, { a: 1, b: undefined }, true],
    [undefined, null, true],
    [{ a: 1 }, { a: '1' }, false],
    [[1, 2], [2, 1], false],
    [[1], [1, 2], false],
    [{}, [], false],
    [0, false, false],
    [{ toString: 1 }, {}, false],
  ])('%j and %j', (a, b, same) => {
    expect(isSame(a, b)).toBe(same);
    expect(immutableErrors(a, b, 'x')).toHaveLength(same ? 0 : 1);
  });
});
