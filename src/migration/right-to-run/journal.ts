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
  /** UID of the virtual machine: that it was deleted (`forgotten`) is what lets its records go, in their time. */
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

/**
 * Of how many machines that were deleted it is still known what became of their pods: data that is restored may bring
 * them back, and nobody else could say that they are over.
 */
const DELETED_MAX = 500;

/** What a journal amounts to so far, by virtual machine and pod. */
export class JournaledMachines {
  readonly #machines = new Map<string, Map<string, JournaledStanding>>();
  readonly #vms = new Map<string, string>();
  /** Those that were deleted, the last at the end. */
  readonly #deleted = new Set<string>();
  /** Pods of machines that were deleted, of which nothing was written since. */
  readonly #forgotten = new Set<string>();

  constructor(records: Iterable<JournalRecord> = []) {
    for (const record of records) this.add(record);
  }

  /** Throws when the entry cannot follow what is there. */
  add({ vm, podUID, entry }: JournalRecord): void {
    if (entry.kind === 'forgotten') return this.#delete(vm);
    const pods = this.#machines.get(vm) ?? new Map<string, JournaledStanding>();
    const known = pods.get(podUID) ?? NO_STANDING;
    // An earlier version forgot pods with their machines: to it, one that came back had never been there.
    const isAnew = this.#forgotten.delete(podUID) && isFirst(entry) && known.kind !== 'unknown';
    pods.set(podUID, following(isAnew ? NO_STANDING : known, entry));
    this.#machines.set(vm, pods);
    this.#vms.set(podUID, vm);
    // One that came back, whose machine has another guest.
    this.#deleted.delete(vm);
  }

  /** All that is known of a virtual machine, by pod. */
  podsOf(vm: string): ReadonlyMap<string, JournaledStanding> {
    return this.#machines.get(vm) ?? new Map<string, JournaledStanding>();
  }

  /** The virtual machine that a pod is of; undefined for pods that nobody knows. */
  vmOf(podUID: string): string | undefined {
    return this.#vms.get(podUID);
  }

  /** Whether the virtual machine was deleted, and has not come back. */
  isDeleted(vm: string): boolean {
    return this.#deleted.has(vm);
  }

  /** All of them, those that were deleted last, in that order. */
  *machines(): Generator<readonly [vm: string, pods: ReadonlyMap<string, JournaledStanding>]> {
    for (const [vm, pods] of this.#machines) if (!this.#deleted.has(vm)) yield [vm, pods];
    for (const vm of this.#deleted) yield [vm, this.podsOf(vm)];
  }

  #delete(vm: string): void {
    if (!this.#machines.has(vm)) return;
    this.#deleted.delete(vm);
    this.#deleted.add(vm);
    for (const podUID of this.podsOf(vm).keys()) this.#forgotten.add(podUID);
    const [oldest = ''] = this.#deleted;
    if (this.#deleted.size <= DELETED_MAX) return;
    for (const podUID of this.podsOf(oldest).keys()) {
      this.#vms.delete(podUID);
      this.#forgotten.delete(podUID);
    }
    this.#machines.delete(oldest);
    this.#deleted.delete(oldest);
  }
}

/** Whether an entry is the first of a pod. */
function isFirst({ kind }: JournalRecord['entry']): boolean {
  return kind === 'starting' || kind === 'receiving';
}

/** Where a pod stands after an entry. Throws when it cannot follow. */
export function following(before: JournaledStanding, entry: JournalRecord['entry']): JournaledStanding {
  if (entry.kind === 'forgotten') return NO_STANDING;
  if (before.kind === 'unknown' || entry.kind === 'unknown') return { kind: 'unknown' };
  return entry.kind === 'standing' ? entry.standing : advance(before, entry);
}

/**
 * One record for each pod, which says where it stands, and one for each machine that was deleted. What a later version
 * wrote is kept whole. They are written to a new file, which then takes the place of the old one.
 */
export function compact(records: readonly JournalRecord[]): readonly JournalRecord[] {
  const result: JournalRecord[] = [];
  const journaled = new JournaledMachines(records);
  for (const [vm, pods] of journaled.machines()) {
    for (const [podUID, standing] of pods) {
      if (standing.kind === 'unknown')
        result.push(...records.filter((record) => record.vm === vm && record.podUID === podUID));
      else result.push({ vm, podUID, entry: { kind: 'standing', standing } });
    }
    if (journaled.isDeleted(vm)) result.push({ vm, podUID: '', entry: { kind: 'forgotten' } });
  }
  return result;
}
