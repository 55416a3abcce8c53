import { isIP } from 'node:net';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { cidrFamily, ipFamily, isOnePerFamily } from './ip.ts';

describe('ipFamily', () => {
  it.each(['0.0.0.0', '255.255.255.255', '::', '::1', '1::', '2001:db8::ffff', '1:2:3:4:5:6:7:8', '::ffff:1.2.3.4'])(
    'knows %s',
    (text) => {
      expect(ipFamily(text)).toBe(isIP(text));
    },
  );
  it.each([
    '',
    '1.2.3',
    '1.2.3.4.5',
    '256.1.1.1',
    '01.2.3.4',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '12345::',
    'g::',
    ':1',
    '1.2.3.4::',
  ])('refuses %j', (text) => {
    expect(ipFamily(text)).toBeUndefined();
  });
  it('agrees with Node on generated addresses', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV4(), fc.ipV6(), fc.string()), (text) => {
        if (text.includes('%')) return;
        expect(ipFamily(text) ?? 0).toBe(isIP(text));
      }),
    );
  });
});

describe('cidrFamily', () => {
  it.each([
    ['10.0.0.0/8', 4],
    ['10.0.0.0/32', 4],
    ['2001:db8::/64', 6],
    ['10.0.0.0/33', undefined],
    ['10.0.0.0', undefined],
    ['10.0.0.0/08', undefined],
    ['10.0.0.0/8/8', undefined],
  ])('%s is %s', (text, family) => {
    expect(cidrFamily(text)).toBe(family);
  });
  it('allows one of each family', () => {
    expect(isOnePerFamily([4])).toBe(true);
    expect(isOnePerFamily([4, 6])).toBe(true);
    expect(isOnePerFamily([4, 4])).toBe(false);
    expect(isOnePerFamily([4, 6, 4])).toBe(false);
  });
});
