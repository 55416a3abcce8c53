/** What migrations ask for, in terms of slots. */

/** The object of a migration. */
export interface MigrationReference {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/**
 * `local`: the guest stays in this cluster, also where it changes its namespace by a pair of migrations, which count
 * once. `send` and `receive`: the halves of a move to another cluster.
 */
export type MigrationKind = 'local' | 'send' | 'receive';

/** How far somebody is with its slots: some may be given back again, or all are there for good. */
export type SlotState = 'reserved' | 'committed';

/** What one migration is and needs, as far as anybody has observed it. */
export interface SlotRequest {
  /** Of the migration; of the source's where it is a pair in this cluster. */
  readonly uid: string;
  readonly kind: MigrationKind;
  /** The objects that it consists of: it is over when all of them are. */
  readonly members: readonly MigrationReference[];
  /** Where the guest runs; undefined for `receive` alone. */
  readonly sourceNode: string | undefined;
  /** Where the target pod is bound to; undefined before, and for `send`. */
  readonly targetNode: string | undefined;
  /** What the other half has in its own cluster, as last heard; undefined where it has nothing, and for `local`. */
  readonly peer: SlotState | undefined;
  /** The highest number over all causes. */
  readonly priority: number;
  /** When the guest must be gone, where there is such a moment. */
  readonly deadlineMs: number | undefined;
  readonly createdMs: number;
  /** Whether it could not use a slot now: then it stands in no line, and gives back what it may give back. */
  readonly isHeldUp?: boolean;
}

/** A migration that has slots. */
export interface SlotHolder {
  readonly uid: string;
  readonly kind: MigrationKind;
  readonly members: readonly MigrationReference[];
  readonly sourceNode: string | undefined;
  /** Set with the slot of the target node. */
  readonly targetNode: string | undefined;
  /** What is committed may start, and keeps its slots until it is over. */
  readonly state: SlotState;
  /** When it got its first slot, this time. */
  readonly sinceMs: number;
}

/** Whom the migrations of a cluster are counted with. */
export type Pool = 'sending' | 'receiving';

/** Moves within the cluster count as sent: they never wait for a peer, so neither can those that wait behind them. */
export function poolOf(kind: MigrationKind): Pool {
  return kind === 'receive' ? 'receiving' : 'sending';
}

/** Whether it may ask for slots by now: the receiving half goes first. */
export function isEligible(request: SlotRequest): boolean {
  if (request.isHeldUp === true) return false;
  return request.kind !== 'send' || request.peer !== undefined;
}

/**
 * Whether it starts for good with the slots that its nodes give it. A receiver waits for its sender's slot, and the
 * sender for the receiver's word that it will not give back its own any more.
 */
export function isCommittable({ kind, targetNode, peer }: SlotRequest): boolean {
  if (kind === 'send') return peer === 'committed';
  return targetNode !== undefined && (kind === 'local' || peer !== undefined);
}
