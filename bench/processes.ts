import { readdirSync, readFileSync, readlinkSync } from 'node:fs';

/** What /proc says about processes. One that has ended meanwhile has nothing, and used nothing. */

const CLOCK_TICKS_PER_SECOND = 100;
const END_MS_MAX = 10_000;

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

/** Ends all of them by force. Nothing has to go on in this process meanwhile, so that it can be done at exit. */
export function endProcessesOf(directory: string): void {
  const deadlineMs = performance.now() + END_MS_MAX;
  for (let left = processesOf(directory); left.length > 0; left = processesOf(directory)) {
    if (performance.now() > deadlineMs) throw new Error(`these do not end: ${left.join(', ')}`);
    const agents = left.filter((pid) => argumentsOf(pid)[2] === 'agent');
    // Agents first: they would start what is missing.
    for (const pid of agents.length > 0 ? agents : left) kill(pid);
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 20);
  }
}

function kill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    // It has ended meanwhile.
  }
}
