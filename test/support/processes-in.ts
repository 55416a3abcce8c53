import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** Processes that have a directory which nobody else has among their arguments, or run in it. */
export function processesIn(directory: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => `${commandLineOf(pid)} ${placeOf(pid)}`.includes(`${directory}/`));
}

/** Words end with NUL. Empty where there is no such process. */
export function commandLineOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
  } catch {
    // It has ended meanwhile.
    return '';
  }
}

function placeOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    // It has ended meanwhile, or is none of our business.
    return '';
  }
}
