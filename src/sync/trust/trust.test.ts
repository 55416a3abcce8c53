import { X509Certificate } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { Env } from '../../env/ports.ts';
import { ManualClock, seededRandom, silentLogger } from '../../env/test.ts';
import { turn } from '../../env/turn.ts';
import { DAY_MS } from '../../machinery/x509/authority.ts';
import { bundleText } from './bundle.ts';
import { configMaps, TRUST_CONFIG_MAP } from './objects.ts';
import { Trust } from './trust.ts';
import { TrustingCluster } from './trust.fixture.ts';

/** A cluster with its trust, in time that the test moves. */
class Member {
  readonly cluster: TrustingCluster;
  readonly trust: Trust;
  readonly log: string[] = [];
  /** To whom a stream stands. */
  connected: Member[] = [];
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;

  constructor(cluster: TrustingCluster, env: Env) {
    this.cluster = cluster;
    this.trust = new Trust({
      env,
      client: cluster.client,
      clusterId: cluster.id,
      listener: {
        materialChanged: () => void this.log.push('material'),
        bundleChanged: () => {
          this.log.push('bundle');
          for (const peer of this.connected) peer.trust.renewed(cluster.id, this.trust.bundle());
        },
        revoked: (peer) => void this.log.push(`revoked ${peer}`),
        removed: (peer) => void this.log.push(`removed ${peer}`),
      },
    });
  }

  static async start(id: string, clock: ManualClock, seed: number): Promise<Member> {
    // The API server has a clock of its own: it would do years of housekeeping.
    const env = { clock, random: seededRandom(seed), log: silentLogger };
    const member = new Member(await TrustingCluster.start(id), env);
    await member.trust.prepare(member.cluster.signal);
    member.#running = member.trust.run(member.#stopped.signal);
    return member;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    await this.cluster.stop();
  }

  /** Whether all that the other is known by has been heard of. */
  knows(other: Member): boolean {
    const known = this.trust.peers().find(({ clusterId }) => clusterId === other.cluster.id);
    return known !== undefined && bundleText(known.authorities) === other.trust.bundle();
  }

  /** Who the other says it is by what it shows now, or why that is not believed. */
  believes(other: Member): string {
    try {
      return this.trust.identify(new X509Certificate(other.trust.material().certificatePem)).clusterId;
    } catch (error) {
      return (error as Error).message;
    }
  }
}

const clock = new ManualClock();
let a: Member;
let b: Member;

beforeEach(async () => {
  a = await Member.start('cluster-a', clock, 1);
  b = await Member.start('cluster-b', clock, 2);
});

afterEach(async () => {
  await a.stop();
  await b.stop();
});

/** Lets everything happen that does not wait for time to pass, until it is so; keys are made outside of this thread. */
async function until(isSo: () => boolean): Promise<void> {
  for (let turns = 0; turns < 20_000 && !isSo(); turns++) {
    clock.advance(0);
    await turn();
  }
  expect(isSo()).toBe(true);
}

async function trustEachOther(): Promise<void> {
  await a.cluster.trust(b.cluster);
  await b.cluster.trust(a.cluster);
  await until(() => a.believes(b) === 'cluster-b' && b.believes(a) === 'cluster-a');
}

describe('trust', () => {
  it('is in what was imported, and in nothing else', async () => {
    expect(a.believes(b)).toContain('cluster-b is not among those that are trusted here');
    expect(a.trust.isRevoked('cluster-b')).toBe(true);
    await trustEachOther();
    expect(a.trust.isRevoked('cluster-b')).toBe(false);
    expect(a.log).toContain('material');
    expect(a.trust.material().authoritiesPem).toContain(b.trust.bundle());
    await a.cluster.forget(b.cluster);
    await until(() => a.log.includes('removed cluster-b'));
    expect(a.believes(b)).toContain('is not among those');
    expect(b.believes(a)).toBe('cluster-a');
  });

  it('knows itself', () => expect(a.believes(a)).toBe('cluster-a'));

  it('that is broken counts for nothing, and does no harm to the rest', async () => {
    await trustEachOther();
    const object = await a.cluster.admin.get(configMaps, SYSTEM_NAMESPACE, TRUST_CONFIG_MAP, a.cluster.signal);
    const data = { ...object.data, 'x.crt': 'nonsense', 'x.name': 'x', 'y.crt': b.trust.bundle(), 'y.name': 'No Name' };
    await a.cluster.admin.update(configMaps, { ...object, data }, a.cluster.signal);
    await until(() => a.log.filter((line) => line === 'material').length === 3);
    expect(a.trust.peers().map(({ clusterId }) => clusterId)).toEqual(['cluster-b']);
  });

  it('that is revoked holds until it is released, and comes back with an import', async () => {
    await trustEachOther();
    await a.cluster.revoke(b.cluster);
    await until(() => a.log.includes('revoked cluster-b'));
    expect([a.trust.isRevoked('cluster-b'), a.believes(b)]).toEqual([true, 'cluster-b']);
    a.trust.renewed('cluster-b', a.trust.bundle());
    await a.trust.release('cluster-b', a.cluster.signal);
    await until(() => a.log.includes('removed cluster-b'));
    await a.cluster.trust(b.cluster);
    await until(() => !a.trust.isRevoked('cluster-b'));
    await a.trust.release('cluster-b', a.cluster.signal);
    for (let turns = 0; turns < 50; turns++) await turn();
    expect(a.trust.isRevoked('cluster-b')).toBe(false);
  });
});

describe('authorities that a peer tells', () => {
  it('are written down if they are some, for that peer alone', async () => {
    await trustEachOther();
    const before = b.trust.bundle();
    const wrong = ['', 'nonsense', b.trust.material().certificatePem];
    for (const bundle of wrong) a.trust.renewed('cluster-b', bundle);
    a.trust.renewed('cluster-z', before);
    const other = await Member.start('cluster-c', clock, 3);
    a.trust.renewed('cluster-b', before + other.trust.bundle());
    await until(() => a.trust.peers()[0]?.authorities.length === 2);
    expect(a.trust.peers()).toHaveLength(1);
    // It is its own loss if it lets another cluster speak for it; nobody else is concerned.
    expect(a.believes(other)).toContain('cluster-c is not among those');
    await other.stop();
  });

  it('carry trust over two generations of both clusters, as long as they hear of each other', async () => {
    await trustEachOther();
    [a.connected, b.connected] = [[b], [a]];
    const first = [a.trust.bundle(), b.trust.bundle()];
    for (let month = 0; month < 21; month++) {
      clock.advance(31 * DAY_MS);
      await until(() => a.believes(a) === 'cluster-a' && b.believes(b) === 'cluster-b');
      await until(() => a.knows(b) && b.knows(a));
      expect([a.believes(b), b.believes(a)]).toEqual(['cluster-b', 'cluster-a']);
    }
    const last = [a.trust.bundle(), b.trust.bundle()];
    for (const at of [0, 1]) expect(last[at]).not.toContain(first[at]);
    expect(a.log.filter((line) => line === 'bundle').length).toBeGreaterThanOrEqual(5);
  });

  it('are needed: a peer that was not heard of for a whole generation is not believed', async () => {
    await trustEachOther();
    const first = b.trust.bundle();
    clock.advance(190 * DAY_MS);
    await until(() => b.trust.bundle() !== first && b.believes(b) === 'cluster-b');
    expect(a.believes(b)).toBe('cluster-b');
    clock.advance(90 * DAY_MS);
    await until(() => !b.trust.bundle().startsWith(first) && b.believes(b) === 'cluster-b');
    expect(a.believes(b)).toContain('no authority of cluster cluster-b');
  });
});
