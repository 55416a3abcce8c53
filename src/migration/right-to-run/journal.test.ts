import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Entry } from './entry.ts';
import {
  compact,
  decodeJournal,
  encodeGroup,
  encodeRecord,
  JournalDamagedError,
  JournaledMachines,
  type JournalRecord,
} from './journal.ts';
import { ATTEMPT } from './model-world.fixture.ts';
import { standingOf } from './standing.ts';

const about = (podUID: string, entry: JournalRecord['entry'], vm = 'vm'): JournalRecord => ({ vm, podUID, entry });
const bytesOf = (records: readonly JournalRecord[]): Buffer => Buffer.concat(records.map(encodeRecord));

const SOURCE: readonly Entry[] = [
  { kind: 'starting', epoch: 1 },
  { kind: 'started', epoch: 1 },
  { kind: 'machine', event: 'resumed' },
  { kind: 'reserved', attempt: ATTEMPT },
  { kind: 'machine', event: 'stopped' },
  { kind: 'machine', event: 'completed' },
  { kind: 'granted', attempt: ATTEMPT, isPostCopy: false },
  { kind: 'ended', epoch: 1, givenTo: ATTEMPT.target },
];
const TARGET: readonly Entry[] = [
  { kind: 'receiving', attempt: ATTEMPT },
  { kind: 'taken', attempt: ATTEMPT },
  { kind: 'machine', event: 'resumed' },
];
const RECORDS = [...SOURCE.map((entry) => about('a', entry)), ...TARGET.map((entry) => about('b', entry, 'vm ü'))];
const LATER = about('a', { kind: 'unknown', text: '{"kind":"lent","to":"someone"}' });

const standingsOf = (records: readonly JournalRecord[]) => new Map(new JournaledMachines(records).machines());

describe('the journal', () => {
  it('has all of a group, or nothing of it', () => {
    const group = encodeGroup(RECORDS);
    const bytes = Buffer.concat([encodeRecord(LATER), group]);
    expect(decodeJournal(bytes).records).toEqual([LATER, ...RECORDS]);
    for (let cut = bytes.length - group.length; cut < bytes.length; cut += 7) {
      expect(decodeJournal(bytes.subarray(0, cut)).records).toEqual([LATER]);
    }
  });
  it('gives back what was written, with room set aside behind it', () => {
    const bytes = bytesOf(RECORDS);
    const read = decodeJournal(Buffer.concat([bytes, Buffer.alloc(100)]));
    expect(read).toEqual({ records: RECORDS, bytesCount: bytes.length, isTorn: false });
  });

  it('drops a last record that was torn, wherever that was', () => {
    const whole = bytesOf(RECORDS.slice(0, -1));
    const last = encodeRecord(RECORDS.at(-1) as JournalRecord);
    for (let length = 1; length < last.length; length++) {
      const torn = Buffer.concat([whole, last.subarray(0, length)]);
      const zeros = Buffer.alloc(last.length - length);
      for (const bytes of [torn, Buffer.concat([torn, zeros])]) {
        expect(decodeJournal(bytes)).toEqual({ records: RECORDS.slice(0, -1), bytesCount: whole.length, isTorn: true });
      }
    }
  });

  it('attests nothing once it was changed before its end', () => {
    const bytes = bytesOf(RECORDS);
    const ends = bytes.length - encodeRecord(RECORDS.at(-1) as JournalRecord).length;
    fc.assert(
      fc.property(fc.integer({ min: 0, max: ends - 1 }), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        const changed = Buffer.from(bytes);
        changed[at] = (changed[at] as number) ^ flip;
        expect(() => decodeJournal(changed)).toThrow(JournalDamagedError);
      }),
    );
  });

  it('keeps what a later version wrote, and concludes nothing about that pod', () => {
    const read = decodeJournal(bytesOf([...RECORDS, LATER])).records;
    expect(read.at(-1)).toEqual(LATER);
    expect(standingsOf(read).get('vm')?.get('a')).toEqual({ kind: 'unknown' });
    expect(standingsOf(read).get('vm ü')?.get('b')).toMatchObject({ kind: 'holding', epoch: 2 });
    const again = decodeJournal(bytesOf(compact(read))).records;
    expect(again.filter((record) => record.podUID === 'a')).toEqual([...RECORDS.slice(0, SOURCE.length), LATER]);
  });

  it('amounts to the same when it is compacted, at any point', () => {
    for (let count = 0; count <= RECORDS.length; count++) {
      const records = RECORDS.slice(0, count);
      const fewer = decodeJournal(bytesOf(compact(records))).records;
      expect(standingsOf(fewer)).toEqual(standingsOf(records));
      expect(fewer.length).toBeLessThanOrEqual(2);
      expect(standingsOf([...fewer, ...RECORDS.slice(count)])).toEqual(standingsOf(RECORDS));
    }
  });

  it('remembers the last machines that were deleted, in their order, and forgets those before', () => {
    const ended = (vm: string): JournalRecord => ({ vm, podUID: `pod of ${vm}`, entry: { kind: 'ended', epoch: 1 } });
    const deleted = (vm: string): JournalRecord => ({ vm, podUID: '', entry: { kind: 'forgotten' } });
    const vms = Array.from({ length: 502 }, (_, index) => `vm ${index}`);
    // The first of them comes back with data that is restored, and is deleted again.
    const records = [...[...vms].reverse().map(ended), ...vms.map(deleted).slice(0, 500), ended('vm 0')];
    const all = [...records, ...[...vms.slice(500), 'vm 0'].map(deleted)];
    for (const journal of [all, compact(all)]) {
      const journaled = new JournaledMachines(journal);
      expect([...journaled.machines()].map(([vm]) => vm)).toEqual([...vms.slice(2), 'vm 0'].slice(-500));
      expect(journaled.vmOf('pod of vm 1')).toBeUndefined();
      expect(journaled.isDeleted('vm 0')).toBe(true);
      expect(journaled.podsOf('vm 0').get('pod of vm 0')).toMatchObject({ kind: 'ended' });
    }
    const back = new JournaledMachines([...compact(all), ended('vm 7')]);
    expect(back.isDeleted('vm 7')).toBe(false);
  });

  it.each<Entry>([
    { kind: 'starting', epoch: 1 },
    { kind: 'receiving', attempt: ATTEMPT },
  ])('reads what an earlier version wrote of a pod that came back after it had forgotten its machine: %j', (entry) => {
    const before = ['a', 'b'].map((pod) => about(pod, { kind: 'ended', epoch: 1 }));
    const after = ['a', 'b'].map((pod) => about(pod, entry));
    const records = [...before, about('', { kind: 'forgotten' }), ...after];
    for (const journal of [records, compact(records)]) expect(standingsOf(journal)).toEqual(standingsOf(after));
    expect(() => standingsOf([...before, ...after])).toThrow('after "ended"');
  });

  it('takes no record that is longer than what is set aside for one', () => {
    expect(() => encodeRecord(about('x'.repeat(20_000), { kind: 'starting', epoch: 1 }))).toThrow('does not fit');
  });

  it('keeps on both sides that a guest went ahead of its memory, as long as that is to be told', () => {
    const source: Entry[] = [
      { kind: 'starting', epoch: 1 },
      { kind: 'started', epoch: 1 },
      { kind: 'reserved', attempt: ATTEMPT },
      { kind: 'granted', attempt: ATTEMPT, isPostCopy: true },
      { kind: 'ended', epoch: 1, givenTo: ATTEMPT.target },
    ];
    const target: Entry[] = [
      { kind: 'receiving', attempt: ATTEMPT },
      { kind: 'taken', attempt: ATTEMPT, isPostCopy: true },
    ];
    expect(standingOf(source)).toMatchObject({ kind: 'ended', isPostCopy: true });
    expect(standingOf(target)).toMatchObject({ kind: 'holding', isPostCopy: true });
    expect(standingOf([...target, { kind: 'ended', epoch: 2 }])).not.toHaveProperty('isPostCopy');
  });

  it('refuses entries that cannot follow', () => {
    expect(() => standingsOf([about('b', { kind: 'taken', attempt: ATTEMPT })])).toThrow('"taken" after "none"');
    const refused: Entry[] = [
      { kind: 'receiving', attempt: ATTEMPT },
      { kind: 'refused', attempt: ATTEMPT },
      { kind: 'taken', attempt: ATTEMPT },
    ];
    expect(() => standingsOf(refused.map((entry) => about('b', entry)))).toThrow('"taken" after "refused"');
  });
});
