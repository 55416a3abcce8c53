import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs';
import type { Wrap } from '../cli.ts';

export interface KeptProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  /** Where all that it prints goes. */
  readonly outputPath: string;
  readonly wrap: Wrap;
}

/** How soon one that has ended is started again. */
const RESTART_MS = 500;

/** A process that is started again whenever it ends, as a Deployment or a service manager would do it. */
export class KeptProcess {
  readonly #options: KeptProcessOptions;
  #child: ChildProcess | undefined;
  #isWanted = false;
  #starts = 0;

  constructor(options: KeptProcessOptions) {
    this.#options = options;
  }

  /** Starts it, unless it runs, and goes on starting it as often as it ends. */
  start(): void {
    this.#isWanted = true;
    if (!this.#child) this.#spawn();
  }

  /** Lets it run for as long as it does by itself. */
  leave(): void {
    this.#isWanted = false;
  }

  /** kill -9, and nobody starts it again; resolves when it is gone. */
  async kill(): Promise<void> {
    this.leave();
    const child = this.#child;
    if (!child) return;
    const exited = once(child, 'exit');
    child.kill('SIGKILL');
    await exited;
  }

  /** SIGTERM, and nobody starts it again; SIGKILL where it takes longer than this. Resolves when it is gone. */
  async terminate(graceMs: number): Promise<void> {
    this.leave();
    const child = this.#child;
    if (!child) return;
    const exited = once(child, 'exit');
    const timer = setTimeout(() => child.kill('SIGKILL'), graceMs);
    child.kill('SIGTERM');
    await exited;
    clearTimeout(timer);
  }

  /** How often it was started again. */
  get restarts(): number {
    return Math.max(0, this.#starts - 1);
  }

  /** The end of what it has printed. */
  output(): string {
    const { outputPath } = this.#options;
    return existsSync(outputPath) ? readFileSync(outputPath, 'utf8').slice(-OUTPUT_LENGTH_MAX) : '';
  }

  #spawn(): void {
    const { command, args, outputPath, wrap } = this.#options;
    const output = openSync(outputPath, 'a');
    const child = spawn(...wrap(command, args), { stdio: ['ignore', output, output], detached: true });
    closeSync(output);
    child.unref();
    this.#child = child;
    this.#starts++;
    child.once('exit', () => {
      this.#child = undefined;
      setTimeout(() => {
        if (this.#isWanted && !this.#child) this.#spawn();
      }, RESTART_MS).unref();
    });
  }
}

const OUTPUT_LENGTH_MAX = 64 * 1024;
