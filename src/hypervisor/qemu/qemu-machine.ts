import type { Clock, Connection, ConnectionHandlers, Connector, HostFiles, Logger } from '../../env/ports.ts';
import { type Processes, type ProcessExit, type ProcessIdentity, sleep } from '../../env/ports.ts';
import { errorMessage } from '../../api/error-message.ts';
import {
  HypervisorError,
  type Machine,
  type MachineDisks,
  type MachineEnd,
  type MachineEvent,
  type MachineMemory,
  type MachineProcessors,
  type MachineRun,
  type MachineStatus,
} from '../hypervisor.ts';
import type { MachineMigration } from '../migration.ts';
import { diskSizes } from './block-nodes.ts';
import { machineEnd } from './machine-end.ts';
import { machineEvent, machineStatus } from './machine-events.ts';
import { connectMonitors, type Monitors } from './monitors.ts';
import { QemuAgentChannel } from './qemu-agent-channel.ts';
import type { ExecuteOptions } from './qmp.ts';
import { QemuMigration } from './qemu-migration.ts';
import { QemuMemory } from './qemu-memory.ts';
import { QemuProcessors } from './qemu-processors.ts';
import { QmpError } from './qmp-error.ts';
import { isRecord, type QemuVersion, type QmpEvent } from './qmp-message.ts';
import type { RunFiles } from './run-files.ts';
import type { TranscriptLine } from './transcript.ts';

/** How often a QEMU that is not our child is looked for once it has hung up. */
const GONE_POLL_MS = 20;
/** How long one that hung up may take to end before it is called again: it flushes its disks. */
const GONE_WAIT_MS = 1000;
/** How long QEMU may take to end in order before it is ended by force. */
const QUIT_WAIT_MS = 10_000;
/** How long whoever listens may take to note that the guest has shut down. */
const HEARD_WAIT_MS = 5000;
/** How much of QEMU's log is read when it has ended. */
const LOG_BYTES = 8 * 1024;

export interface QemuMachineOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly connector: Connector;
  readonly processes: Processes;
  readonly hostFiles: HostFiles;
  readonly run: MachineRun;
  readonly files: RunFiles;
  readonly process: ProcessIdentity;
  /** Known to the parent alone. */
  readonly exited: Promise<ProcessExit> | undefined;
}

/** One QEMU, reached through its monitors, which are called again should they hang up before it ends. */
export class QemuMachine implements Machine {
  readonly run: MachineRun;
  readonly ended: Promise<MachineEnd>;
  readonly migration: MachineMigration;
  readonly processors: MachineProcessors;
  readonly memory: MachineMemory;
  readonly disks: MachineDisks;
  readonly guestAgent: QemuAgentChannel;
  readonly #options: QemuMachineOptions;
  readonly #listeners = new Set<(event: MachineEvent) => unknown>();
  readonly #qmpListeners = new Set<(event: QmpEvent) => void>();
  readonly #detached = new AbortController();
  #onEnded: (end: MachineEnd) => void = () => undefined;
  #monitors: Monitors | undefined;
  #version: QemuVersion = { major: 0, minor: 0, micro: 0 };
  #hasGuestShutDown = false;
  #wasToldToQuit = false;
  #isOver = false;

  private constructor(options: QemuMachineOptions) {
    this.#options = options;
    this.run = options.run;
    this.ended = new Promise((resolve) => (this.#onEnded = resolve));
    this.migration = new QemuMigration({
      clock: options.clock,
      directory: options.files.directory,
      execute: (name, args, how) => this.execute(name, args, how),
      onQmpEvent: (listener) => this.onQmpEvent(listener),
      cutLink: async ({ host, port }) => {
        // The kernel knows how to; it lets root alone.
        await options.processes.run('ss', ['--kill', '--tcp', '--numeric', 'dst', host, 'dport', '=', `:${port}`]);
      },
    });
    this.processors = new QemuProcessors((name, args) => this.execute(name, args));
    this.memory = new QemuMemory(
      (name, args) => this.execute(name, args),
      () => this.#version,
    );
    this.disks = { sizes: () => diskSizes((name, args) => this.execute(name, args)) };
    this.guestAgent = new QemuAgentChannel({
      connector: options.connector,
      files: options.files,
      execute: (command) => this.execute(command),
      onQmpEvent: (listener) => this.onQmpEvent(listener),
    });
  }

  /** Connects to a QEMU that is starting or has started; rejects when it ends before it answers. */
  static async connect(options: QemuMachineOptions): Promise<QemuMachine> {
    const machine = new QemuMachine(options);
    await machine.#connect();
    void machine.#watch();
    return machine;
  }

  /** Takes over a QEMU that was started before; undefined where it has ended. One that does not answer is called until it does. */
  static async adopt(options: QemuMachineOptions): Promise<QemuMachine | undefined> {
    const { processes, process } = options;
    const machine = new QemuMachine(options);
    try {
      await machine.#connect();
    } catch (error) {
      if (!(await processes.isRunning(process))) return undefined;
      machine.#tellMute(error);
    }
    void machine.#watch();
    return machine;
  }

  /** The version of the QEMU that really runs. */
  get version(): QemuVersion {
    return this.#version;
  }

  /** The last lines that were said and heard on the main monitor since it was last connected. */
  transcript(): readonly TranscriptLine[] {
    return this.#monitors?.main.transcript() ?? [];
  }

  async status(): Promise<MachineStatus> {
    const status = machineStatus(await this.execute('query-status'));
    if (status !== 'finished-migrate') return status;
    // QEMU says the same of a guest that was stopped for a post-copy that then failed: nobody else has that one.
    return (await this.migration.progress()).state === 'completed' ? status : 'paused';
  }

  async continue(): Promise<void> {
    await this.#checkWhole();
    await this.execute('cont');
  }

  async stop(): Promise<void> {
    await this.execute('stop');
  }

  async hold(): Promise<void> {
    await this.#checkWhole();
    // QEMU lets no guest go again, nor its disks be written, before it was continued. Both are said in one breath: nobody
    // who dies in between leaves it running.
    await Promise.all([this.execute('cont'), this.execute('stop')]);
  }

  async powerDown(): Promise<void> {
    await this.execute('system_powerdown');
  }

  async reset(): Promise<void> {
    await this.execute('system_reset');
  }

  async quit(): Promise<MachineEnd> {
    this.#checkHeld();
    this.#wasToldToQuit = true;
    const { clock, log } = this.#options;
    try {
      await this.execute('quit', undefined, { timeoutMs: QUIT_WAIT_MS });
    } catch (error) {
      // It may have ended before it could answer; if it has not, it is ended below.
      log.debug('QEMU did not confirm that it quits', { error: errorMessage(error) });
    }
    const timer = clock.setTimer(() => {
      this.kill().catch((error: unknown) => log.warn('QEMU cannot be ended', { error: errorMessage(error) }));
    }, QUIT_WAIT_MS);
    try {
      return await this.#endWhileHeld();
    } finally {
      timer.cancel();
    }
  }

  async kill(): Promise<MachineEnd> {
    this.#checkHeld();
    if (!this.#isOver) await this.#options.processes.kill(this.#options.process, 'SIGKILL');
    return this.#endWhileHeld();
  }

  onEvent(listener: (event: MachineEvent) => unknown): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  openConsole(handlers: ConnectionHandlers): Promise<Connection> {
    return this.#options.connector.connectUnix(this.#options.files.serial, handlers);
  }

  detach(): void {
    this.#detached.abort();
    this.#hangUp();
  }

  /** Sends a command of QMP; an out-of-band one goes over the monitor that is kept free for them. */
  async execute(
    name: string,
    args?: Readonly<Record<string, unknown>>,
    options: ExecuteOptions = {},
  ): Promise<unknown> {
    const monitors = this.#monitors;
    if (!monitors) throw new HypervisorError('Unreachable', `${name}: QEMU is not connected`);
    try {
      return await (options.isOutOfBand ? monitors.urgent : monitors.main).execute(name, args, options);
    } catch (error) {
      const isRefused = error instanceof QmpError && error.code === 'CommandFailed';
      throw new HypervisorError(isRefused ? 'Refused' : 'Unreachable', errorMessage(error), error);
    }
  }

  /** Calls back for every event of QEMU's own from now on, until the answer is called. */
  onQmpEvent(listener: (event: QmpEvent) => void): () => void {
    this.#qmpListeners.add(listener);
    return () => void this.#qmpListeners.delete(listener);
  }

  /**
   * QEMU would obey whoever continues a guest that is not all there, once it is there, and whoever continues one whose state
   * has gone, at once.
   */
  async #checkWhole(): Promise<void> {
    const answer = await this.execute('query-status');
    const status = isRecord(answer) ? answer['status'] : undefined;
    if (status === 'inmigrate') throw new HypervisorError('Refused', 'the guest is not here yet');
    if (status !== 'finish-migrate') return;
    const { state } = await this.migration.progress();
    if (!['failed', 'cancelled', 'none'].includes(state))
      throw new HypervisorError('Refused', `the guest is on its way: its migration is ${state}`);
  }

  /** Nobody would tell of the end of a machine that was let go of. */
  #checkHeld(): void {
    if (this.#detached.signal.aborted) throw new HypervisorError('Unreachable', 'the machine was let go of');
  }

  /** The end of the machine, unless it is let go of before. */
  #endWhileHeld(): Promise<MachineEnd> {
    return new Promise((resolve, reject) => {
      const { signal } = this.#detached;
      const onDetached = (): void => reject(new HypervisorError('Unreachable', 'the machine was let go of'));
      signal.addEventListener('abort', onDetached, { once: true });
      if (signal.aborted) onDetached();
      void this.ended.then(resolve).finally(() => signal.removeEventListener('abort', onDetached));
    });
  }

  async #connect(): Promise<void> {
    const { clock, connector, files, run } = this.#options;
    const onEvent = (event: QmpEvent): void => this.#hear(event);
    const giveUp = new AbortController();
    const stopLooking = this.#callWhenGone(() => giveUp.abort(new Error('QEMU has ended')));
    try {
      const { signal } = giveUp;
      this.#monitors = await connectMonitors({ clock, connector, files, instance: run.instance, onEvent, signal });
      this.#version = this.#monitors.main.version;
      // Its guest may have shut down while nobody listened.
      if ((await this.status()) === 'shut-down') {
        this.#hasGuestShutDown = true;
        // Whoever has just reached it is about to listen.
        clock.setTimer(() => this.#tell({ kind: 'guest-shut-down', atMs: undefined }), 0);
      }
    } catch (error) {
      this.#hangUp();
      throw error;
    } finally {
      stopLooking();
    }
  }

  /** Calls back when the process is gone or the machine is let go of, unless told before that it need not. */
  #callWhenGone(callback: () => void): () => void {
    const { clock, processes, process } = this.#options;
    const over = new AbortController();
    const look = async (): Promise<void> => {
      while (!over.signal.aborted) {
        if (this.#detached.signal.aborted || !(await processes.isRunning(process))) return callback();
        await sleep(clock, GONE_POLL_MS, over.signal);
      }
    };
    void look();
    return () => over.abort();
  }

  #hear(event: QmpEvent): void {
    const told = machineEvent(event);
    for (const listener of this.#qmpListeners) listener(event);
    if (told) this.#tell(told);
  }

  #tell(event: MachineEvent): void {
    const heard = [...this.#listeners].map((listener) => listener(event));
    if (event.kind === 'guest-shut-down') void this.#guestHasShutDown(heard);
  }

  /**
   * QEMU stays when its guest is gone, so that we learn of it; then it has done its work. Whoever listens may write it down
   * first: afterwards nothing tells such an end from any other.
   */
  async #guestHasShutDown(heard: readonly unknown[]): Promise<void> {
    this.#hasGuestShutDown = true;
    const { clock, log } = this.#options;
    const written = new AbortController();
    await Promise.race([Promise.allSettled(heard), sleep(clock, HEARD_WAIT_MS, written.signal)]);
    written.abort();
    this.quit().catch((error: unknown) => log.debug('QEMU is left as it is', { error: errorMessage(error) }));
  }

  #hangUp(): void {
    this.#monitors?.main.close();
    this.#monitors?.urgent.close();
    this.#monitors = undefined;
  }

  /** Follows the machine to its end. */
  async #watch(): Promise<void> {
    const { signal } = this.#detached;
    const { clock, hostFiles, files } = this.#options;
    for (;;) {
      if (this.#monitors) await Promise.race([this.#monitors.main.closed, this.#monitors.urgent.closed]);
      this.#hangUp();
      const exit = signal.aborted ? undefined : await this.#gone();
      if (signal.aborted) return;
      if (exit) {
        this.#isOver = true;
        const said = await hostFiles.readEnd(files.log, LOG_BYTES);
        const [hasGuestShutDown, wasToldToQuit] = [this.#hasGuestShutDown, this.#wasToldToQuit];
        return this.#onEnded(machineEnd({ exit, hasGuestShutDown, wasToldToQuit, log: said }));
      }
      try {
        await this.#connect();
      } catch (error) {
        this.#tellMute(error);
        await sleep(clock, GONE_WAIT_MS, signal);
      }
    }
  }

  #tellMute(error: unknown): void {
    const { log, process } = this.#options;
    log.warn('QEMU runs, but its monitor does not answer', { pid: process.pid, error: errorMessage(error) });
  }

  /** How it ended, unless it goes on. */
  async #gone(): Promise<ProcessExit | undefined> {
    const { clock, processes, process, exited } = this.#options;
    const deadlineMs = clock.now() + GONE_WAIT_MS;
    do {
      if (!(await processes.isRunning(process))) return (await exited) ?? { code: undefined, signal: undefined };
      await sleep(clock, GONE_POLL_MS, this.#detached.signal);
    } while (clock.now() < deadlineMs && !this.#detached.signal.aborted);
    return undefined;
  }
}
