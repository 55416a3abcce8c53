import { constants, type ClientHttp2Session, type ClientHttp2Stream, connect } from 'node:http2';
import { once } from 'node:events';
import { connect as connectTcp } from 'node:net';
import * as fc from 'fast-check';
import type { X509Certificate } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually } from '../../../test/support/eventually.ts';
import { realClock, realRandom } from '../../env/real.ts';
import { silentLogger } from '../../env/test.ts';
import { createAuthority, DAY_MS, issueIdentity } from '../../machinery/x509/authority.ts';
import type { ChannelListener } from '../channel.ts';
import { decodeFrame, encodeFrame } from './codec.ts';
import { type Frame, FRAME_BYTES_MAX } from './frame.ts';
import { GrpcNetwork } from './grpc-client.ts';
import { GrpcServer } from './grpc-server.ts';
import { Switchboard } from './switchboard.ts';
import type { TlsTrust } from './tls.ts';

/** Clusters that trust each other, of which one writes its bytes by hand. */

const env = { clock: realClock, random: realRandom, log: silentLogger };
const PATH = '/godwit.synchronization.v1.Synchronization/Converse';
const halves = new Map<string, unknown>();
const closed: string[] = [];

const listener: ChannelListener = {
  received: async (peer, { key, half }) => void halves.set(`${peer}/${key}`, half),
  acknowledged: () => undefined,
  refused: () => undefined,
  opened: () => undefined,
  closed: (peer, { code }) => void closed.push(`${peer} ${code}`),
  reached: () => undefined,
  unreachable: () => undefined,
};

let trusts: Map<string, TlsTrust>;
let server: GrpcServer;
let board: Switchboard;
let port: number;

beforeAll(async () => {
  const authority = await createAuthority(env, 'all of them', DAY_MS);
  const entries = ['own', 'honest', 'hostile'].map(async (clusterId): Promise<[string, TlsTrust]> => {
    const options = { commonName: clusterId, usages: ['client', 'server'] as const, validityMs: DAY_MS };
    const material = { ...(await issueIdentity(authority, options)), authoritiesPem: authority.certificatePem };
    const identify = ({ subject, validTo }: X509Certificate) => ({
      clusterId: subject.replace('CN=', ''),
      validUntilMs: Date.parse(validTo),
    });
    return [clusterId, { clusterId, material: () => material, identify }];
  });
  trusts = new Map(await Promise.all(entries));
  board = boardOf('own', listener);
  // Nobody who says nothing goes by himself, however slow the machine is.
  const handshakeMs = DAY_MS;
  server = new GrpcServer({ ...env, trust: trustOf('own'), accept: (link) => board.accept(link), handshakeMs });
  port = await server.listen('127.0.0.1', 0);
});

afterAll(async () => {
  board.stop();
  await server.stop();
});

function trustOf(id: string): TlsTrust {
  const trust = trusts.get(id);
  if (!trust) throw new Error(`there is no cluster ${id}`);
  return trust;
}

function boardOf(clusterId: string, listener: ChannelListener, incarnation = `${clusterId}-1`): Switchboard {
  const network = new GrpcNetwork({ clock: realClock, trust: trustOf(clusterId) });
  const own = { clusterId, incarnation, bundle: () => '', renewed: () => undefined };
  return new Switchboard({ env, network, listener, ...own });
}

/** A connection of the hostile cluster, spoken by hand. */
class RawPeer {
  readonly session: ClientHttp2Session;

  constructor() {
    const { certificatePem: cert, keyPem: key, authoritiesPem: ca } = trustOf('hostile').material();
    const options = { cert, key, ca, checkServerIdentity: () => undefined };
    this.session = connect(`https://127.0.0.1:${port}`, options);
    this.session.on('error', () => undefined);
  }

  call(headers: Record<string, string> = {}): ClientHttp2Stream {
    const stream = this.session.request({
      ':method': 'POST',
      ':path': PATH,
      'content-type': 'application/grpc+proto',
      te: 'trailers',
      ...headers,
    });
    stream.on('error', () => undefined);
    return stream;
  }

  /** Says the bytes, and answers the frames that came back until the stream was over. */
  async exchange(...messages: Uint8Array[]): Promise<Frame[]> {
    const stream = this.call();
    const chunks: Buffer[] = [];
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
    for (const message of messages) stream.write(message);
    await once(stream, 'end');
    return framesIn(Buffer.concat(chunks));
  }

  close(): void {
    this.session.destroy();
  }
}

function enveloped(bytes: Uint8Array, length = bytes.length, flags = 0): Uint8Array {
  const head = Buffer.alloc(5);
  head[0] = flags;
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, bytes]);
}

function framesIn(bytes: Buffer): Frame[] {
  const frames: Frame[] = [];
  for (let at = 0; at + 5 <= bytes.length; ) {
    const length = bytes.readUInt32BE(at + 1);
    frames.push(decodeFrame(bytes.subarray(at + 5, at + 5 + length)));
    at += 5 + length;
  }
  return frames;
}

const hello = enveloped(
  encodeFrame({
    kind: 'hello',
    versions: { min: 1, max: 1 },
    clusterId: 'hostile',
    incarnation: 'h',
    resume: undefined,
    bundle: '',
  }),
);

describe('a peer that writes its own bytes', () => {
  it.each<[string, Uint8Array[]]>([
    ['bytes that are no message', [hello, enveloped(Buffer.from('ffffffffffffff', 'hex'))]],
    ['a message that is longer than any', [hello, enveloped(new Uint8Array(8), 0xffff_ffff)]],
    ['a message that is a little too long', [hello, enveloped(new Uint8Array(FRAME_BYTES_MAX + 1))]],
    ['a compressed message', [hello, enveloped(new Uint8Array(8), 8, 1)]],
    ['the end of a stream where none can be', [hello, enveloped(new Uint8Array(0), 0, 2)]],
    ['a message of nothing', [hello, enveloped(new Uint8Array(0))]],
    ['groups without end', [hello, enveloped(new Uint8Array(60_000).fill(0x7b))]],
    ['hello again', [hello, hello]],
  ])('is told goodbye after %s', async (_, messages) => {
    const peer = new RawPeer();
    const frames = await peer.exchange(...messages);
    expect(frames.at(-1)).toMatchObject({ kind: 'goodbye', code: 'ProtocolViolation' });
    peer.close();
  });

  it('gets an end whatever it writes', async () => {
    const peer = new RawPeer();
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.uint8Array({ minLength: 1, maxLength: 200 }), async (isPolite, bytes) => {
        const stream = peer.call();
        if (isPolite) stream.write(hello);
        stream.end(bytes);
        stream.resume();
        await once(stream, 'close');
      }),
      { numRuns: 40 },
    );
    peer.close();
  });

  it.each<[string, Record<string, string>, number]>([
    ['another path', { ':path': '/other' }, 404],
    ['JSON', { 'content-type': 'application/grpc+json' }, 404],
    ['the Connect protocol', { 'content-type': 'application/connect+proto' }, 404],
  ])('finds nothing else there: %s', async (_, headers, status) => {
    const peer = new RawPeer();
    const stream = peer.call(headers);
    const [answer] = (await once(stream, 'response')) as [{ ':status'?: number }];
    expect(answer[':status']).toBe(status);
    peer.close();
  });

  it('has no more streams than it needs', async () => {
    const peer = new RawPeer();
    await once(peer.session, 'remoteSettings');
    expect(peer.session.remoteSettings.maxConcurrentStreams).toBe(2);
    peer.close();
  });

  it('keeps nobody else from talking', async () => {
    const raw = [new RawPeer(), new RawPeer()];
    const streams = raw.map((peer) => peer.call());
    for (const stream of streams) stream.write(enveloped(new Uint8Array(50), 60_000));
    const honest = boardOf('honest', {
      ...listener,
      opened: (channel) => channel.offer({ key: 'k', role: 'source', half: { isHeard: true } }),
    });
    honest.dial(`127.0.0.1:${port}`);
    await eventually(() => expect(halves.get('honest/k')).toEqual({ isHeard: true }));
    for (const stream of streams) stream.close(constants.NGHTTP2_CANCEL);
    for (const peer of raw) peer.close();
    honest.stop();
    await eventually(() => expect(closed).toContain('honest Closed'));
  });
});

describe('whoever connects and says nothing', () => {
  it('takes the place of nobody but others who do', async () => {
    let open = 0;
    const idle = Array.from({ length: 100 }, () => {
      const socket = connectTcp(port, '127.0.0.1', () => void open++);
      socket.on('error', () => undefined);
      socket.once('close', () => void open--);
      return socket.resume();
    });
    await eventually(() => expect(open).toBe(64));
    const heard = `while ${open} wait`;
    const opened: ChannelListener['opened'] = (channel) => channel.offer({ key: 'k', role: 'source', half: { heard } });
    const honest = boardOf('honest', { ...listener, opened }, 'honest-2');
    honest.dial(`127.0.0.1:${port}`);
    await eventually(() => expect(halves.get('honest/k')).toEqual({ heard }));
    for (const socket of idle) socket.destroy();
    honest.stop();
  });
});
