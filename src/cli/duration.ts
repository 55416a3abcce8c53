import { InvalidArgumentError } from 'commander';

/** Spans of time as people type them. */

const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** Milliseconds of `90m`, `24h`, `1h30m` and 0; undefined for anything else. */
export function durationMs(text: string): number | undefined {
  const parts = [...text.matchAll(/(\d{1,6})([smhd])/g)];
  if (text !== '0' && (parts.length === 0 || parts.map(([part]) => part).join('') !== text)) return undefined;
  return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (UNITS_MS.get(unit) ?? 0), 0);
}

/** The same, also for a bare number, which is of seconds; for options of commands. */
export function parseTimeout(text: string): number {
  const timeoutMs = durationMs(/^\d{1,6}$/.test(text) ? `${text}s` : text);
  if (timeoutMs === undefined)
    throw new InvalidArgumentError('give a span of time such as 10s, 1m or 1h (0 waits as long as it takes).');
  return timeoutMs;
}
