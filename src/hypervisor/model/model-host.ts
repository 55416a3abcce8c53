import type { Clock, Env } from '../../env/ports.ts';
import { type Hypervisor, HypervisorError, type MachineEnd, type MachineRun } from '../hypervisor.ts';
import type { MachineSpec } from '../machine.ts';
import { HostedModel } from './hosted-model.ts';
import { MODEL_TRAITS, ModelGuest, type ModelTraits } from './model-guest.ts';
import { ModelMachine, type Wire } from './model-machine.ts';
import { ModelNetwork } from './model-network.ts';

export interface ModelHostOptions {
  /** The host's own: its time goes on when an agent is dead. */
  readonly env: Pick<Env, 'clock' | 'random'>;
  /** What its guests are like, where not as usual. */
  readonly traits?: Partial<ModelTraits>;
  /** By what its machines reach those of other hosts; by default there are none. */
  readonly network?: ModelNetwork;
  /** How long a command is on its way, and an answer likewise. */
  readonly latencyMs?: () => number;
  /** How long a machine takes to start. */
  readonly startMs?: () => number;
  /** Why the next machine does not start; undefined where it does. */
  readonly startFault?: () => string | undefined;
  /** Called whenever a machine comes or goes, or its guest begins, or ceases, to be executed. */
  readonly onChange?: (model: HostedModel) => void;
}

/**
 * A host of model machines: mathematics, where `qemu/` has processes. It is what outlives agents, and what dies with the
 * power: for simulations, and for more machines than this one could carry.
 */
export class ModelHost {
  readonly #options: ModelHostOptions;
  readonly #traits: ModelTraits;
  readonly #network: ModelNetwork;
  /** Those that have not ended, in the order of their start. */
  readonly #alive = new Set<HostedModel>();
  #lives = 0;

  constructor(options: ModelHostOptions) {
    this.#options = options;
    this.#traits = { ...MODEL_TRAITS, ...options.traits };
    this.#network = options.network ?? new ModelNetwork();
  }

  /** The models that have not ended, in the order of their start. */
  get alive(): Iterable<HostedModel> {
    return this.#alive;
  }

  /** The hypervisor as one agent has it: what it is told, it is told by the agent's clock, and never when that stands. */
  hypervisor(agentClock: Clock): Hypervisor {
    const wire: Wire = {
      send: (command) => this.#deliver(agentClock, command),
      clock: agentClock,
      latencyMs: () => this.#latencyMs(),
    };
    return {
      start: async (spec, run) => {
        const model = await wire.send(() => this.#start(spec, run));
        await this.#answerAfter(agentClock, this.#options.startMs?.() ?? 0);
        return new ModelMachine(model, wire, true);
      },
      adopt: async (run) => {
        const model = await wire.send(() => this.#find(run));
        return model && new ModelMachine(model, wire, false);
      },
    };
  }

  /** The power fails: everything on the host is gone at once, and nobody is told. */
  crash(): void {
    this.#lives++;
    const end: MachineEnd = { reason: 'Unknown', message: 'the model of a host lost its power', log: [] };
    for (const model of this.#alive) {
      model.listeners.clear();
      model.over(end, true);
    }
  }

  #start(spec: MachineSpec, run: MachineRun): HostedModel {
    const { env, startFault, onChange } = this.#options;
    const fault = startFault?.();
    if (fault !== undefined) throw new HypervisorError('StartFailed', `the model of a machine did not start: ${fault}`);
    const guest = new ModelGuest({
      traits: this.#traits,
      memoryBytes: spec.memoryBytes,
      newBootId: () => Buffer.from(env.random.bytes(16)).toString('hex'),
    });
    const model = new HostedModel({
      spec,
      run,
      guest,
      network: this.#network,
      clock: env.clock,
      onChange: (changed) => {
        if (changed.end) this.#alive.delete(changed);
        onChange?.(changed);
      },
    });
    this.#alive.add(model);
    onChange?.(model);
    return model;
  }

  /** Whoever started the same run twice has two machines: the later one is found. */
  #find(run: MachineRun): HostedModel | undefined {
    return [...this.#alive].findLast((model) => model.run.instance === run.instance);
  }

  /** Does it here, and answers there; what was under way when the power failed is neither done nor answered. */
  #deliver<T>(agentClock: Clock, command: () => T): Promise<T> {
    const life = this.#lives;
    return new Promise((resolve, reject) => {
      this.#options.env.clock.setTimer(() => {
        if (this.#lives !== life) return;
        let answer: () => void;
        try {
          const value = command();
          answer = () => resolve(value);
        } catch (error) {
          answer = () => reject(error);
        }
        agentClock.setTimer(answer, this.#latencyMs());
      }, this.#latencyMs());
    });
  }

  #answerAfter(agentClock: Clock, delayMs: number): Promise<void> {
    return new Promise((resolve) => void agentClock.setTimer(resolve, delayMs));
  }

  #latencyMs(): number {
    return this.#options.latencyMs?.() ?? 0;
  }
}
