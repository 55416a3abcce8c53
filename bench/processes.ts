import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** What /proc says about processes. One that has ended meanwhile has nothing, and used nothing. */

const CLOCK_TICKS_PER_SECOND = 100;

export interface ProcessMemory {
  readonly residentMegabytes: number;
  /** How much of it is not just pages of files, which the kernel may take back at will. */
  readonly privateMegabytes: number;
  /** Where pages are shared, its part of them. */
  readonly proportionalMegabytes: number;
}

/** Seconds of processor time, of all threads. */
export function cpuSeconds(pid: number): number {
  const stat = read(pid, 'stat');
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return (Number(fields[11] ?? 0) + Number(fields[12] ?? 0)) / CLOCK_TICKS_PER_SECOND;
}

export function memoryOf(pid: number): ProcessMemory {
  const said = `${read(pid, 'status')}\n${read(pid, 'smaps_rollup')}`;
  const megabytes = (field: string): number =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(said)?.[1] ?? 0) / 1024;
  return {
    residentMegabytes: megabytes('VmRSS'),
    privateMegabytes: megabytes('RssAnon'),
    proportionalMegabytes: megabytes('Pss'),
  };
}

/** All that have this directory, which nobody else has, among their arguments, or run below it. */
export function processesOf(directory: string): number[] {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .map(Number)
    .filter((pid) => `${argumentsOf(pid).join(' ')} ${placeOf(pid)}/`.includes(`${directory}/`));
}

export function argumentsOf(pid: number): string[] {
  return read(pid, 'cmdline').split('\0').slice(0, -1);
}

export function placeOf(pid: number): string {
  try {
    return readlinkSync(`/proc/${pid}/cwd`);
  } catch {
    return '';
  }
}

function read(pid: number, file: string): string {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'latin1');
  } catch {
    return '';
  }
}
