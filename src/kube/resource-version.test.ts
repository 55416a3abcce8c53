import { describe, expect, it } from 'vitest';
import { compareVersions, newerVersion } from './resource-version.ts';

describe('resourceVersions', () => {
  it.each([
    ['1', '1', 0],
    ['1', '2', -1],
    ['10', '9', 1],
    ['123456789012345678901', '123456789012345678902', -1],
    ['99999999999999999999', '100000000000000000000', -1],
    ['abc', 'abc', 0],
    ['abc', 'abd', undefined],
    ['1', '', undefined],
    [undefined, '1', undefined],
    ['1', undefined, undefined],
  ])('%s and %s compare as %s', (a, b, expected) => {
    const order = compareVersions(a, b);
    expect(order === undefined ? undefined : Math.sign(order)).toBe(expected);
  });

  it('of two the newer is the larger, or else the later', () => {
    expect(newerVersion('9', '10')).toBe('10');
    expect(newerVersion('10', '9')).toBe('10');
    expect(newerVersion('b', 'a')).toBe('a');
    expect(newerVersion(undefined, '1')).toBe('1');
  });
});
