import { assert, asyncProperty, nat, uniqueArray } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { silentLogger } from '../../env/test.ts';
import type { Entry } from '../../migration/right-to-run/entry.ts';
import {
  encodeRecord,
  JournalDamagedError,
  type JournalRecord,
  RECORD_BYTES_MAX,
} from '../../migration/right-to-run/journal.ts';
import { JournalFile } from './journal-file.ts';
import { MemoryFile } from './memory-file.fixture.ts';

const say = (podUID: string, entry: Entry): JournalRecord => ({ vm: 'vm', podUID, entry });
const FIRST = encodeRecord(say('a', { kind: 'starting', epoch: 1 }));
const LAST = encodeRecord(say('a', { kind: 'started', epoch: 1 }));
const ROOM = Buffer.alloc(RECORD_BYTES_MAX);

async function standingAfter(...parts: readonly Uint8Array[]): Promise<string> {
  const journal = await JournalFile.open(new MemoryFile(Buffer.concat(parts)), silentLogger);
  return journal.standing('vm', 'a').kind;
}

describe('what a crash leaves of a journal', () => {
  it('is read: some of the last entry, from any places, and zeros between', async () => {
    const holes = uniqueArray(nat(LAST.length - 1), { minLength: 1, maxLength: LAST.length });
    await assert(
      asyncProperty(holes, async (missing) => {
        const torn = Buffer.from(LAST);
        for (const at of missing) torn[at] = 0;
        expect(await standingAfter(FIRST, torn, ROOM)).toBe('starting');
      }),
      { numRuns: 200 },
    );
  });
  it('is read also where the entry that was torn was the first', async () => {
    expect(await standingAfter(FIRST.subarray(0, 40), ROOM)).toBe('none');
    expect(await standingAfter()).toBe('none');
    expect(await standingAfter(ROOM)).toBe('none');
  });
});

describe('what no crash leaves of a journal', () => {
  const changed = Buffer.from(LAST);
  changed[40] = (changed[40] ?? 0) ^ 1;
  it.each<[what: string, parts: readonly Uint8Array[], says: RegExp]>([
    ['a changed last entry', [FIRST, changed, ROOM], /at byte \d+: the last entry was whole, and has been changed/],
    ['text that never was a journal', [Buffer.from('# see the other disk\n'), ROOM], /never was an entry/],
    ['noise', [FIRST, Buffer.from([0xff, 0xfe, 3]), ROOM], /never was an entry/],
    ['much noise', [FIRST, Buffer.alloc(RECORD_BYTES_MAX + 1, 'a'), ROOM], /more than one entry/],
    ['something behind a torn entry', [LAST.subarray(0, 30), Buffer.alloc(200), Buffer.from('x'), ROOM], /follows/],
    ['a file that ends in an entry', [FIRST, LAST.subarray(0, 40)], /ends in the midst of an entry/],
    ['a file that ends with an entry', [FIRST, LAST], /was cut off: it has \d+ bytes, and had at least \d+/],
    ['a file that ends in its room', [FIRST, LAST, ROOM.subarray(1)], /was cut off/],
  ])('%s is refused, and left as it is', async (_, parts, says) => {
    const file = new MemoryFile(Buffer.concat(parts));
    const opening = JournalFile.open(file, silentLogger);
    await expect(opening).rejects.toThrow(JournalDamagedError);
    await expect(opening).rejects.toThrow(says);
    expect(file.contents).toEqual(Buffer.concat(parts));
    expect(file.replaceCount).toBe(0);
  });
});
