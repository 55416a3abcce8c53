import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createConnection } from 'node:net';
import { join } from 'node:path';
import { learn, type LearntCommandLine, runDirectory } from '../learnt-command-line.ts';
import { untilSpoken } from './progress.ts';

/** How often a monitor that is not there yet is called, if it is the only one. */
const CALL_MS = 2;

/** Starts QEMU as Godwit has started one, with nothing around it: what all that Godwit does is compared with. */
export class ByHand {
  readonly #directory: string;
  readonly #learnt: LearntCommandLine;
  readonly #children: ChildProcess[] = [];
  #started = 0;

  private constructor(directory: string, learnt: LearntCommandLine) {
    this.#directory = directory;
    this.#learnt = learnt;
  }

  /** Learns the command line from one that runs. */
  static like(pid: number, directory: string): ByHand {
    return new ByHand(directory, learn(pid, directory));
  }

  /** Starts one. Answers the milliseconds until its monitor speaks, and until its guest does. */
  async start(): Promise<{ readonly monitorMs: number; readonly spokenMs: number }> {
    const { arguments: words, owner } = this.#learnt;
    const directory = runDirectory(join(this.#directory, String(this.#started++)), owner);
    const [program = '', ...args] = words;
    const startedMs = performance.now();
    const child = spawn(program, args, { cwd: directory, ...owner, stdio: 'ignore' });
    this.#children.push(child);
    const [monitorMs, spokenMs] = await Promise.all([
      this.#untilGreeted(join(directory, 'qmp.sock')).then(() => performance.now() - startedMs),
      untilSpoken(join(directory, 'serial.log')).then(() => performance.now() - startedMs),
    ]);
    return { monitorMs, spokenMs };
  }

  /** Ends all that were started. */
  async end(): Promise<void> {
    for (const child of this.#children.splice(0)) {
      const exited = once(child, 'exit');
      child.kill('SIGKILL');
      await exited;
    }
  }

  async #untilGreeted(socket: string): Promise<void> {
    for (;;) {
      const connection = createConnection(socket);
      try {
        await once(connection, 'data');
        return;
      } catch {
        // It is not there yet.
        await new Promise((resolve) => setTimeout(resolve, CALL_MS * this.#children.length));
      } finally {
        connection.destroy();
      }
    }
  }
}
