import { describe, expect, it } from 'vitest';
import { ManualClock, seededRandom } from '../../env/test.ts';
import { Refusal, SyncError } from '../channel.ts';
import { type ClusterOptions, FixtureCluster, pass } from './clusters.fixture.ts';
import { FixtureNetwork } from './network.fixture.ts';

interface Scene {
  readonly clock: ManualClock;
  readonly network: FixtureNetwork;
  readonly a: FixtureCluster;
  readonly b: FixtureCluster;
  readonly pass: (ms: number) => Promise<void>;
}

function scene(options: { a?: Partial<ClusterOptions>; b?: Partial<ClusterOptions>; delayMsMax?: number } = {}): Scene {
  const clock = new ManualClock();
  const network = new FixtureNetwork({ clock, random: seededRandom(7), delayMsMax: options.delayMsMax ?? 20 });
  const a = new FixtureCluster('a', { clock, network, seed: 1, ...options.a });
  const b = new FixtureCluster('b', { clock, network, seed: 2, ...options.b });
  return { clock, network, a, b, pass: (ms) => pass(clock, ms) };
}

describe('a channel between two clusters', () => {
  it('carries halves of both directions over the stream that one of them dialed', async () => {
    const { a, b, network, pass } = scene();
    a.dial('b');
    a.offer('b', 'k', 'source', { version: 1, node: 'one' });
    await pass(500);
    b.offer('a', 'k', 'target', { version: 1, pod: 'p' });
    await pass(500);
    expect(b.durable.get('a/source/k')).toEqual({ version: 1, node: 'one' });
    expect(a.durable.get('b/target/k')).toEqual({ version: 1, pod: 'p' });
    expect(a.log).toEqual(expect.arrayContaining(['opened b', 'reached b b', 'acknowledged k 1']));
    expect(b.log).toEqual(expect.arrayContaining(['opened a', 'acknowledged k 1']));
    expect(network.streams).toBe(1);
  });

  it('tells that a migration is gone, and then nothing of it any more', async () => {
    const { a, b, pass } = scene();
    a.dial('b');
    a.offer('b', 'k', 'source', { version: 1 });
    await pass(500);
    a.offer('b', 'k', 'source', undefined);
    await pass(500);
    expect(b.log.filter((line) => line.startsWith('received'))).toEqual([
      'received a/source/k 1',
      'received a/source/k gone',
    ]);
    expect(a.log.at(-1)).toBe('acknowledged k gone');
    b.restart();
    await pass(20_000);
    expect(b.log.filter((line) => line === 'received a/source/k gone')).toHaveLength(1);
  });

  it('sends the newest of what piled up while there was no stream', async () => {
    const { a, b, network, pass } = scene();
    a.dial('b');
    await pass(500);
    network.isDown = true;
    network.cut('a', false);
    for (let version = 1; version <= 50; version++) a.offer('b', 'k', 'source', { version });
    await pass(2_000);
    network.isDown = false;
    await pass(10_000);
    expect(b.log.filter((line) => line.startsWith('received'))).toEqual(['received a/source/k 50']);
  });

  it('goes on after a cut where it was, without saying anything twice', async () => {
    const { a, b, network, pass } = scene();
    a.dial('b');
    a.offer('b', 'k', 'source', { version: 1 });
    a.offer('b', 'l', 'source', { version: 1 });
    await pass(500);
    network.cut('a', false);
    a.offer('b', 'l', 'source', { version: 2 });
    await pass(5_000);
    expect(b.log.filter((line) => line.startsWith('received'))).toEqual([
      'received a/source/k 1',
      'received a/source/l 1',
      'received a/source/l 2',
    ]);
  });

  it.each(['a', 'b'] as const)('says everything again after %s has started anew', async (who) => {
    const { a, b, pass } = scene();
    a.dial('b');
    a.offer('b', 'k', 'source', { version: 1 });
    await pass(500);
    (who === 'a' ? a : b).restart();
    await pass(5_000);
    expect(b.log.filter((line) => line === 'received a/source/k 1')).toHaveLength(2);
    expect(a.log.filter((line) => line === 'acknowledged k 1')).toHaveLength(2);
  });

  it('notices a peer of which nothing is heard any more, on both sides, and dials again', async () => {
    const { a, b, network, pass } = scene();
    a.dial('b');
    await pass(1_000);
    network.cut('a', true);
    a.offer('b', 'k', 'source', { version: 1 });
    await pass(21_000);
    expect(a.log).toContain('closed b Silent');
    // The other side may learn it from the next hello before it notices itself.
    await pass(3_000);
    expect(b.durable.get('a/source/k')).toEqual({ version: 1 });
    expect(network.streams).toBe(1);
  });

  it('keeps a stream on which nobody has anything to say', async () => {
    const { a, b, pass } = scene();
    a.dial('b');
    await pass(120_000);
    expect(a.log).toEqual(['opened b', 'reached b b']);
    expect(b.log).toEqual(['opened a']);
  });

  it('tells the sender what was refused, and sends it again only if it is offered again', async () => {
    const { a, b, network, pass } = scene();
    b.unwanted.set('k', new Refusal('KeyUnknown', 'no migration has it'));
    a.dial('b');
    a.offer('b', 'k', 'source', { version: 1 });
    await pass(500);
    expect(a.refusals).toMatchObject([{ key: 'k', refusal: { reason: 'KeyUnknown', message: 'no migration has it' } }]);
    network.cut('a', false);
    b.unwanted.clear();
    await pass(5_000);
    expect(b.durable.size).toBe(0);
    a.offer('b', 'k', 'source', { version: 1 });
    await pass(500);
    expect(b.durable.get('a/source/k')).toEqual({ version: 1 });
  });

  it('refuses to send what no peer would take', async () => {
    const { a, pass } = scene();
    a.dial('b');
    await pass(500);
    a.offer('b', 'k', 'source', { version: 1, text: 'x'.repeat(70_000) });
    await pass(500);
    expect(a.refusals).toMatchObject([{ key: 'k', refusal: { reason: 'TooLarge' } }]);
    expect(a.log).not.toContain('closed b ProtocolViolation');
  });

  it('keeps halves of other keys going while one is not taken', async () => {
    const { a, b, pass } = scene();
    a.dial('b');
    await pass(500);
    let release = (): void => undefined;
    const received = b.received.bind(b);
    b.received = (peer, update) =>
      update.key === 'stuck' ? new Promise((resolve) => (release = resolve)) : received(peer, update);
    for (let version = 1; version <= 200; version++) {
      a.offer('b', 'stuck', 'source', { version });
      a.offer('b', `k${version}`, 'source', { version });
      await pass(20);
    }
    await pass(2_000);
    expect([...b.durable.keys()].filter((name) => name.startsWith('a/source/k'))).toHaveLength(200);
    b.received = received;
    release();
    await pass(2_000);
    expect(b.durable.get('a/source/stuck')).toEqual({ version: 200 });
  });

  it('tells new authorities on a stream that stands, and with each introduction', async () => {
    const { a, b, pass } = scene();
    a.dial('b');
    await pass(500);
    expect(b.bundles.get('a')).toBe('bundle of a 1');
    expect(a.bundles.get('b')).toBe('bundle of b 1');
    a.bundles.clear();
    b.switchboard.bundleChanged();
    await pass(100);
    expect(a.bundles.get('b')).toBe('bundle of b 1');
  });
});

describe('versions', () => {
  it('are talked down to by the side that speaks more', async () => {
    const { a, b, pass } = scene({ a: { versions: { min: 1, max: 7 } } });
    a.dial('b');
    b.dial('a');
    await pass(5_000);
    expect(a.log).toContain('opened b');
    expect(b.log).toContain('opened a');
  });

  it('that do not meet are told to both sides', async () => {
    const { a, b, pass } = scene({ a: { versions: { min: 3, max: 4 } } });
    const errors: SyncError[] = [];
    a.unreachable = (_, error) => void errors.push(error);
    a.dial('b');
    await pass(1_000);
    expect(errors[0]).toMatchObject({ code: 'VersionMismatch' });
    expect(errors[0]?.message).toContain('one cluster speaks version 1, the other versions 3 to 4');
    expect(b.log).toEqual([]);
  });
});

describe('streams that meet', () => {
  it('become one where both clusters dial each other at once', async () => {
    for (let seed = 0; seed < 30; seed++) {
      const clock = new ManualClock();
      const network = new FixtureNetwork({ clock, random: seededRandom(seed), delayMsMax: 60 });
      const a = new FixtureCluster('a', { clock, network, seed: seed + 100 });
      const b = new FixtureCluster('b', { clock, network, seed: seed + 200 });
      a.dial('b');
      b.dial('a');
      a.offer('b', 'k', 'source', { version: 1 });
      b.offer('a', 'l', 'source', { version: 1 });
      await pass(clock, 15_000);
      expect(network.streams, `seed ${seed}`).toBe(1);
      expect(a.log).toContain('reached b b');
      expect(b.log).toContain('reached a a');
      expect([b.durable.get('a/source/k'), a.durable.get('b/source/l')]).toEqual([{ version: 1 }, { version: 1 }]);
      // Once it stands it stays.
      const before = [a.log.length, b.log.length];
      await pass(clock, 60_000, 500);
      expect([a.log.length, b.log.length], `seed ${seed}`).toEqual(before);
    }
  });

  it('are decided by both sides alike where their hellos cross', async () => {
    const clock = new ManualClock();
    const network = new FixtureNetwork({ clock, random: { ...seededRandom(1), number: () => 0.5 }, delayMsMax: 60 });
    const [a, b] = ['a', 'b'].map((id) => new FixtureCluster(id, { clock, network, seed: 1 }));
    a?.dial('b');
    b?.dial('a');
    await pass(clock, 15_000);
    const streams = [a, b].map((cluster) => cluster?.log.filter((line) => !line.startsWith('reached')));
    expect(streams).toEqual([['opened b'], ['opened a']]);
  });

  it('are shared by all addresses of a peer, and each is told', async () => {
    const { a, network, pass } = scene();
    a.dial('b');
    a.dial('b/other');
    await pass(10_000);
    expect(a.log).toEqual(expect.arrayContaining(['reached b b', 'reached b/other b']));
    expect(network.streams).toBe(1);
    network.cut('a', false);
    await pass(10_000);
    expect(a.log.filter((line) => line === 'reached b/other b')).toHaveLength(2);
    expect(network.streams).toBe(1);
  });

  it('end when nobody wants them and nothing is left to say', async () => {
    const { a, b, network, pass } = scene();
    a.dial('b');
    a.offer('b', 'k', 'source', { version: 1 });
    await pass(1_000);
    a.hangUp('b');
    await pass(1_000);
    expect(network.streams).toBe(1);
    a.offer('b', 'k', 'source', undefined);
    await pass(1_000);
    expect(network.streams).toBe(0);
    expect(a.log.at(-1)).toBe('closed b Closed');
    expect(b.log.at(-1)).toBe('closed a Closed');
    await pass(60_000);
    expect(network.streams).toBe(0);
  });

  it('end at once with a peer that is not trusted any more', async () => {
    const { a, b, network, pass } = scene();
    a.dial('b');
    await pass(1_000);
    b.switchboard.drop('a', new SyncError('NotTrusted', 'the trust in this cluster was revoked'));
    expect(network.streams).toBe(0);
    expect(b.switchboard.channel('a')).toBeUndefined();
    await pass(100);
    expect(a.log.at(-1)).toBe('closed b NotTrusted');
  });
});

describe('an address', () => {
  it('is dialed with growing pauses, and told each time', async () => {
    const { a, pass } = scene();
    a.dial('nowhere');
    await pass(120_000);
    const tries = a.log.filter((line) => line === 'unreachable nowhere Unreachable').length;
    expect(tries).toBeGreaterThan(7);
    expect(tries).toBeLessThan(16);
    a.hangUp('nowhere');
    await pass(120_000);
    expect(a.log).toHaveLength(tries);
  });

  it('is dialed at once when other clusters are trusted than before, and with short pauses again', async () => {
    const { a, pass } = scene();
    a.dial('nowhere');
    await pass(120_000);
    const tries = a.log.length;
    a.switchboard.trustChanged();
    await pass(100);
    expect(a.log).toHaveLength(tries + 1);
    await pass(5_000);
    expect(a.log.length).toBeGreaterThan(tries + 2);
  });
});
