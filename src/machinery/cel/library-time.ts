import { evaluationError } from './budget.ts';
import { type Overload, overload } from './functions.ts';
import type { Duration, Timestamp } from './values.ts';

/** Parts of timestamps, in UTC or in the time zone that the second argument names, and of durations. */

type Part = (wall: Date) => number;

const PARTS: readonly (readonly [string, Part])[] = [
  ['getFullYear', (wall) => wall.getUTCFullYear()],
  ['getMonth', (wall) => wall.getUTCMonth()],
  ['getDate', (wall) => wall.getUTCDate()],
  ['getDayOfMonth', (wall) => wall.getUTCDate() - 1],
  ['getDayOfWeek', (wall) => wall.getUTCDay()],
  ['getDayOfYear', (wall) => Math.floor((wall.getTime() - Date.UTC(wall.getUTCFullYear(), 0, 1)) / 86_400_000)],
  ['getHours', (wall) => wall.getUTCHours()],
  ['getMinutes', (wall) => wall.getUTCMinutes()],
  ['getSeconds', (wall) => wall.getUTCSeconds()],
  ['getMilliseconds', (wall) => wall.getUTCMilliseconds()],
];

const DURATION_PARTS: readonly (readonly [string, bigint])[] = [
  ['getHours', 3_600_000_000_000n],
  ['getMinutes', 60_000_000_000n],
  ['getSeconds', 1_000_000_000n],
  ['getMilliseconds', 1_000_000n],
];

/** Looking up a time zone's rules costs about this many simple operations. */
const ZONE_COST = 400;

/** The wall clock of a moment in a zone, as the UTC fields of a Date. */
function wallClock(moment: Timestamp, zone: string | undefined): Date {
  const before = moment.nanoseconds % 1_000_000n < 0n ? 1n : 0n;
  const utc = new Date(Number(moment.nanoseconds / 1_000_000n - before));
  if (zone === undefined || zone === 'UTC') return utc;
  const offset = /^([+-]?)([0-9]{2}):([0-9]{2})$/.exec(zone);
  if (offset) {
    const minutes = (offset[1] === '-' ? -1 : 1) * (Number(offset[2]) * 60 + Number(offset[3]));
    return new Date(utc.getTime() + minutes * 60_000);
  }
  const fields = zoneFields(utc, zone);
  const wall = Date.UTC(
    fields('year'),
    fields('month') - 1,
    fields('day'),
    fields('hour'),
    fields('minute'),
    fields('second'),
  );
  return new Date(wall + utc.getUTCMilliseconds());
}

function zoneFields(moment: Date, timeZone: string): (type: string) => number {
  const parts = zoneFormat(timeZone).formatToParts(moment);
  return (type) => Number(parts.find((part) => part.type === type)?.value);
}

/** Formats by zone: making one costs far more than using it. There are about 600 names of zones. */
const zoneFormats = new Map<string, Intl.DateTimeFormat>();
const ZONES_CACHED_MAX = 1000;

function zoneFormat(timeZone: string): Intl.DateTimeFormat {
  const known = zoneFormats.get(timeZone);
  if (known) return known;
  try {
    const format = new Intl.DateTimeFormat('en-US', {
      timeZone,
      hourCycle: 'h23',
      year: 'numeric',
      month: 'numeric',
      day: 'numeric',
      hour: 'numeric',
      minute: 'numeric',
      second: 'numeric',
    });
    if (zoneFormats.size < ZONES_CACHED_MAX) zoneFormats.set(timeZone, format);
    return format;
  } catch {
    throw evaluationError(`unknown time zone ${timeZone}`);
  }
}

function timestampParts(): Overload[] {
  return PARTS.flatMap(([name, part]) => [
    overload(`timestamp.${name}(): int`, ([moment]) => BigInt(part(wallClock(moment as Timestamp, undefined)))),
    overload(`timestamp.${name}(string): int`, ([moment, zone], budget) => {
      budget.spend(ZONE_COST);
      return BigInt(part(wallClock(moment as Timestamp, zone as string)));
    }),
  ]);
}

export const timeFunctions: readonly Overload[] = [
  ...timestampParts(),
  ...DURATION_PARTS.map(([name, unit]) =>
    overload(`duration.${name}(): int`, ([value]) => (value as Duration).nanoseconds / unit),
  ),
];
