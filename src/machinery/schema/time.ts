/** Times in RFC 3339, to the nanosecond. */

const RFC3339 =
  /^([0-9]{4})-([0-9]{2})-([0-9]{2})[Tt]([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))$/;
const DATE = /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/;
/** Longest text that is read at all; RFC 3339 with nanoseconds needs 35. */
const TEXT_LENGTH_MAX = 128;

/** Nanoseconds since the Unix epoch; undefined where the text is no RFC 3339 time. */
export function parseRfc3339(text: string): bigint | undefined {
  if (text.length > TEXT_LENGTH_MAX) return undefined;
  const match = RFC3339.exec(text);
  if (!match) return undefined;
  const days = daysOf(match);
  const [hour, minute, second] = [Number(match[4]), Number(match[5]), Number(match[6])];
  if (days === undefined || hour > 23 || minute > 59 || second > 59) return undefined;
  const offsetMinutes = Number(match[9] ?? 0) * 60 + Number(match[10] ?? 0);
  if (Number(match[9] ?? 0) > 24 || Number(match[10] ?? 0) > 60) return undefined;
  const offset = match[8] === '-' ? -offsetMinutes : offsetMinutes;
  const seconds = days * 86_400 + hour * 3600 + (minute - offset) * 60 + second;
  const nanoseconds = BigInt((match[7] ?? '').slice(0, 9).padEnd(9, '0'));
  return BigInt(seconds) * 1_000_000_000n + nanoseconds;
}

/** Nanoseconds since the epoch of a date's midnight (UTC); undefined where the text is no date. */
export function parseDate(text: string): bigint | undefined {
  const match = DATE.exec(text);
  const days = match && daysOf(match);
  return days === undefined || days === null ? undefined : BigInt(days) * 86_400_000_000_000n;
}

/** A time as Go's RFC3339Nano spells it: UTC, no trailing zeros. */
export function formatRfc3339(nanoseconds: bigint): string {
  let seconds = nanoseconds / 1_000_000_000n;
  let rest = nanoseconds % 1_000_000_000n;
  if (rest < 0n) {
    rest += 1_000_000_000n;
    seconds -= 1n;
  }
  const whole = new Date(Number(seconds) * 1000).toISOString().slice(0, 19);
  const fraction = rest.toString().padStart(9, '0').replace(/0+$/, '');
  return fraction === '' ? `${whole}Z` : `${whole}.${fraction}Z`;
}

type LayoutParts = readonly (readonly [part: string, pattern: RegExp])[];

const LAYOUT = '2006-01-02T15:04:05Z07:00';
const LAYOUT_PARTS: LayoutParts = [
  ['2006', /^[0-9]{4}/],
  ['-', /^-/],
  ['01', /^[0-9]{2}/],
  ['-', /^-/],
  ['02', /^[0-9]{2}/],
  ['T', /^T/],
  ['15', /^[0-9]{2}/],
  [':', /^:/],
  ['04', /^[0-9]{2}/],
  [':', /^:/],
  ['05', /^[0-9]{2}(?:[.,][0-9]+)?/],
  ['Z07:00', /^(?:Z|[+-][0-9]{2}:[0-9]{2})/],
];

const MICRO_LAYOUT = '2006-01-02T15:04:05.000000Z07:00';
const MICRO_LAYOUT_PARTS: LayoutParts = [
  ...LAYOUT_PARTS.slice(0, -2),
  ['05', /^[0-9]{2}/],
  ['.000000', /^[.,][0-9]{6}/],
  ...LAYOUT_PARTS.slice(-1),
];

/** Whether this is a MicroTime: RFC 3339 with six fractional digits, neither fewer nor more. */
export function isMicroTime(text: string): boolean {
  return /[.,][0-9]{6}(?:Z|[+-][0-9]{2}:[0-9]{2})$/.test(text) && parseRfc3339(text) !== undefined;
}

/** Why a text is no RFC 3339 time, in the words of Go's time.Parse. */
export function describeTimeError(text: string): string {
  return describeError(text, LAYOUT, LAYOUT_PARTS);
}

/** The same of a text that is no MicroTime. */
export function describeMicroTimeError(text: string): string {
  return describeError(text, MICRO_LAYOUT, MICRO_LAYOUT_PARTS);
}

function describeError(text: string, layout: string, parts: LayoutParts): string {
  const shown = JSON.stringify(text.slice(0, TEXT_LENGTH_MAX));
  let rest = text.slice(0, TEXT_LENGTH_MAX);
  for (const [part, pattern] of parts) {
    const match = pattern.exec(rest);
    if (!match) return `parsing time ${shown} as "${layout}": cannot parse ${JSON.stringify(rest)} as "${part}"`;
    rest = rest.slice(match[0].length);
  }
  if (rest !== '') return `parsing time ${shown}: extra text: ${JSON.stringify(rest)}`;
  return `parsing time ${shown}: ${rangeOf(text)} out of range`;
}

function rangeOf(text: string): string {
  const [month, hour, minute, second] = [5, 11, 14, 17].map((start) => Number(text.slice(start, start + 2)));
  if (month === undefined || month < 1 || month > 12) return 'month';
  if (hour !== undefined && hour > 23) return 'hour';
  if (minute !== undefined && minute > 59) return 'minute';
  return second !== undefined && second > 59 ? 'second' : 'day';
}

function daysOf(match: RegExpExecArray): number | undefined {
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const epochMs = Date.UTC(year, month - 1, day);
  // Date.UTC reads years below 100 as 19xx; setUTCFullYear takes them as they are.
  const date = new Date(epochMs);
  if (year < 100) date.setUTCFullYear(year, month - 1, day);
  if (month < 1 || date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  return date.getTime() / 86_400_000;
}
