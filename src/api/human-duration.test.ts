import { describe, expect, it } from 'vitest';
import { ageOf, humanDuration } from './human-duration.ts';

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const YEAR = 365 * DAY;

describe('humanDuration', () => {
  it.each([
    [-2 * SECOND, '<invalid>'],
    [-1500, '0s'],
    [-1, '0s'],
    [0, '0s'],
    [999, '0s'],
    [SECOND, '1s'],
    [119 * SECOND, '119s'],
    [2 * MINUTE, '2m'],
    [2 * MINUTE + SECOND, '2m1s'],
    [10 * MINUTE - 1, '9m59s'],
    [10 * MINUTE, '10m'],
    [10 * MINUTE + SECOND, '10m'],
    [3 * HOUR - 1, '179m'],
    [3 * HOUR, '3h'],
    [3 * HOUR + MINUTE, '3h1m'],
    [8 * HOUR, '8h'],
    [8 * HOUR + MINUTE, '8h'],
    [2 * DAY - 1, '47h'],
    [2 * DAY, '2d'],
    [2 * DAY + HOUR, '2d1h'],
    [8 * DAY, '8d'],
    [8 * DAY + HOUR, '8d'],
    [2 * YEAR - 1, '729d'],
    [2 * YEAR, '2y'],
    [2 * YEAR + DAY, '2y1d'],
    [8 * YEAR, '8y'],
    [8 * YEAR + DAY, '8y'],
  ])('%d ms is %s', (ms, text) => {
    expect(humanDuration(ms)).toBe(text);
  });
});

describe('ageOf', () => {
  const now = Date.parse('2026-01-01T00:01:00Z');
  it.each([
    ['2026-01-01T00:00:00Z', '60s'],
    ['2026-01-01T00:00:30.500000Z', '29s'],
    ['', '<unknown>'],
    [undefined, '<unknown>'],
    [null, '<unknown>'],
    ['soon', '<unknown>'],
  ])('%j is %s', (timestamp, text) => {
    expect(ageOf(timestamp, now)).toBe(text);
  });
});
