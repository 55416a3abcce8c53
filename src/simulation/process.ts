import { setMaxListeners } from 'node:events';
import type { Env, Logger, Random } from '../env/ports.ts';
import type { FaultName, FaultPlan } from '../kube/faults.ts';
import { FaultyTransport } from '../kube/faulty-transport.ts';
import { Gate } from '../kube/gate.ts';
import type { LocalIdentity } from '../kube/in-process-transport.ts';
import type { Transport, TransportRequest, TransportResponse } from '../kube/transport.ts';
import { ProcessClock, type VirtualClock } from './virtual-clock.ts';

export interface ProcessOptions {
  readonly name: string;
  readonly clock: VirtualClock;
  readonly clockOffsetMs: number;
  readonly random: Random;
  readonly log: Logger;
  /** Where the faults of its connections come from. */
  readonly faults: Random;
  readonly plan: Partial<FaultPlan>;
  /** How it reaches the server, as whom. */
  readonly connect: (identity: LocalIdentity, killed: AbortSignal) => Transport;
  /** Told when it crashes at a write, by its own plan of faults. */
  readonly onCrash: () => void;
  readonly onFault: (name: FaultName, request: TransportRequest) => void;
}

/**
 * A process that talks to the server, and that can be killed at any moment: it then does nothing more, not even what it
 * would do to end in an orderly way. Its clock stands, and its requests are never answered.
 */
export class SimulatedProcess {
  readonly name: string;
  readonly env: Env;
  readonly clock: ProcessClock;
  readonly #options: ProcessOptions;
  readonly #killed = new AbortController();
  readonly #transports: FaultyTransport[] = [];
  readonly #awake = new Gate();

  constructor(options: ProcessOptions) {
    this.name = options.name;
    this.#options = options;
    this.clock = new ProcessClock(options.clock, options.clockOffsetMs);
    // As many as it has requests and watches.
    setMaxListeners(0, this.#killed.signal);
    this.env = { clock: this.clock, random: options.random, log: options.log };
  }

  get isAlive(): boolean {
    return !this.#killed.signal.aborted;
  }

  /** Aborts when it is dead. */
  get killed(): AbortSignal {
    return this.#killed.signal;
  }

  /** A way to the server, with all the faults of this process' plan. */
  transport(identity: LocalIdentity): Transport {
    const { connect, faults, plan, onCrash, onFault } = this.#options;
    const transport = new FaultyTransport(connect(identity, this.#killed.signal), {
      clock: this.clock,
      random: faults,
      plan,
      onCrash,
      onFault,
      readsAreConsistent: true,
    });
    this.#transports.push(transport);
    return new MortalTransport(transport, this.#killed.signal, this.#awake);
  }

  kill(): void {
    this.clock.stop();
    this.#killed.abort();
  }

  /** Stands still for so long, and then goes on as if no time had passed: first with what has come for it meanwhile. */
  pause(durationMs: number): void {
    this.#awake.close();
    this.#options.clock.setTimer(() => this.#awake.open(), durationMs);
    this.clock.pause(durationMs);
  }

  partition(): void {
    for (const transport of this.#transports) transport.partition();
  }

  heal(): void {
    for (const transport of this.#transports) transport.heal();
  }

  /** Nothing goes wrong any more. */
  calm(): void {
    for (const transport of this.#transports) transport.calm();
  }
}

/** A transport whose owner may be dead: then the server sees its connections closed, and the owner nothing at all. */
class MortalTransport implements Transport {
  readonly #inner: Transport;
  readonly #killed: AbortSignal;
  readonly #awake: Gate;

  constructor(inner: Transport, killed: AbortSignal, awake: Gate) {
    this.#inner = inner;
    this.#killed = killed;
    this.#awake = awake;
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const killed = this.#killed;
    if (killed.aborted) return never();
    try {
      const response = await this.#inner.send(request);
      if (!this.#awake.isOpen) await this.#awake.pass(killed);
      if (killed.aborted) return await never();
      return { ...response, body: mortalBody(response.body, killed, this.#awake) };
    } catch (error) {
      if (!this.#awake.isOpen) await this.#awake.pass(killed);
      if (killed.aborted) return never();
      throw error;
    }
  }

  close(): void {
    this.#inner.close();
  }
}

async function* mortalBody(body: AsyncIterable<string>, killed: AbortSignal, awake: Gate): AsyncGenerator<string> {
  try {
    for await (const piece of body) {
      if (!awake.isOpen) await awake.pass(killed);
      if (killed.aborted) break;
      yield piece;
    }
  } catch (error) {
    if (!killed.aborted) throw error;
  }
  if (killed.aborted) await never();
}

/** A promise of its own each time: a shared one would keep all who ever waited for it. */
function never(): Promise<never> {
  return new Promise(() => undefined);
}
