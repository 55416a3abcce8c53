import { rm, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { errorMessage } from '../../api/error-message.ts';
import type { Logger, Processes, ProcessExit } from '../../env/ports.ts';
import { LineSplitter } from '../qemu/line-splitter.ts';
import { runFiles } from '../qemu/run-files.ts';
import { checkArguments } from './checked-arguments.ts';
import { type LauncherEnd, type LauncherOrder, LINE_BYTES_MAX, line, NOTICE_SUFFIX, parseOrder } from './wire.ts';

export interface LauncherOptions {
  readonly log: Logger;
  readonly processes: Pick<Processes, 'spawnDetached'>;
  /** The socket at which agents give their orders. */
  readonly path: string;
  /** QEMU. */
  readonly program: string;
  /** The directory of the machine's run, in which QEMU is started. */
  readonly directory: string;
}

/**
 * What runs in a launcher pod: it starts the pod's machine when the agent of its node says so, as a process of the pod. It decides
 * nothing: who may run the guest, and when it is to end, the agent knows. While a machine runs, it stays, whatever else it is told.
 */
export class Launcher {
  readonly #options: LauncherOptions;
  /** Resolves when this launcher is to end. */
  readonly #ended: Promise<LauncherEnd>;
  #end: (end: LauncherEnd) => void = () => undefined;
  /** Whether there is a machine, or is about to be. */
  #isBusy = false;
  /** How the machine ends that was started. */
  #exited: Promise<ProcessExit> | undefined;

  constructor(options: LauncherOptions) {
    this.#options = options;
    this.#ended = new Promise((resolve) => (this.#end = resolve));
  }

  /** Listens, and resolves when it is to end. */
  async run(): Promise<LauncherEnd> {
    const { path } = this.#options;
    // The container may be started anew by hand: nobody else has these names.
    for (const left of [path, path + NOTICE_SUFFIX]) await rm(left, { force: true });
    const server = createServer((socket) => this.#serve(socket));
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen({ path }, resolve);
    });
    const end = await this.#ended;
    server.close();
    return end;
  }

  /**
   * Its kubelet wants the launcher to end. What is without a machine need not wait for an agent. Else the agent is told, by a file that
   * whoever becomes the agent finds, too: no other word of it reaches anybody where the kubelet ends the pod by itself.
   */
  terminate(): void {
    const { path, log } = this.#options;
    if (!this.#isBusy) return this.#end({ exitCode: 0, message: 'the pod was deleted, and had no machine' });
    writeFile(path + NOTICE_SUFFIX, '').catch((error: unknown) =>
      log.warn('the agent is not told that the kubelet ends the pod', { error: errorMessage(error) }),
    );
  }

  #serve(socket: Socket): void {
    const { log } = this.#options;
    const lines = new LineSplitter(LINE_BYTES_MAX);
    // An agent may go at any time; what it started goes on.
    socket.on('error', (error) => log.debug('an agent is gone', { error: error.message }));
    socket.on('data', (bytes) => {
      try {
        for (const text of lines.take(bytes)) void this.#obey(parseOrder(text), socket);
      } catch (error) {
        log.warn('an agent is not understood', { error: errorMessage(error) });
        socket.destroy();
      }
    });
  }

  async #obey(order: LauncherOrder, socket: Socket): Promise<void> {
    // Who is gone has drawn its own conclusions.
    if (socket.destroyed) return;
    // Agents come and go while it runs, and only this process sees how it ends.
    if (order.kind === 'watch') return this.#tell(socket);
    if (this.#isBusy) return this.#refuse(socket, 'a machine runs here');
    if (order.kind === 'end') {
      const { exitCode, message } = order;
      socket.end(line({ kind: 'ending' }), () => this.#end({ exitCode, message }));
      return;
    }
    if (this.#exited) return this.#refuse(socket, 'a machine ran here, and a pod has one');
    this.#isBusy = true;
    try {
      this.#exited = (await this.#start(order.arguments)).exited;
      await this.#tell(socket);
    } catch (error) {
      this.#refuse(socket, errorMessage(error));
    } finally {
      this.#isBusy = false;
    }
  }

  async #start(args: readonly string[]): ReturnType<Processes['spawnDetached']> {
    const { processes, program, directory } = this.#options;
    checkArguments(args);
    const outputPath = runFiles(directory).log;
    return processes.spawnDetached({ command: program, arguments: args, directory, outputPath, user: undefined });
  }

  /** Says that a machine was started, and how it ends. */
  async #tell(socket: Socket): Promise<void> {
    if (!this.#exited) return this.#refuse(socket, 'no machine was started here');
    socket.write(line({ kind: 'started' }));
    socket.end(line({ kind: 'exited', ...(await this.#exited) }));
  }

  #refuse(socket: Socket, message: string): void {
    socket.end(line({ kind: 'refused', message }));
  }
}
