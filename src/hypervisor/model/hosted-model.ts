import type { Clock } from '../../env/ports.ts';
import {
  HypervisorError,
  type MachineEnd,
  type MachineEvent,
  type MachineRun,
  type MachineStatus,
} from '../hypervisor.ts';
import type { MachineSpec } from '../machine.ts';
import { HostedMigration } from './hosted-migration.ts';
import type { ModelGuest } from './model-guest.ts';
import type { ModelNetwork } from './model-network.ts';

/** What whoever holds a model of a machine hears of it. */
export interface ModelListener {
  event(event: MachineEvent): void;
  ended(end: MachineEnd): void;
}

type EventKind = 'stopped' | 'resumed' | 'reset' | 'guest-shut-down' | 'guest-panicked';

export interface HostedModelOptions {
  readonly spec: MachineSpec;
  readonly run: MachineRun;
  readonly clock: Clock;
  readonly guest: ModelGuest;
  readonly network: ModelNetwork;
  /** Called after whatever changes whether the guest is executed. */
  readonly onChange: (model: HostedModel) => void;
}

/**
 * A model of a machine, as it is on its host while nobody looks: where QEMU would be a process, this is an object. It
 * starts paused, and outlives whoever started it.
 */
export class HostedModel {
  readonly spec: MachineSpec;
  readonly run: MachineRun;
  readonly guest: ModelGuest;
  readonly migration: HostedMigration;
  readonly listeners = new Set<ModelListener>();
  /** Whether it answers nobody, though it goes on. */
  isSilent = false;
  readonly #clock: Clock;
  readonly #onChange: (model: HostedModel) => void;
  #status: MachineStatus;
  #end: MachineEnd | undefined;

  constructor({ spec, run, clock, guest, network, onChange }: HostedModelOptions) {
    this.spec = spec;
    this.run = run;
    this.guest = guest;
    this.#clock = clock;
    this.#onChange = onChange;
    this.#status = spec.incoming ? 'incoming' : 'paused';
    this.migration = new HostedMigration(this, clock, network);
  }

  get end(): MachineEnd | undefined {
    return this.#end;
  }

  get status(): MachineStatus {
    return this.#status;
  }

  /** Whether its guest is executed at this very moment. */
  get isExecuting(): boolean {
    return this.guest.isExecuted;
  }

  continue(): void {
    if (this.#status === 'running') return;
    const canGoOn = ['paused', 'disk-error', 'finished-migrate'].includes(this.#status);
    if (!canGoOn || this.migration.isUnderWay) {
      throw new HypervisorError('Refused', `the model of a machine is ${this.#status}, and cannot be continued`);
    }
    if (this.migration.state !== 'postcopy-paused') this.guest.run(this.#clock.now());
    this.#become('running', 'resumed');
  }

  stop(): void {
    if (this.#status !== 'running') return;
    this.guest.hold(this.#clock.now());
    this.#become('paused', 'stopped');
  }

  hold(): void {
    if (this.#status !== 'finished-migrate' || this.migration.isUnderWay)
      throw new HypervisorError('Refused', `the model of a machine is ${this.#status}, and has its guest`);
    this.#become('paused', 'stopped');
  }

  /** A guest that has not booted does not hear it, nor does one that is not executed. */
  powerDown(): void {
    const { traits, bootId } = this.guest;
    if (!this.isExecuting || !this.guest.hasBooted(this.#clock.now()) || !traits.obeysPowerButton) return;
    this.#clock.setTimer(() => {
      if (this.guest.bootId === bootId) this.shutDown();
    }, traits.shutDownMs);
  }

  reset(): void {
    this.guest.reset(this.#clock.now());
    this.tell({ kind: 'reset', atMs: this.#clock.now() });
  }

  /** The guest turns itself off; the machine stays until somebody ends it, as QEMU does. */
  shutDown(): void {
    if (!this.isExecuting || this.#end) return;
    this.guest.hold(this.#clock.now());
    this.#become('shut-down', 'guest-shut-down');
  }

  /** The guest cannot go on. */
  panic(): void {
    if (!this.isExecuting || this.#end) return;
    this.guest.hold(this.#clock.now());
    this.#become('failed', 'guest-panicked');
  }

  /** Another machine's guest is here, and stands. */
  arrive(guest: ModelGuest): void {
    this.guest.restore(guest, this.#clock.now());
    this.#status = 'paused';
    this.#onChange(this);
  }

  /** Its guest has gone to another machine. */
  finishMigrate(): void {
    this.#status = 'finished-migrate';
    this.#onChange(this);
  }

  /** The guest waits for memory that does not come. */
  starve(): void {
    this.guest.hold(this.#clock.now());
    this.#onChange(this);
  }

  /** What it waited for has come. */
  feed(): void {
    if (this.#status === 'running') this.guest.run(this.#clock.now());
    this.#onChange(this);
  }

  tell(event: MachineEvent): void {
    for (const listener of this.listeners) listener.event(event);
  }

  /** The machine is gone. */
  over(end: MachineEnd, isHostGone = false): void {
    if (this.#end) return;
    this.guest.hold(this.#clock.now());
    this.#end = end;
    this.migration.over(isHostGone);
    this.#onChange(this);
    for (const listener of this.listeners) listener.ended(end);
    this.listeners.clear();
  }

  #become(status: MachineStatus, event: EventKind): void {
    this.#status = status;
    this.#onChange(this);
    this.tell({ kind: event, atMs: this.#clock.now() });
  }
}
