import type { Random } from '../../env/ports.ts';
import { type SlotLedger, type SlotLimits, SlotUsage, usageOf } from './ledger.ts';
import { agedPriority, comesBefore, isOlder, nextLiftMs } from './order.ts';
import { RankedHeap } from './ranked-heap.ts';
import { isCommittable, isEligible, type SlotHolder, type SlotRequest, type SlotState } from './request.ts';
import { type WaitingItem, WaitingLine } from './waiting-line.ts';

/**
 * Who gets a slot next. The book is told what is observed: what migrations want, which are over, what the ledger says
 * and what the rules are. From that alone follows the next write of the ledger (`plan`), which changes nothing here:
 * only what has been written, or read, counts (`load`). So it makes no difference whether a write went through, was
 * overtaken by somebody else's or got lost, and a book that starts afresh with the same facts goes on where another ended.
 *
 * A slot is taken in the ledger before it is used. Until all slots of a migration are there it is `reserved`, and may
 * lose them again: its target is bound to a node that is full, or its peer is not there in time. Then it is `committed`:
 * only from then on may it start, and from then on it keeps its slots until somebody has seen that it is over. So whoever
 * knows of a commitment, from however old a ledger, is right about it. Those that hold slots go before those that wait,
 * whatever their class.
 *
 * Two clusters that move guests into each other cannot wait for each other for ever: a slot to send is asked for only
 * while the receiver has its own, and a receiver whose sender gets none in time gives its slots back for a while.
 */

export interface SlotRules {
  readonly limits: SlotLimits;
  /** The version of the configuration that the limits are from. */
  readonly limitsVersion: string;
  /** False where the order is by age alone. */
  readonly isByPriority: boolean;
  /** How long one waits for each class that it is lifted; 0 for ever. */
  readonly ageingMs: number;
  /** How long a receiver keeps its slots while its sender has none. */
  readonly senderTimeoutMs: number;
  /** How long, at most, a receiver then lets others go first, the first time; at least half of it. */
  readonly receiverPauseMs: number;
}

interface Wish {
  request: SlotRequest;
  /** Set while it stands in line. */
  item: WaitingItem | undefined;
  /** When ageing lifts it next; only while it stands in line. */
  liftAtMs: number;
  /** Before that it does not stand in line. */
  notBeforeMs: number;
  /** How often in a row no sender came. */
  failures: number;
}

/** Each pause is twice the last, so that not even many receivers without senders keep others out by taking turns. */
const PAUSE_DOUBLINGS_MAX = 6;

export class SlotBook {
  readonly #random: Pick<Random, 'number'>;
  readonly #wishes = new Map<string, Wish>();
  readonly #over = new Set<string>();
  readonly #delays = new RankedHeap<Wish>((a, b) => a.notBeforeMs < b.notBeforeMs);
  readonly #lifts = new RankedHeap<Wish>((a, b) => a.liftAtMs < b.liftAtMs);
  #rules: SlotRules;
  #ledger: SlotLedger;
  /** Those of the ledger, except while a plan is made. */
  #holders: Map<string, SlotHolder>;
  #usage: SlotUsage;
  #line: WaitingLine;

  constructor(rules: SlotRules, random: Pick<Random, 'number'>) {
    const { limits, limitsVersion } = rules;
    this.#rules = rules;
    this.#random = random;
    this.#ledger = { limits, limitsVersion, holders: new Map() };
    this.#holders = new Map();
    this.#usage = new SlotUsage(limits);
    this.#line = this.#newLine();
  }

  /** The ledger as it was loaded last. */
  get ledger(): SlotLedger {
    return this.#ledger;
  }

  /** What a migration has; nothing where undefined. */
  standing(uid: string): SlotState | undefined {
    return this.#holders.get(uid)?.state;
  }

  /** Holders of whom nobody has told anything: they may be over, and nobody may ever say so. */
  strangers(): SlotHolder[] {
    return [...this.#holders.values()].filter(({ uid }) => !this.#wishes.has(uid) && !this.#over.has(uid));
  }

  /** How many stand in line, and since when the first of them was to move. */
  get waiting(): { readonly count: number; readonly oldestMs: number | undefined } {
    let [count, oldestMs]: [number, number | undefined] = [0, undefined];
    for (const { item, request } of this.#wishes.values()) {
      if (!item) continue;
      count++;
      oldestMs = Math.min(oldestMs ?? request.createdMs, request.createdMs);
    }
    return { count, oldestMs };
  }

  /** What a migration wants now, until it is told anew. */
  want(request: SlotRequest, nowMs: number): void {
    const { uid, kind, sourceNode } = request;
    if ((sourceNode === undefined) !== (kind === 'receive')) throw new Error(`migration ${uid} leaves no node`);
    let wish = this.#wishes.get(uid);
    if (wish) wish.request = request;
    else this.#wishes.set(uid, (wish = { request, item: undefined, liftAtMs: 0, notBeforeMs: 0, failures: 0 }));
    if (request.peer !== undefined) wish.failures = 0;
    this.#settle(wish, nowMs);
  }

  /** A migration wants nothing any more. What it holds it keeps until it is said to be over. */
  forget(uid: string): void {
    const wish = this.#wishes.get(uid);
    if (wish) this.#unqueue(wish);
    this.#wishes.delete(uid);
  }

  /** Somebody has seen on the server that a migration has ended or is gone: its slots may be released. */
  isOver(uid: string): void {
    this.forget(uid);
    if (this.#holders.has(uid)) this.#over.add(uid);
  }

  /** Whether a holder is known to be over. */
  isKnownOver(uid: string): boolean {
    return this.#over.has(uid);
  }

  /** From now on these rules hold. */
  configure(rules: SlotRules, nowMs: number): void {
    const old = this.#rules;
    this.#rules = rules;
    this.#usage.limits = rules.limits;
    if (rules.isByPriority !== old.isByPriority || rules.ageingMs !== old.ageingMs) {
      for (const wish of this.#wishes.values()) this.#unqueue(wish);
      this.#line = this.#newLine();
      for (const wish of this.#wishes.values()) this.#settle(wish, nowMs);
    } else if (!hasSameLimits(rules, old)) this.#line.limitsChanged();
  }

  /** This is what the ledger says. Answers the UIDs of all whose standing has changed. */
  load(ledger: SlotLedger, nowMs: number): string[] {
    const changed: string[] = [];
    const before = this.#holders;
    for (const uid of new Set([...before.keys(), ...ledger.holders.keys()])) {
      const holder = ledger.holders.get(uid);
      if (before.get(uid)?.state !== holder?.state) changed.push(uid);
      const wish = this.#wishes.get(uid);
      // Only what was written is a failure: a plan may be made many times.
      if (wish && !holder && before.has(uid) && wish.notBeforeMs > nowMs) wish.failures++;
      this.#replace(uid, holder, nowMs);
    }
    this.#ledger = ledger;
    this.#holders = new Map(ledger.holders);
    // Once it is out of the ledger there is nothing left to do for it.
    for (const uid of this.#over) if (!ledger.holders.has(uid)) this.#over.delete(uid);
    return changed;
  }

  /** The ledger as it should be next, if not as it is. */
  plan(nowMs: number): SlotLedger | undefined {
    this.#catchUp(nowMs);
    const before: [string, SlotHolder | undefined][] = [];
    const set = (uid: string, holder: SlotHolder | undefined): void => {
      before.push([uid, this.#holders.get(uid)]);
      this.#replace(uid, holder, nowMs);
    };
    for (const uid of this.#over) set(uid, undefined);
    for (const wish of this.#reserved()) this.#advance(wish, nowMs, set);
    for (let item = this.#line.best(); item; item = this.#line.best()) set(item.uid, this.#admitted(item.uid, nowMs));
    const { limits, limitsVersion } = this.#rules;
    const next = { limits, limitsVersion, holders: new Map(this.#holders) };
    for (const [uid, holder] of before.reverse()) this.#replace(uid, holder, nowMs);
    this.#holders = new Map(this.#ledger.holders);
    return before.length > 0 || !hasSameLimits(next, this.#ledger) ? next : undefined;
  }

  /** When there may be something to plan although nothing has been observed; undefined where there never is. */
  get wakeAtMs(): number | undefined {
    const timesMs = [...this.#holders.values()]
      .filter((holder) => this.#isWithoutSender(holder))
      .map(({ sinceMs }) => sinceMs + this.#rules.senderTimeoutMs);
    if (this.#delays.first) timesMs.push(this.#delays.first.notBeforeMs);
    return timesMs.length === 0 ? undefined : Math.min(...timesMs);
  }

  /** Wishes of those that have no more than reservations, the best first. */
  #reserved(): Wish[] {
    const isBefore = this.#rules.isByPriority ? comesBefore : isOlder;
    return [...this.#holders.values()]
      .filter(({ state }) => state === 'reserved')
      .flatMap(({ uid }) => this.#wishes.get(uid) ?? [])
      .sort((a, b) => (isBefore(a.request, b.request) ? -1 : 1));
  }

  /** Takes for a reservation what it lacks, or gives it back. */
  #advance(wish: Wish, nowMs: number, set: (uid: string, holder: SlotHolder | undefined) => void): void {
    const { request } = wish;
    const { uid, kind, targetNode } = request;
    const holder = this.#holders.get(uid);
    if (!holder) return;
    if (this.#isWithoutSender(holder) && nowMs >= holder.sinceMs + this.#rules.senderTimeoutMs) {
      const pauseMs = this.#rules.receiverPauseMs * 2 ** Math.min(wish.failures, PAUSE_DOUBLINGS_MAX);
      wish.notBeforeMs = nowMs + pauseMs * (0.5 + this.#random.number() / 2);
      return set(uid, undefined);
    }
    if (!isEligible(request) || request.sourceNode !== holder.sourceNode) return set(uid, undefined);
    const isBoundAnew = kind !== 'send' && targetNode !== holder.targetNode;
    if (isBoundAnew && (holder.targetNode !== undefined || targetNode === undefined)) return set(uid, undefined);
    if (isBoundAnew && targetNode !== undefined && !this.#usage.hasRoomToArrive(targetNode)) return set(uid, undefined);
    const state = isCommittable(request) ? 'committed' : 'reserved';
    if (isBoundAnew || state !== holder.state) set(uid, { ...holder, targetNode: arrivalOf(request), state });
  }

  #isWithoutSender({ uid, kind, state }: SlotHolder): boolean {
    if (kind !== 'receive' || state !== 'reserved') return false;
    const wish = this.#wishes.get(uid);
    return wish !== undefined && wish.request.peer === undefined;
  }

  #admitted(uid: string, nowMs: number): SlotHolder {
    const wish = this.#wishes.get(uid);
    if (!wish) throw new Error(`migration ${uid} stands in line though nobody wants it`);
    const { kind, members, sourceNode } = wish.request;
    const state = isCommittable(wish.request) ? 'committed' : 'reserved';
    return { uid, kind, members, sourceNode, targetNode: arrivalOf(wish.request), state, sinceMs: nowMs };
  }

  #replace(uid: string, holder: SlotHolder | undefined, nowMs: number): void {
    const old = this.#holders.get(uid);
    if (old) this.#usage.count(old, -1);
    if (holder) this.#usage.count(holder, 1);
    if (holder) this.#holders.set(uid, holder);
    else this.#holders.delete(uid);
    for (const each of [old, holder]) if (each) this.#line.nodesChanged(each.sourceNode, each.targetNode);
    const wish = this.#wishes.get(uid);
    if (wish && (old === undefined) !== (holder === undefined)) this.#settle(wish, nowMs);
  }

  /** Puts a wish where it belongs: in line, aside for a while, or nowhere. */
  #settle(wish: Wish, nowMs: number): void {
    this.#unqueue(wish);
    if (this.#holders.has(wish.request.uid) || !isEligible(wish.request)) return;
    if (wish.notBeforeMs > nowMs) this.#delays.put(wish);
    else this.#enter(wish, nowMs);
  }

  #enter(wish: Wish, nowMs: number): void {
    const { uid, kind, sourceNode } = wish.request;
    const item = (wish.item ??= {
      uid,
      kind,
      sourceNode,
      targetNode: arrivalOf(wish.request),
      rank: wish.request,
    });
    const { ageingMs, isByPriority } = this.#rules;
    const waitedMs = nowMs - wish.request.createdMs;
    item.rank = { ...wish.request, priority: agedPriority(wish.request.priority, waitedMs, ageingMs) };
    this.#line.put(item);
    const liftMs = isByPriority ? nextLiftMs(wish.request.priority, waitedMs, ageingMs) : undefined;
    if (liftMs === undefined) return this.#lifts.remove(wish);
    wish.liftAtMs = nowMs + liftMs;
    this.#lifts.put(wish);
  }

  #unqueue(wish: Wish): void {
    if (wish.item) this.#line.remove(wish.item);
    wish.item = undefined;
    this.#lifts.remove(wish);
    this.#delays.remove(wish);
  }

  /** Whatever time alone does to those that wait. Nobody needs to be woken for it: it matters when a slot is free. */
  #catchUp(nowMs: number): void {
    for (let wish = this.#delays.first; wish && wish.notBeforeMs <= nowMs; wish = this.#delays.first)
      this.#settle(wish, nowMs);
    for (let wish = this.#lifts.first; wish && wish.liftAtMs <= nowMs; wish = this.#lifts.first)
      this.#enter(wish, nowMs);
  }

  #newLine(): WaitingLine {
    return new WaitingLine(this.#usage, this.#rules.isByPriority ? comesBefore : isOlder);
  }
}

/**
 * Makes sure that a write is one that may be made: nothing grows beyond its limit, and nobody loses what it has for good
 * unless it is over. Throws otherwise, whatever the reason: rather no migration than one too many.
 */
export function assertLawful(before: SlotLedger, after: SlotLedger, isOver: (uid: string) => boolean): void {
  const excess = usageOf(after).excessOver(usageOf(before));
  if (excess.length > 0) throw new Error(`more slots than there are: ${excess.join(', ')}`);
  for (const { uid, state } of before.holders.values()) {
    const isKept = after.holders.get(uid)?.state === 'committed' || state === 'reserved';
    if (!isKept && !isOver(uid)) throw new Error(`migration ${uid} lost its slots before it was over`);
  }
}

/** Whose arrival is counted: nobody's that only sends. */
function arrivalOf({ kind, targetNode }: SlotRequest): string | undefined {
  return kind === 'send' ? undefined : targetNode;
}

type Limited = Pick<SlotLedger, 'limits' | 'limitsVersion'>;

/** Limits that are the same in numbers are written nevertheless when they are newer: nobody shall fall back behind them. */
function hasSameLimits(a: Limited, b: Limited): boolean {
  return (
    a.limitsVersion === b.limitsVersion &&
    a.limits.perCluster === b.limits.perCluster &&
    a.limits.outboundPerNode === b.limits.outboundPerNode &&
    a.limits.inboundPerNode === b.limits.inboundPerNode
  );
}
