import { describe, expect, it } from 'vitest';
import { derivedMac, derivedSuffix, derivedUuid } from './derived-identity.ts';

const UID = '5d307ca9-b3ef-428c-8861-06e72d69f223';
const OTHER = '5d307ca9-b3ef-428c-8861-06e72d69f224';

describe('derived identity', () => {
  it('is the same each time, and another for another UID or another purpose', () => {
    for (const derive of [derivedUuid, derivedMac, derivedSuffix]) {
      expect(derive(UID, 'a')).toBe(derive(UID, 'a'));
      expect(new Set([derive(UID, 'a'), derive(OTHER, 'a'), derive(UID, 'b')]).size).toBe(3);
    }
  });
  it('is well formed', () => {
    for (let count = 0; count < 50; count++) {
      expect(derivedUuid(UID, String(count))).toMatch(
        /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
      );
      expect(derivedMac(UID, String(count))).toMatch(/^[0-9a-f][26ae](:[0-9a-f]{2}){5}$/);
      expect(derivedSuffix(UID, String(count))).toMatch(/^[bcdfghjklmnpqrstvwxz2456789]{5}$/);
    }
  });
});
