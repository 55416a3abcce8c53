import type { Random } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { State } from '../observer.ts';

/** A cluster as users find it. */
export interface UserCluster {
  /** Empty where there is only one. */
  readonly name: string;
  /** Where its synchronization controller is reached. */
  readonly address: string;
  readonly client: Client;
  readonly state: State;
}

/** What an action of the user has: a client, and the knowledge of what is durable. */
export interface UserContext {
  readonly client: Client;
  readonly state: State;
  /** All clusters; the client and the state are of one of them. */
  readonly clusters: readonly UserCluster[];
  readonly random: Random;
  /** What time it is, for whoever writes it down. */
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/** Something that users do. It may fail, as anything that users do. */
export type Action = (context: UserContext) => Promise<void>;
