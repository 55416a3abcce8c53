import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { SlotLedger } from './ledger.ts';
import { type Bug, BUGS, NaiveSlots } from './naive-slots.fixture.ts';
import type { MigrationKind, SlotRequest, SlotState } from './request.ts';
import { assertLawful, SlotBook, type SlotRules } from './slot-book.ts';

/** The book against the plain rules, whatever happens in whatever order. */

const RULES: SlotRules = {
  limits: { perCluster: 2, outboundPerNode: 1, inboundPerNode: 1 },
  limitsVersion: '1',
  isByPriority: true,
  ageingMs: 0,
  senderTimeoutMs: 30,
  receiverPauseMs: 20,
};

const number = fc.integer({ min: 0, max: 11 });
const node = fc.constantFrom('a', 'b', 'c');
const limit = fc.integer({ min: 0, max: 3 });

/** Each does something to both, the book and the plain rules. */
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('want'),
      number,
      kind: fc.constantFrom<MigrationKind>('local', 'local', 'send', 'receive'),
      node,
      priority: fc.constantFrom(0, 20, 50, 100),
      deadlineMs: fc.option(fc.constantFrom(500, 600), { nil: undefined }),
      peer: fc.constantFrom<SlotState | undefined>('reserved', undefined),
    }),
  },
  { weight: 4, arbitrary: fc.record({ type: fc.constant('bind'), number, node }) },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('hear'),
      number,
      peer: fc.constantFrom<SlotState | undefined>('reserved', 'committed', undefined),
    }),
  },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('hold'), number, isHeldUp: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('relocate'), number, node }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('end'), number }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('forget'), number }) },
  { weight: 2, arbitrary: fc.record({ type: fc.constant('pass'), byMs: fc.constantFrom(1, 10, 20, 40) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      type: fc.constant('configure'),
      limits: fc.record({ perCluster: limit, outboundPerNode: limit, inboundPerNode: limit }),
      isSame: fc.boolean(),
      isByPriority: fc.boolean(),
      ageingMs: fc.constantFrom(0, 15, 40),
    }),
  },
  { weight: 6, arbitrary: fc.record({ type: fc.constant('write'), isLost: fc.boolean() }) },
  { weight: 1, arbitrary: fc.record({ type: fc.constant('overtaken'), number }) },
);

type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

class Scene {
  readonly book = new SlotBook(RULES, { number: () => 0.5 });
  readonly naive: NaiveSlots;
  nowMs = 100;
  #version = 1;

  constructor(bug?: Bug) {
    this.naive = new NaiveSlots(RULES, bug);
  }

  run(steps: readonly Step[]): void {
    for (const each of steps) this.#do(each);
    this.#write(false);
  }

  #do(each: Step): void {
    switch (each.type) {
      case 'want':
        return this.#want(each);
      case 'bind':
        return this.#change(each.number, (wish) => (wish.kind === 'send' ? wish : { ...wish, targetNode: each.node }));
      case 'hear':
        return this.#change(each.number, (wish) => (wish.kind === 'local' ? wish : { ...wish, peer: each.peer }));
      case 'hold':
        return this.#change(each.number, (wish) => ({ ...wish, isHeldUp: each.isHeldUp }));
      case 'relocate':
        return this.#change(each.number, (wish) =>
          wish.kind === 'receive' ? wish : { ...wish, sourceNode: each.node },
        );
      case 'end':
        this.naive.over.add(uidOf(each.number));
        this.naive.forget(uidOf(each.number));
        return this.book.isOver(uidOf(each.number));
      case 'forget':
        this.naive.forget(uidOf(each.number));
        return this.book.forget(uidOf(each.number));
      case 'pass':
        this.nowMs += each.byMs;
        return;
      case 'configure':
        return this.#configure(each);
      case 'overtaken':
        return this.#lose(uidOf(each.number));
      case 'write':
        return this.#write(each.isLost);
    }
  }

  #want({ number: index, kind, node: at, priority, deadlineMs, peer }: Step & { type: 'want' }): void {
    const uid = uidOf(index);
    // What is over is not wanted again, and what is wanted stays what it is.
    if (this.naive.over.has(uid) || this.naive.wishes.has(uid) || this.naive.ledger.holders.has(uid)) return;
    this.#tell({
      uid,
      kind,
      members: [{ namespace: 'shop', name: uid, uid }],
      sourceNode: kind === 'receive' ? undefined : at,
      targetNode: undefined,
      peer: kind === 'local' ? undefined : peer,
      priority,
      deadlineMs,
      createdMs: this.nowMs - (this.nowMs % 10),
    });
  }

  #change(index: number, change: (wish: SlotRequest) => SlotRequest): void {
    const wish = this.naive.wishes.get(uidOf(index));
    if (wish) this.#tell(change(wish));
  }

  #tell(request: SlotRequest): void {
    this.naive.want(request);
    this.book.want(request, this.nowMs);
  }

  #configure({ limits, isSame, isByPriority, ageingMs }: Step & { type: 'configure' }): void {
    const version = { limitsVersion: String(++this.#version) };
    const rules = { ...RULES, ...version, limits: isSame ? this.naive.rules.limits : limits, isByPriority, ageingMs };
    this.naive.rules = rules;
    this.book.configure(rules, this.nowMs);
  }

  /** Another leader gave back what was only reserved. */
  #lose(uid: string): void {
    if (this.naive.ledger.holders.get(uid)?.state !== 'reserved') return;
    const holders = new Map(this.naive.ledger.holders);
    holders.delete(uid);
    this.#load({ ...this.naive.ledger, holders });
  }

  #write(isLost: boolean): void {
    const plan = this.book.plan(this.nowMs);
    expect(textOf(plan)).toEqual(textOf(this.naive.plan(this.nowMs)));
    if (!plan) return;
    assertLawful(this.naive.ledger, plan, (uid) => this.naive.over.has(uid));
    if (!isLost) this.#load(plan);
    expect(this.book.plan(this.nowMs) === undefined || isLost).toBe(true);
  }

  #load(ledger: SlotLedger): void {
    this.naive.load(ledger, this.nowMs);
    this.book.load(ledger, this.nowMs);
  }
}

const uidOf = (index: number): string => `m${index}`;

function textOf(ledger: SlotLedger | undefined): unknown {
  return ledger && { ...ledger, holders: [...ledger.holders.values()].sort((a, b) => (a.uid < b.uid ? -1 : 1)) };
}

const steps = fc.array(step, { minLength: 10, maxLength: 80, size: 'max' });

describe('who gets a slot', () => {
  it('is as the plain rules have it', () => {
    fc.assert(
      fc.property(steps, (all) => new Scene().run(all)),
      { numRuns: 400, seed: 5 },
    );
  });

  it.each(BUGS)('would be noticed: %s', (bug) => {
    const result = fc.check(
      fc.property(steps, (all) => new Scene(bug).run(all)),
      { numRuns: 3000, seed: 5, endOnFailure: true },
    );
    expect(result.failed).toBe(true);
  });
});
