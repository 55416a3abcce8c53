import { X509Certificate } from 'node:crypto';
import { connect as connectTcp, createServer, type Server, type Socket } from 'node:net';
import { once } from 'node:events';
import { connect as connectTls } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { realClock, realRandom } from '../env/real.ts';
import { silentLogger } from '../env/test.ts';
import { DAY_MS, issueIdentity } from '../machinery/x509/authority.ts';
import { type ChannelListener, type Dialer, type OfferedHalf, SyncError, UnprovenError } from './channel.ts';
import { Exchange } from './exchange.ts';
import { clusterUri } from './trust/bundle.ts';
import { AUTHORITY_SECRET, secrets } from './trust/objects.ts';
import { fromSecretData, issueLeaf } from './trust/own-authorities.ts';
import { changeTrust } from './trust/store.ts';
import { TrustingCluster } from './trust/trust.fixture.ts';
import { GrpcNetwork } from './wire/grpc-client.ts';
import { GrpcServer } from './wire/grpc-server.ts';
import type { TlsMaterial } from './wire/tls.ts';

/** A cluster with its exchange on a real port, and what it heard. */
class Member {
  readonly cluster: TrustingCluster;
  readonly exchange: Exchange;
  readonly channels: Dialer;
  log: string[] = [];
  errors: SyncError[] = [];
  readonly halves = new Map<string, unknown>();
  readonly #dialed = new Set<string>();
  address = '';
  readonly #stopped = new AbortController();
  #running: Promise<void> | undefined;

  constructor(cluster: TrustingCluster) {
    this.cluster = cluster;
    const { env, client, id } = cluster;
    this.exchange = new Exchange({ env, client, clusterId: id, listen: { host: '127.0.0.1', port: 0 } });
    this.exchange.onRevoked = (peer) => void this.log.push(`revoked ${peer}`);
    this.channels = this.exchange.connect(this.#listener());
  }

  static async start(id: string): Promise<Member> {
    const env = { clock: realClock, random: realRandom, log: silentLogger };
    const member = new Member(await TrustingCluster.start(id, env));
    member.#running = member.exchange.run(member.#stopped.signal);
    member.address = `127.0.0.1:${await member.exchange.listening}`;
    return member;
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#running;
    await this.cluster.stop();
  }

  /** Neither trusts nor dials anybody any more, and has heard nothing. */
  async reset(): Promise<void> {
    for (const url of this.#dialed) this.channels.hangUp(url);
    this.#dialed.clear();
    await changeTrust(this.cluster.admin, () => ({}), this.cluster.signal);
    await eventually(() => expect(this.exchange.trust.peers()).toEqual([]));
    [this.log, this.errors] = [[], []];
    this.halves.clear();
  }

  dial(url: string): void {
    this.#dialed.add(url);
    this.channels.dial(url);
  }

  offer(peer: string, update: OfferedHalf): void {
    this.channels.channel(peer)?.offer(update);
  }

  /** What the cluster would show, signed by its own authority, whatever it says. */
  async authority(): Promise<{ certificatePem: string; keyPem: string }> {
    const { admin, signal } = this.cluster;
    const { data } = await admin.get(secrets, 'kubevirt', AUTHORITY_SECRET, signal);
    const own = fromSecretData(data ?? {});
    if (!own) throw new Error('the cluster has no authority');
    return own.current;
  }

  #listener(): ChannelListener {
    return {
      received: async (peer, { key, role, half }) => void this.halves.set(`${peer}/${role}/${key}`, half),
      acknowledged: (peer, { key }) => void this.log.push(`acknowledged ${peer} ${key}`),
      refused: (peer, { key }, { reason }) => void this.log.push(`refused ${peer} ${key} ${reason}`),
      opened: ({ peer }) => void this.log.push(`opened ${peer}`),
      closed: (peer, error) => {
        this.errors.push(error);
        this.log.push(`closed ${peer} ${error.code}`);
      },
      reached: (_, { peer }) => void this.log.push(`reached ${peer}`),
      unreachable: (_, error) => {
        this.errors.push(error);
        this.log.push(`unreachable ${error.code}`);
      },
    };
  }
}

let a: Member;
let b: Member;
let c: Member;

beforeAll(async () => {
  [a, b, c] = await Promise.all([Member.start('cluster-a'), Member.start('cluster-b'), Member.start('cluster-c')]);
});

afterEach(async () => {
  await Promise.all([a.reset(), b.reset(), c.reset()]);
});

afterAll(async () => {
  await Promise.all([a.stop(), b.stop(), c.stop()]);
});

async function trustEachOther(one: Member, other: Member): Promise<void> {
  await Promise.all([one.cluster.trust(other.cluster), other.cluster.trust(one.cluster)]);
  await eventually(() => {
    expect(one.exchange.trust.isRevoked(other.cluster.id)).toBe(false);
    expect(other.exchange.trust.isRevoked(one.cluster.id)).toBe(false);
  });
}

describe('two clusters that trust each other', () => {
  it('talk over gRPC with mutual TLS, in both directions, and go on after a cut', async () => {
    await trustEachOther(a, b);
    const relay = await startRelay(b.address);
    a.dial(relay.address);
    await eventually(() => expect(a.log).toContain('reached cluster-b'));
    a.offer('cluster-b', { key: 'k', role: 'source', half: { node: 'n1', text: 'ä'.repeat(20_000) } });
    b.offer('cluster-a', { key: 'k', role: 'target', half: { pod: 'p' } });
    await eventually(() => {
      expect(b.halves.get('cluster-a/source/k')).toEqual({ node: 'n1', text: 'ä'.repeat(20_000) });
      expect(a.halves.get('cluster-b/target/k')).toEqual({ pod: 'p' });
      expect([a.log.at(-1), b.log.at(-1)]).toEqual(['acknowledged cluster-b k', 'acknowledged cluster-a k']);
    });
    relay.cut();
    a.offer('cluster-b', { key: 'k', role: 'source', half: { node: 'n2' } });
    await eventually(() => expect(b.halves.get('cluster-a/source/k')).toEqual({ node: 'n2' }));
    expect(a.log).toContain('closed cluster-b Disconnected');
    a.channels.hangUp(relay.address);
    a.offer('cluster-b', { key: 'k', role: 'source', half: undefined });
    await eventually(() => expect(a.log.at(-1)).toBe('closed cluster-b Closed'));
    await eventually(() => expect(b.log.at(-1)).toBe('closed cluster-a Closed'));
    relay.stop();
  });

  it('carry a thousand halves at once, each in whole', async () => {
    await trustEachOther(a, b);
    a.dial(b.address);
    await eventually(() => expect(a.log).toContain('reached cluster-b'));
    for (let at = 0; at < 1000; at++)
      a.offer('cluster-b', { key: `k${at}`, role: 'source', half: { at, x: 'x'.repeat(2_000) } });
    await eventually(() => expect(b.halves.size).toBe(1000));
    expect(b.halves.get('cluster-a/source/k999')).toEqual({ at: 999, x: 'x'.repeat(2_000) });
  });

  it('part when trust is revoked and nothing is on the way any more', async () => {
    await trustEachOther(a, b);
    a.dial(b.address);
    await eventually(() => expect(b.log).toContain('opened cluster-a'));
    await b.cluster.revoke(a.cluster);
    await eventually(() => expect(b.log).toContain('revoked cluster-a'));
    expect(b.exchange.trust.isRevoked('cluster-a')).toBe(true);
    b.offer('cluster-a', { key: 'k', role: 'target', half: { isLast: true } });
    await eventually(() => expect(a.halves.get('cluster-b/target/k')).toEqual({ isLast: true }));
    await b.exchange.trust.release('cluster-a', new AbortController().signal);
    await eventually(() => expect(b.log).toContain('closed cluster-a NotTrusted'));
    await eventually(() =>
      expect(a.log).toEqual(expect.arrayContaining(['closed cluster-b NotTrusted', 'unreachable NotTrusted'])),
    );
    expect(b.channels.channel('cluster-a')).toBeUndefined();
  });
});

describe('clusters that do not', () => {
  it('hear on both sides who does not trust whom, and find each other once they do', async () => {
    // Nobody was seen at it before.
    a.dial(b.address.replace('127.0.0.1', 'localhost'));
    await eventually(() => expect(a.errors[0]).toMatchObject({ code: 'NotTrusted' }));
    // Whoever gave the address is not to learn what there is.
    expect(a.errors[0]).toBeInstanceOf(UnprovenError);
    expect(a.errors[0]?.message).toContain('no trusted cluster has issued the certificate that localhost');
    await a.cluster.trust(b.cluster);
    await eventually(() => expect(a.errors.at(-1)?.message).toContain('the other cluster does not trust this one'));
    expect(a.errors.at(-1)).toMatchObject({ code: 'NotTrusted' });
    expect(a.errors.at(-1)).not.toBeInstanceOf(UnprovenError);
    expect(b.log).toEqual([]);
    await b.cluster.trust(a.cluster);
    await eventually(() => expect(a.log).toContain('reached cluster-b'), 20_000);
  });

  it('dial what administrators have listed, if they have listed anything, and tell in full what they find', async () => {
    const { admin, signal } = a.cluster;
    await changeTrust(admin, (data) => ({ ...data, addresses: '127.0.0.1:1\nnonsense:' }), signal);
    await eventually(() => expect(a.exchange.trust.addressRules?.broken).toEqual(['nonsense:']));
    a.dial(b.address);
    await eventually(() => expect(a.errors[0]).toMatchObject({ code: 'NotAllowed' }));
    a.dial('127.0.0.1:1');
    await eventually(() => expect(a.errors.at(-1)?.message).toContain('ECONNREFUSED'));
    expect(a.errors.at(-1)).not.toBeInstanceOf(UnprovenError);
  });

  it('know the way back to themselves', async () => {
    a.dial(a.address);
    await eventually(() => expect(a.log).toContain('unreachable OwnCluster'));
  });

  it('say that nobody is there, and that an address is none', async () => {
    a.dial('127.0.0.1:1');
    a.dial('http://nowhere');
    await eventually(() => expect(a.errors.map(({ code }) => code).sort()).toEqual(['InvalidAddress', 'Unreachable']));
  });
});

describe('a stranger', () => {
  /** Dials b with whatever is shown. */
  async function dial(material: Omit<TlsMaterial, 'authoritiesPem'>): Promise<SyncError> {
    const trust = {
      clusterId: 'stranger',
      material: () => ({ ...material, authoritiesPem: b.exchange.trust.bundle() }),
      identify: () => ({ clusterId: 'cluster-b', validUntilMs: Number.POSITIVE_INFINITY }),
    };
    const link = await new GrpcNetwork({ clock: realClock, trust }).connect(b.address, new AbortController().signal);
    const ended = new Promise<SyncError>((resolve) =>
      link.listen({ frame: () => resolve(new SyncError('Closed', 'it was answered')), ended: resolve }),
    );
    const introduction = { clusterId: 'cluster-a', incarnation: 'x', resume: undefined, bundle: '' };
    link.send({ kind: 'hello', versions: { min: 1, max: 1 }, ...introduction });
    try {
      return await ended;
    } finally {
      link.close();
    }
  }

  it('is let in with a certificate of the cluster that it says to be, and no other', async () => {
    await b.cluster.trust(a.cluster);
    await eventually(() => expect(b.exchange.trust.isRevoked('cluster-a')).toBe(false));
    const env = a.cluster.env;
    const good = await issueLeaf({ current: await a.authority() }, env, 'cluster-a');
    expect((await dial(good)).message).toBe('it was answered');
  });

  it('is refused when a cluster that is trusted pretends to be a third one', async () => {
    await Promise.all([b.cluster.trust(a.cluster), b.cluster.trust(c.cluster)]);
    await eventually(() => expect(b.exchange.trust.peers()).toHaveLength(2));
    const forged = await issueLeaf({ current: await c.authority() }, c.cluster.env, 'cluster-a');
    const error = await dial(forged);
    expect(error).toMatchObject({ code: 'NotTrusted' });
    expect(error.message).toContain('no authority of cluster cluster-a');
  });

  it('is refused with a certificate that has expired, that says nothing, or that it gave itself', async () => {
    await b.cluster.trust(a.cluster);
    await eventually(() => expect(b.exchange.trust.isRevoked('cluster-a')).toBe(false));
    const { env } = a.cluster;
    const authority = { ...(await a.authority()), env };
    const yesterday = { ...env, clock: { ...realClock, now: () => realClock.now() - 8 * DAY_MS } };
    const names = { commonName: 'x', usages: ['client', 'server'] as const, validityMs: DAY_MS };
    const expired = await issueLeaf({ current: authority }, yesterday, 'cluster-a');
    expect((await dial(expired)).message).toContain('its certificate has expired');
    const nameless = await issueIdentity(authority, { ...names, dnsNames: ['cluster-a'] });
    expect((await dial(nameless)).message).toContain('is not that of a cluster');
    const server = await issueIdentity(authority, { ...names, usages: ['server'], uris: [clusterUri('cluster-a')] });
    expect((await dial(server)).message).toContain('no cluster that is trusted has issued its certificate');
    const own = await issueLeaf({ current: await c.authority() }, env, 'cluster-a');
    expect(await dial(own)).toMatchObject({ code: 'NotTrusted' });
  });

  it('is not believed where the certificate has expired that it shows to whoever dials', async () => {
    await a.cluster.trust(c.cluster);
    await eventually(() => expect(a.exchange.trust.peers()).toHaveLength(1));
    const lastWeek = { ...c.cluster.env, clock: { ...realClock, now: () => realClock.now() - 8 * DAY_MS } };
    const expired = await issueLeaf({ current: await c.authority() }, lastWeek, 'cluster-c');
    const server = new GrpcServer({
      clock: realClock,
      log: silentLogger,
      trust: {
        clusterId: 'cluster-c',
        material: () => ({ ...expired, authoritiesPem: a.exchange.trust.bundle() }),
        identify: () => ({ clusterId: 'cluster-a', validUntilMs: Number.POSITIVE_INFINITY }),
      },
      accept: () => void c.log.push('accepted'),
    });
    a.dial(`127.0.0.1:${await server.listen('127.0.0.1', 0)}`);
    await eventually(() =>
      expect(a.errors.at(-1)?.message).toMatch(/the certificate of the cluster at .* has expired/),
    );
    expect(a.errors.at(-1)).toMatchObject({ code: 'NotTrusted' });
    expect(c.log).toEqual([]);
    await server.stop();
  });

  it('without any certificate learns nothing', async () => {
    const [host, port] = b.address.split(':');
    const socket = connectTls({ host, port: Number(port), rejectUnauthorized: false, ALPNProtocols: ['h2'] });
    await once(socket, 'secureConnect');
    expect(new X509Certificate(socket.getPeerX509Certificate()?.raw ?? '').subject).toContain('godwit');
    socket.write('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nthis is no frame at all, is it? ............');
    await once(socket.resume(), 'close');
  });
});

/** Something between two clusters that knows nothing of TLS, as a load balancer does. */
async function startRelay(to: string): Promise<{ address: string; cut(): void; stop(): void }> {
  const sockets = new Set<Socket>();
  const [host, port] = to.split(':');
  const server: Server = createServer((incoming) => {
    const outgoing = connectTcp(Number(port), host);
    for (const [socket, other] of [
      [incoming, outgoing],
      [outgoing, incoming],
    ] as const) {
      sockets.add(socket);
      socket.on('error', () => other.destroy());
      socket.on('close', () => other.destroy());
      socket.pipe(other);
    }
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return {
    address: `127.0.0.1:${typeof address === 'object' ? address?.port : ''}`,
    cut,
    stop: () => {
      cut();
      server.close();
    },
  };
}
