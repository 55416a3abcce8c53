const SECOND_MS = 1000;

/** A span of time in two or three figures (`90s`, `5m30s`, `3h12m`, `4d`), as kubectl shows ages. */
export function humanDuration(ms: number): string {
  const seconds = Math.trunc(ms / SECOND_MS);
  // Clocks differ a little: what lies just ahead counts as now.
  if (seconds < -1) return '<invalid>';
  if (seconds < 0) return '0s';
  if (seconds < 120) return `${seconds}s`;
  const minutes = Math.trunc(seconds / 60);
  if (minutes < 10) return pair(minutes, 'm', seconds % 60, 's');
  if (minutes < 180) return `${minutes}m`;
  const hours = Math.trunc(minutes / 60);
  if (hours < 8) return pair(hours, 'h', minutes % 60, 'm');
  if (hours < 48) return `${hours}h`;
  const days = Math.trunc(hours / 24);
  if (days < 8) return pair(days, 'd', hours % 24, 'h');
  if (days < 2 * 365) return `${days}d`;
  const years = Math.trunc(days / 365);
  return years < 8 ? pair(years, 'y', days % 365, 'd') : `${years}y`;
}

function pair(large: number, largeUnit: string, small: number, smallUnit: string): string {
  return small === 0 ? `${large}${largeUnit}` : `${large}${largeUnit}${small}${smallUnit}`;
}

/** The age of a moment given as RFC 3339, as kubectl shows it; `<unknown>` where there is none. */
export function ageOf(timestamp: unknown, nowMs: number): string {
  if (typeof timestamp !== 'string' || timestamp === '') return '<unknown>';
  const ms = Date.parse(timestamp);
  return Number.isNaN(ms) ? '<unknown>' : humanDuration(nowMs - ms);
}
