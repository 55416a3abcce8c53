import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { unreachable } from '../../api/unreachable.ts';
import { type Role, SyncError } from '../channel.ts';
import {
  BUNDLE_LENGTH_MAX,
  CONTENT_BYTES_MAX,
  type Frame,
  FRAME_BYTES_MAX,
  ID_LENGTH_MAX,
  type Introduction,
  KEY_LENGTH_MAX,
  MESSAGE_LENGTH_MAX,
  REASON_LENGTH_MAX,
  type Resume,
  UNANSWERED_MAX,
} from './frame.ts';
import {
  type FrameBody,
  type FrameMessage,
  frameSchema,
  type IntroductionMessage,
  type ResumeMessage,
  ROLE_SOURCE,
  ROLE_TARGET,
} from './schema.ts';

/**
 * Frames to protobuf messages and back. What comes back is checked field by field, so that nobody behind it has to
 * think about lengths and ranges; whatever is wrong is a `ProtocolViolation`, and nothing else is ever thrown.
 */

/** The bytes of a frame. */
export function encodeFrame(frame: Frame): Uint8Array {
  return toBinary(frameSchema, messageOf(frame));
}

/** The frame in the bytes. */
export function decodeFrame(bytes: Uint8Array): Frame {
  if (bytes.length > FRAME_BYTES_MAX) throw violation(`a frame of ${bytes.length} bytes is too long`);
  let message: FrameMessage;
  try {
    message = fromBinary(frameSchema, bytes, { readUnknownFields: false });
  } catch (error) {
    throw violation('a frame is no protobuf message of the protocol', error);
  }
  return frameOf(message);
}

/** A frame as the message that is sent. */
export function messageOf(frame: Frame): FrameMessage {
  return create(frameSchema, { body: bodyOf(frame) });
}

function bodyOf(frame: Frame): FrameBody {
  switch (frame.kind) {
    case 'hello': {
      const { min: versionMin, max: versionMax } = frame.versions;
      return { case: 'hello', value: { versionMin, versionMax, ...introductionMessage(frame) } };
    }
    case 'welcome':
      return { case: 'welcome', value: { version: frame.version, ...introductionMessage(frame) } };
    case 'goodbye':
      return { case: 'goodbye', value: { code: frame.code, message: frame.message } };
    case 'update': {
      const { kind, json } = frame.content;
      return { case: 'update', value: { ...numbered(frame), content: { case: kind, value: json } } };
    }
    case 'gone':
      return { case: 'gone', value: numbered(frame) };
    case 'ack':
      return { case: 'ack', value: { seqs: frame.seqs.map(BigInt) } };
    case 'refused':
      return { case: 'refused', value: { seq: BigInt(frame.seq), reason: frame.reason, message: frame.message } };
    case 'ping':
      return { case: 'ping', value: {} };
    case 'bundle':
      return { case: 'bundle', value: { bundle: frame.bundle } };
    default:
      return unreachable(frame);
  }
}

function introductionMessage({ clusterId, incarnation, resume, bundle }: Introduction): IntroductionMessage {
  const heard = resume && {
    incarnation: resume.incarnation,
    seq: BigInt(resume.seq),
    unanswered: resume.unanswered.map(BigInt),
  };
  return { clusterId, incarnation, bundle, ...(heard ? { resume: heard } : {}) };
}

function numbered({ seq, key, role }: { seq: number; key: string; role: Role }): {
  seq: bigint;
  key: string;
  role: number;
} {
  return { seq: BigInt(seq), key, role: role === 'source' ? ROLE_SOURCE : ROLE_TARGET };
}

/** A message that was received as the frame that it is. */
export function frameOf({ body }: FrameMessage): Frame {
  switch (body.case) {
    case 'hello': {
      const { versionMin: min, versionMax: max } = body.value;
      if (min < 1 || max < min) throw violation(`versions from ${min} to ${max} are no range`);
      return { kind: 'hello', versions: { min, max }, ...introductionOf(body.value) };
    }
    case 'welcome':
      if (body.value.version < 1) throw violation('a welcome without a version');
      return { kind: 'welcome', version: body.value.version, ...introductionOf(body.value) };
    case 'goodbye':
      // What a peer says last is for people, who are served best by as much of it as there is room for.
      return {
        kind: 'goodbye',
        code: body.value.code.slice(0, REASON_LENGTH_MAX),
        message: body.value.message.slice(0, MESSAGE_LENGTH_MAX),
      };
    case 'update':
      return { kind: 'update', ...whichOf(body.value), content: contentOf(body.value.content) };
    case 'gone':
      return { kind: 'gone', ...whichOf(body.value) };
    case 'ack':
      return { kind: 'ack', seqs: seqsOf(body.value.seqs) };
    case 'refused': {
      const { seq, reason, message } = body.value;
      if (!/^[A-Za-z]+$/.test(reason)) throw violation('a refusal without a reason');
      checkLength('the reason of a refusal', reason, REASON_LENGTH_MAX);
      checkLength('the message of a refusal', message, MESSAGE_LENGTH_MAX);
      return { kind: 'refused', seq: seqOf(seq), reason, message };
    }
    case 'ping':
      return { kind: 'ping' };
    case 'bundle':
      checkLength('a bundle', body.value.bundle, BUNDLE_LENGTH_MAX);
      return { kind: 'bundle', bundle: body.value.bundle };
    case undefined:
      throw violation('a frame of a kind that nobody here knows');
    default:
      return unreachable(body);
  }
}

function introductionOf({ clusterId, incarnation, resume, bundle }: IntroductionMessage): Introduction {
  checkId('a cluster id', clusterId);
  checkId('an incarnation', incarnation);
  checkLength('a bundle', bundle, BUNDLE_LENGTH_MAX);
  return { clusterId, incarnation, bundle, resume: resume && resumeOf(resume) };
}

function resumeOf({ incarnation, seq, unanswered }: ResumeMessage): Resume {
  checkId('an incarnation', incarnation);
  // Nothing at all may have been heard of it yet.
  return { incarnation, seq: seq === 0n ? 0 : seqOf(seq), unanswered: seqsOf(unanswered) };
}

function whichOf({ seq, key, role }: { seq: bigint; key: string; role: number }): {
  seq: number;
  key: string;
  role: Role;
} {
  if (key === '') throw violation('a half without a key');
  checkLength('a key', key, KEY_LENGTH_MAX);
  if (role !== ROLE_SOURCE && role !== ROLE_TARGET) throw violation(`a half of the role ${role}`);
  return { seq: seqOf(seq), key, role: role === ROLE_SOURCE ? 'source' : 'target' };
}

function contentOf(content: { case?: 'snapshot' | 'delta' | undefined; value?: Uint8Array | undefined }): {
  kind: 'snapshot' | 'delta';
  json: Uint8Array;
} {
  if (content.case === undefined || content.value === undefined) throw violation('an update without content');
  const { length } = content.value;
  if (length > CONTENT_BYTES_MAX) throw violation(`a half of ${length} bytes is larger than ${CONTENT_BYTES_MAX}`);
  return { kind: content.case, json: content.value };
}

function seqsOf(seqs: readonly bigint[]): number[] {
  if (seqs.length > UNANSWERED_MAX) throw violation(`${seqs.length} numbers at once are more than ${UNANSWERED_MAX}`);
  return seqs.map(seqOf);
}

function seqOf(seq: bigint): number {
  if (seq < 1n || seq > BigInt(Number.MAX_SAFE_INTEGER)) throw violation(`the number ${seq} is out of range`);
  return Number(seq);
}

function checkId(what: string, text: string): void {
  if (!/^[A-Za-z0-9._-]+$/.test(text)) throw violation(`${what} of other characters than ids have`);
  checkLength(what, text, ID_LENGTH_MAX);
}

function checkLength(what: string, text: string, max: number): void {
  if (text.length > max) throw violation(`${what} of ${text.length} characters is longer than ${max}`);
}

/** What a peer that does not keep to the protocol is told. */
export function violation(message: string, cause?: unknown): SyncError {
  return new SyncError('ProtocolViolation', `the peer does not keep to the protocol: ${message}`, cause);
}
