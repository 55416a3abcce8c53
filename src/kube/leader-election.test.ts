import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Clock, Timer } from '../env/ports.ts';
import { ManualClock, seededRandom, silentLogger } from '../env/test.ts';
import { InProcessApi } from '../../test/support/in-process.ts';
import { Client } from './client.ts';
import { InProcessTransport } from './in-process-transport.ts';
import { LeaderElector, LeadershipLostError } from './leader-election.ts';
import { type Lease, leaseResource } from './leader-lease.ts';
import { KubeMetrics } from './metrics.ts';
import { type Transport, TransportError, type TransportRequest, type TransportResponse } from './transport.ts';

const never = new AbortController().signal;
const clock = new ManualClock();
let server: InProcessApi;
let admin: Client;

beforeAll(async () => {
  server = await InProcessApi.start({ env: { clock } });
  admin = new Client(transportOf('admin'), 'test');
});
afterAll(() => server.stop());

function transportOf(user: string): Transport {
  return new InProcessTransport((request) => server.core.handle(request), { user, groups: ['system:masters'] });
}

/** Lets everything happen that can happen without time passing. */
async function settle(): Promise<void> {
  for (let turn = 0; turn < 12; turn++) await new Promise((resolve) => setImmediate(resolve));
}

async function advance(ms: number, stepMs = 250): Promise<void> {
  for (let leftMs = ms; leftMs > 0; leftMs -= stepMs) {
    clock.advance(Math.min(stepMs, leftMs));
    await settle();
  }
}

interface SetTimer {
  readonly callback: () => void;
  dueMs: number;
  timer: Timer;
}

/**
 * A process that can be stopped in its tracks (its timers do not fire, what it sends does not leave, what it is
 * answered does not arrive), cut off, or made to lose answers, and whose clock is wrong.
 */
class Process implements Clock, Transport {
  readonly #inner: Transport;
  skewMs: number;
  #resumed: Promise<void> = Promise.resolve();
  #resume: (() => void) | undefined;
  #late: (() => void)[] = [];
  readonly #timers = new Set<SetTimer>();
  isCutOff = false;
  losesAnswers = false;
  mayWrite = true;
  requests: string[] = [];

  constructor(name: string, skewMs = 0) {
    this.#inner = transportOf(name);
    this.skewMs = skewMs;
  }

  get isPaused(): boolean {
    return this.#resume !== undefined;
  }

  pause(): void {
    if (!this.isPaused) this.#resumed = new Promise((resolve) => (this.#resume = resolve));
  }

  resume(): void {
    const late = this.#late;
    this.#late = [];
    const resume = this.#resume;
    this.#resume = undefined;
    for (const callback of late) callback();
    resume?.();
  }

  /** As when a laptop is closed: time passes, but its timers stand still. Answers how to open it again. */
  suspend(): () => void {
    this.pause();
    const standing = [...this.#timers].map((each) => ({ each, leftMs: each.dueMs - clock.now() }));
    for (const { each } of standing) each.timer.cancel();
    return () => {
      for (const { each, leftMs } of standing) if (this.#timers.has(each)) this.#start(each, leftMs);
      this.resume();
    };
  }

  now(): number {
    return clock.now() + this.skewMs;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const set: SetTimer = { callback, dueMs: 0, timer: { cancel: () => undefined } };
    this.#timers.add(set);
    this.#start(set, delayMs);
    return {
      cancel: () => {
        this.#timers.delete(set);
        set.timer.cancel();
      },
    };
  }

  #start(set: SetTimer, delayMs: number): void {
    const fire = (): void => {
      if (!this.#timers.has(set)) return;
      if (this.isPaused) return void this.#late.push(fire);
      this.#timers.delete(set);
      set.callback();
    };
    set.dueMs = clock.now() + delayMs;
    set.timer = clock.setTimer(fire, delayMs);
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    await this.#resumed;
    this.requests.push(request.method);
    if (this.isCutOff || (!this.mayWrite && request.method !== 'GET')) throw new TransportError('cut off');
    const response = await this.#inner.send(request);
    await this.#resumed;
    if (this.losesAnswers) throw new TransportError('lost');
    return response;
  }

  close(): void {
    this.#inner.close();
  }
}

let leaseCount = 0;

/** Candidates for one lease, and what happened to them in order. */
class Election {
  readonly name = `lease-${leaseCount++}`;
  readonly log: string[] = [];
  readonly candidates = new Map<string, Candidate>();

  stand(identity: string, process = new Process(identity)): Candidate {
    const candidate = new Candidate(this, identity, process);
    this.candidates.set(identity, candidate);
    return candidate;
  }

  lease(): Promise<Lease> {
    return admin.get(leaseResource, 'kube-system', this.name, never);
  }

  /** Whoever works and has not been told to end, not counting those that can do nothing now. */
  leaders(): string[] {
    return [...this.candidates.values()]
      .filter((each) => each.isActive && !each.process.isPaused)
      .map((each) => each.identity);
  }
}

class Candidate {
  readonly identity: string;
  readonly process: Process;
  readonly elector: LeaderElector;
  readonly metrics: KubeMetrics;
  readonly #stop = new AbortController();
  readonly ended: Promise<unknown>;
  /** Resolves to end the work by itself. */
  endWork: () => void = () => undefined;
  /** How long its work takes to end. */
  lingersMs = 0;
  isActive = false;
  seen: string[] = [];
  readonly told: string[] = [];

  constructor(election: Election, identity: string, process: Process) {
    this.identity = identity;
    this.process = process;
    this.metrics = new KubeMetrics(process);
    this.elector = new LeaderElector({
      client: new Client(process, identity),
      env: { clock: process, random: seededRandom(identity.charCodeAt(0)), log: silentLogger },
      namespace: 'kube-system',
      name: election.name,
      identity,
      metrics: this.metrics,
      onNewLeader: (holder) => this.seen.push(holder),
      events: {
        event: ({ kind, metadata }, type, reason, message) =>
          void this.told.push(`${type} ${reason} of ${kind} ${metadata.name}: ${message}`),
      },
    });
    this.ended = this.elector
      .lead(this.#stop.signal, async (leadership) => {
        const others = election.leaders();
        election.log.push(`${identity} leads${others.length === 0 ? '' : ` with ${others.join(', ')}`}`);
        this.isActive = true;
        await new Promise<void>((resolve) => {
          const onAbort = (): void => {
            this.isActive = false;
            election.log.push(`${identity} is told to end`);
            process.setTimer(resolve, this.lingersMs);
          };
          this.endWork = resolve;
          leadership.addEventListener('abort', onAbort);
          if (leadership.aborted) onAbort();
        });
        this.isActive = false;
        election.log.push(`${identity} ended`);
      })
      .then(
        () => undefined,
        (error: unknown) => error,
      );
  }

  stop(): void {
    this.#stop.abort();
  }
}

describe('an election', () => {
  it('makes one of several candidates lead, and tells the others who', async () => {
    const election = new Election();
    const all = ['a', 'b', 'c'].map((identity) => election.stand(identity));
    await advance(60_000, 1000);
    expect(election.log).toEqual([`${election.leaders()[0]} leads`]);
    expect(all.map((each) => each.elector.leader)).toEqual(Array.from({ length: 3 }, () => election.leaders()[0]));
    expect(all.filter((each) => each.elector.isLeader).map((each) => each.identity)).toEqual(election.leaders());
    for (const each of all) each.stop();
    await advance(1000);
    await Promise.all(all.map((each) => each.ended));
  });

  it('writes the lease as real servers want it, and renews it every two seconds', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const time = (ms: number): string => new Date(ms).toISOString().replace('Z', '000Z');
    const acquiredMs = clock.now();
    expect((await election.lease()).spec).toEqual({
      holderIdentity: 'a',
      leaseDurationSeconds: 15,
      acquireTime: time(acquiredMs),
      renewTime: time(acquiredMs),
      leaseTransitions: 0,
    });
    await advance(5000);
    expect((await election.lease()).spec).toMatchObject({
      acquireTime: time(acquiredMs),
      renewTime: time(acquiredMs + 4000),
      leaseTransitions: 0,
    });
    expect(a.process.requests).toEqual(['GET', 'POST', 'PUT', 'PUT']);
    a.stop();
    await advance(1000);
  });

  it('is told of in events and metrics', async () => {
    const election = new Election();
    const [a, b] = [election.stand('a'), election.stand('b')];
    const status = async (each: Candidate): Promise<string | undefined> =>
      /leader_election_master_status\{.*\} (\d)/.exec(await each.metrics.render())?.[1];
    await settle();
    expect([await status(a), await status(b)]).toEqual(['1', '0']);
    expect(a.told).toEqual([`Normal LeaderElection of Lease ${election.name}: a became leader`]);
    a.stop();
    await advance(1000);
    expect(await status(a)).toBe('0');
    expect(a.told.slice(1)).toEqual([`Normal LeaderElection of Lease ${election.name}: a stopped leading`]);
    expect(b.told.filter((each) => each.includes(' a '))).toEqual([]);
    b.stop();
    await advance(1000);
  });

  it('passes the lease on at once when the leader stops, but not before its work has ended', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const b = election.stand('b');
    await settle();
    a.lingersMs = 30_000;
    a.stop();
    await advance(29_000);
    expect(election.log).toEqual(['a leads', 'a is told to end']);
    await advance(1000);
    expect(await a.ended).toBeUndefined();
    expect((await election.lease()).spec).toMatchObject({ holderIdentity: '', leaseDurationSeconds: 1 });
    await advance(5000);
    expect(election.log).toEqual(['a leads', 'a is told to end', 'a ended', 'b leads']);
    expect((await election.lease()).spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
    expect(b.seen).toEqual(['a', '', 'b']);
    b.stop();
    await advance(1000);
  });

  it('is in touch with its lease for as long as that lasts, be it as the leader or not', async () => {
    const election = new Election();
    const a = election.stand('a');
    expect(a.elector.isInTouch).toBe(false);
    await settle();
    const b = election.stand('b');
    for (let seconds = 0; seconds < 30; seconds++) {
      await advance(1000);
      expect([a, b].map(({ elector }) => [elector.isLeader, elector.isInTouch])).toEqual([
        [true, true],
        [false, true],
      ]);
    }
    a.process.isCutOff = true;
    b.process.isCutOff = true;
    await advance(10_000);
    expect(b.elector.isInTouch).toBe(true);
    await advance(5000);
    expect([a.elector.isInTouch, b.elector.isInTouch]).toEqual([false, false]);
    b.process.isCutOff = false;
    await advance(5000);
    expect(b.elector.isInTouch).toBe(true);
    b.stop();
    await advance(1000);
  });

  it('is out of touch once it should have taken the lease, and may only read it', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const b = election.stand('b');
    b.process.mayWrite = false;
    await advance(5000);
    expect(b.elector.isInTouch).toBe(true);
    a.process.isCutOff = true;
    await advance(35_000);
    expect([a, b].map(({ elector }) => [elector.isLeader, elector.isInTouch])).toEqual([
      [false, false],
      [false, false],
    ]);
    b.process.mayWrite = true;
    await advance(5000);
    expect([b.elector.isLeader, b.elector.isInTouch]).toEqual([true, true]);
    b.stop();
    await advance(1000);
  });

  it('is in touch for as long where the time of day is set back meanwhile, and no more once it is over', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const b = election.stand('b');
    await advance(3000);
    b.process.isCutOff = true;
    b.process.skewMs = -3_600_000;
    await advance(16_000);
    expect([a.elector.isInTouch, b.elector.isInTouch]).toEqual([true, false]);
    a.stop();
    b.stop();
    await advance(6000);
    expect([a.elector.isInTouch, b.elector.isInTouch]).toEqual([false, false]);
  });

  it('tells a leader that is cut off to end before another one can take the lease', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const b = election.stand('b');
    await advance(3000);
    a.process.isCutOff = true;
    const cutMs = clock.now();
    await advance(9000);
    expect(election.log).toEqual(['a leads', 'a is told to end', 'a ended']);
    expect(await a.ended).toBeInstanceOf(LeadershipLostError);
    expect(a.elector.isLeader).toBe(false);
    expect(await a.metrics.render()).toContain(`leader_election_master_status{name="${election.name}"} 0`);
    while (!b.isActive) await advance(250);
    expect(clock.now() - cutMs).toBeGreaterThanOrEqual(14_000);
    expect(election.log).toEqual(['a leads', 'a is told to end', 'a ended', 'b leads']);
    expect((await election.lease()).spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
    b.stop();
    await advance(1000);
  });

  it('goes on when answers are lost, as long as the lease is its own', async () => {
    const election = new Election();
    const process = new Process('a');
    process.losesAnswers = true;
    const a = election.stand('a', process);
    await advance(1000);
    expect(election.log).toEqual([]);
    process.losesAnswers = false;
    await advance(5000);
    expect(election.log).toEqual(['a leads']);
    process.losesAnswers = true;
    await advance(4000);
    process.losesAnswers = false;
    await advance(20_000);
    expect(election.log).toEqual(['a leads']);
    expect((await election.lease()).spec?.leaseTransitions).toBe(0);
    expect(await a.metrics.render()).toMatch(/leader_election_slowpath_total\{.*\} 1\n/);
    a.stop();
    await advance(1000);
  });

  it('goes on when somebody else touches the lease, and leaves alone what it does not know', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    for (let round = 0; round < 3; round++) {
      await admin.patch(
        leaseResource,
        'kube-system',
        election.name,
        { type: 'merge', body: { metadata: { labels: { round: `${round}` } } } },
        never,
      );
      await advance(2000);
    }
    await advance(10_000);
    expect(election.log).toEqual(['a leads']);
    expect((await election.lease()).metadata.labels).toEqual({ round: '2' });
    a.stop();
    await advance(1000);
  });

  it('is won by one of those that find an expired lease at the same time', async () => {
    const election = new Election();
    const dead = election.stand('dead');
    await settle();
    dead.process.pause();
    const all = ['a', 'b', 'c', 'd'].map((identity) => election.stand(identity));
    await advance(40_000, 1000);
    expect(election.leaders()).toHaveLength(1);
    expect(election.log).toEqual(['dead leads', `${election.leaders()[0]} leads`]);
    expect((await election.lease()).spec?.leaseTransitions).toBe(1);
    for (const each of all) each.stop();
    await advance(1000);
    await Promise.all(all.map((each) => each.ended));
  });

  it('makes a leader that slept end before it does anything else', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const b = election.stand('b');
    await advance(3000);
    a.process.pause();
    await advance(40_000, 1000);
    expect(election.log).toEqual(['a leads', 'b leads']);
    const written = a.process.requests.length;
    a.process.resume();
    expect(election.log).toEqual(['a leads', 'b leads', 'a is told to end']);
    await advance(5000);
    expect(await a.ended).toBeInstanceOf(LeadershipLostError);
    expect(a.process.requests.slice(written)).toEqual([]);
    expect((await election.lease()).spec).toMatchObject({ holderIdentity: 'b', leaseTransitions: 1 });
    b.stop();
    await advance(1000);
  });

  it('does not let a leader whose machine slept believe its timers', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const b = election.stand('b');
    await advance(3000);
    const wake = a.process.suspend();
    await advance(40_000, 1000);
    expect(election.log).toEqual(['a leads', 'b leads']);
    const written = a.process.requests.length;
    wake();
    expect(a.elector.isLeader).toBe(false);
    await advance(2250);
    expect(election.log).toEqual(['a leads', 'b leads', 'a is told to end', 'a ended']);
    expect(a.process.requests.slice(written)).toEqual([]);
    b.stop();
    await advance(1000);
  });

  it('lets a candidate that slept lead only after it has waited again', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const b = election.stand('b');
    await advance(1000);
    b.process.pause();
    await advance(60_000, 1000);
    b.process.resume();
    await advance(10_000);
    expect(election.log).toEqual(['a leads']);
    expect(b.seen).toEqual(['a']);
    a.stop();
    b.stop();
    await advance(1000);
  });

  it('refuses what a candidate sends that slept between reading and writing', async () => {
    const election = new Election();
    const dead = election.stand('dead');
    await settle();
    dead.process.pause();
    const b = election.stand('b');
    await advance(14_500);
    // It has read the lease as expired and is about to write; while it sleeps another one becomes the leader.
    const send = b.process.send.bind(b.process);
    b.process.send = async (request) => {
      if (request.method === 'PUT' && !b.process.isPaused) b.process.pause();
      return send(request);
    };
    await advance(5000);
    expect(b.process.isPaused).toBe(true);
    const c = election.stand('c');
    await advance(20_000);
    expect(election.log).toEqual(['dead leads', 'c leads']);
    b.process.send = send;
    b.process.resume();
    await advance(10_000);
    expect(election.log).toEqual(['dead leads', 'c leads']);
    expect((await election.lease()).spec).toMatchObject({ holderIdentity: 'c', leaseTransitions: 1 });
    b.stop();
    c.stop();
    await advance(1000);
  });

  it('does not care what others take the time for', async () => {
    const election = new Election();
    const past = election.stand('p', new Process('p', -7 * 24 * 3_600_000));
    await settle();
    const future = election.stand('f', new Process('f', 30 * 24 * 3_600_000));
    await advance(30_000, 1000);
    expect(election.log).toEqual(['p leads']);
    past.process.isCutOff = true;
    await advance(30_000);
    expect(election.log).toEqual(['p leads', 'p is told to end', 'p ended', 'f leads']);
    future.stop();
    await advance(1000);
  });

  it('is lost at once by a leader that sees another one hold the lease', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const lease = await election.lease();
    await admin.update(leaseResource, { ...lease, spec: { ...lease.spec, holderIdentity: 'usurper' } }, never);
    await advance(2250);
    expect(election.log).toEqual(['a leads', 'a is told to end', 'a ended']);
    expect(String(await a.ended)).toContain('usurper has taken the lease');
    expect((await election.lease()).spec?.holderIdentity).toBe('usurper');
  });

  it('survives the deletion of the lease', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    await admin.delete(leaseResource, 'kube-system', election.name, never);
    await advance(5000);
    expect(election.log).toEqual(['a leads']);
    expect((await election.lease()).spec?.holderIdentity).toBe('a');
    a.stop();
    await advance(1000);
  });

  it('ends with the work, or with its error, and gives the lease back', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    a.endWork();
    await settle();
    expect(await a.ended).toBeUndefined();
    expect((await election.lease()).spec?.holderIdentity).toBe('');

    const b = new LeaderElector({
      client: admin,
      env: { clock, random: seededRandom(1), log: silentLogger },
      namespace: 'kube-system',
      name: election.name,
      identity: 'b',
    });
    await expect(
      b.lead(never, async () => {
        throw new Error('broken');
      }),
    ).rejects.toThrow('broken');
    expect((await election.lease()).spec?.holderIdentity).toBe('');
    // It can stand again, and waits as anybody else does.
    const stop = new AbortController();
    let hasLed = false;
    const again = b.lead(stop.signal, async () => void (hasLed = true));
    await settle();
    expect(hasLed).toBe(true);
    await again;
  });

  it('can be stopped while it waits', async () => {
    const election = new Election();
    const a = election.stand('a');
    await settle();
    const b = election.stand('b');
    await advance(3000);
    b.stop();
    expect(await b.ended).toBeUndefined();
    expect(election.log).toEqual(['a leads']);
    a.stop();
    await advance(1000);
  });

  it.each([
    [{ identity: '' }, 'needs an identity'],
    [{ leaseDurationMs: 10_000 }, 'longer than the deadline'],
    [{ retryPeriodMs: 9000 }, 'no time to try again'],
  ])('refuses %j', (options, message) => {
    const env = { clock, random: seededRandom(1), log: silentLogger };
    const rest = { client: admin, env, namespace: 'kube-system', name: 'x', identity: 'a' };
    expect(() => new LeaderElector({ ...rest, ...options })).toThrow(message);
  });
});

describe('whatever happens to the candidates', () => {
  const disturbance = fc.record({
    who: fc.oneof({ weight: 2, arbitrary: fc.constant('leader') }, fc.constantFrom('a', 'b', 'c')),
    what: fc.oneof(
      { weight: 2, arbitrary: fc.constantFrom('pause', 'cut', 'lose answers') },
      fc.constantFrom('resume', 'mend', 'answer', 'stop'),
    ),
    afterMs: fc.integer({ min: 100, max: 25_000 }),
  });

  it('no two of them lead at once, and in the end one does', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(disturbance, { minLength: 2, maxLength: 10 }), async (disturbances) => {
        const election = new Election();
        for (const [index, identity] of ['a', 'b', 'c'].entries()) {
          election.stand(identity, new Process(identity, (index - 1) * 3_600_000));
        }
        for (const { who, what, afterMs } of disturbances) {
          await advance(afterMs, 500);
          const disturbed = election.candidates.get(who === 'leader' ? (election.leaders()[0] ?? 'a') : who);
          disturb(disturbed as Candidate, what);
          await settle();
          expect(election.leaders().length).toBeLessThanOrEqual(1);
        }
        for (const { process } of election.candidates.values()) {
          process.resume();
          process.isCutOff = false;
          process.losesAnswers = false;
        }
        const fresh = election.stand('z');
        await advance(45_000, 500);
        expect(election.log.filter((line) => line.includes(' with '))).toEqual([]);
        expect(election.leaders()).toHaveLength(1);
        for (const each of [...election.candidates.values(), fresh]) each.stop();
        await advance(1000);
      }),
      { numRuns: 20 },
    );
  });

  function disturb(candidate: Candidate, what: string): void {
    const { process } = candidate;
    if (what === 'pause') process.pause();
    else if (what === 'resume') process.resume();
    else if (what === 'cut') process.isCutOff = true;
    else if (what === 'mend') process.isCutOff = false;
    else if (what === 'lose answers') process.losesAnswers = true;
    else if (what === 'answer') process.losesAnswers = false;
    else candidate.stop();
  }
});
