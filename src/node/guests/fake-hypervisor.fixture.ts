import type { CopyState } from '../../api/copy-state.ts';
import type { Connection, ConnectionHandlers } from '../../env/ports.ts';
import {
  type GuestEvent,
  type Hypervisor,
  HypervisorError,
  type Machine,
  type MachineEnd,
  type MachineEvent,
  type MachineRun,
  type MachineStatus,
} from '../../hypervisor/hypervisor.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';
import { NO_MIGRATION } from '../../hypervisor/migration.fixture.ts';

/**
 * A host that only says it runs machines: nothing of them is real. They outlive whoever started them, and it notices when
 * a guest would be executed twice at once, or a run be started twice.
 */
export class FakeHost {
  readonly machines: FakeMachine[] = [];
  /** What must never happen. */
  readonly violations: string[] = [];
  /** Whether guests turn themselves off when their power button is pressed. */
  obeysPowerButton = true;
  /** Why the next machine does not start. */
  startFailure: string | undefined;
  /** Whether machines answer nobody. */
  isSilent = false;

  /** The hypervisor as one agent sees it. */
  hypervisor(): Hypervisor {
    return {
      start: async (spec, run) => this.#start(spec, run),
      adopt: async (run) =>
        this.alive()
          .find((each) => each.run.instance === run.instance)
          ?.handle(),
    };
  }

  alive(): readonly FakeMachine[] {
    return this.machines.filter(({ end }) => end === undefined);
  }

  /** Machines that execute their guest. */
  executing(): readonly FakeMachine[] {
    return this.alive().filter(({ status }) => status === 'running');
  }

  /** Called whenever a machine begins to execute its guest. */
  check(name: string): void {
    const count = this.executing().filter(({ spec }) => spec.name === name).length;
    if (count > 1) this.violations.push(`${name} is executed ${count} times`);
  }

  #start(spec: MachineSpec, run: MachineRun): Machine {
    const failure = this.startFailure;
    this.startFailure = undefined;
    if (failure !== undefined) throw new HypervisorError('StartFailed', failure);
    if (this.machines.some((each) => each.run.instance === run.instance))
      this.violations.push(`${run.instance} is started twice`);
    const machine = new FakeMachine(this, spec, run);
    this.machines.push(machine);
    return machine.handle();
  }
}

/** Pretends to be a machine. */
export class FakeMachine {
  readonly spec: MachineSpec;
  readonly run: MachineRun;
  readonly commands: string[] = [];
  readonly consoles: ConnectionHandlers[] = [];
  status: MachineStatus = 'paused';
  copy: CopyState = 'none';
  end: MachineEnd | undefined;
  readonly #host: FakeHost;
  readonly #listeners = new Set<(event: MachineEvent) => void>();
  readonly #waiting = new Set<(end: MachineEnd) => void>();

  constructor(host: FakeHost, spec: MachineSpec, run: MachineRun) {
    this.#host = host;
    this.spec = spec;
    this.run = run;
  }

  /** The machine as one agent holds it. */
  handle(): Machine {
    let isDetached = false;
    const ended = new Promise<MachineEnd>((resolve) => {
      this.#waiting.add((end) => {
        if (!isDetached) resolve(end);
      });
    });
    const command = (name: string, act: () => void) => async (): Promise<void> => {
      if (this.#host.isSilent) throw new HypervisorError('Unreachable', 'the fake machine does not answer');
      if (this.end) throw new HypervisorError('Unreachable', 'the fake machine is gone');
      this.commands.push(name);
      act();
    };
    const over = async (end: MachineEnd): Promise<MachineEnd> => {
      this.ends(end);
      return ended;
    };
    return {
      run: this.run,
      ended,
      migration: {
        ...NO_MIGRATION,
        announce: command('announce', () => undefined),
        progress: async () => ({ ...(await NO_MIGRATION.progress()), state: this.copy }),
      },
      status: async () => {
        await command('status', () => undefined)();
        return this.status;
      },
      continue: command('continue', () => this.becomes('running', 'resumed')),
      stop: command('stop', () => this.becomes('paused', 'stopped')),
      hold: command('hold', () => this.becomes('paused', 'stopped')),
      powerDown: command('powerDown', () => {
        if (this.#host.obeysPowerButton) this.shutsDown();
      }),
      reset: command('reset', () => this.tells('reset')),
      quit: () => over({ reason: 'Quit', message: 'the machine was told to quit', log: [] }),
      kill: () => over({ reason: 'Killed', message: 'the machine was ended by SIGKILL', log: [] }),
      onEvent: (listener) => {
        this.#listeners.add(listener);
        return () => void this.#listeners.delete(listener);
      },
      openConsole: async (handlers) => this.#openConsole(handlers),
      detach: () => {
        isDetached = true;
      },
    };
  }

  becomes(status: MachineStatus, event: GuestEvent['kind']): void {
    this.status = status;
    this.#host.check(this.spec.name);
    this.tells(event);
  }

  tells(kind: GuestEvent['kind']): void {
    this.says({ kind, atMs: undefined });
  }

  says(event: MachineEvent): void {
    for (const listener of this.#listeners) listener(event);
  }

  /** The guest turns itself off. */
  shutsDown(): void {
    this.tells('guest-shut-down');
    this.ends({ reason: 'GuestShutDown', message: 'the guest shut down', log: [] });
  }

  ends(end: MachineEnd): void {
    if (this.end) return;
    this.end = end;
    for (const tell of this.#waiting) tell(end);
  }

  #openConsole(handlers: ConnectionHandlers): Connection {
    this.consoles.push(handlers);
    return { write: (text) => void this.commands.push(`console ${String(text)}`), close: () => handlers.closed() };
  }
}
