import { setMaxListeners } from 'node:events';
import type { Logger, Random } from '../env/ports.ts';
import { Client } from '../kube/client.ts';
import type { LocalIdentity } from '../kube/in-process-transport.ts';
import type { Transport } from '../kube/transport.ts';
import { Connection } from './connection.ts';
import type { FaultMix } from './fault-mix.ts';
import { SimulatedProcess } from './process.ts';
import type { SimulatedServer } from './server.ts';
import type { Streams } from './streams.ts';
import type { Tracer } from './trace.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Who may do everything: the model actors, which stand for more than they are. */
export const ADMIN: LocalIdentity = { user: 'kubernetes-admin', groups: ['system:masters'] };

export interface WorldOptions {
  readonly clock: VirtualClock;
  readonly streams: Streams;
  readonly trace: Tracer;
  readonly mix: FaultMix;
  readonly log: (component: string) => Logger;
  readonly server: SimulatedServer;
  /** A way to the server that is worse than the faults allow, for planted bugs. */
  readonly spoilTransport?: ((component: string, transport: Transport, random: Random) => Transport) | undefined;
}

/** A signal that never aborts, for what ends only with its process; many may listen to it. */
export function unending(): AbortSignal {
  const { signal } = new AbortController();
  setMaxListeners(0, signal);
  return signal;
}

/** What everybody in a run shares: the time, the network, and the record of what happens. */
export class World {
  readonly clock: VirtualClock;
  readonly streams: Streams;
  readonly trace: Tracer;
  readonly mix: FaultMix;
  /** For what happens to no component in particular. */
  readonly random: Random;
  readonly #options: WorldOptions;
  readonly #processes = new Set<SimulatedProcess>();
  #isCalm = false;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.clock = options.clock;
    this.streams = options.streams;
    this.trace = options.trace;
    this.mix = options.mix;
    this.random = options.streams.of('world');
  }

  /** Those that are alive. */
  get processes(): readonly SimulatedProcess[] {
    for (const process of this.#processes) if (!process.isAlive) this.#processes.delete(process);
    return [...this.#processes];
  }

  newProcess(options: {
    readonly name: string;
    readonly life: number;
    readonly canCrash: boolean;
    readonly onCrash: () => void;
  }): SimulatedProcess {
    const { name, life, canCrash, onCrash } = options;
    const { clock, streams, mix, log } = this.#options;
    const random = streams.of(`process/${name}/${life}`);
    const connections = streams.of(`connections/${name}/${life}`);
    const plan = this.#isCalm ? {} : { ...mix.network, ...(canCrash ? {} : { crash: 0 }) };
    const process = new SimulatedProcess({
      name,
      clock,
      clockOffsetMs: (random.number() * 2 - 1) * mix.clockSkewMsMax,
      random,
      log: log(name),
      faults: streams.of(`faults/${name}/${life}`),
      plan,
      connect: (identity, killed) => this.#connect(name, identity, killed, connections),
      onCrash,
      onFault: (fault, request) => this.trace.add(name, `${fault}: ${request.method} ${request.path}`),
    });
    this.#processes.add(process);
    return process;
  }

  clientOf(process: SimulatedProcess, identity: LocalIdentity): Client {
    const { spoilTransport, streams } = this.#options;
    const transport = process.transport(identity);
    const spoilt = spoilTransport?.(process.name, transport, streams.of(`bug/${process.name}`));
    return new Client(spoilt ?? transport, identity.user);
  }

  /** From now on nothing fails, and what was held back arrives. */
  calm(): void {
    this.#isCalm = true;
    for (const process of this.processes) {
      process.calm();
      process.clock.offsetMs = 0;
    }
  }

  #connect(name: string, identity: LocalIdentity, killed: AbortSignal, random: Random): Transport {
    const { server, clock, mix } = this.#options;
    return new Connection({
      server,
      identity,
      killed,
      clock,
      latencyMs: () => random.number() * mix.latencyMsMax,
      onRequest: ({ method, path }, status) => {
        if (!isHeartbeat(path)) this.trace.add(name, `${method} ${path} ${status === 0 ? 'no answer' : status}`);
      },
    });
  }
}

/** There are so many that they would hide everything else. */
function isHeartbeat(path: string): boolean {
  return path.includes('/coordination.k8s.io/') || path.includes('/events');
}
