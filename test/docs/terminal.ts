import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { say } from '../support/say.ts';
import { Likeness } from './likeness.ts';
import type { ShownCommand, Step } from './page.ts';

/** How long anything may take that a page shows, on a machine under load. */
const PATIENCE_MS = 120_000;
/** What somebody types to end a command that goes on for ever, as a terminal shows it. */
const INTERRUPT = '^C';
/** A command that says one of these has failed, and the page shows that it does. */
const COMPLAINT = /^(?:(?:kubectl )?godwit: |error: |Error from server|no$)/;
/** What would be possible or not is in what it prints. */
const DRY_RUN = / --dry-run\b/;
/** What only looks can be looked at again, until the cluster is as far as the page shows it. */
const LOOKS = [
  /^(?:\w+=\S+ )*kubectl (?:--\S+ \S+ )*(?:get|describe|events|logs|auth)\b/,
  /^(?:\w+=\S+ )*(?:npx --no-install )?godwit (?:status|queue|why|logs|policy explain|(?:image|token|trust) list)\b/,
  /\| godwit console\b/,
  DRY_RUN,
];
/** Who is told to do so does. */
const AGAIN = 'try again in a moment';
const TRIES_MAX = 10;
/** What holds for all commands that follow. */
const LASTING = /^(?:export|cd) /;

export interface TerminalOptions {
  /** Where commands are typed. */
  readonly directory: string;
  readonly env: NodeJS.ProcessEnv;
  /** The home directory, which pages call /home/you. */
  readonly home: string;
  readonly user?: { readonly uid: number; readonly gid: number };
}

/** A command that was typed, and what it has printed so far. */
interface Typed {
  readonly child: ChildProcess;
  readonly output: () => string;
}

/** One that is typed at a screen, whose keys can be pressed. */
interface TypedAtScreen extends Typed {
  readonly press: (key: string) => void;
}

/** Somebody who types what a page says, and compares what is printed with what the page shows. */
export class Terminal {
  readonly #options: TerminalOptions;
  readonly #running = new Set<ChildProcess>();
  #lasting = '';

  constructor(options: TerminalOptions) {
    this.#options = options;
  }

  /** Types a command whose output goes into a pipe, and returns at once. */
  type(command: string): Typed {
    return this.#start('bash', ['-c', `exec 2>&1\n${this.#lasting}${command}`], 'ignore');
  }

  /** Types a command at a pseudo-terminal, which can show colours and be written over, and returns at once. */
  typeAtScreen(command: string): TypedAtScreen {
    const typed = this.#start('script', ['-qefc', `${this.#lasting}${command}`, '/dev/null'], 'pipe');
    return { ...typed, press: (key) => void typed.child.stdin?.write(key) };
  }

  /** Types a command, and waits for its end. */
  async typeToEnd(
    command: string,
    where: 'pipe' | 'screen' = 'pipe',
  ): Promise<{ readonly code: number | null; readonly output: string }> {
    const { child, output } = where === 'screen' ? this.typeAtScreen(command) : this.type(command);
    await once(child, 'close');
    return { code: child.exitCode, output: output() };
  }

  /**
   * Does what a page says, in order: types its commands, and saves its files. Throws, with what was printed, where a command
   * does not do what is shown.
   */
  async play(steps: readonly Step[], likeness = new Likeness()): Promise<void> {
    for (const step of steps)
      if (step.kind === 'file') writeFileSync(join(this.#options.directory, step.name), step.text);
      else {
        say(`line ${step.line}: ${step.command}`);
        await this.#playOne(step, likeness);
      }
  }

  /** Ends what goes on. */
  async close(): Promise<void> {
    for (const child of this.#running) await end(child, 'SIGTERM');
  }

  #start(file: string, args: readonly string[], input: 'ignore' | 'pipe'): Typed {
    const { directory: cwd, env, home, user } = this.#options;
    // A group of its own, all of which is interrupted together, as at a terminal.
    const child = spawn(file, args, { cwd, env, stdio: [input, 'pipe', 'ignore'], detached: true, ...user });
    this.#running.add(child);
    child.once('close', () => this.#running.delete(child));
    let output = '';
    child.stdout?.on('data', (chunk: Buffer) => (output += chunk));
    return { child, output: () => output.replaceAll(home, '/home/you') };
  }

  async #playOne({ command: written, output: shown, line }: ShownCommand, likeness: Likeness): Promise<void> {
    const command = likeness.translated(written);
    const goesOn = command.endsWith(' &');
    const isInterrupted = shown.at(-1) === INTERRUPT;
    const compare = (printed: string): void => {
      const difference =
        goesOn || isInterrupted
          ? likeness.differenceSoFar(isInterrupted ? shown.slice(0, -1) : shown, printed)
          : likeness.difference(shown, printed);
      expect(difference, `line ${line}: ${command}\n${printed}`).toBeUndefined();
    };
    if (LASTING.test(command)) {
      this.#lasting += `${command}\n`;
      return;
    }
    if (goesOn || isInterrupted) {
      const typed = this.type(command.replace(/ &$/, ''));
      await eventually(() => compare(typed.output()), PATIENCE_MS);
      if (isInterrupted) await end(typed.child, 'SIGINT');
      return;
    }
    const playOnce = async (): Promise<void> => {
      let { code, output } = await this.typeToEnd(command);
      for (let tries = 0; code !== 0 && output.includes(AGAIN) && tries < TRIES_MAX; tries++)
        ({ code, output } = await this.typeToEnd(command));
      compare(output);
      const isFailure = shown.some((each) => COMPLAINT.test(each));
      if (!DRY_RUN.test(command))
        expect(code === 0, `line ${line}: ${command} ends with ${code}:\n${output}`).toBe(!isFailure);
    };
    await (LOOKS.some((look) => look.test(command)) ? eventually(playOnce, PATIENCE_MS) : playOnce());
  }
}

async function end(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'close');
  process.kill(-(child.pid ?? 0), signal);
  await ended;
}
