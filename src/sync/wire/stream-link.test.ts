import { Code, ConnectError } from '@connectrpc/connect';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import { turn } from '../../env/turn.ts';
import type { SyncError } from '../channel.ts';
import { messageOf } from './codec.ts';
import type { Frame } from './frame.ts';
import type { FrameMessage } from './schema.ts';
import { FAREWELL_MS, StreamLink } from './stream-link.ts';

interface Scene {
  readonly link: StreamLink;
  readonly clock: ManualClock;
  readonly ends: SyncError[];
  readonly frames: Frame[];
  readonly sent: AsyncIterator<FrameMessage>;
  readonly isDestroyed: () => boolean;
}

/** A link to a peer that says this, and hears only what the test takes out of `sent`. */
function scene(said: () => AsyncIterable<FrameMessage>): Scene {
  const clock = new ManualClock();
  let isDestroyed = false;
  const link = new StreamLink({
    clock,
    peer: { clusterId: 'a', validUntilMs: 0 },
    check: () => undefined,
    incoming: said,
    destroy: () => (isDestroyed = true),
  });
  const [ends, frames]: [SyncError[], Frame[]] = [[], []];
  link.listen({ frame: (frame) => void frames.push(frame), ended: (error) => void ends.push(error) });
  const sent = link.outgoing()[Symbol.asyncIterator]();
  return { link, clock, ends, frames, sent, isDestroyed: () => isDestroyed };
}

async function* silence(): AsyncIterable<FrameMessage> {
  await new Promise(() => undefined);
  yield messageOf({ kind: 'ping' });
}

describe('a link', () => {
  it('gives up a peer that does not read what it is told', async () => {
    const { link, clock, ends, isDestroyed } = scene(silence);
    const content = { kind: 'snapshot' as const, json: new Uint8Array(64 * 1024) };
    for (let seq = 1; seq <= 63; seq++) link.send({ kind: 'update', seq, key: 'k', role: 'source', content });
    expect(ends).toEqual([]);
    for (let seq = 64; seq <= 70; seq++) link.send({ kind: 'update', seq, key: 'k', role: 'source', content });
    expect(ends).toMatchObject([{ code: 'Silent' }]);
    expect(isDestroyed()).toBe(false);
    clock.advance(FAREWELL_MS);
    expect(isDestroyed()).toBe(true);
  });

  it('says its last words before it ends', async () => {
    const { link, sent } = scene(silence);
    link.send({ kind: 'ping' });
    link.send({ kind: 'goodbye', code: 'Closed', message: '' });
    link.close();
    link.send({ kind: 'ping' });
    expect((await sent.next()).value).toEqual(messageOf({ kind: 'ping' }));
    expect((await sent.next()).value).toEqual(messageOf({ kind: 'goodbye', code: 'Closed', message: '' }));
    expect((await sent.next()).done).toBe(true);
  });

  it('hears nothing after what is no frame', async () => {
    const { ends, frames } = scene(async function* () {
      yield messageOf({ kind: 'ping' });
      yield messageOf({ kind: 'ack', seqs: [0] });
      yield messageOf({ kind: 'ping' });
    });
    await turn();
    expect(frames).toEqual([{ kind: 'ping' }]);
    expect(ends).toMatchObject([{ code: 'ProtocolViolation' }]);
  });

  it.each<[string, unknown, string]>([
    ['the peer ends it', undefined, 'Disconnected'],
    ['the peer says what is no message', new ConnectError('parse binary', Code.InvalidArgument), 'ProtocolViolation'],
    ['the peer says too much', new ConnectError('message size', Code.ResourceExhausted), 'ProtocolViolation'],
    ['the peer does not trust us', new ConnectError('who are you', Code.Unauthenticated), 'NotTrusted'],
    ['somebody else is there', new ConnectError('HTTP 404', Code.Unimplemented), 'VersionMismatch'],
    ['the socket breaks', Object.assign(new Error('reset'), { code: 'ECONNRESET' }), 'Disconnected'],
    ['the connection breaks', new ConnectError('closed', Code.Canceled), 'Disconnected'],
  ])('says why it ended: %s', async (_, error, code) => {
    const { ends } = scene(async function* () {
      yield messageOf({ kind: 'ping' });
      if (error) throw error;
    });
    await turn();
    expect(ends).toMatchObject([{ code }]);
  });
});
