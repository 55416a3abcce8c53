import type { SlotUsage } from './ledger.ts';
import type { Rank } from './order.ts';
import { RankedHeap } from './ranked-heap.ts';
import { type MigrationKind, type Pool, poolOf } from './request.ts';

/**
 * Those that wait, so that the best one that fits is found at once, however many are before it that do not fit.
 *
 * All that need slots of the same nodes form a group, with its best member first: they fit all or none. Groups whose
 * nodes have room stand in one heap per pool, by their best members. When a node fills up or gets room again, no more
 * than the groups of that node move: one for those that have no target yet, and one for each node that a bound one comes
 * from or goes to. So an event costs the logarithm of how many wait, times the handful of nodes that are concerned.
 */

/** One that waits. `rank` is read anew whenever the item is put in. */
export interface WaitingItem {
  readonly uid: string;
  readonly kind: MigrationKind;
  readonly sourceNode: string | undefined;
  readonly targetNode: string | undefined;
  rank: Rank;
}

interface Group {
  readonly key: string;
  readonly kind: MigrationKind;
  readonly sourceNode: string | undefined;
  readonly targetNode: string | undefined;
  readonly items: RankedHeap<WaitingItem>;
}

export class WaitingLine {
  readonly #usage: SlotUsage;
  readonly #isBefore: (a: Rank, b: Rank) => boolean;
  readonly #groups = new Map<string, Group>();
  readonly #bySource = new Map<string, Set<Group>>();
  readonly #byTarget = new Map<string, Set<Group>>();
  readonly #open: { readonly [pool in Pool]: RankedHeap<Group> };

  constructor(usage: SlotUsage, isBefore: (a: Rank, b: Rank) => boolean) {
    this.#usage = usage;
    this.#isBefore = isBefore;
    const heap = (): RankedHeap<Group> => new RankedHeap((a, b) => isBefore(rankOf(a), rankOf(b)));
    this.#open = { sending: heap(), receiving: heap() };
  }

  /** The best one for which there is room everywhere. */
  best(): WaitingItem | undefined {
    const [a, b] = (['sending', 'receiving'] as const)
      .filter((pool) => this.#usage.hasRoomInPool(pool))
      .map((pool) => this.#open[pool].first?.items.first)
      .filter((item) => item !== undefined);
    return a && b && this.#isBefore(b.rank, a.rank) ? b : a;
  }

  /** Puts an item in, or where it belongs after its rank has changed. */
  put(item: WaitingItem): void {
    const group = this.#groups.get(keyOf(item)) ?? this.#addGroup(item);
    group.items.put(item);
    this.#place(group);
  }

  remove(item: WaitingItem): void {
    const group = this.#groups.get(keyOf(item));
    if (!group) return;
    // Out of the heap of groups first: there it stands by the rank of a member that is about to go.
    this.#open[poolOf(group.kind)].remove(group);
    group.items.remove(item);
    if (group.items.size > 0) this.#place(group);
    else this.#dropGroup(group);
  }

  /** What is taken of a node has changed. */
  nodesChanged(sourceNode: string | undefined, targetNode: string | undefined): void {
    if (sourceNode !== undefined) this.#bySource.get(sourceNode)?.forEach((group) => this.#place(group));
    if (targetNode !== undefined) this.#byTarget.get(targetNode)?.forEach((group) => this.#place(group));
  }

  /** The limits have changed. */
  limitsChanged(): void {
    for (const group of this.#groups.values()) this.#place(group);
  }

  #place(group: Group): void {
    const open = this.#open[poolOf(group.kind)];
    if (this.#isOpen(group)) open.put(group);
    else open.remove(group);
  }

  #isOpen({ kind, sourceNode, targetNode }: Group): boolean {
    if (sourceNode !== undefined && !this.#usage.hasRoomToLeave(sourceNode)) return false;
    if (targetNode !== undefined) return this.#usage.hasRoomToArrive(targetNode);
    // Where nobody may arrive anywhere, target pods would be made only to wait.
    return kind === 'send' || this.#usage.limits.inboundPerNode > 0;
  }

  #addGroup({ kind, sourceNode, targetNode, ...item }: WaitingItem): Group {
    const key = keyOf({ kind, sourceNode, targetNode, ...item });
    const items = new RankedHeap<WaitingItem>((a, b) => this.#isBefore(a.rank, b.rank));
    const group: Group = { key, kind, sourceNode, targetNode, items };
    this.#groups.set(key, group);
    addTo(this.#bySource, sourceNode, group);
    addTo(this.#byTarget, targetNode, group);
    return group;
  }

  #dropGroup(group: Group): void {
    this.#groups.delete(group.key);
    removeFrom(this.#bySource, group.sourceNode, group);
    removeFrom(this.#byTarget, group.targetNode, group);
  }
}

function keyOf({ kind, sourceNode = '', targetNode = '' }: WaitingItem): string {
  return `${kind}/${sourceNode}/${targetNode}`;
}

/** Groups without members are in no heap. */
function rankOf(group: Group): Rank {
  const first = group.items.first;
  if (!first) throw new Error('a group without members has no rank');
  return first.rank;
}

function addTo(index: Map<string, Set<Group>>, node: string | undefined, group: Group): void {
  if (node === undefined) return;
  const groups = index.get(node) ?? new Set();
  index.set(node, groups.add(group));
}

function removeFrom(index: Map<string, Set<Group>>, node: string | undefined, group: Group): void {
  if (node === undefined) return;
  const groups = index.get(node);
  groups?.delete(group);
  if (groups?.size === 0) index.delete(node);
}
