import { describe, expect, it } from 'vitest';
import { SlotUsage } from './ledger.ts';
import { comesBefore, type Rank } from './order.ts';
import type { SlotHolder } from './request.ts';
import { type WaitingItem, WaitingLine } from './waiting-line.ts';

/** One line in which many wait, and how often two of them were compared. */
class Crowd {
  readonly usage = new SlotUsage({ perCluster: 5, outboundPerNode: 2, inboundPerNode: 2 });
  readonly items: readonly WaitingItem[];
  comparisons = 0;
  readonly line = new WaitingLine(this.usage, (a: Rank, b: Rank) => {
    this.comparisons++;
    return comesBefore(a, b);
  });

  constructor(size: number, nodes: number) {
    this.items = Array.from({ length: size }, (_, index) => {
      const rank = { uid: `m${index}`, priority: (index % 3) * 20, deadlineMs: undefined, createdMs: index };
      const { uid } = rank;
      return { uid, kind: 'local', sourceNode: `n${index % nodes}`, targetNode: undefined, rank };
    });
    for (const item of this.items) this.line.put(item);
  }

  /** Gives the best one its slots. */
  admit(): SlotHolder | undefined {
    const item = this.line.best();
    if (!item) return undefined;
    this.line.remove(item);
    const { uid, kind, sourceNode, targetNode } = item;
    const holder: SlotHolder = { uid, kind, sourceNode, targetNode, members: [], state: 'reserved', sinceMs: 0 };
    this.#count(holder, 1);
    return holder;
  }

  release(holder: SlotHolder): void {
    this.#count(holder, -1);
  }

  #count(holder: SlotHolder, by: 1 | -1): void {
    this.usage.count(holder, by);
    this.line.nodesChanged(holder.sourceNode, holder.targetNode);
  }
}

describe('a line in which many wait', () => {
  it.each([
    [100, 100],
    [10_000, 100],
    [10_000, 10],
  ])('of %i on %i nodes costs some logarithms for each slot that is freed', (size, nodes) => {
    const crowd = new Crowd(size, nodes);
    const holders = Array.from({ length: 5 }, () => crowd.admit()).filter((holder) => holder !== undefined);
    expect(holders).toHaveLength(5);
    crowd.comparisons = 0;
    for (let event = 0; event < 50; event++) {
      const [first] = holders.splice(0, 1);
      if (first) crowd.release(first);
      const next = crowd.admit();
      if (next) holders.push(next);
    }
    expect(holders).toHaveLength(5);
    expect(crowd.comparisons / 50).toBeLessThan(8 * Math.log2(size));
  });

  it('costs nothing while nothing is free', () => {
    const crowd = new Crowd(1000, 10);
    while (crowd.admit()) continue;
    crowd.comparisons = 0;
    expect(crowd.line.best()).toBeUndefined();
    expect(crowd.comparisons).toBe(0);
  });

  it('looks past a whole node that is full', () => {
    const crowd = new Crowd(0, 1);
    const put = (uid: string, priority: number, sourceNode: string): void =>
      crowd.line.put({
        uid,
        kind: 'local',
        sourceNode,
        targetNode: undefined,
        rank: { uid, priority, deadlineMs: undefined, createdMs: 0 },
      });
    for (const uid of ['a', 'b', 'c', 'd']) put(uid, 100, 'n1');
    put('e', 0, 'n2');
    expect([crowd.admit(), crowd.admit(), crowd.admit(), crowd.admit()].map((each) => each?.uid)).toEqual([
      'a',
      'b',
      'e',
      undefined,
    ]);
  });
});
