import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { type ChildProcess, type Env, type ProcessIdentity, type Processes, sleep } from '../env/ports.ts';
import { unlessAborted } from '../kube/abort.ts';
import { holderOf } from './data-directory.ts';
import { stopHolder, type StopSignal } from './stop-holder.ts';

export interface KeptProcessOptions {
  readonly env: Env;
  readonly processes: Processes;
  /** What it is, at the beginning of a sentence. */
  readonly title: string;
  /** Which it holds for as long as it runs. */
  readonly directory: string;
  /** Where what it prints goes, in that directory. */
  readonly outputFile: string;
  /** What this very program is started with, asked whenever it is, after `beforeStart`. */
  readonly argumentsNow: () => readonly string[];
  /** Makes sure, whenever it is started, that it has what it needs. Must not reject. */
  readonly beforeStart: () => Promise<void>;
  readonly print: (line: string) => void;
}

/** How soon a process that ended is started again: sooner at first, and as soon as at first once one has held out. */
const RESTART_MS_MIN = 500;
const RESTART_MS_MAX = 30_000;
const HELD_OUT_MS = 60_000;
/** How long a process may take until it can be told anything. */
const START_TIMEOUT_MS = 10_000;
const POLL_MS = 50;
/** The longest that guests may take to shut down, if their own grace periods allow it. */
export const STOP_GUESTS_TIMEOUT_MS = 600_000;

/**
 * A process of ours that outlives this one, and that is started again whenever it ends. One that is still there from
 * before is replaced: it may be of an older version.
 */
export class KeptProcess {
  readonly #options: KeptProcessOptions;
  readonly #stopping = new AbortController();
  #keeping: Promise<void> = Promise.resolve();
  #running: ProcessIdentity | undefined;

  constructor(options: KeptProcessOptions) {
    this.#options = options;
  }

  /** Starts it, and goes on starting it as often as it ends. */
  start(): void {
    this.#keeping = this.#keep();
  }

  /** Ends it; with `SIGUSR2`, once it has done what it has to do before. */
  async stop(signal: StopSignal): Promise<void> {
    this.#stopping.abort();
    await this.#keeping;
    await this.#stop(signal);
    // One that was only just started may not have had its directory yet.
    if (this.#running) await this.#options.processes.kill(this.#running, 'SIGTERM');
  }

  async #stop(signal: StopSignal): Promise<void> {
    const { env, directory } = this.#options;
    const { clock } = env;
    if (signal === 'SIGTERM') return void (await stopHolder(directory, clock));
    // Nobody else does what it has to do: one that is about to start, or was to be started again, is waited for.
    if (!holderOf(directory) && !this.#running) await this.#spawn();
    for (const startedMs = clock.now(); clock.now() - startedMs < START_TIMEOUT_MS; await sleep(clock, POLL_MS))
      if (holderOf(directory)) break;
    await stopHolder(directory, clock, signal, STOP_GUESTS_TIMEOUT_MS);
  }

  async #keep(): Promise<void> {
    const { env, print, title } = this.#options;
    const { signal } = this.#stopping;
    for (let delayMs = RESTART_MS_MIN; !signal.aborted; delayMs = Math.min(delayMs * 2, RESTART_MS_MAX)) {
      const startedMs = env.clock.now();
      try {
        await this.#runOnce();
      } catch (error) {
        print(`${title} cannot be started: ${(error as Error).message}`);
      }
      if (env.clock.now() - startedMs > HELD_OUT_MS) delayMs = RESTART_MS_MIN;
      await sleep(env.clock, delayMs, signal);
    }
  }

  /** Resolves when the process has ended, or when it is to be left alone. */
  async #runOnce(): Promise<void> {
    const { env, print, directory, title } = this.#options;
    const { signal } = this.#stopping;
    await stopHolder(directory, env.clock);
    if (signal.aborted) return;
    const { child, outputPath } = await this.#spawn();
    // It leaves nothing on the signal: a process may end often. It may also have been told to stop meanwhile.
    const exit = await unlessAborted(child.exited, signal).catch(() => undefined);
    if (!exit) return;
    this.#running = undefined;
    print(`${title} has ended (${exit.signal ?? exit.code}); see ${outputPath}. It is started again.`);
  }

  async #spawn(): Promise<{ readonly child: ChildProcess; readonly outputPath: string }> {
    const { processes, directory, outputFile, beforeStart } = this.#options;
    await beforeStart();
    mkdirSync(directory, { recursive: true, mode: 0o711 });
    const outputPath = join(directory, outputFile);
    const child = await processes.spawnDetached({
      command: process.execPath,
      arguments: this.#options.argumentsNow(),
      directory,
      outputPath,
      user: undefined,
    });
    this.#running = child.identity;
    return { child, outputPath };
  }
}
