import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

/** The `godwit` command as a user types it. */

const main = fileURLToPath(new URL('../../dist/cli/main.js', import.meta.url));

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  /** Everything printed so far. */
  readonly output: () => string;
  /** Waits until something is printed. Throws, with what was printed instead, when the command ends before. */
  readonly printed: (text: string) => Promise<void>;
  readonly finished: Promise<Finished>;
}

/** Puts another command around one, such as what enters a namespace. */
export type Wrap = (command: string, args: readonly string[]) => [command: string, args: string[]];

/** Starts a command that goes on until it is stopped. */
export function startCli(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
  wrap: Wrap = (command, given) => [command, [...given]],
): Running {
  const [file, all] = wrap(process.execPath, [main, ...args]);
  const child = spawn(file, all, {
    stdio: 'pipe',
    env: { ...process.env, ...env },
  });
  let stdout = '';
  let stderr = '';
  const wake: (() => void)[] = [];
  const notify = (): void => {
    for (const each of wake.splice(0)) each();
  };
  child.stdout?.on('data', (chunk: Buffer) => {
    stdout += chunk.toString('utf8');
    notify();
  });
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr += chunk.toString('utf8');
    notify();
  });
  let isOver = false;
  const finished = new Promise<Finished>((resolve, reject) => {
    child.once('error', reject);
    // Not `exit`: what was printed last may come after it.
    child.once('close', (code) => {
      isOver = true;
      resolve({ code, stdout, stderr });
      notify();
    });
  });
  return {
    child,
    output: () => stdout + stderr,
    printed: async (text) => {
      while (!stdout.includes(text) && !stderr.includes(text)) {
        if (isOver) throw new Error(`the command ended without printing ${JSON.stringify(text)}:\n${stdout}${stderr}`);
        await new Promise<void>((resolve) => wake.push(resolve));
      }
    },
    finished,
  };
}

/** Runs a command to its end. */
export function runCli(args: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<Finished> {
  const { child, finished } = startCli(args, env);
  child.stdin?.end();
  return finished;
}
