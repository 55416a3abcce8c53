import type { Random } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { State } from '../observer.ts';

/** What an action of the user has: a client, and the knowledge of what is durable. */
export interface UserContext {
  readonly client: Client;
  readonly state: State;
  readonly random: Random;
  /** What time it is, for whoever writes it down. */
  readonly nowMs: number;
  readonly signal: AbortSignal;
}

/** Something that users do. It may fail, as anything that users do. */
export type Action = (context: UserContext) => Promise<void>;
