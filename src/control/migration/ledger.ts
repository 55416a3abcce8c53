import { type Env, type Logger, sleep } from '../../env/ports.ts';
import { Backoff } from '../../kube/backoff.ts';
import type { Client } from '../../kube/client.ts';
import { errorText } from '../../kube/error-text.ts';
import { Gate } from '../../kube/gate.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import type { Service } from '../../kube/service.ts';
import type { SlotHolder, SlotRequest, SlotState } from '../../migration/slots/request.ts';
import { assertLawful, SlotBook, type SlotRules } from '../../migration/slots/slot-book.ts';
import { areOver, rightfulHolders } from './ledger-migrations.ts';
import { createLedger, readLedger, replaceLedger, type StoredLedger } from './ledger-object.ts';
import { newestRules } from './ledger-rules.ts';
import { SlotMetrics, type SlotView } from './slot-metrics.ts';

/**
 * Gives slots to migrations, by writing them into one object on the server before anybody uses them.
 *
 * Every write replaces exactly the ledger that it was planned from. So of two leaders at once, one of which does not know
 * yet that it is none any more, only one gets through; the other reads what is there and plans anew. What came up while
 * a write was under way goes into the next one together. After an answer that got lost the ledger is read again: it says
 * whether the write was made.
 *
 * Slots are released only when the server itself has said that a migration has ended, or says that it is gone. It is asked
 * about each holder that nobody stands up for (any more): one that an old leader let in too late, one that seems to be
 * deleted, or was while nobody was there to see it. What was once seen to have ended has, in however old a cache.
 *
 * A ledger that is not the one that was known, since it was made anew, put back from before, or read for the first time, is
 * held against what the server says of migrations and guests then: whoever has started is in it before anybody gets a slot.
 */

export interface LedgerOptions {
  readonly env: Env;
  readonly client: Client;
  /** The rules as they are now; ask again after `rulesChanged`. */
  readonly rules: () => SlotRules;
  /** Told of each holder whose standing has changed, or who has lost it. */
  readonly onChange: (holder: SlotHolder) => void;
  readonly metrics?: KubeMetrics | undefined;
}

const BACKOFF = { baseMs: 50, maxMs: 10_000 };
/** A holder that nobody stands up for, and that is not over, will be wanted by somebody soon, or end. */
const LOOK_AGAIN_MS = 30_000;
/** So few are written down at once, whenever something changes. */
const FEW_HOLDERS = 10;
/** For no longer does anybody wait for a slot that is free. */
const GATHER_MS_MAX = 100;
/** As many reads as one migration controller may have under way at once. */
const READS_AT_ONCE = 16;

export class Ledger implements Service {
  readonly name = 'migration-slots';
  readonly #env: Env;
  readonly #log: Logger;
  readonly #client: Client;
  readonly #rules: () => SlotRules;
  readonly #onChange: (holder: SlotHolder) => void;
  readonly #book: SlotBook;
  readonly #metrics: SlotMetrics | undefined;
  readonly #opened = new Gate();
  readonly #work = new Gate();
  /** When holders that nobody stands up for are looked at again. */
  readonly #lookAtMs = new Map<string, number>();
  /** Undefined until it is read, and whenever nobody knows what it says. */
  #stored: StoredLedger | undefined;
  /** The object that the book was loaded from last. */
  #loadedUid: string | undefined;

  constructor({ env, client, rules, onChange, metrics }: LedgerOptions) {
    this.#env = env;
    this.#log = env.log.child({ component: this.name });
    this.#client = client;
    this.#rules = rules;
    this.#onChange = onChange;
    this.#book = new SlotBook(rules(), env.random);
    const view = (): SlotView | undefined => (this.#loadedUid === undefined ? undefined : this.#book);
    this.#metrics = metrics && new SlotMetrics(metrics.registry, view, () => env.clock.now());
    this.#opened.close();
  }

  /**
   * What a migration has, as of the last ledger that was read or written: nothing where undefined. Only what is
   * `committed` may start. What it has for good it has until it is over, however old this is.
   */
  standing(uid: string): SlotState | undefined {
    return this.#book.standing(uid);
  }

  /** Who has the slots of a migration, and for which nodes, as of then. */
  holder(uid: string): SlotHolder | undefined {
    return this.#book.ledger.holders.get(uid);
  }

  /** What a migration needs, as observed now; say it whenever that changes, until it is over. */
  want(request: SlotRequest): void {
    this.#book.want(request, this.#env.clock.now());
    this.#work.open();
  }

  /** A migration seems to have ended or gone: it wants nothing any more, and loses its slots once the server confirms it. */
  ended(uid: string): void {
    this.#book.forget(uid);
    this.#lookAtMs.delete(uid);
    this.#work.open();
  }

  /** The server has said that a migration has ended: it wants nothing any more, and loses its slots with the next write. */
  over(uid: string): void {
    const { members = [] } = this.holder(uid) ?? {};
    // Of whoever moves together with it, that says nothing.
    if (members.some((member) => member.uid !== uid)) return this.ended(uid);
    this.#book.isOver(uid);
    this.#lookAtMs.delete(uid);
    this.#work.open();
  }

  /** The configuration may have changed. */
  rulesChanged(): void {
    this.#work.open();
  }

  /** Everybody who wants something has said so: from now on slots are given, to the best of them first. */
  open(): void {
    this.#opened.open();
  }

  async run(signal: AbortSignal): Promise<void> {
    await this.#opened.pass(signal);
    const backoff = new Backoff(this.#env.random, BACKOFF);
    while (!signal.aborted) {
      this.#work.close();
      try {
        const isDone = await this.#round(signal);
        if (isDone) {
          backoff.reset();
          await this.#rest(signal);
        } else if (this.#stored === undefined) await sleep(this.#env.clock, backoff.next(), signal);
        else await this.#gather(signal);
      } catch (error) {
        // Nobody knows what became of the write, if it was one.
        this.#stored = undefined;
        if (signal.aborted) return;
        this.#metrics?.failed();
        this.#log.warn('slots cannot be given now', { error: errorText(error) });
        await sleep(this.#env.clock, backoff.next(), signal);
      }
    }
  }

  /** One read or write. True when there is nothing to do any more, for now. */
  async #round(signal: AbortSignal): Promise<boolean> {
    const stored = this.#stored ?? (await this.#read(signal));
    // Whoever made it first is asked in the next round.
    if (!stored) return false;
    await this.#lookAtStrangers(signal);
    this.#book.configure(newestRules(this.#rules(), stored.ledger), this.#env.clock.now());
    const plan = this.#book.plan(this.#env.clock.now());
    if (!plan) return true;
    assertLawful(stored.ledger, plan, (uid) => this.#book.isKnownOver(uid));
    const written = await replaceLedger(this.#client, stored, plan, signal);
    this.#load(written);
    return false;
  }

  /** Each write tells of all holders: the more there are, the longer it is waited for what else there is to write. */
  async #gather(signal: AbortSignal): Promise<void> {
    const { size } = this.#book.ledger.holders;
    if (size > FEW_HOLDERS) await sleep(this.#env.clock, Math.min(size, GATHER_MS_MAX), signal);
  }

  async #read(signal: AbortSignal): Promise<StoredLedger | undefined> {
    const stored = await readLedger(this.#client, signal);
    this.#load(stored ? await this.#completed(stored, signal) : await this.#create(signal));
    return this.#stored;
  }

  /** A first ledger, or one in the place of one that somebody deleted: then we know best who was in it. */
  async #create(signal: AbortSignal): Promise<StoredLedger | undefined> {
    const { ledger } = this.#book;
    const holders = await rightfulHolders(this.#client, ledger.holders.values(), this.#env.clock.now(), signal);
    const { limits, limitsVersion } = newestRules(this.#rules(), ledger);
    return createLedger(this.#client, { limits, limitsVersion, holders }, signal);
  }

  /** A ledger that may be an old one, which somebody has put back, with whoever has started since: before any slot is given. */
  async #completed(stored: StoredLedger, signal: AbortSignal): Promise<StoredLedger | undefined> {
    const { ledger } = stored;
    const lost = [...this.#book.ledger.holders.values()].filter(
      ({ uid, state }) => state === 'committed' && !ledger.holders.has(uid) && !this.#book.isKnownOver(uid),
    );
    if (lost.length === 0 && stored.object.metadata.uid === this.#loadedUid) return stored;
    const rightful = await rightfulHolders(this.#client, lost, this.#env.clock.now(), signal);
    const counted = new Set([...ledger.holders.values()].flatMap(({ members }) => members.map(({ uid }) => uid)));
    const missing = [...rightful].filter(([, { members }]) => !members.some(({ uid }) => counted.has(uid)));
    if (missing.length === 0) return stored;
    this.#log.warn('the ledger of slots does not know of migrations that have started', { count: missing.length });
    const holders = new Map([...ledger.holders, ...missing]);
    return replaceLedger(this.#client, stored, { ...ledger, holders }, signal);
  }

  #load(stored: StoredLedger | undefined): void {
    this.#stored = stored;
    if (!stored) return;
    const isFirst = this.#loadedUid === undefined;
    this.#loadedUid = stored.object.metadata.uid;
    const before = this.#book.ledger.holders;
    const changed = this.#book.load(stored.ledger, this.#env.clock.now());
    for (const uid of changed) {
      const holder = stored.ledger.holders.get(uid) ?? before.get(uid);
      if (holder) this.#onChange(holder);
      if (!isFirst && !before.has(uid)) this.#metrics?.given();
    }
  }

  async #lookAtStrangers(signal: AbortSignal): Promise<void> {
    const strangers = this.#book.strangers();
    const unknown = new Set(strangers.map(({ uid }) => uid));
    for (const uid of this.#lookAtMs.keys()) if (!unknown.has(uid)) this.#lookAtMs.delete(uid);
    const nowMs = this.#env.clock.now();
    const due = strangers.filter(({ uid }) => (this.#lookAtMs.get(uid) ?? 0) <= nowMs);
    for (let start = 0; start < due.length; start += READS_AT_ONCE) {
      const some = due.slice(start, start + READS_AT_ONCE);
      await Promise.all(some.map((holder) => this.#lookAt(holder, signal)));
    }
  }

  async #lookAt({ uid, members }: SlotHolder, signal: AbortSignal): Promise<void> {
    if (await areOver(this.#client, members, signal)) this.#book.isOver(uid);
    else this.#lookAtMs.set(uid, this.#env.clock.now() + LOOK_AGAIN_MS);
  }

  /** Until somebody says something, or it is time for something. */
  async #rest(signal: AbortSignal): Promise<void> {
    const times = [...this.#lookAtMs.values(), this.#book.wakeAtMs ?? Number.POSITIVE_INFINITY];
    const wakeAtMs = Math.min(...times);
    if (wakeAtMs === Number.POSITIVE_INFINITY) return this.#work.pass(signal);
    await this.#work.passWithin(this.#env.clock, Math.max(0, wakeAtMs - this.#env.clock.now()), signal);
  }
}
