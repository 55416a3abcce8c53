import { describe, expect, it } from 'vitest';
import { isExpiredAt, renewAtMs } from './renewal.ts';

describe('a certificate', () => {
  const year = { notBeforeMs: 1_000_000, notAfterMs: 2_000_000 };

  it('is renewed somewhere between seven and nine tenths of its life', () => {
    expect(renewAtMs(year, 0)).toBe(1_700_000);
    expect(renewAtMs(year, 0.5)).toBe(1_800_000);
    expect(renewAtMs(year, 0.999)).toBeLessThan(1_900_000);
  });

  it('expires when its time is over, whatever the clock said before it began', () => {
    expect(isExpiredAt(year, 0)).toBe(false);
    expect(isExpiredAt(year, 1_999_999)).toBe(false);
    expect(isExpiredAt(year, 2_000_000)).toBe(true);
  });
});
