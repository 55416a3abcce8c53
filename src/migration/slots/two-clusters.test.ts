import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../env/test.ts';
import { usageOf } from './ledger.ts';
import type { MigrationKind, SlotRequest, SlotState } from './request.ts';
import { SlotBook, type SlotRules } from './slot-book.ts';

/** Two clusters that move guests into each other, each with few slots, and news that travel slowly. */

const RULES: SlotRules = {
  limits: { perCluster: 1, outboundPerNode: 1, inboundPerNode: 1 },
  limitsVersion: '1',
  isByPriority: true,
  ageingMs: 0,
  senderTimeoutMs: 3000,
  receiverPauseMs: 1000,
};
const TICK_MS = 100;
/** How long a copy takes. */
const COPY_TICKS = 5;

interface Half {
  readonly book: SlotBook;
  readonly kind: MigrationKind;
  request: SlotRequest;
}

interface Move {
  readonly sender: Half;
  readonly receiver: Half;
  ticksLeft: number;
}

class World {
  readonly #random: ReturnType<typeof seededRandom>;
  readonly #books: readonly SlotBook[];
  #moves: readonly Move[];
  #nowMs = 0;

  constructor(seed: number, count: number, rules: SlotRules) {
    this.#random = seededRandom(seed);
    this.#books = [0, 1].map(() => new SlotBook(rules, this.#random));
    this.#moves = Array.from({ length: count }, (_, index) => {
      const from = this.#one([0, 1]);
      return {
        sender: this.#half(`s${index}`, 'send', from),
        receiver: this.#half(`r${index}`, 'receive', 1 - from),
        ticksLeft: COPY_TICKS,
      };
    });
  }

  /** Receivers in both clusters for which no sender ever comes, and that are more important than all others. */
  addGhosts(count: number): void {
    for (let index = 0; index < count; index++)
      this.#tell(this.#half(`ghost${index}`, 'receive', index % 2), { priority: 100, createdMs: -1 });
  }

  /** The moves that are not over after so many ticks. */
  run(ticks: number): number {
    for (let tick = 0; tick < ticks && this.#moves.length > 0; tick++) this.#tick();
    return this.#moves.length;
  }

  #tick(): void {
    this.#nowMs += TICK_MS;
    for (const move of this.#moves) this.#advance(move);
    this.#moves = this.#moves.filter(({ ticksLeft }) => ticksLeft > 0);
    for (const book of this.#books) {
      const plan = book.plan(this.#nowMs);
      if (!plan) continue;
      expect(usageOf(plan).excessOver(usageOf(book.ledger))).toEqual([]);
      book.load(plan, this.#nowMs);
    }
  }

  #advance(move: Move): void {
    const { sender, receiver } = move;
    this.#hear(sender, receiver);
    this.#hear(receiver, sender);
    const hasPod = receiver.book.standing(receiver.request.uid) !== undefined;
    if (hasPod && receiver.request.targetNode === undefined && this.#random.number() < 0.5)
      this.#tell(receiver, { targetNode: this.#one(['x', 'y']) });
    const isCopying = [sender, receiver].every(({ book, request }) => book.standing(request.uid) === 'committed');
    if (isCopying && --move.ticksLeft === 0) {
      for (const { book, request } of [sender, receiver]) book.isOver(request.uid);
    }
  }

  /** What the other half has arrives now or later. */
  #hear(half: Half, other: Half): void {
    const peer: SlotState | undefined = other.book.standing(other.request.uid);
    if (peer !== half.request.peer && this.#random.number() < 0.3) this.#tell(half, { peer });
  }

  #tell(half: Half, change: Partial<SlotRequest>): void {
    half.request = { ...half.request, ...change };
    half.book.want(half.request, this.#nowMs);
  }

  #half(uid: string, kind: MigrationKind, cluster: number): Half {
    const request: SlotRequest = {
      uid,
      kind,
      members: [{ namespace: 'shop', name: uid, uid }],
      sourceNode: kind === 'send' ? this.#one(['x', 'y']) : undefined,
      targetNode: undefined,
      peer: undefined,
      // The two clusters need not agree who comes first.
      priority: this.#one([0, 20, 50, 100]),
      deadlineMs: undefined,
      createdMs: Math.floor(this.#random.number() * 10),
    };
    const half = { book: this.#books[cluster] as SlotBook, kind, request };
    this.#tell(half, {});
    return half;
  }

  #one<T>(choices: readonly T[]): T {
    return choices[Math.floor(this.#random.number() * choices.length)] as T;
  }
}

const rulesOf = (perCluster: number): SlotRules => ({ ...RULES, limits: { ...RULES.limits, perCluster } });
const several = fc.integer({ min: 1, max: 12 });
const few = fc.integer({ min: 1, max: 3 });

describe('two clusters that move guests into each other', () => {
  it('never wait for each other for ever', () => {
    fc.assert(
      fc.property(fc.integer(), several, few, (seed, count, perCluster) => {
        expect(new World(seed, count, rulesOf(perCluster)).run(5000)).toBe(0);
      }),
      { numRuns: 60, seed: 5 },
    );
  });

  it('do not wait for those whose senders never come', () => {
    fc.assert(
      fc.property(fc.integer(), several, few, few, (seed, count, perCluster, ghosts) => {
        const world = new World(seed, count, rulesOf(perCluster));
        world.addGhosts(2 * ghosts);
        expect(world.run(20_000)).toBe(0);
      }),
      { numRuns: 40, seed: 5 },
    );
  });

  it('would wait for those for ever if receivers gave nothing back', () => {
    const world = new World(5, 6, { ...rulesOf(1), senderTimeoutMs: Number.POSITIVE_INFINITY });
    world.addGhosts(2);
    expect(world.run(5000)).toBeGreaterThan(0);
  });
});
