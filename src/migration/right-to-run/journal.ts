import { crc32 } from 'node:zlib';
import type { Entry } from './entry.ts';
import { advance, NO_STANDING, type Standing } from './standing.ts';

/**
 * The journal of one agent, as bytes: records are only ever added, each a line of `checksum length text`. What was torn
 * by a crash is the end of the file, and was never acted on: it is dropped. A wrong checksum anywhere else means that
 * the disk lies: then nothing of the journal attests anything.
 *
 * A journal that a later version wrote has entries that this one does not know. They are kept, and their pods are left
 * alone.
 */

/** One record: what is said of a launcher pod of a virtual machine. */
export interface JournalRecord {
  /** UID of the virtual machine: deleting it is what lets its records go. */
  readonly vm: string;
  readonly podUID: string;
  readonly entry: Entry | UnknownEntry | Snapshot | { readonly kind: 'forgotten' };
}

/** An entry of a later version. */
export interface UnknownEntry {
  readonly kind: 'unknown';
  readonly text: string;
}

/** What earlier records amounted to when the journal was compacted. */
export interface Snapshot {
  readonly kind: 'standing';
  readonly standing: Standing;
}

/** What a journal says, and where its next record belongs. */
export interface JournalContents {
  readonly records: readonly JournalRecord[];
  /** Length of what is whole; what lies behind it is to be cut off before anything is added. */
  readonly bytesCount: number;
  readonly isTorn: boolean;
}

/** The file was changed by something other than a crash. */
export class JournalDamagedError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'JournalDamagedError';
  }
}

/** What is never longer, so that it can be set aside before it is known. */
export const RECORD_BYTES_MAX = 16_384;

const NEWLINE = 0x0a;
const SPACE = 0x20;
const HEAD_BYTES = 18;
const KINDS: ReadonlySet<string> = new Set([
  'starting',
  'started',
  'reserved',
  'granted',
  'receiving',
  'taken',
  'refused',
  'regained',
  'aborted',
  'ended',
  'machine',
  'standing',
  'forgotten',
]);

/** The bytes of a record. Throws when it is longer than what is set aside for one. */
export function encodeRecord(record: JournalRecord): Uint8Array {
  return encodeLine(textOf(record));
}

/**
 * The bytes of several records that become durable together, or not at all. One line, since a disk may write the pages
 * of two in any order, and a whole line behind a torn one would look like damage. Throws when it is longer than what is
 * set aside for one record.
 */
export function encodeGroup(records: readonly JournalRecord[]): Uint8Array {
  return encodeLine(`[${records.map(textOf).join(',')}]`);
}

function textOf(record: JournalRecord): string {
  const entry = record.entry.kind === 'unknown' ? record.entry.text : JSON.stringify(record.entry);
  const head = JSON.stringify({ vm: record.vm, podUID: record.podUID });
  return `${head.slice(0, -1)},"entry":${entry}}`;
}

function encodeLine(text: string): Uint8Array {
  const body = Buffer.from(text);
  const length = body.length.toString(16).padStart(8, '0');
  // The length is covered too: else a torn length could make a record of what follows.
  const checksum = crc32(body, crc32(length)).toString(16).padStart(8, '0');
  const bytes = Buffer.concat([Buffer.from(`${checksum} ${length} `), body, Buffer.from([NEWLINE])]);
  if (bytes.length > RECORD_BYTES_MAX) throw new Error(`a record of ${bytes.length} bytes does not fit the journal`);
  return bytes;
}

/** Reads a journal. Zeros at the end are space that was set aside. */
export function decodeJournal(bytes: Uint8Array): JournalContents {
  const records: JournalRecord[] = [];
  let at = 0;
  while (at < bytes.length && bytes[at] !== 0) {
    const end = endOfRecord(bytes, at);
    if (end === undefined) {
      requireTorn(bytes, at);
      return { records, bytesCount: at, isTorn: true };
    }
    const value: unknown = JSON.parse(Buffer.from(bytes.subarray(at + HEAD_BYTES, end - 1)).toString());
    for (const each of Array.isArray(value) ? value : [value]) records.push(recordOf(each, at));
    at = end;
  }
  const isTorn = bytes.subarray(at).some((byte) => byte !== 0);
  if (isTorn) requireTorn(bytes, at);
  return { records, bytesCount: at, isTorn };
}

function endOfRecord(bytes: Uint8Array, at: number): number | undefined {
  const head = Buffer.from(bytes.subarray(at, at + HEAD_BYTES)).toString('latin1');
  if (!/^[0-9a-f]{8} [0-9a-f]{8} $/.test(head)) return undefined;
  const length = Number.parseInt(head.slice(9, 17), 16);
  const end = at + HEAD_BYTES + length + 1;
  if (end > bytes.length || bytes[end - 1] !== NEWLINE || bytes[at + 8] !== SPACE) return undefined;
  const checksum = crc32(bytes.subarray(at + HEAD_BYTES, end - 1), crc32(head.slice(9, 17)));
  return checksum === Number.parseInt(head.slice(0, 8), 16) ? end : undefined;
}

/** Only the last record can be torn: a whole one behind it means that this one was whole once. */
function requireTorn(bytes: Uint8Array, at: number): void {
  for (let next = at + 1; next < bytes.length; next++) {
    if (endOfRecord(bytes, next) !== undefined) {
      throw new JournalDamagedError(`the journal is damaged at byte ${at}, and goes on at ${next}`);
    }
  }
}

function recordOf(value: unknown, at: number): JournalRecord {
  if (typeof value === 'object' && value !== null && 'vm' in value && 'podUID' in value && 'entry' in value) {
    const { vm, podUID, entry } = value;
    if (typeof vm === 'string' && typeof podUID === 'string') return { vm, podUID, entry: known(entry) };
  }
  throw new JournalDamagedError(`the record at byte ${at} is none of a journal`);
}

function known(entry: unknown): JournalRecord['entry'] {
  const isKnown =
    typeof entry === 'object' &&
    entry !== null &&
    'kind' in entry &&
    typeof entry.kind === 'string' &&
    KINDS.has(entry.kind);
  // Behind its checksum an entry of a known kind is what this program wrote.
  return isKnown ? (entry as Entry) : { kind: 'unknown', text: JSON.stringify(entry) };
}

/** Where a pod stands; `unknown` when a later version wrote about it, and nothing may be concluded. */
export type JournaledStanding = Standing | { readonly kind: 'unknown' };

/** What a journal amounts to, by virtual machine and pod. */
export function standingsOf(
  records: Iterable<JournalRecord>,
): ReadonlyMap<string, ReadonlyMap<string, JournaledStanding>> {
  const result = new Map<string, Map<string, JournaledStanding>>();
  for (const { vm, podUID, entry } of records) {
    if (entry.kind === 'forgotten') {
      result.delete(vm);
      continue;
    }
    const pods = result.get(vm) ?? new Map<string, JournaledStanding>();
    result.set(vm, pods);
    const before = pods.get(podUID) ?? NO_STANDING;
    const isUnknown = before.kind === 'unknown' || entry.kind === 'unknown';
    if (isUnknown) pods.set(podUID, { kind: 'unknown' });
    else pods.set(podUID, entry.kind === 'standing' ? entry.standing : advance(before, entry));
  }
  return result;
}

/**
 * One record for each pod, which says where it stands; none for machines that were forgotten. What a later version wrote
 * is kept whole. They are written to a new file, which then takes the place of the old one.
 */
export function compact(records: readonly JournalRecord[]): readonly JournalRecord[] {
  const result: JournalRecord[] = [];
  const standings = standingsOf(records);
  for (const [vm, pods] of standings) {
    for (const [podUID, standing] of pods) {
      if (standing.kind === 'unknown') result.push(...sinceForgotten(records, vm, podUID));
      else result.push({ vm, podUID, entry: { kind: 'standing', standing } });
    }
  }
  return result;
}

function sinceForgotten(records: readonly JournalRecord[], vm: string, podUID: string): JournalRecord[] {
  const last = records.findLastIndex((record) => record.vm === vm && record.entry.kind === 'forgotten');
  return records.slice(last + 1).filter((record) => record.vm === vm && record.podUID === podUID);
}
