import type { Clock } from '../../env/ports.ts';
import {
  HypervisorError,
  type MachineEnd,
  type MachineEvent,
  type MachineRun,
  type MachineStatus,
} from '../hypervisor.ts';
import type { MachineSpec } from '../machine.ts';
import type { ModelGuest } from './model-guest.ts';

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
  readonly listeners = new Set<ModelListener>();
  /** Whether it answers nobody, though it goes on. */
  isSilent = false;
  readonly #clock: Clock;
  readonly #onChange: (model: HostedModel) => void;
  #status: MachineStatus = 'paused';
  #end: MachineEnd | undefined;

  constructor({ spec, run, clock, guest, onChange }: HostedModelOptions) {
    this.spec = spec;
    this.run = run;
    this.guest = guest;
    this.#clock = clock;
    this.#onChange = onChange;
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
    if (this.#status !== 'paused' && this.#status !== 'disk-error') {
      throw new HypervisorError('Refused', `the model of a machine is ${this.#status}, and cannot be continued`);
    }
    this.guest.run(this.#clock.now());
    this.#become('running', 'resumed');
  }

  stop(): void {
    if (this.#status !== 'running') return;
    this.guest.hold(this.#clock.now());
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
    this.#tell('reset');
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

  /** The machine is gone. */
  over(end: MachineEnd): void {
    if (this.#end) return;
    this.guest.hold(this.#clock.now());
    this.#end = end;
    this.#onChange(this);
    for (const listener of this.listeners) listener.ended(end);
    this.listeners.clear();
  }

  #become(status: MachineStatus, event: EventKind): void {
    this.#status = status;
    this.#onChange(this);
    this.#tell(event);
  }

  #tell(kind: EventKind): void {
    for (const listener of this.listeners) listener.event({ kind, atMs: this.#clock.now() });
  }
}
