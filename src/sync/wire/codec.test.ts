import { BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SyncError } from '../channel.ts';
import { decodeFrame, encodeFrame } from './codec.ts';
import { CONTENT_BYTES_MAX, type Frame, FRAME_BYTES_MAX, UNANSWERED_MAX } from './frame.ts';

const id = fc.stringMatching(/^[A-Za-z0-9._-]{1,64}$/);
const seq = fc.integer({ min: 1, max: Number.MAX_SAFE_INTEGER });
const which = { seq, key: fc.string({ minLength: 1, maxLength: 100 }), role: fc.constantFrom('source', 'target') };
const resume = fc.record({ incarnation: id, seq: fc.nat(), unanswered: fc.array(seq, { maxLength: UNANSWERED_MAX }) });
const introduction = {
  clusterId: id,
  incarnation: id,
  resume: fc.option(resume, { nil: undefined }),
  bundle: fc.string({ maxLength: 500 }),
};
const range = fc.record({ min: fc.integer({ min: 1, max: 9 }), more: fc.nat(9) });

const frames = fc.oneof(
  fc.record({
    kind: fc.constant('hello'),
    versions: range.map(({ min, more }) => ({ min, max: min + more })),
    ...introduction,
  }),
  fc.record({ kind: fc.constant('welcome'), version: fc.integer({ min: 1, max: 2 ** 32 - 1 }), ...introduction }),
  fc.record({
    kind: fc.constant('goodbye'),
    code: fc.string({ maxLength: 64 }),
    message: fc.string({ maxLength: 99 }),
  }),
  fc.record({
    kind: fc.constant('update'),
    ...which,
    content: fc.record({ kind: fc.constantFrom('snapshot', 'delta'), json: fc.uint8Array({ maxLength: 500 }) }),
  }),
  fc.record({ kind: fc.constant('gone'), ...which }),
  fc.record({ kind: fc.constant('ack'), seqs: fc.array(seq, { maxLength: UNANSWERED_MAX }) }),
  fc.record({ kind: fc.constant('refused'), seq, reason: fc.stringMatching(/^[A-Za-z]{1,64}$/), message: fc.string() }),
  fc.record({ kind: fc.constant('ping') }),
  fc.record({ kind: fc.constant('bundle'), bundle: fc.string({ maxLength: 500 }) }),
) as fc.Arbitrary<Frame>;

/** What decoding comes to: a frame, or the one kind of error there is. Anything else fails the test. */
function outcome(bytes: Uint8Array): Frame | 'violation' {
  try {
    return decodeFrame(bytes);
  } catch (error) {
    if (error instanceof SyncError && error.code === 'ProtocolViolation') return 'violation';
    throw error;
  }
}

describe('frames', () => {
  it('come out as they went in', () => {
    fc.assert(
      fc.property(frames, (frame) => {
        expect(decodeFrame(encodeFrame(frame))).toEqual(frame);
      }),
      { numRuns: 300 },
    );
  });

  it('of any bytes are frames or violations', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => void outcome(bytes)),
      { numRuns: 1_000 },
    );
  });

  it('that were tampered with are frames or violations, and what is a frame can be sent', () => {
    const cuts = fc.array(fc.record({ at: fc.nat(), with: fc.uint8Array({ maxLength: 6 }), drop: fc.nat(6) }), {
      minLength: 1,
      maxLength: 4,
    });
    fc.assert(
      fc.property(frames, cuts, (frame, cuts) => {
        let bytes = [...encodeFrame(frame)];
        for (const cut of cuts) bytes = bytes.toSpliced(cut.at % (bytes.length + 1), cut.drop, ...cut.with);
        const result = outcome(Uint8Array.from(bytes));
        if (result !== 'violation') expect(decodeFrame(encodeFrame(result))).toEqual(result);
      }),
      { numRuns: 1_000 },
    );
  });

  it('that say to be longer than they are cost nothing', () => {
    const huge = new BinaryWriter().tag(4, WireType.LengthDelimited).uint32(0xffff_ffff).finish();
    expect(outcome(huge)).toBe('violation');
    const inner = new BinaryWriter().tag(5, WireType.LengthDelimited).uint32(0x7fff_ffff).finish();
    expect(outcome(new BinaryWriter().tag(4, WireType.LengthDelimited).bytes(inner).finish())).toBe('violation');
  });

  it('with groups in groups in groups are no way to exhaust the stack', () => {
    expect(outcome(new Uint8Array(FRAME_BYTES_MAX).fill(0x7b))).toBe('violation');
  });

  it('that are too long are not looked at', () => {
    expect(outcome(new Uint8Array(FRAME_BYTES_MAX + 1))).toBe('violation');
  });
});

describe('what a frame may say', () => {
  const update: Frame = {
    kind: 'update',
    seq: 1,
    key: 'k',
    role: 'source',
    content: { kind: 'snapshot', json: new Uint8Array(CONTENT_BYTES_MAX) },
  };
  const hello: Frame = {
    kind: 'hello',
    versions: { min: 1, max: 1 },
    clusterId: 'a',
    incarnation: 'b',
    resume: undefined,
    bundle: '',
  };
  it.each<[string, Frame]>([
    ['a key is missing', { ...update, key: '' }],
    ['a key is too long', { ...update, key: 'k'.repeat(513) }],
    ['numbers begin with 1', { ...update, seq: 0 }],
    ['a half is too large', { ...update, content: { kind: 'delta', json: new Uint8Array(CONTENT_BYTES_MAX + 1) } }],
    ['a range is upside down', { ...hello, versions: { min: 2, max: 1 } }],
    ['a version is none', { ...hello, versions: { min: 0, max: 1 } }],
    ['an id has spaces', { ...hello, clusterId: 'a b' }],
    ['an id is empty', { ...hello, clusterId: '' }],
    ['an id is too long', { ...hello, incarnation: 'a'.repeat(65) }],
    ['a bundle is too long', { ...hello, bundle: 'a'.repeat(17_000) }],
    ['too much is unanswered', { ...hello, resume: { incarnation: 'a', seq: 1, unanswered: Array(129).fill(1) } }],
    ['too much is acknowledged', { kind: 'ack', seqs: Array(129).fill(1) }],
    ['a reason is no word', { kind: 'refused', seq: 1, reason: 'a b', message: '' }],
    ['a message is too long', { kind: 'refused', seq: 1, reason: 'A', message: 'a'.repeat(1_025) }],
  ])('not that %s', (_, frame) => expect(outcome(encodeFrame(frame))).toBe('violation'));

  it('a half of the largest size', () => expect(outcome(encodeFrame(update))).toEqual(update));
  it('nothing at all', () => expect(outcome(new Uint8Array())).toBe('violation'));
  it('nothing that nobody knows', () => {
    const unknown = new BinaryWriter().tag(99, WireType.LengthDelimited).bytes(new Uint8Array(3)).finish();
    expect(outcome(unknown)).toBe('violation');
  });
  it('more than this version knows, beside what it does', () => {
    const more = new BinaryWriter().tag(99, WireType.Varint).uint32(5).finish();
    expect(outcome(Buffer.concat([encodeFrame({ kind: 'ping' }), more]))).toEqual({ kind: 'ping' });
  });
});
