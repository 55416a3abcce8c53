import type { Invariant, InvariantAcross } from './invariant.ts';
import { oneOf, type Streams } from './streams.ts';
import type { ActionName } from './user.ts';

/** What a cluster is like, what is done to it, and what must hold. */
export interface Scenario {
  readonly name: string;
  /** One sentence for whoever chooses. */
  readonly description: string;
  /** How many each cluster has. */
  readonly nodes: number;
  /** How many clusters there may be; each run has one of these numbers of them. One where nobody says anything. */
  readonly clusters?: readonly number[];
  /** Whether nodes have real agents, on models of hosts, and Godwit's own controllers run. */
  readonly hasMachines?: boolean;
  /** Whether guests move: then what lies between nodes may break. */
  readonly hasMoves?: boolean;
  /** Whether guests go to other objects: then the synchronization controller is there. */
  readonly hasPairs?: boolean;
  /** Whether guests are driven off their nodes: then the webhooks for evictions are there, and may be down. */
  readonly hasEvictions?: boolean;
  /** How long anything may fail, at most. */
  readonly horizonMs: number;
  /** How much the user does, at most. */
  readonly actionsMax: number;
  /** What the user does, and how much of each. */
  readonly actions: { readonly [name in ActionName]?: number };
  /** What the user does when nothing fails any more, so that what is left is nobody's fault. */
  readonly lastActions?: readonly ActionName[];
  /** Made anew for each run: they remember what they have seen. */
  readonly invariants: readonly (() => Invariant)[];
  /** Those that are about all clusters at once. */
  readonly across?: readonly (() => InvariantAcross)[];
}

const CLUSTERS = ['a', 'b', 'c', 'd'];

/** The names of a run's clusters; the only one has none. */
export function clustersOf({ clusters = [1] }: Scenario, streams: Streams): readonly string[] {
  const count = oneOf(streams.of('clusters'), clusters) ?? 1;
  return count === 1 ? [''] : CLUSTERS.slice(0, count);
}

/** The names of all that must hold in a scenario. */
export function invariantNamesOf({ invariants, across = [] }: Scenario): readonly string[] {
  return [...invariants, ...across].map((make) => make().name);
}
