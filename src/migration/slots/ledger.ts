import type { Pool, SlotHolder } from './request.ts';
import { poolOf } from './request.ts';

/** Who has slots, and how many there are. Values of these types never change: a change is a new ledger. */

export interface SlotLimits {
  /** Of each pool. Zero pauses, here as below. */
  readonly perCluster: number;
  readonly outboundPerNode: number;
  readonly inboundPerNode: number;
}

export interface SlotLedger {
  readonly limits: SlotLimits;
  /** The version of the configuration that the limits are from: who knows only an older one leaves them alone. */
  readonly limitsVersion: string;
  readonly holders: ReadonlyMap<string, SlotHolder>;
}

/** What is taken of what there is; it also answers whether there is room for more. */
export class SlotUsage {
  limits: SlotLimits;
  readonly #pools: { [pool in Pool]: number } = { sending: 0, receiving: 0 };
  readonly #outbound = new Map<string, number>();
  readonly #inbound = new Map<string, number>();

  constructor(limits: SlotLimits) {
    this.limits = limits;
  }

  /** Counts what a holder has, or with -1 no longer has. */
  count({ kind, sourceNode, targetNode }: SlotHolder, by: 1 | -1): void {
    this.#pools[poolOf(kind)] += by;
    if (sourceNode !== undefined) countAt(this.#outbound, sourceNode, by);
    if (targetNode !== undefined) countAt(this.#inbound, targetNode, by);
  }

  hasRoomInPool(pool: Pool): boolean {
    return this.#pools[pool] < this.limits.perCluster;
  }

  hasRoomToLeave(node: string): boolean {
    return (this.#outbound.get(node) ?? 0) < this.limits.outboundPerNode;
  }

  hasRoomToArrive(node: string): boolean {
    return (this.#inbound.get(node) ?? 0) < this.limits.inboundPerNode;
  }

  /** What is above a limit, and more than it was before: `what: how many`. Nothing but a lowered limit may do that. */
  excessOver(before: SlotUsage): string[] {
    const { perCluster, outboundPerNode, inboundPerNode } = this.limits;
    const pools = (usage: SlotUsage): Map<string, number> => new Map(Object.entries(usage.#pools));
    return [
      ...excess('pool', pools(this), pools(before), perCluster),
      ...excess('leaving', this.#outbound, before.#outbound, outboundPerNode),
      ...excess('arriving at', this.#inbound, before.#inbound, inboundPerNode),
    ];
  }
}

/** What a ledger's holders have. */
export function usageOf({ limits, holders }: SlotLedger): SlotUsage {
  const usage = new SlotUsage(limits);
  for (const holder of holders.values()) usage.count(holder, 1);
  return usage;
}

function countAt(counts: Map<string, number>, node: string, by: number): void {
  const count = (counts.get(node) ?? 0) + by;
  if (count === 0) counts.delete(node);
  else counts.set(node, count);
}

function excess(
  what: string,
  counts: ReadonlyMap<string, number>,
  before: ReadonlyMap<string, number>,
  limit: number,
): string[] {
  return [...counts]
    .filter(([key, count]) => count > limit && count > (before.get(key) ?? 0))
    .map(([key, count]) => `${what} ${key}: ${count} of ${limit}`);
}
