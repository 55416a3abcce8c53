import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, copyFileSync, mkdirSync, statSync } from 'node:fs';
import { createConnection } from 'node:net';
import { join, resolve } from 'node:path';
import { argumentsOf, placeOf } from '../processes.ts';
import { untilSpoken } from './progress.ts';

/** How often a monitor that is not there yet is called, if it is the only one. */
const CALL_MS = 2;
/** Options whose argument is a file. */
const FILES = ['-kernel', '-initrd'];

/** Starts QEMU as Godwit has started one, with nothing around it: what all that Godwit does is compared with. */
export class ByHand {
  readonly #directory: string;
  readonly #arguments: readonly string[];
  readonly #owner: { readonly uid: number; readonly gid: number };
  readonly #children: ChildProcess[] = [];
  #started = 0;

  private constructor(directory: string, args: readonly string[], owner: { uid: number; gid: number }) {
    this.#directory = directory;
    this.#arguments = args;
    this.#owner = owner;
  }

  /** Learns the command line from one that runs; its files are copied, since they go with it. */
  static like(pid: number, directory: string): ByHand {
    const [place, args] = [placeOf(pid), argumentsOf(pid)];
    const { uid, gid } = statSync(place);
    mkdirSync(directory, { mode: 0o711 });
    const own = args.map((argument, index) => {
      const option = args[index - 1] ?? '';
      if (!FILES.includes(option)) return argument;
      const copy = join(directory, option.slice(1));
      copyFileSync(resolve(place, argument), copy);
      chownSync(copy, uid, gid);
      return copy;
    });
    // Nobody is going to let it run.
    return new ByHand(
      directory,
      own.filter((argument) => argument !== '-S'),
      { uid, gid },
    );
  }

  /** Starts one. Answers the milliseconds until its monitor speaks, and until its guest does. */
  async start(): Promise<{ readonly monitorMs: number; readonly spokenMs: number }> {
    const directory = join(this.#directory, String(this.#started++));
    const { uid, gid } = this.#owner;
    mkdirSync(directory, { mode: 0o700 });
    chownSync(directory, uid, gid);
    const [program = '', ...args] = this.#arguments;
    const startedMs = performance.now();
    const child = spawn(program, args, { cwd: directory, uid, gid, stdio: 'ignore' });
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
