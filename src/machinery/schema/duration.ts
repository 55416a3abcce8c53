/** Durations in Go's spelling, such as `1h30m` or `1.5s`. */

const NANOSECONDS: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
const LIMIT = 1n << 63n;
/** Longest text that is read at all: Go prints far less, and digits beyond have no meaning. */
const TEXT_LENGTH_MAX = 512;

/** Nanoseconds of a Go duration; undefined where Go's time.ParseDuration would give an error. */
export function parseGoDuration(text: string): bigint | undefined {
  if (text.length > TEXT_LENGTH_MAX) return undefined;
  const negative = text.startsWith('-');
  const body = negative || text.startsWith('+') ? text.slice(1) : text;
  if (body === '0') return 0n;
  if (body === '') return undefined;
  const part = /([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)/y;
  let total = 0n;
  while (part.lastIndex < body.length) {
    const match = part.exec(body);
    if (!match) return undefined;
    const [, whole = '', fraction = '', unit = ''] = match;
    if (whole === '' && fraction === '') return undefined;
    const scale = NANOSECONDS[unit] ?? 0n;
    total += BigInt(whole === '' ? 0 : whole) * scale;
    if (fraction !== '') total += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
    if (total > LIMIT) return undefined;
  }
  if (total === LIMIT && !negative) return undefined;
  return negative ? -total : total;
}
