import { isPostCopy } from '../../api/copy-state.ts';
import type { CopyState } from '../../api/copy-state.ts';
import { errorMessage } from '../../api/error-message.ts';
import type { Logger } from '../../env/ports.ts';
import type { Hypervisor, Machine, MachineEnd, MachineRun, MachineStatus } from '../../hypervisor/hypervisor.ts';
import type { MachineSpec } from '../../hypervisor/machine.ts';
import type { MachineFact } from '../../migration/right-to-run/view.ts';
import type { AgentSight, GuestAgents } from '../guest-agent/guest-agents.ts';
import { machineFact } from './machine-fact.ts';

/** A machine as it was just seen. */
export interface SeenMachine {
  readonly fact: MachineFact;
  /** Where it answers. */
  readonly status?: MachineStatus;
  /** How its migration is, where that was asked; as it said last where it does not answer. */
  readonly migration?: CopyState;
  /** What is known of the agent in its guest. */
  readonly agent?: AgentSight;
  /** Where it has ended before the eyes of this agent. */
  readonly end?: MachineEnd;
}

export interface MachinesOptions {
  readonly hypervisor: Hypervisor;
  /** The run of a pod's machine. It follows from the pod alone, so that it can be found again after any crash. */
  readonly runOf: (podUID: string) => MachineRun;
  /** Called when there may be news of a machine. */
  readonly onNews: (podUID: string) => void;
  /** Called when a machine is seen to end, or to be about to; notes it, and never rejects. */
  readonly onEnd: (podUID: string, end: MachineEnd) => Promise<void>;
  /** Looks after the agents in guests. */
  readonly agents?: Pick<GuestAgents, 'attend' | 'of' | 'setClock' | 'letGo'>;
  readonly log: Logger;
}

/**
 * The machines of this node's launcher pods: one for each pod at most, ever. A machine that a former agent started is
 * found the first time that anybody asks for it.
 */
export class Machines {
  readonly #options: MachinesOptions;
  readonly #held = new Map<string, Held>();
  /** Pods that certainly have no machine: only this agent could give them one. */
  readonly #without = new Set<string>();
  readonly #reaching = new Map<string, Promise<Held | undefined>>();
  #isLetGo = false;

  constructor(options: MachinesOptions) {
    this.#options = options;
  }

  /** How the machine of a pod is, and its migration if there may be one. Never rejects: what does not answer is unknown. */
  async look(podUID: string, mayMigrate = false): Promise<SeenMachine> {
    try {
      const held = this.#held.get(podUID) ?? (await this.#alone(podUID, () => this.#adopt(podUID)));
      if (!held) return { fact: 'dead' };
      return held.end ? seenDead(held, held.end, mayMigrate) : await this.#ask(podUID, held, mayMigrate);
    } catch (error) {
      this.#options.log.warn('a machine does not answer', { pod: podUID, error: errorMessage(error) });
      return { fact: 'unknown', ...lastHeard(this.#held.get(podUID), mayMigrate) };
    }
  }

  /** The machine of a pod that has not ended. */
  get(podUID: string): Machine | undefined {
    const held = this.#held.get(podUID);
    return held?.end ? undefined : held?.machine;
  }

  /** Starts the machine of a pod, paused. When it rejects, whether there is a machine is found out anew. */
  async start(podUID: string, spec: MachineSpec): Promise<void> {
    // Somebody may be looking for it just now.
    await this.#reaching.get(podUID)?.catch(() => undefined);
    if (this.#held.has(podUID)) throw new Error(`pod ${podUID} has a machine already`);
    this.#without.delete(podUID);
    await this.#alone(podUID, async () => {
      const { hypervisor, runOf } = this.#options;
      // A guest that begins has missed nothing; one that comes has stood still on the way.
      return this.#hold(podUID, await hypervisor.start(spec, runOf(podUID)), spec.incoming !== undefined);
    });
  }

  /** Forgets a pod whose machine is gone. */
  forget(podUID: string): void {
    if (this.#held.has(podUID) && !this.#held.get(podUID)?.end) return;
    this.#held.delete(podUID);
    this.#without.delete(podUID);
  }

  /** Lets go of all machines, which go on. */
  letGo(): void {
    this.#isLetGo = true;
    this.#options.agents?.letGo();
    for (const { machine, end } of this.#held.values()) if (!end) machine.detach();
  }

  /** A machine speaks to one at a time: whoever comes while it is being reached waits for the same. */
  async #alone(podUID: string, reach: () => Promise<Held | undefined>): Promise<Held | undefined> {
    const underWay = this.#reaching.get(podUID);
    if (underWay) return underWay;
    const reaching = reach().finally(() => this.#reaching.delete(podUID));
    this.#reaching.set(podUID, reaching);
    return reaching;
  }

  async #adopt(podUID: string): Promise<Held | undefined> {
    if (this.#without.has(podUID)) return undefined;
    const { hypervisor, runOf } = this.#options;
    const machine = await hypervisor.adopt(runOf(podUID));
    if (machine) return this.#hold(podUID, machine, true);
    this.#without.add(podUID);
    return undefined;
  }

  async #ask(podUID: string, held: Held, mayMigrate: boolean): Promise<SeenMachine> {
    const { machine } = held;
    const agent = this.#options.agents?.of(podUID) ?? 'unknown';
    try {
      const status = await machine.status();
      if (!mayMigrate) return { fact: machineFact(status), status, agent };
      const { state } = await machine.migration.progress();
      // It may have said so while nobody listened, and never says it again.
      if (state === 'completed' && (!held.migration || isPostCopy(held.migration))) held.migration = state;
      return { fact: machineFact(status, state), status, migration: state, agent };
    } catch (error) {
      // It may have ended while it was asked.
      if (held.end) return seenDead(held, held.end, mayMigrate);
      throw error;
    }
  }

  #hold(podUID: string, machine: Machine, hasStoodStill: boolean): Held {
    const { onNews, onEnd } = this.#options;
    const held: Held = { machine, end: undefined, migration: undefined, hasStoodStill };
    this.#held.set(podUID, held);
    machine.onEvent((event) => {
      const { kind } = event;
      if (event.kind === 'migration') held.migration = event.state;
      if (kind === 'stopped') held.hasStoodStill = true;
      if (kind === 'resumed') this.#catchUp(podUID, held);
      // Whoever copies looks after that.
      if (kind !== 'migration-pass' && kind !== 'mirror') onNews(podUID);
      return kind === 'guest-shut-down' ? onEnd(podUID, GUEST_SHUT_DOWN) : undefined;
    });
    this.#options.agents?.attend(podUID, machine);
    void this.#await(podUID, held);
    return held;
  }

  /**
   * Has a guest that stood still catch up with the world, whoever stopped it and whoever let it go on: its clock is set where
   * there is an agent in it, and the network, which may have forgotten it or look for it elsewhere, is told where it is.
   */
  #catchUp(podUID: string, held: Held): void {
    if (!held.hasStoodStill) return;
    held.hasStoodStill = false;
    this.#options.agents?.setClock(podUID);
    // Where that fails the network finds out by itself, later.
    held.machine.migration.announce().catch((error: unknown) => {
      this.#options.log.info('a guest could not be announced', { pod: podUID, error: errorMessage(error) });
    });
  }

  async #await(podUID: string, held: Held): Promise<void> {
    const { onNews, onEnd } = this.#options;
    const end = await held.machine.ended;
    held.end = end;
    if (this.#isLetGo) return;
    void onEnd(podUID, end);
    onNews(podUID);
  }
}

const GUEST_SHUT_DOWN: MachineEnd = { reason: 'GuestShutDown', message: 'the guest shut down', log: [] };

interface Held {
  readonly machine: Machine;
  end: MachineEnd | undefined;
  /** How its migration is, as it said last by itself. */
  migration: CopyState | undefined;
  /** Whether the guest has stood still since it last went on, as far as anybody knows. */
  hasStoodStill: boolean;
}

function seenDead(held: Held, end: MachineEnd, mayMigrate: boolean): SeenMachine {
  return { fact: 'dead', end, ...lastHeard(held, mayMigrate) };
}

/** What a machine that cannot be asked has said of its migration last. */
function lastHeard(held: Held | undefined, mayMigrate: boolean): Pick<SeenMachine, 'migration'> {
  return mayMigrate && held?.migration ? { migration: held.migration } : {};
}
