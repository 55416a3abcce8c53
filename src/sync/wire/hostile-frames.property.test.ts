import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { turn } from '../../env/turn.ts';
import { Refusal } from '../channel.ts';
import { CONTENT_BYTES_MAX, type Frame } from './frame.ts';
import { Inbox } from './inbox.ts';
import type { Link, LinkHandlers } from './link.ts';
import { Switchboard } from './switchboard.ts';

/** A peer with a good certificate that says what it likes. */
class Hostile implements Link {
  readonly peer = 'hostile';
  readonly validUntilMs = Number.POSITIVE_INFINITY;
  readonly heard: Frame[] = [];
  isClosed = false;
  #handlers: LinkHandlers | undefined;

  check(): void {
    // Its certificate is good.
  }

  listen(handlers: LinkHandlers): void {
    this.#handlers = handlers;
  }

  send(frame: Frame): void {
    if (!this.isClosed) this.heard.push(frame);
  }

  close(): void {
    this.isClosed = true;
  }

  say(frame: Frame): void {
    if (!this.isClosed) this.#handlers?.frame(frame);
  }
}

interface Scene {
  readonly hostile: Hostile;
  readonly board: Switchboard;
  readonly log: string[];
}

function scene(env = testEnv()): Scene {
  const hostile = new Hostile();
  const log: string[] = [];
  const board = new Switchboard({
    env,
    network: { connect: async () => hostile },
    clusterId: 'own',
    incarnation: 'own-1',
    bundle: () => '',
    renewed: () => void log.push('renewed'),
    listener: {
      received: async (_, { key }) => {
        if (key === 'unwanted') throw new Refusal('Unwanted', 'no');
        if (key === 'stuck') await new Promise(() => undefined);
        log.push(`received ${key}`);
      },
      acknowledged: (_, { key }) => void log.push(`acknowledged ${key}`),
      refused: (_, { key }) => void log.push(`refused ${key}`),
      opened: (channel) => {
        log.push('opened');
        channel.offer({ key: 'ours', role: 'target', half: { secret: 1 } });
      },
      closed: (_, { code }) => void log.push(`closed ${code}`),
      reached: () => undefined,
      unreachable: () => undefined,
    },
  });
  return { hostile, board, log };
}

const hello: Frame = {
  kind: 'hello',
  versions: { min: 1, max: 1 },
  clusterId: 'hostile',
  incarnation: 'h-1',
  resume: undefined,
  bundle: 'what is no bundle',
};

const seq = fc.oneof(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER }));
const key = fc.constantFrom('a', 'b', 'unwanted', 'stuck', '__proto__');
const role = fc.constantFrom<'source' | 'target'>('source', 'target');
const json = fc
  .oneof(
    fc.constantFrom('{}', '{"a":1}', '{"a":null}', '[]', '1', 'null', '{', '{"__proto__":{}}', '['.repeat(30_000), ''),
    fc.string(),
  )
  .map((text) => Buffer.from(text));
const resume = fc.record({ incarnation: fc.constantFrom('own-1', 'x'), seq: fc.nat(9), unanswered: fc.array(seq) });
const frames: fc.Arbitrary<Frame> = fc.oneof(
  fc.constant(hello),
  resume.map((resume): Frame => ({ ...hello, resume })),
  fc.constant<Frame>({ ...hello, clusterId: 'somebody-else' }),
  fc.constant<Frame>({ ...hello, kind: 'welcome', version: 1 }),
  fc.constant<Frame>({ kind: 'goodbye', code: 'Hm', message: '\u001b[31m' }),
  fc.record({
    kind: fc.constant('update' as const),
    seq,
    key,
    role,
    content: fc.record({ kind: fc.constantFrom('snapshot' as const, 'delta' as const), json }),
  }),
  fc.record({ kind: fc.constant('gone' as const), seq, key, role }),
  fc.record({ kind: fc.constant('ack' as const), seqs: fc.array(seq, { maxLength: 5 }) }),
  fc.record({ kind: fc.constant('refused' as const), seq, reason: fc.constant('No'), message: fc.string() }),
  fc.constant<Frame>({ kind: 'ping' }),
  fc.record({ kind: fc.constant('bundle' as const), bundle: fc.string() }),
);

describe('a peer that says what it likes', () => {
  it('is heard, or told that it breaks the protocol, and nothing else happens', async () => {
    await fc.assert(
      fc.asyncProperty(fc.boolean(), fc.array(frames, { maxLength: 12 }), async (isPolite, frames) => {
        const { hostile, board, log } = scene();
        board.accept(hostile);
        for (const frame of isPolite ? [hello, ...frames] : frames) {
          hostile.say(frame);
          await turn();
        }
        const last = hostile.heard.at(-1);
        if (hostile.isClosed && last?.kind === 'goodbye')
          expect(['ProtocolViolation', 'NotTrusted']).toContain(last.code);
        // Nothing was said to, or believed of, somebody who has not introduced himself.
        if (!log.includes('opened')) expect(log).toEqual([]);
        expect(board.channel('hostile')?.isOpen ?? false).toBe(!hostile.isClosed && log.includes('opened'));
        board.stop();
      }),
      { numRuns: 500 },
    );
  });

  it('cannot have more under way than the window, however little is answered', async () => {
    const { hostile, board, log } = scene();
    board.accept(hostile);
    hostile.say(hello);
    const content = { kind: 'snapshot' as const, json: Buffer.from('{}') };
    for (let seq = 1; seq <= 65; seq++) hostile.say({ kind: 'update', seq, key: 'stuck', role: 'source', content });
    await turn();
    expect(hostile.heard.at(-1)).toMatchObject({ kind: 'goodbye', code: 'ProtocolViolation' });
    expect(log).toEqual(expect.arrayContaining(['closed ProtocolViolation']));
  });

  it.each<[string, Frame[]]>([
    ['says hello twice', [hello, hello]],
    ['speaks before it says hello', [{ kind: 'ack', seqs: [] }]],
    ['welcomes whom it has called', [{ ...hello, kind: 'welcome', version: 1 }]],
    ['says to be another one', [{ ...hello, clusterId: 'somebody-else' }]],
    ['has heard what was not said', [{ ...hello, resume: { incarnation: 'own-1', seq: 9, unanswered: [] } }]],
    ['answers what was not said', [hello, { kind: 'ack', seqs: [2] }]],
    [
      'says authorities again and again',
      [hello, ...Array.from({ length: 17 }, (): Frame => ({ kind: 'bundle', bundle: 'x' }))],
    ],
    ['leaves out a number', [hello, gone(1), gone(3)]],
    ['says a number twice', [hello, gone(1), gone(1)]],
  ])('is told so when it %s', async (_, frames) => {
    const { hostile, board } = scene();
    board.accept(hostile);
    for (const frame of frames) hostile.say(frame);
    await turn();
    expect(hostile.isClosed).toBe(true);
    expect(hostile.heard.at(-1)).toMatchObject({ kind: 'goodbye' });
  });
});

function gone(seq: number): Frame {
  return { kind: 'gone', seq, key: 'a', role: 'source' };
}

it('a stream ends with the certificate that it was opened with', () => {
  const env = testEnv();
  const { hostile, board, log } = scene(env);
  Object.assign(hostile, { validUntilMs: env.clock.now() + 60_000 });
  board.accept(hostile);
  hostile.say(hello);
  for (let seconds = 0; seconds < 59; seconds++) {
    env.clock.advance(1_000);
    hostile.say({ kind: 'ping' });
  }
  expect(log).not.toContain('closed Closed');
  env.clock.advance(1_000);
  expect(log).toContain('closed Closed');
  expect(hostile.heard.at(-1)).toMatchObject({ kind: 'goodbye', code: 'Closed' });
});

describe('what is remembered of a peer', () => {
  const content = (kind: 'snapshot' | 'delta', half: object) => ({ kind, json: Buffer.from(JSON.stringify(half)) });

  const remembering = (limits?: { readonly entries: number; readonly bytes: number }) => {
    const answers: (string | number)[] = [];
    const inbox = new Inbox({
      deliver: async () => undefined,
      failed: () => undefined,
      answer: ({ seq, refusal }) => void answers.push(refusal?.reason ?? seq),
      ...(limits ? { limits } : {}),
    });
    inbox.begin('h-1', undefined);
    let seq = 0;
    return async (key: string, kind: 'snapshot' | 'delta', half: object): Promise<string | number | undefined> => {
      inbox.hear({ kind: 'update', seq: ++seq, key, role: 'source', content: content(kind, half) });
      await turn();
      return answers.at(-1);
    };
  };

  it('is bounded in halves and in bytes: what has not been heard of for longest is forgotten, and said anew', async () => {
    const hear = remembering({ entries: 2, bytes: 1_000 });
    expect(await hear('a', 'snapshot', {})).toBe(1);
    expect(await hear('b', 'snapshot', {})).toBe(2);
    expect(await hear('a', 'delta', { text: 'x'.repeat(100) })).toBe(3);
    expect(await hear('c', 'snapshot', {})).toBe(4);
    expect(await hear('b', 'delta', { x: 1 })).toBe('SnapshotWanted');
    expect(await hear('a', 'delta', { x: 1 })).toBe(6);
    expect(await hear('c', 'delta', { text: 'x'.repeat(950) })).toBe(7);
    expect(await hear('a', 'delta', { x: 2 })).toBe('SnapshotWanted');
    expect(await hear('a', 'snapshot', { x: 2 })).toBe(9);
  });

  it('takes in new pairs for ever, though nobody says of those that are over that they are gone', async () => {
    const hear = remembering();
    for (let pair = 1; pair <= 5_000; pair++) expect(await hear(`key-${pair}`, 'snapshot', { pair })).toBe(pair);
  });

  it('does not grow by deltas beyond what a half may be', () => {
    const inbox = new Inbox({ deliver: async () => undefined, failed: () => undefined, answer: () => undefined });
    inbox.begin('h-1', undefined);
    const text = 'x'.repeat(CONTENT_BYTES_MAX / 2);
    const frame = { kind: 'update' as const, key: 'a', role: 'source' as const };
    inbox.hear({ ...frame, seq: 1, content: content('snapshot', { a: text }) });
    expect(() => inbox.hear({ ...frame, seq: 2, content: content('delta', { b: text }) })).toThrow('is larger than');
  });

  it('is asked for anew where a delta has nothing to be applied to', async () => {
    const answers: unknown[] = [];
    const inbox = new Inbox({
      deliver: async () => undefined,
      failed: () => undefined,
      answer: (answer) => void answers.push(answer),
    });
    inbox.begin('h-1', undefined);
    inbox.hear({ kind: 'update', seq: 1, key: 'a', role: 'source', content: content('delta', { b: 1 }) });
    await turn();
    expect(answers).toMatchObject([{ seq: 1, refusal: { reason: 'SnapshotWanted' } }]);
  });
});
