import type { MemoryEngine } from '../apiserver/storage/memory-engine.ts';
import type { Random } from '../env/ports.ts';
import type { Hypervisor } from '../hypervisor/hypervisor.ts';
import type { Transport } from '../kube/transport.ts';
import type { PeerAnswer } from '../node/migrations/peer.ts';
import type { Plan } from './plan.ts';
import type { CrashableEngine } from './server.ts';

/**
 * A bug that a run is given on purpose, so that an invariant has something to find. It sits between the parts that are
 * tested, never in them.
 */
export interface PlantedBug {
  readonly name: string;
  /** What is wrong, in one sentence. */
  readonly description: string;
  /** The scenario in which it shows. */
  readonly scenario: string;
  /** The invariant that has to find it. */
  readonly invariant: string;
  /** Where the search begins: a seed that was once known to show it soon, so that looking for it costs little. */
  readonly firstSeed: number;
  /** Within how many seeds from there. */
  readonly seedsMax: number;
  /** Whose connections are spoilt; everybody's where nobody is named. */
  readonly whose?: RegExp;
  readonly spoilTransport?: (transport: Transport, random: Random) => Transport;
  readonly spoilDisk?: (engine: MemoryEngine) => CrashableEngine;
  readonly spoilHypervisor?: (hypervisor: Hypervisor) => Hypervisor;
  readonly spoilHostChance?: (random: Random) => Random;
  /** What agents answer each other. */
  readonly spoilAnswer?: (answer: PeerAnswer) => PeerAnswer;
  /** Faults without which it cannot show. */
  readonly provoke?: (plan: Plan) => Plan;
  /** Replicas that know nothing of each other. */
  readonly hasNoElection?: boolean;
}
