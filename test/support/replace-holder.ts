import { spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import type { Wrap } from './cli.ts';
import { eventually } from './eventually.ts';
import { commandLineOf } from './processes-in.ts';

interface Killed {
  readonly pid: number;
  /** What it was started with. */
  readonly words: readonly string[];
}

/**
 * kill -9 to the process that holds something, whose id `holder` answers. One that has ended, by itself or because it was killed
 * before, has no words any more: another will come, and is waited for.
 */
export function killHolder(holder: () => number | undefined, patienceMs: number): Promise<Killed> {
  return eventually(() => {
    const pid = holder();
    if (pid === undefined) throw new Error('nobody is there');
    const words = commandLineOf(pid).split('\0').slice(0, -1);
    if (words.length === 0) throw new Error(`process ${pid} is ending`);
    process.kill(pid, 'SIGKILL');
    return { pid, words };
  }, patienceMs);
}

export interface ReplacementOptions {
  readonly wrap: Wrap;
  readonly patienceMs: number;
  /** What the other one prints is added to this. */
  readonly outputPath: string;
}

/** The same, and another of the same command in its place at once. */
export async function replaceHolder(
  holder: () => number | undefined,
  { wrap, patienceMs, outputPath }: ReplacementOptions,
): Promise<void> {
  const { pid, words } = await killHolder(holder, patienceMs);
  // While a thread of it is on its way out it is still the holder, and whoever came now would go again.
  await eventually(() => {
    if (holder() === pid) throw new Error(`process ${pid} was killed, and is not gone`);
  }, patienceMs);
  const [command = '', ...args] = words;
  const output = openSync(outputPath, 'a', 0o600);
  spawn(...wrap(command, args), { detached: true, stdio: ['ignore', output, output] }).unref();
  closeSync(output);
}
