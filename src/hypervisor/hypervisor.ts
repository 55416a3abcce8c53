import type { Connection, ConnectionHandlers } from '../env/ports.ts';
import type { GuestAgentChannel } from './guest-agent-channel.ts';
import type { MachineSpec } from './machine.ts';
import type { MachineMigration, MigrationEvent } from './migration.ts';

/**
 * What runs guests. Machines outlive whoever started them: the hypervisor keeps nothing that it could not find again
 * from a run's directory and instance, which the caller writes down before it starts anything.
 */
export interface Hypervisor {
  /** Starts a machine, paused. Rejects with a HypervisorError; then nothing of it runs. */
  start(spec: MachineSpec, run: MachineRun): Promise<Machine>;
  /**
   * Takes over a machine that was started before, by whomever. Undefined when this very run is over, which is certain. One
   * that goes on and cannot be reached is taken over, too: it can be ended, and is called until it answers. Rejects where
   * nobody can tell whether it goes on.
   */
  adopt(run: MachineRun): Promise<Machine | undefined>;
}

/** One run of a machine, from its start to its end. */
export interface MachineRun {
  /** A directory that no other run uses at the same time. */
  readonly directory: string;
  /** A name that no other run ever has. */
  readonly instance: string;
}

/**
 * What a machine is doing:
 * - `incoming`: it waits for, or receives, the state of another one;
 * - `finished-migrate`: its state has gone to another one;
 * - `shut-down`: its guest has turned itself off, and the machine is about to end;
 * - `disk-error`: it stopped at an error of a disk, and can go on from there;
 * - `failed`: it can go on no more, for a reason of its own (a guest that panicked).
 */
export type MachineStatus =
  | 'running'
  | 'paused'
  | 'incoming'
  | 'finished-migrate'
  | 'shut-down'
  | 'disk-error'
  | 'failed';

/** What happens to the guest of a machine. */
export interface GuestEvent {
  readonly kind: 'stopped' | 'resumed' | 'reset' | 'guest-shut-down' | 'guest-panicked' | 'disk-error';
  readonly atMs: number | undefined;
}

/** What a machine tells unasked, in the order in which it happened, with the time by the host's clock where it is known. */
export type MachineEvent = GuestEvent | MigrationEvent;

/**
 * How a machine ended:
 * - `GuestShutDown`: the guest turned itself off;
 * - `Quit`: it was told to end;
 * - `Killed`: by a signal, which the message names;
 * - `Failed`: it gave up by itself;
 * - `Unknown`: nobody was there to see it.
 */
export interface MachineEnd {
  readonly reason: 'GuestShutDown' | 'Quit' | 'Killed' | 'Failed' | 'Unknown';
  /** A sentence for people. */
  readonly message: string;
  /** The last lines of what the hypervisor itself printed. */
  readonly log: readonly string[];
}

/** The processors of a machine. */
export interface MachineProcessors {
  /** How many there are. */
  count(): Promise<number>;
  /** Plugs in as many as are missing to that number; nothing where there are as many already. Refused while it migrates. */
  plug(count: number): Promise<void>;
}

/** The disks of a machine, and its drives. */
export interface MachineDisks {
  /** How large the guest sees each, by the name of its place. */
  sizes(): Promise<ReadonlyMap<string, number>>;
}

/** Memory that was plugged into a machine, in pieces of one size. */
export interface MachineMemory {
  /** How many pieces there are. */
  plugged(): Promise<number>;
  /** Plugs in as many pieces as are missing to that number; nothing where there are as many already. Refused while it migrates. */
  plug(count: number, unitBytes: number): Promise<void>;
  /** How much all of them are. */
  pluggedBytes(): Promise<number>;
  /** Whether the guest may write to all of its memory while that is copied: some hypervisors would lose what it writes. */
  isTracked(): Promise<boolean>;
}

/** A machine that runs, or did when it was last looked at. Commands reject with a HypervisorError. */
export interface Machine {
  readonly run: MachineRun;
  /** Resolves when the machine is gone for good; never rejects. */
  readonly ended: Promise<MachineEnd>;
  /** How its state goes to another machine, or comes from one. */
  readonly migration: MachineMigration;
  status(): Promise<MachineStatus>;
  /** Lets the guest run. Refused while its state is on the way from, or to, another machine. */
  continue(): Promise<void>;
  /** Holds the guest where it is. */
  stop(): Promise<void>;
  /**
   * Has a guest back that is `finished-migrate`, and holds it. It may be executed for an instant. Whoever asks must be certain
   * that no other machine has it.
   */
  hold(): Promise<void>;
  /** Presses the power button; what comes of it is up to the guest. */
  powerDown(): Promise<void>;
  /** Presses the reset button: the guest begins anew in the same machine. */
  reset(): Promise<void>;
  /** Ends the machine in order, disks flushed, whatever the guest does. */
  quit(): Promise<MachineEnd>;
  /** Ends the machine at once, by force. */
  kill(): Promise<MachineEnd>;
  /**
   * Calls back for every event from now on, until the answer is called. A machine whose guest has shut down waits a
   * little before it ends, where it is answered with a promise: nobody could tell afterwards that it was the guest.
   */
  onEvent(listener: (event: MachineEvent) => unknown): () => void;
  /**
   * Opens the serial console, for one at a time, who must keep reading: a guest waits for its serial port once a few
   * hundred bytes have not been taken. While nobody has it open, nothing waits.
   */
  openConsole(handlers: ConnectionHandlers): Promise<Connection>;
  /** Its processors, where more can be plugged in. */
  readonly processors?: MachineProcessors;
  /** Its memory, where more can be plugged in. */
  readonly memory?: MachineMemory;
  /** Its disks, where somebody can tell how large they are. */
  readonly disks?: MachineDisks;
  /** The line to the agent inside the guest, where there can be one. */
  readonly guestAgent?: GuestAgentChannel;
  /** Lets go of the machine, which goes on; `ended` is heard no more. */
  detach(): void;
}

/**
 * - `StartFailed`: the machine could not be started, and does not run;
 * - `Unreachable`: the machine runs, or may do so, but does not answer;
 * - `Refused`: the hypervisor said no.
 */
export type HypervisorErrorCode = 'StartFailed' | 'Unreachable' | 'Refused';

export class HypervisorError extends Error {
  readonly code: HypervisorErrorCode;

  constructor(code: HypervisorErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'HypervisorError';
    this.code = code;
  }
}
