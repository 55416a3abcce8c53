/**
 * The outside world as ports. Everything below this room receives time, chance, logging, sockets, processes and files
 * through these interfaces, so that the simulation can run the very same code in virtual time from one seed.
 */

/** A timer that has been set; cancelling one that already fired does nothing. */
export interface Timer {
  cancel(): void;
}

/** Wall-clock time and timers. */
export interface Clock {
  /** Milliseconds since the Unix epoch. */
  now(): number;
  /** Calls back once, `delayMs` from now. */
  setTimer(callback: () => void, delayMs: number): Timer;
}

/** Chance: unpredictable in production, seeded in the simulation. */
export interface Random {
  /** A number in [0, 1). */
  number(): number;
  bytes(count: number): Uint8Array;
  /** A version 4 UUID. */
  uuid(): string;
}

export type LogFields = Readonly<Record<string, unknown>>;

/** Structured logging. Callers never pass secrets; there is no redaction behind this port. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds these fields to every line. */
  child(fields: LogFields): Logger;
}

/** What one side of a connection hears. */
export interface ConnectionHandlers {
  data(bytes: Uint8Array): void;
  /** Called once, after everything else; the error says what broke the connection, where something did. */
  closed(error?: Error): void;
}

/** A two-way stream of bytes. */
export interface Connection {
  /** Takes the bytes at once and sends them in order; what is written after the end goes nowhere. */
  write(bytes: Uint8Array | string): void;
  /** Ends the connection without waiting for anything; `closed` is heard nevertheless. */
  close(): void;
}

/** Reaches sockets on this host. */
export interface Connector {
  /** Connects to a unix socket. Rejects where nobody listens; handlers hear nothing before it resolves. */
  connectUnix(path: string, handlers: ConnectionHandlers): Promise<Connection>;
}

/** A process, told from every other one that had its number before or will have it later. */
export interface ProcessIdentity {
  readonly pid: number;
  /** When the kernel started it, in whatever the kernel counts. */
  readonly startedAt: string;
}

/** How a process ended; both are undefined where only its parent could have known. */
export interface ProcessExit {
  readonly code: number | undefined;
  readonly signal: string | undefined;
}

export interface ProcessSpec {
  readonly command: string;
  readonly arguments: readonly string[];
  /** The file, readable by its owner alone, to which whatever it prints is appended. */
  readonly outputPath: string;
  /** Whom it runs as, if not as this process; it gets no other groups. */
  readonly user: UserIdentity | undefined;
}

export interface UserIdentity {
  readonly uid: number;
  readonly gid: number;
}

/** A process of which this one is the parent. */
export interface ChildProcess {
  readonly identity: ProcessIdentity;
  readonly exited: Promise<ProcessExit>;
}

/** The processes of this host. */
export interface Processes {
  /** True when this process may do everything, and so may what it starts unless told otherwise. */
  readonly isRoot: boolean;
  /** Starts a process that outlives this one. Rejects when it cannot be started. */
  spawnDetached(spec: ProcessSpec): Promise<ChildProcess>;
  /** Runs a short command to its end, and answers what it printed. Rejects unless it succeeds. */
  run(command: string, args: readonly string[]): Promise<string>;
  /** The process that was started with exactly this among its arguments, looking at `pid` first where one is given. */
  findByArgument(argument: string, pid?: number): Promise<ProcessIdentity | undefined>;
  isRunning(process: ProcessIdentity): Promise<boolean>;
  /** Does nothing to a process that has ended. */
  kill(process: ProcessIdentity, signal: 'SIGTERM' | 'SIGKILL'): Promise<void>;
}

/** The files of this host, as far as running programs needs them. */
export interface HostFiles {
  /** Makes a directory that its owner alone may enter, whether it was there or not. */
  makePrivateDirectory(path: string, owner: UserIdentity | undefined): Promise<void>;
  /** Makes or overwrites a file that its owner alone may read and write. */
  writePrivate(path: string, bytes: Uint8Array, owner: UserIdentity | undefined): Promise<void>;
  /** The last bytes of a file as text; empty where there is none. */
  readEnd(path: string, bytesMax: number): Promise<string>;
}

/** What a component needs from the outside world. */
export interface Env {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Resolves after `delayMs`, or as soon as the signal aborts; it never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const timer = clock.setTimer(done, delayMs);
    function done(): void {
      timer.cancel();
      signal?.removeEventListener('abort', done);
      resolve();
    }
    signal?.addEventListener('abort', done, { once: true });
  });
}
