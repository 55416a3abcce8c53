/** Schedules in cron's notation, as far as it takes to say what is wrong with one. The words are upstream's. */

interface Bounds {
  readonly min: number;
  readonly max: number;
  readonly names: readonly string[];
}

const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const DAYS = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat'];

/** Minute, hour, day of the month, month, day of the week. */
const FIELDS: readonly Bounds[] = [
  { min: 0, max: 59, names: [] },
  { min: 0, max: 23, names: [] },
  { min: 1, max: 31, names: [] },
  { min: 1, max: 12, names: MONTHS },
  { min: 0, max: 6, names: DAYS },
];

const MACRO = /^@(yearly|annually|monthly|weekly|daily|midnight|hourly|every .+)$/;

/** What is wrong with a schedule; undefined when nothing is. */
export function scheduleError(schedule: string): string | undefined {
  if (schedule.startsWith('@')) return MACRO.test(schedule) ? undefined : `unrecognized descriptor: ${schedule}`;
  const fields = schedule.trim().split(/\s+/);
  if (fields.length !== FIELDS.length)
    return `expected exactly 5 fields, found ${fields.length}: [${fields.join(' ')}]`;
  for (const [index, bounds] of FIELDS.entries()) {
    for (const range of (fields[index] ?? '').split(',')) {
      const error = range === '' ? undefined : rangeError(range, bounds);
      if (error !== undefined) return error;
    }
  }
  return undefined;
}

/** Of `*`, `a`, `a-b`, each with an optional `/step`. */
function rangeError(range: string, bounds: Bounds): string | undefined {
  const [values = '', step, ...moreSteps] = range.split('/');
  const [first = '', last, ...moreValues] = values.split('-');
  const isAny = first === '*' || first === '?';
  const start = isAny ? bounds.min : numberOf(first, bounds);
  if (typeof start === 'string') return start;
  if (!isAny && moreValues.length > 0) return `too many hyphens: ${range}`;
  const given = isAny ? bounds.max : last === undefined ? start : numberOf(last, bounds);
  if (typeof given === 'string') return given;
  if (moreSteps.length > 0) return `too many slashes: ${range}`;
  const stride = step === undefined ? 1 : numberOf(step, { ...bounds, names: [] });
  if (typeof stride === 'string') return stride;
  const end = step !== undefined && last === undefined ? bounds.max : given;
  if (start < bounds.min) return `beginning of range (${start}) below minimum (${bounds.min}): ${range}`;
  if (end > bounds.max) return `end of range (${end}) above maximum (${bounds.max}): ${range}`;
  if (start > end) return `beginning of range (${start}) beyond end of range (${end}): ${range}`;
  return stride === 0 ? `step of range should be a positive number: ${range}` : undefined;
}

/** The number that a text means, or what is wrong with it. */
function numberOf(text: string, { min, names }: Bounds): number | string {
  const name = names.indexOf(text.toLowerCase());
  if (name >= 0) return name + min;
  if (/^[0-9]{1,9}$/.test(text)) return Number(text);
  return `failed to parse int from ${text}: strconv.Atoi: parsing ${JSON.stringify(text)}: invalid syntax`;
}
