/** Small pictures made of characters. */

const FULL = '█';
const EMPTY = '░';
/** From nothing to all. */
const LEVELS = '▁▂▃▄▅▆▇█';

/** How far something is, of a hundred. */
export function bar(percent: number, width: number): string {
  const full = Math.round((Math.min(100, Math.max(0, percent)) / 100) * width);
  return FULL.repeat(full) + EMPTY.repeat(width - full);
}

/** How something went over time: its last values, each against the largest of them. */
export function sparkline(values: readonly number[], width: number): string {
  const last = values.slice(-width);
  const most = Math.max(...last, 0);
  return last
    .map((value) => LEVELS[most <= 0 ? 0 : Math.round((Math.max(0, value) / most) * (LEVELS.length - 1))] ?? '')
    .join('');
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'] as const;

/** So many bytes in two or three figures. */
export function byteCount(bytes: number): string {
  const power = Math.min(UNITS.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, bytes)) / 10)));
  const amount = bytes / 1024 ** power;
  return `${amount >= 100 || power === 0 ? Math.round(amount) : amount.toFixed(1)} ${UNITS[power] ?? ''}`;
}
