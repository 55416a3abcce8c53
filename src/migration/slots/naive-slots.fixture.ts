import type { SlotLedger } from './ledger.ts';
import type { SlotHolder, SlotRequest } from './request.ts';
import type { SlotRules } from './slot-book.ts';

/**
 * The rules of slots once more, as plainly as can be: everything is counted and sorted anew each time. What the book does
 * with indexes is held against it, and so is each rule by itself: a bug can be planted for it here, and has to be found.
 */

export const BUGS = [
  'the cluster takes one too many',
  'a node lets one too many leave',
  'a node lets one too many arrive',
  'a target that is bound over the limit keeps its other slots',
  'a target that was bound over the limit takes its slots one by one',
  'a blocked one hides those behind it',
  'classes do not count',
  'deadlines do not count',
  'the youngest goes first',
  'ageing stops at the next class',
  'ageing lifts to the highest class',
  'ageing goes on though priorities are off',
  'senders and receivers share one pool',
  'a sender does not wait for its receiver',
  'a sender keeps its slot when its receiver gave up',
  'a sender commits before its receiver',
  'a receiver commits before its sender',
  'a receiver waits for its sender for ever',
  'a receiver that gave up stands in line again at once',
  'targets are made though nobody may arrive',
  'a lowered limit takes slots away',
  'a migration that nobody wants any more loses its slots',
  'what is over keeps its slots',
  'limits of the same numbers are not renewed',
  'one that is held up keeps its slots',
  'one that is held up stands in line',
  'a guest that is elsewhere by now keeps its slots',
] as const;

export type Bug = (typeof BUGS)[number];

export class NaiveSlots {
  readonly #bug: Bug | undefined;
  readonly wishes = new Map<string, SlotRequest>();
  readonly over = new Set<string>();
  readonly #notBeforeMs = new Map<string, number>();
  readonly #failures = new Map<string, number>();
  rules: SlotRules;
  ledger: SlotLedger;

  constructor(rules: SlotRules, bug?: Bug) {
    this.#bug = bug;
    this.rules = rules;
    this.ledger = { limits: rules.limits, limitsVersion: rules.limitsVersion, holders: new Map() };
  }

  forget(uid: string): void {
    this.wishes.delete(uid);
    this.#notBeforeMs.delete(uid);
    this.#failures.delete(uid);
  }

  want(request: SlotRequest): void {
    this.wishes.set(request.uid, request);
    if (request.peer !== undefined) this.#failures.delete(request.uid);
  }

  load(ledger: SlotLedger, nowMs: number): void {
    for (const uid of this.ledger.holders.keys())
      if (!ledger.holders.has(uid) && (this.#notBeforeMs.get(uid) ?? 0) > nowMs)
        this.#failures.set(uid, (this.#failures.get(uid) ?? 0) + 1);
    this.ledger = ledger;
  }

  plan(nowMs: number): SlotLedger | undefined {
    const has = new Map(this.ledger.holders);
    this.#releaseAll(has);
    const reserved = [...has.values()].filter(({ state }) => state === 'reserved');
    for (const { uid } of this.#sorted(this.#wishesOf(reserved), undefined)) this.#advance(has, uid, nowMs);
    this.#admitAll(has, nowMs);
    const { limits, limitsVersion } = this.rules;
    const next = { limits, limitsVersion, holders: has };
    return this.#text(next) === this.#text(this.ledger) ? undefined : next;
  }

  #releaseAll(has: Map<string, SlotHolder>): void {
    for (const uid of has.keys()) {
      const isOver = this.over.has(uid) && this.#bug !== 'what is over keeps its slots';
      const isForgotten =
        !this.wishes.has(uid) && this.#bug === 'a migration that nobody wants any more loses its slots';
      if (isOver || isForgotten) has.delete(uid);
    }
    while (this.#bug === 'a lowered limit takes slots away' && has.size > 2 * this.rules.limits.perCluster) {
      const [last = ''] = [...has.keys()].slice(-1);
      has.delete(last);
    }
  }

  #advance(has: Map<string, SlotHolder>, uid: string, nowMs: number): void {
    const wish = this.wishes.get(uid);
    const holder = has.get(uid);
    if (!wish || !holder) return;
    const { senderTimeoutMs, receiverPauseMs } = this.rules;
    if (wish.kind === 'receive' && wish.peer === undefined && nowMs - holder.sinceMs >= senderTimeoutMs) {
      if (this.#bug === 'a receiver waits for its sender for ever') return;
      // Chance is one half in these tests.
      if (this.#bug !== 'a receiver that gave up stands in line again at once')
        this.#notBeforeMs.set(uid, nowMs + receiverPauseMs * 0.75 * 2 ** Math.min(6, this.#failures.get(uid) ?? 0));
      return void has.delete(uid);
    }
    const isHeldUp = wish.isHeldUp === true && this.#bug !== 'one that is held up keeps its slots';
    const isElsewhere =
      wish.sourceNode !== holder.sourceNode && this.#bug !== 'a guest that is elsewhere by now keeps its slots';
    if (isHeldUp || isElsewhere) return void has.delete(uid);
    if (wish.kind === 'send') {
      if (wish.peer === undefined && this.#bug !== 'a sender keeps its slot when its receiver gave up') has.delete(uid);
      else if (this.#isReady(wish)) has.set(uid, { ...holder, state: 'committed' });
      return;
    }
    const { targetNode } = wish;
    if (targetNode !== holder.targetNode) {
      if (holder.targetNode !== undefined || targetNode === undefined) return void has.delete(uid);
      if (!this.#canArrive(has, targetNode)) {
        if (this.#bug !== 'a target that is bound over the limit keeps its other slots') has.delete(uid);
        return;
      }
    }
    has.set(uid, { ...holder, targetNode, state: this.#isReady(wish) ? 'committed' : 'reserved' });
  }

  #admitAll(has: Map<string, SlotHolder>, nowMs: number): void {
    for (;;) {
      const waiting = [...this.wishes.values()].filter(
        ({ uid }) => !has.has(uid) && (this.#notBeforeMs.get(uid) ?? 0) <= nowMs,
      );
      const isSkipped = ({ kind, peer, isHeldUp }: SlotRequest): boolean =>
        (isHeldUp === true && this.#bug !== 'one that is held up stands in line') ||
        (kind === 'send' && peer === undefined && this.#bug !== 'a sender does not wait for its receiver');
      const sorted = this.#sorted(
        waiting.filter((wish) => !isSkipped(wish)),
        nowMs,
      );
      const candidates = this.#bug === 'a blocked one hides those behind it' ? sorted.slice(0, 1) : sorted;
      const wish = candidates.find((each) => this.#fits(has, each));
      if (!wish) return;
      const { uid, kind, members, sourceNode } = wish;
      const isOneByOne = this.#bug === 'a target that was bound over the limit takes its slots one by one';
      const targetNode = kind === 'send' || isOneByOne ? undefined : wish.targetNode;
      const state = this.#isReady(wish) && !(isOneByOne && kind !== 'send') ? 'committed' : 'reserved';
      has.set(uid, { uid, kind, members, sourceNode, targetNode, state, sinceMs: nowMs });
    }
  }

  #isReady({ kind, targetNode, peer }: SlotRequest): boolean {
    if (kind === 'send') return peer === 'committed' || this.#bug === 'a sender commits before its receiver';
    if (targetNode === undefined) return false;
    return kind === 'local' || peer !== undefined || this.#bug === 'a receiver commits before its sender';
  }

  #fits(has: Map<string, SlotHolder>, { kind, sourceNode, targetNode }: SlotRequest): boolean {
    const { perCluster, outboundPerNode, inboundPerNode } = this.rules.limits;
    const isOfPool = (holder: SlotHolder): boolean =>
      this.#bug === 'senders and receivers share one pool' || (holder.kind === 'receive') === (kind === 'receive');
    const extra = this.#bug === 'the cluster takes one too many' ? 1 : 0;
    if (count(has, isOfPool) >= perCluster + extra) return false;
    const extraLeaving = this.#bug === 'a node lets one too many leave' ? 1 : 0;
    const leaving = count(has, (holder) => holder.sourceNode !== undefined && holder.sourceNode === sourceNode);
    if (sourceNode !== undefined && leaving >= outboundPerNode + extraLeaving) return false;
    if (kind === 'send') return true;
    if (targetNode !== undefined) return this.#canArrive(has, targetNode);
    return inboundPerNode > 0 || this.#bug === 'targets are made though nobody may arrive';
  }

  #canArrive(has: Map<string, SlotHolder>, node: string): boolean {
    const extra = this.#bug === 'a node lets one too many arrive' ? 1 : 0;
    return count(has, ({ targetNode }) => targetNode === node) < this.rules.limits.inboundPerNode + extra;
  }

  #wishesOf(holders: readonly SlotHolder[]): SlotRequest[] {
    return holders.flatMap(({ uid }) => this.wishes.get(uid) ?? []);
  }

  /** With ageing where a time is given. */
  #sorted(wishes: readonly SlotRequest[], nowMs: number | undefined): SlotRequest[] {
    const { isByPriority } = this.rules;
    const ranks = wishes.map((wish) => {
      const isClassless = !isByPriority || this.#bug === 'classes do not count';
      const priority = nowMs === undefined ? wish.priority : this.#aged(wish, nowMs);
      const isPressed = isByPriority && this.#bug !== 'deadlines do not count';
      const ageing = !isByPriority && this.#bug === 'ageing goes on though priorities are off' ? priority : 0;
      const age = this.#bug === 'the youngest goes first' ? -wish.createdMs : wish.createdMs;
      const deadlineMs = isPressed ? (wish.deadlineMs ?? Number.MAX_VALUE) : 0;
      return { wish, numbers: [isClassless ? -ageing : -priority, deadlineMs, age] };
    });
    const order = (a: (typeof ranks)[number], b: (typeof ranks)[number]): number =>
      a.numbers.map((number, index) => number - (b.numbers[index] ?? 0)).find((difference) => difference !== 0) ??
      (a.wish.uid < b.wish.uid ? -1 : 1);
    return ranks.sort(order).map(({ wish }) => wish);
  }

  #aged({ priority, createdMs }: SlotRequest, nowMs: number): number {
    const { ageingMs } = this.rules;
    const isToTheTop = this.#bug === 'ageing lifts to the highest class';
    const ladder = isToTheTop ? [0, 20, 50, 100] : [0, 20, 50];
    const due = ageingMs === 0 ? 0 : Math.max(0, Math.floor((nowMs - createdMs) / ageingMs));
    const lifts = this.#bug === 'ageing stops at the next class' ? Math.min(1, due) : due;
    const rung = ladder.indexOf(priority);
    return rung < 0 ? priority : (ladder[Math.min(rung + lifts, ladder.length - 1)] ?? priority);
  }

  #text({ limits, limitsVersion, holders }: SlotLedger): string {
    const version = this.#bug === 'limits of the same numbers are not renewed' ? '' : limitsVersion;
    return JSON.stringify([limits, version, [...holders].sort(([a], [b]) => (a < b ? -1 : 1))]);
  }
}

function count(holders: ReadonlyMap<string, SlotHolder>, isCounted: (holder: SlotHolder) => boolean): number {
  return [...holders.values()].filter(isCounted).length;
}
