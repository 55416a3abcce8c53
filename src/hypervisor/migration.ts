import type { CopyState } from '../api/copy-state.ts';
import type { DevicePlace } from './machine.ts';

/**
 * How the state of a guest goes from one machine to another.
 *
 * The target is started with `incoming`, paused, and listens; the source copies its disks, then starts to copy memory.
 * Whatever is not told otherwise stops at `pre-switchover`, with the guest stopped and everything but its last pages
 * over: there mirrors end, and the source is told to switch over. Who may run the guest afterwards is not decided here:
 * nothing of this ever continues a target, and a machine refuses to be continued while its state is under way.
 *
 * Everything that was begun is asked of the machine itself, never remembered, so that whoever adopts it can go on.
 */
export interface MachineMigration {
  /** The exact size of its RAM, which a target must have too. */
  ramBytes(): Promise<number>;

  /**
   * A target waits for its source from now on. Rejects with `Refused` where something of the options cannot be (such as
   * post-copy on a host that does not let it), and may then be asked again, for less.
   */
  listen(options: ListenOptions): Promise<ListeningPorts>;
  /**
   * Likewise, without encryption, and only for whoever can reach sockets of this host: who comes there has been asked who it
   * is. Never with post-copy.
   */
  listenLocally(options: LocalListenOptions): Promise<ListeningSockets>;
  /** A target whose post-copy is paused waits for its source again, on a port of the same range. */
  listenAgain(range: PortRange): Promise<number>;
  /** Ends the access to a target's disks from outside, before its guest runs. Does nothing where there is none. */
  closeDisks(): Promise<void>;
  /** Tells the network where the guest is now. */
  announce(): Promise<void>;

  /** The source begins to copy disks, and goes on copying what is written to them. All of them, or none. */
  startMirrors(options: MirrorOptions): Promise<void>;
  /** Every mirror that was started and has not been finished or dropped. */
  mirrors(): Promise<readonly Mirror[]>;
  /**
   * Ends mirrors that are whole, with the guest stopped, once the last that it wrote is over. Rejects where one is not
   * whole, which says nothing of the others.
   */
  finishMirrors(): Promise<void>;
  /** Gives up every mirror, in whatever state. */
  dropMirrors(): Promise<void>;

  /**
   * The source begins to copy memory. What comes of it is told by `progress` and by events; whom it cannot meet at all it may
   * reject at once, as `Unreachable`.
   */
  start(options: SendOptions): Promise<void>;
  /** Changes limits, also while memory is copied. */
  setLimits(limits: Partial<MigrationLimits>): Promise<void>;
  /** How far either side is. */
  progress(): Promise<MigrationProgress>;
  /** From `pre-switchover`: sends the rest. */
  switchOver(): Promise<void>;
  /** Gives up; the guest goes on at the source. Does nothing when nothing is under way. Refused in post-copy. */
  cancel(): Promise<void>;
  /** From `active`: the guest is to go over before its memory has. */
  startPostCopy(): Promise<void>;
  /** Either side lets go of a link in post-copy that may be dead, though nobody says so; answered even by a machine that hangs. */
  pausePostCopy(): Promise<void>;
  /** A source whose post-copy is paused sends the rest to where the target listens again. */
  resumePostCopy(address: MigrationAddress): Promise<void>;
}

export interface MigrationAddress {
  readonly host: string;
  readonly port: number;
}

/** A socket of this host, which only those reach who reach its directory. */
export interface LocalSocket {
  readonly path: string;
}

/** Where a source sends to. */
export type CopyTarget = MigrationAddress | LocalSocket;

/** Where a target may listen. */
export interface PortRange {
  readonly host: string;
  readonly firstPort: number;
  readonly lastPort: number;
}

export interface ListeningPorts {
  readonly memoryPort: number;
  /** Present where disks were to be copied, and not locally. */
  readonly disksPort: number | undefined;
  /** Present where disks were to be copied locally. */
  readonly disks?: LocalSocket;
}

export interface ListeningSockets {
  readonly memory: LocalSocket;
  /** Present where disks were to be copied. */
  readonly disks: LocalSocket | undefined;
}

/** How the two sides know each other; undefined in options where nothing is encrypted, and nobody is known. */
export interface MigrationTls {
  /**
   * A directory that the machine may read: `ca-cert.pem` and, on the source, `client-cert.pem` and `client-key.pem`, on
   * the target `server-cert.pem`, `server-key.pem` and `dh-params.pem`. Needed only until the machine has answered.
   */
  readonly directory: string;
  /** On the source: the name that the target's certificate is for. On the target: the common name of the source's. */
  readonly peer: string;
}

/** Several streams at once: never together with post-copy. Both sides must say the same. */
export interface MultipleChannels {
  readonly count: number;
  readonly compression: 'none' | 'zstd';
}

/** What both sides must agree on. */
export interface CopyMethod {
  readonly tls: MigrationTls | undefined;
  /** Post-copy may be started. */
  readonly allowsPostCopy: boolean;
  readonly channels: MultipleChannels | undefined;
}

export interface ListenOptions extends CopyMethod, PortRange {
  /** The disks that the source is to fill. */
  readonly disks: readonly DevicePlace[];
  /** Whether they are served on a socket of this host: what serves them is not fit for strangers. */
  readonly servesDisksLocally?: boolean;
}

export type LocalListenOptions = Pick<ListenOptions, 'channels' | 'disks'>;

export interface MirrorOptions {
  readonly target: CopyTarget;
  readonly tls: MigrationTls | undefined;
  readonly disks: readonly DevicePlace[];
  /**
   * Of all of them together, until they are whole; 0 is no limit. What is written afterwards follows as fast as it can: what
   * is behind when the guest stands still has to follow then.
   */
  readonly bandwidthBytesPerSecond: number;
}

/**
 * - `copying`: not everything is over yet;
 * - `whole`: both copies are equal, but for what the guest wrote last, which follows;
 * - `failed`: it is no copy.
 */
export interface Mirror {
  readonly place: DevicePlace;
  readonly state: 'copying' | 'whole' | 'failed';
  readonly copiedBytes: number;
  readonly totalBytes: number;
  /** Why it failed. */
  readonly message: string | undefined;
}

export interface MigrationLimits {
  /** 0 is no limit. */
  readonly bandwidthBytesPerSecond: number;
  /** How long the guest may stand still. */
  readonly downtimeMs: number;
}

export interface SendOptions extends CopyMethod {
  readonly target: CopyTarget;
  readonly limits: MigrationLimits;
  /** Slows down the guest as long as it writes faster than can be copied. */
  readonly allowsAutoConverge: boolean;
}

export interface MigrationProgress {
  readonly state: CopyState;
  /** Why it failed, in the hypervisor's words. */
  readonly message: string | undefined;
  /** Known to the source alone, once memory is copied. */
  readonly memory: MemoryProgress | undefined;
  /** How long the guest will stand still by the source's reckoning, or did so; undefined where it does not know. */
  readonly downtimeMs: number | undefined;
  readonly totalMs: number;
  /** How much of the guest's time is taken from it so that it writes less. */
  readonly throttlePercent: number;
}

export interface MemoryProgress {
  readonly totalBytes: number;
  readonly remainingBytes: number;
  /** What went over the wire. */
  readonly transferredBytes: number;
  readonly bytesPerSecond: number;
  readonly dirtyBytesPerSecond: number;
  /** How often what was dirty was looked for. */
  readonly passes: number;
  /** Pages that the target asked for in post-copy. */
  readonly requestedPages: number;
}

/** What a machine tells unasked of its migration. */
export type MigrationEvent =
  | { readonly kind: 'migration'; readonly state: CopyState; readonly atMs: number | undefined }
  /** A pass over memory begins, the first of which is 1. */
  | { readonly kind: 'migration-pass'; readonly pass: number; readonly atMs: number | undefined }
  /** A mirror is whole now, or has failed; `mirrors` says which. */
  | { readonly kind: 'mirror'; readonly atMs: number | undefined };
