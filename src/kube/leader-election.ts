import { ApiError } from '../api/status.ts';
import { type Env, sleep, type Timer } from '../env/ports.ts';
import type { Client } from './client.ts';
import { errorText } from './error-text.ts';
import type { EventRecorder } from './event-recorder.ts';
import {
  type Claim,
  claimedLease,
  durationMsOf,
  heartbeatOf,
  holderOf,
  type Lease,
  leaseResource,
  newLease,
  releasedLease,
} from './leader-lease.ts';
import { Term } from './leader-term.ts';
import { KubeMetrics, type LeaderMetrics } from './metrics.ts';
import { withinTime } from './time-limit.ts';

/**
 * Lets one of several replicas work, by a Lease that the leader renews and that the others take over when it no longer
 * does. The protocol is client-go's, and both can stand for the same lease.
 *
 * Nobody's clock is trusted. A candidate does not compare the time that the leader wrote with its own: it watches for
 * the lease to change, and takes over only when it has seen no change for as long as the lease says. Durations are
 * measured with timers, which a clock that is set does not move.
 *
 * Why two cannot lead at once: a leader counts from before it sent the last renewal that it knows to have succeeded;
 * after `renewDeadlineMs` its signal aborts. A candidate saw that renewal later than it was sent, and waits for
 * `leaseDurationMs`, which is longer.
 *
 * Why that is no fence: the leader may be paused between looking at its signal and acting, and a request that it sent
 * may arrive long after another one leads. So leadership keeps replicas from treading on each other's feet, and makes
 * no write safe: what an old leader must not do has to be refused by the server, by the resourceVersion that the write
 * carries or the name that the object is created under.
 */

export interface LeaderElectionOptions {
  readonly client: Client;
  readonly env: Env;
  /** Where the lease is. */
  readonly namespace: string;
  readonly name: string;
  /** No other process may have the same, not even an earlier incarnation of this one. */
  readonly identity: string;
  /** How long others wait for a sign of life; rounded up to seconds. */
  readonly leaseDurationMs?: number;
  /** How long the leader goes on without having renewed. */
  readonly renewDeadlineMs?: number;
  /** How often everybody tries. */
  readonly retryPeriodMs?: number;
  readonly metrics?: KubeMetrics;
  /** Told who leads. */
  readonly events?: Pick<EventRecorder, 'event'>;
  /** Called whenever another one is seen to lead, or nobody (the empty text). */
  readonly onNewLeader?: (identity: string) => void;
}

/** The lease was not renewed in time, or was taken by another. Whoever led has put everything down. */
export class LeadershipLostError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'LeadershipLostError';
  }
}

/** Candidates wait up to this many periods more, so that they do not all try at once. */
const JITTER_FACTOR = 1.2;

/** How a try to hold the lease ended: with a term, with the sight of another holder, or with an error. */
type Outcome = { readonly term: Term } | { readonly holder: string } | { readonly error: unknown };

export class LeaderElector {
  readonly #options: LeaderElectionOptions;
  readonly #env: Env;
  readonly #claim: Claim;
  readonly #renewDeadlineMs: number;
  readonly #retryPeriodMs: number;
  readonly #metrics: LeaderMetrics;
  /** The lease as it was last read or written. */
  #lease: Lease | undefined;
  #touch: Timer | undefined;
  #isInTouch = false;
  #heartbeat = '';
  #isExpired = false;
  #expiry: Timer | undefined;
  #holder: string | undefined;
  #term: Term | undefined;
  #isRunning = false;

  constructor(options: LeaderElectionOptions) {
    const { env, identity, name, leaseDurationMs = 15_000, renewDeadlineMs = 10_000, retryPeriodMs = 2000 } = options;
    if (identity === '') throw new Error('a candidate needs an identity');
    if (leaseDurationMs <= renewDeadlineMs) throw new Error('the lease must last longer than the deadline to renew it');
    if (renewDeadlineMs <= retryPeriodMs * JITTER_FACTOR) throw new Error('the deadline leaves no time to try again');
    this.#options = options;
    this.#env = { ...env, log: env.log.child({ lease: `${options.namespace}/${name}`, identity }) };
    this.#claim = { identity, durationMs: leaseDurationMs };
    this.#renewDeadlineMs = renewDeadlineMs;
    this.#retryPeriodMs = retryPeriodMs;
    this.#metrics = (options.metrics ?? new KubeMetrics(env.clock)).leader(name);
  }

  /** True while this process may act as the leader. */
  get isLeader(): boolean {
    return this.#term !== undefined && !this.#term.isOver;
  }

  /** True while it can stand or lead: it has seen that another holds the lease, or held it, within the time for which it would hold it. */
  get isInTouch(): boolean {
    return this.#isInTouch;
  }

  /** Who was last seen to lead; empty when nobody was. */
  get leader(): string {
    return this.#holder ?? '';
  }

  /**
   * Waits to become the leader, and then works until the signal aborts. The work's own signal aborts with it, and also
   * when leadership is lost: then this rejects with LeadershipLostError, once the work has ended. The lease is renewed
   * until the work has ended, and given back after that: at no time may another one take it while work is going on.
   */
  async lead(signal: AbortSignal, work: (leadership: AbortSignal) => Promise<void>): Promise<void> {
    if (this.#isRunning) throw new Error('the candidate stands already');
    this.#isRunning = true;
    try {
      this.#lease = undefined;
      this.#heartbeat = '';
      const term = await this.#acquire(signal);
      if (term) await this.#leadWith(term, signal, work);
    } finally {
      this.#expiry?.cancel();
      this.#touch?.cancel();
      this.#isInTouch = false;
      this.#isRunning = false;
    }
  }

  async #leadWith(term: Term, signal: AbortSignal, work: (leadership: AbortSignal) => Promise<void>): Promise<void> {
    const leadership = new AbortController();
    const renewals = new AbortController();
    const onStop = (): void => leadership.abort(signal.reason);
    let lost: LeadershipLostError | undefined;
    const lose = (message: string): void => {
      if (lost) return;
      lost = new LeadershipLostError(message);
      this.#endTerm();
      leadership.abort(lost);
      renewals.abort(lost);
      this.#env.log.error('leadership lost', { error: message });
    };
    this.#beginTerm(term, lose);
    this.#announce('became leader');
    signal.addEventListener('abort', onStop, { once: true });
    if (signal.aborted) onStop();
    const renewing = this.#renew(renewals.signal, lose);
    try {
      await work(leadership.signal);
    } finally {
      signal.removeEventListener('abort', onStop);
      renewals.abort();
      await renewing;
      if (!lost) await this.#release();
      this.#endTerm();
      this.#announce('stopped leading');
    }
    if (lost && !signal.aborted) throw lost;
  }

  async #acquire(signal: AbortSignal): Promise<Term | undefined> {
    this.#env.log.info('standing for leadership');
    while (!signal.aborted) {
      const outcome = await this.#tryToHold(signal);
      if ('term' in outcome) {
        if (!signal.aborted) return outcome.term;
        // Nobody will lead with it, so nobody should have to wait for it to expire.
        outcome.term.cancel();
        await this.#release();
        return undefined;
      }
      if ('error' in outcome) this.#env.log.warn('lease not acquired', { error: errorText(outcome.error) });
      await sleep(this.#env.clock, this.#retryPeriodMs * (1 + JITTER_FACTOR * this.#env.random.number()), signal);
    }
    return undefined;
  }

  async #renew(signal: AbortSignal, lose: (message: string) => void): Promise<void> {
    for (;;) {
      await sleep(this.#env.clock, this.#retryPeriodMs, signal);
      if (signal.aborted) return;
      // A timer that comes late must not be what keeps a leader that slept in office.
      if (!this.isLeader) return lose('the lease was not renewed in time');
      const outcome = await this.#tryToHold(signal);
      if ('term' in outcome) {
        // A term that ran out meanwhile is not mended by the next: whoever worked in between was told to end.
        if (!this.isLeader) outcome.term.cancel();
        else this.#beginTerm(outcome.term, lose);
      } else if ('holder' in outcome) return lose(`${outcome.holder || 'somebody'} has taken the lease`);
      else if (!signal.aborted) this.#env.log.warn('lease not renewed', { error: errorText(outcome.error) });
    }
  }

  #beginTerm(term: Term, lose: (message: string) => void): void {
    this.#term?.cancel();
    this.#term = term;
    this.#metrics.leading(true);
    term.onEnd = () => lose('the lease was not renewed in time');
    if (term.isOver) term.onEnd();
  }

  #endTerm(): void {
    this.#term?.cancel();
    this.#term = undefined;
    this.#metrics.leading(false);
  }

  /** Never rejects. */
  async #tryToHold(signal: AbortSignal): Promise<Outcome> {
    const term = new Term(this.#env.clock, this.#renewDeadlineMs);
    try {
      const holder = await this.#request(signal, (each) => this.#hold(each));
      this.#staysInTouch();
      if (holder === undefined && !term.isOver) return { term };
      term.cancel();
      return holder === undefined ? { error: new Error('the lease was written too late') } : { holder };
    } catch (error) {
      term.cancel();
      return { error };
    }
  }

  /** Takes or renews the lease. Answers who holds it where that is another one. */
  async #hold(signal: AbortSignal): Promise<string | undefined> {
    const { client, namespace, name } = this.#options;
    const known = this.#lease;
    if (known && holderOf(known) === this.#claim.identity) {
      try {
        return this.#observe(await client.update(leaseResource, this.#claimed(known), signal));
      } catch (error) {
        // Somebody has touched the lease, or an earlier write of ours was carried out without our knowing.
        if (!(error instanceof ApiError) || signal.aborted) throw error;
        this.#metrics.tookSlowPath();
      }
    }
    const current = await this.#read(signal);
    if (!current) {
      const lease = newLease(namespace, name, this.#claim, this.#env.clock.now());
      return this.#observe(await client.create(leaseResource, lease, signal));
    }
    const holder = this.#observe(current);
    if (holder !== undefined && holder !== '' && !this.#isExpired) return holder;
    return this.#observe(await client.update(leaseResource, this.#claimed(current), signal));
  }

  #read(signal: AbortSignal): Promise<Lease | undefined> {
    const { client, namespace, name } = this.#options;
    return client.find(leaseResource, namespace, name, signal);
  }

  #claimed(lease: Lease): Lease {
    return claimedLease(lease, this.#claim, this.#env.clock.now());
  }

  #staysInTouch(): void {
    this.#isInTouch = true;
    this.#touch?.cancel();
    this.#touch = this.#env.clock.setTimer(() => (this.#isInTouch = false), this.#claim.durationMs);
  }

  /** Remembers a lease, and since when it has looked like that. Answers who holds it where that is another one. */
  #observe(lease: Lease): string | undefined {
    this.#lease = lease;
    const heartbeat = heartbeatOf(lease);
    if (heartbeat !== this.#heartbeat) {
      this.#heartbeat = heartbeat;
      this.#isExpired = false;
      this.#expiry?.cancel();
      const waitMs = durationMsOf(lease, this.#claim.durationMs);
      this.#expiry = this.#env.clock.setTimer(() => (this.#isExpired = true), waitMs);
    }
    const holder = holderOf(lease);
    if (holder !== this.#holder) {
      this.#holder = holder;
      this.#options.onNewLeader?.(holder);
    }
    return holder === this.#claim.identity ? undefined : holder;
  }

  /** Gives the lease back. What goes wrong only costs the others the time that it takes to expire. */
  async #release(): Promise<void> {
    try {
      await this.#request(new AbortController().signal, async (signal) => {
        const lease = await this.#read(signal);
        if (!lease || holderOf(lease) !== this.#claim.identity) return;
        const released = releasedLease(lease, this.#env.clock.now());
        this.#observe(await this.#options.client.update(leaseResource, released, signal));
      });
    } catch (error) {
      this.#env.log.warn('lease not released', { error: errorText(error) });
    }
  }

  /** Half of the deadline, so that there is time for another try. */
  #request<T>(signal: AbortSignal, request: (signal: AbortSignal) => Promise<T>): Promise<T> {
    return withinTime(this.#env.clock, this.#renewDeadlineMs / 2, signal, request);
  }

  #announce(what: string): void {
    const { identity } = this.#claim;
    this.#env.log.info(what);
    if (this.#lease) this.#options.events?.event(this.#lease, 'Normal', 'LeaderElection', `${identity} ${what}`);
  }
}
