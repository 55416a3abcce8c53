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
  /** Connects to a unix socket, however long the path. Rejects where nobody listens; handlers hear nothing before it resolves. */
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
  /** Where it starts, even if its user could not get there. */
  readonly directory: string;
  /** The file, readable by its owner alone, to which whatever it prints is appended. */
  readonly outputPath: string;
  /** Whom it runs as, if not as this process; it gets no other groups. */
  readonly user: UserIdentity | undefined;
  /** The one of its arguments that no other process has, where there is such a one. */
  readonly mark?: string;
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
  /**
   * The process that was started with exactly this among its arguments, in this directory where one is given, looking at `pid` first
   * where one is. Anybody may show the same arguments, but not in a directory that is private. Rejects where nothing tells it from others.
   */
  findByArgument(argument: string, directory?: string, pid?: number): Promise<ProcessIdentity | undefined>;
  isRunning(process: ProcessIdentity): Promise<boolean>;
  /** How the process of a directory ends that was started before this one. Absent where nobody could say. */
  watch?(directory: string): Promise<ProcessExit>;
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

/** What a host is; it stays so until the host is started anew. */
export interface HostIdentity {
  /** As Kubernetes has it: `linux`, `amd64`. */
  readonly operatingSystem: string;
  readonly architecture: string;
  readonly hostname: string;
  /** The name and version of the system, for people. */
  readonly osImage: string;
  readonly kernelVersion: string;
  /** These three are empty where the host does not say. */
  readonly machineID: string;
  readonly systemUUID: string;
  readonly bootID: string;
  readonly cpus: number;
  readonly memoryBytes: number;
  /** IP addresses by which others may reach it, those of loopback devices left out. */
  readonly addresses: readonly string[];
}

/** How much of a host is left. */
export interface HostUsage {
  readonly memoryAvailableBytes: number;
  /** The file system that the asked for path is on. */
  readonly disk: {
    readonly bytes: number;
    readonly availableBytes: number;
    /** Both are 0 on file systems that do not count. */
    readonly inodes: number;
    readonly freeInodes: number;
  };
  readonly processes: { readonly running: number; readonly max: number };
}

/** What this host has. */
export interface HostFacts {
  identity(): Promise<HostIdentity>;
  /** As of now; `path` is in the file system of interest. */
  usage(path: string): Promise<HostUsage>;
  /** Whether this process may read and write what is at the path, such as a device. */
  canOpen(path: string): Promise<boolean>;
}

/** Ports of this host's addresses. */
export interface HostPorts {
  /** Whether somebody could listen there now. */
  isFree(protocol: 'tcp' | 'udp', address: string, port: number): Promise<boolean>;
}

/** What is at a path itself: where a link leads is not looked at. */
export interface FileDescription {
  readonly kind: 'file' | 'directory' | 'link' | 'block-device' | 'other';
  readonly sizeBytes: number;
  readonly modifiedMs: number;
  readonly owner: UserIdentity;
  /** The permission bits. */
  readonly mode: number;
  /** What tells it from everything else on this host, whatever it is called; absent where nobody asks the host. */
  readonly identity?: string;
}

/** Who may do what with a file that is made; it belongs to this process's user where no owner is named. */
export interface FileAccess {
  readonly owner?: UserIdentity | undefined;
  readonly mode: number;
}

/**
 * The files that guests' disks are made of. No method follows a link at the end of a path. What is made is on the disk,
 * under its name, before the method resolves, except where `sync` is spoken of.
 */
export interface DiskFiles {
  describe(path: string): Promise<FileDescription | undefined>;
  /** The bytes of a file in order, or of the part that is asked for; fewer where it ends before. */
  read(path: string, part?: { readonly offset: number; readonly length: number }): AsyncIterable<Uint8Array>;
  /** Names in a directory; none where there is no directory. */
  list(path: string): Promise<readonly string[]>;
  /** Makes a directory and those above it, which are this process's own. One that is there stays as it is. */
  makeDirectory(path: string, access: FileAccess): Promise<void>;
  /** Makes a file of a size that begins with some bytes, whole or not at all. False where something is there already. */
  create(path: string, contents: { bytes?: Uint8Array; sizeBytes: number }, access: FileAccess): Promise<boolean>;
  /**
   * Makes a file from bytes as they come, runs of zeros as holes. Rejects, and leaves nothing, where one is there. It is
   * on the disk after a `sync` of it and of its directory.
   */
  write(path: string, chunks: AsyncIterable<Uint8Array>, access: FileAccess): Promise<void>;
  /**
   * Writes over the beginning of a file, and brings it to the disk; what the file has room for needs no other. Where the
   * power fails meanwhile, it may be there in part. False where there is no file; rejects for what is no file, or has more
   * names than one.
   */
  overwrite(path: string, bytes: Uint8Array): Promise<boolean>;
  /** Makes a file or takes the place of one, at once. */
  replace(path: string, bytes: Uint8Array, access: FileAccess): Promise<void>;
  /**
   * Gives a file a second name, which is on the disk after a `sync` of its directory. False where something has it
   * already, or the file system cannot.
   */
  link(path: string, secondPath: string): Promise<boolean>;
  /** Brings files and directories to the disk. */
  sync(paths: readonly string[]): Promise<void>;
  rename(path: string, newPath: string): Promise<void>;
  /** Makes a file empty, whoever writes on at its end. Rejects for what is no file, or has more names than one. */
  empty(path: string): Promise<void>;
  /** Removes a file, or a directory with all that is in it; does nothing where there is nothing. */
  remove(path: string): Promise<void>;
  /** The path without any links in it. Rejects where nothing is there. */
  realPath(path: string): Promise<string>;
  /**
   * Makes a file, or a block device, somebody's, who may then read and write it. Rejects for what is neither, or has more
   * names than one.
   */
  giveTo(path: string, owner: UserIdentity): Promise<void>;
  /** Whether the file can be read past the page cache. */
  supportsDirectAccess(path: string): Promise<boolean>;
}

/**
 * One file whose contents have to survive a crash of the host. What has been answered is on the disk; of what has not,
 * anything may be, in any order of its pages.
 */
export interface DurableFile {
  /** All of it; undefined where there is none. */
  read(): Promise<Uint8Array | undefined>;
  /** Writes at a place in the file, or right behind its end. Rejects where there is no file. */
  write(atBytes: number, bytes: Uint8Array): Promise<void>;
  /** Puts a new file in the place of the old one, if there is one: after a crash it is either of them, whole. */
  replace(bytes: Uint8Array): Promise<void>;
  /** Lets go of the file. */
  close(): Promise<void>;
}

/** Whether an error says that there is no room left on the disk: then nothing of what was there has been harmed. */
export function isDiskFull(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  return code === 'ENOSPC' || code === 'EDQUOT';
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
