import type { Clock, Connection, ConnectionHandlers } from '../../env/ports.ts';
import {
  HypervisorError,
  type Machine,
  type MachineEnd,
  type MachineEvent,
  type MachineRun,
  type MachineStatus,
} from '../hypervisor.ts';
import type { MachineMigration } from '../migration.ts';
import type { HostedModel } from './hosted-model.ts';
import { ModelMigration } from './model-migration.ts';

/** How an agent reaches the models on its host. */
export interface Wire {
  /** Resolves with the answer, or never, where either side is dead. */
  send<T>(command: () => T): Promise<T>;
  readonly clock: Clock;
  readonly latencyMs: () => number;
}

/** A model of a machine as one agent holds it. */
export class ModelMachine implements Machine {
  readonly run: MachineRun;
  readonly ended: Promise<MachineEnd>;
  readonly migration: MachineMigration;
  readonly #model: HostedModel;
  readonly #wire: Wire;
  readonly #listeners = new Set<(event: MachineEvent) => void>();
  readonly #letGo: () => void;
  #isDetached = false;
  #hasGuestShutDown = false;

  /** Whoever is not its parent never learns why it ended. */
  constructor(model: HostedModel, wire: Wire, isParent: boolean) {
    this.#model = model;
    this.#wire = wire;
    this.run = model.run;
    this.migration = new ModelMigration((command) => this.#tell(({ migration }) => command(migration)));
    let tellEnd: (end: MachineEnd) => void = () => undefined;
    this.ended = new Promise((resolve) => (tellEnd = resolve));
    let lastAtMs = 0;
    const later = (callback: () => void): void => {
      const nowMs = wire.clock.now();
      // What comes over one wire comes in the order in which it was sent.
      lastAtMs = Math.max(lastAtMs, nowMs + wire.latencyMs());
      wire.clock.setTimer(() => {
        if (!this.#isDetached) callback();
      }, lastAtMs - nowMs);
    };
    const onEnd = (end: MachineEnd): void => later(() => tellEnd(this.#endAsSeen(end, isParent)));
    const listener = { event: (event: MachineEvent) => later(() => this.#hear(event)), ended: onEnd };
    this.#letGo = () => void model.listeners.delete(listener);
    model.listeners.add(listener);
    // It may have gone since it was found.
    if (model.end) onEnd(model.end);
    // Nobody may have listened when its guest shut down.
    if (model.status === 'shut-down') later(() => this.#guestHasShutDown());
  }

  status(): Promise<MachineStatus> {
    return this.#tell((model) => model.status);
  }

  continue(): Promise<void> {
    return this.#tell((model) => model.continue());
  }

  stop(): Promise<void> {
    return this.#tell((model) => model.stop());
  }

  hold(): Promise<void> {
    return this.#tell((model) => model.hold());
  }

  powerDown(): Promise<void> {
    return this.#tell((model) => model.powerDown());
  }

  reset(): Promise<void> {
    return this.#tell((model) => model.reset());
  }

  quit(): Promise<MachineEnd> {
    return this.#finish({ reason: 'Quit', message: 'the model of a machine was told to quit', log: [] });
  }

  kill(): Promise<MachineEnd> {
    return this.#finish({ reason: 'Killed', message: 'the model of a machine was killed by SIGKILL', log: [] });
  }

  onEvent(listener: (event: MachineEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** Says what the guest says from now on; the model of a guest reads nothing. */
  async openConsole(handlers: ConnectionHandlers): Promise<Connection> {
    const { guest } = this.#model;
    const { clock } = this.#wire;
    await this.#tell(() => undefined);
    let [bootId, said] = [guest.bootId, guest.count(clock.now())];
    const listen = (): void => {
      if (guest.bootId !== bootId) [bootId, said] = [guest.bootId, 0];
      const count = guest.count(clock.now());
      while (said < count) handlers.data(Buffer.from(guest.line(++said)));
      if (this.#model.end) return close();
      timer = clock.setTimer(listen, guest.traits.lineEveryMs);
    };
    let timer = clock.setTimer(listen, guest.traits.lineEveryMs);
    let isOpen = true;
    const close = (): void => {
      timer.cancel();
      if (isOpen) handlers.closed();
      isOpen = false;
    };
    return { write: () => undefined, close };
  }

  detach(): void {
    this.#isDetached = true;
    this.#letGo();
  }

  async #tell<T>(command: (model: HostedModel) => T): Promise<T> {
    this.#checkHeld();
    return this.#wire.send(() => {
      const model = this.#model;
      if (model.end) throw new HypervisorError('Unreachable', 'the model of a machine is gone');
      if (model.isSilent) throw new HypervisorError('Unreachable', 'the model of a machine does not answer');
      return command(model);
    });
  }

  /** Signals reach also those that do not answer. */
  async #finish(end: MachineEnd): Promise<MachineEnd> {
    this.#checkHeld();
    await this.#wire.send(() => this.#model.over(end));
    return this.ended;
  }

  #checkHeld(): void {
    if (this.#isDetached) throw new HypervisorError('Unreachable', 'the model of a machine was let go of');
  }

  #hear(event: MachineEvent): void {
    for (const listener of this.#listeners) listener(event);
    if (event.kind === 'guest-shut-down') this.#guestHasShutDown();
  }

  /** As QEMU's driver does: a machine whose guest is gone has done its work. */
  #guestHasShutDown(): void {
    this.#hasGuestShutDown = true;
    void this.quit();
  }

  #endAsSeen(end: MachineEnd, isParent: boolean): MachineEnd {
    if (this.#hasGuestShutDown || this.#model.status === 'shut-down')
      return { reason: 'GuestShutDown', message: 'the model of a guest shut down', log: [] };
    if (isParent || end.reason === 'Quit') return end;
    return { reason: 'Unknown', message: 'the model of a machine is gone, and nobody saw how', log: [] };
  }
}
