/** Values of metav1 that protobuf keeps as numbers and JSON as text. */

/** Year 1 to year 9999, which is what RFC 3339 can write. */
const SECONDS_MIN = -62_135_596_800n;
const SECONDS_MAX = 253_402_300_799n;
const NANOSECONDS_PER_SECOND = 1_000_000_000n;

/** A metav1.Time: whole seconds, as JSON has them. Undefined where no RFC 3339 text exists. */
export function timeText(seconds: bigint): string | undefined {
  if (seconds < SECONDS_MIN || seconds > SECONDS_MAX) return undefined;
  return `${new Date(Number(seconds) * 1000).toISOString().slice(0, 19)}Z`;
}

/** A metav1.MicroTime: six fractional digits, the rest cut off. Undefined where no RFC 3339 text exists. */
export function microTimeText(seconds: bigint, nanoseconds: number): string | undefined {
  if (nanoseconds < 0 || nanoseconds > 999_999_999) return undefined;
  const whole = timeText(seconds);
  if (whole === undefined) return undefined;
  const microseconds = Math.floor(nanoseconds / 1000);
  return `${whole.slice(0, -1)}.${String(microseconds).padStart(6, '0')}Z`;
}

/** A metav1.Duration as Go prints it: `1h0m5s`, `1.5s`, `2ms`, `0s`. */
export function durationText(nanoseconds: bigint): string {
  if (nanoseconds < 0n) return `-${durationText(-nanoseconds)}`;
  if (nanoseconds === 0n) return '0s';
  if (nanoseconds < 1_000n) return `${nanoseconds}ns`;
  if (nanoseconds < 1_000_000n) return `${decimal(nanoseconds, 1_000n)}µs`;
  if (nanoseconds < NANOSECONDS_PER_SECOND) return `${decimal(nanoseconds, 1_000_000n)}ms`;
  const minutes = nanoseconds / (60n * NANOSECONDS_PER_SECOND);
  const seconds = `${decimal(nanoseconds % (60n * NANOSECONDS_PER_SECOND), NANOSECONDS_PER_SECOND)}s`;
  if (minutes === 0n) return seconds;
  const hours = minutes / 60n;
  return hours === 0n ? `${minutes}m${seconds}` : `${hours}h${minutes % 60n}m${seconds}`;
}

function decimal(value: bigint, unit: bigint): string {
  const digits = String(unit).length - 1;
  const fraction = String(value % unit)
    .padStart(digits, '0')
    .replace(/0+$/, '');
  return fraction === '' ? String(value / unit) : `${value / unit}.${fraction}`;
}
