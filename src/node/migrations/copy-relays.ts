import type { ListeningSockets, LocalSocket, MigrationAddress, PortRange } from '../../hypervisor/migration.ts';

/**
 * How a copy goes that is not encrypted, and disks in any case: QEMU cannot end what serves them while a stranger shakes
 * hands with it, and stands still, guest and all. A machine can neither tell nor ask for a secret, so that its agent stands
 * in between: the target's lets in nobody but who begins with a secret that it has given out, and the source's begins with it.
 *
 *   machine ── socket ── agent ══ one secret for each connection, then the copy ══ agent ── socket ── machine
 *
 * Both sockets are the agents' and their machines' alone. A copy that goes this way ends with either agent; until it is
 * complete its guest goes on at the source then, as after any other link that breaks.
 */
export interface CopyRelays {
  /** At a target: waits on one port of the range until every secret was told, or the answer is closed. */
  admit(range: PortRange, sockets: Partial<ListeningSockets>, connections: ConnectionCounts): Promise<Admission>;
  /** At a source: sockets for its machine that lead there, in the directory that it was started in, for what has secrets. */
  lead(target: MigrationAddress, secrets: CopySecrets, directory: string): Promise<Road>;
}

/** How many connections a machine will make. */
export interface ConnectionCounts {
  readonly memory: number;
  readonly disks: number;
}

/** What each connection begins with, in the order in which they are made; each is good once. */
export interface CopySecrets {
  readonly memory: readonly string[];
  readonly disks: readonly string[];
}

export interface Admission {
  readonly port: number;
  readonly secrets: CopySecrets;
  /** Lets in nobody any more. Who is in already stays. */
  close(): void;
}

export interface Road {
  readonly memory: LocalSocket | undefined;
  readonly disks: LocalSocket | undefined;
  /** Leads nobody there any more. Who is under way already stays. */
  close(): void;
}
