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

const say = (podUID: string, entry: Entry, vm = `vm-${podUID}`): JournalRecord => ({ vm, podUID, entry });
const STARTING: Entry = { kind: 'starting', epoch: 1 };
const STARTED: Entry = { kind: 'started', epoch: 1 };
const RESUMED: Entry = { kind: 'machine', event: 'resumed' };
const ENDED: Entry = { kind: 'ended', epoch: 1 };
const ATTEMPT = {
  epoch: 1,
  source: { node: 'node-a', nodeUID: 'a', podUID: 'pod-a' },
  target: { node: 'node-b', nodeUID: 'b', podUID: 'pod-b' },
  sourceMigrationUID: 'move',
  targetMigrationUID: 'move',
};
const RESERVED: Entry = { kind: 'reserved', attempt: ATTEMPT };

/** What is set aside for entries to come. */
const ROOM = Buffer.alloc(2 * RECORD_BYTES_MAX);

const open = (file: MemoryFile): Promise<JournalFile> => JournalFile.open(file, silentLogger);
const kindOf = (journal: JournalFile, pod: string): string => journal.standing(`vm-${pod}`, pod).kind;

describe('the journal on its disk', () => {
  it('begins empty, and knows after a restart what was said', async () => {
    const file = new MemoryFile();
    const journal = await open(file);
    expect([...journal.pods()]).toEqual([]);
    await journal.append(say('a', STARTING));
    await journal.append(say('a', STARTED));
    await journal.append(say('b', STARTING));
    const again = await open(file);
    expect(again.standing('vm-a', 'a')).toEqual({ kind: 'holding', epoch: 1, mustContinue: true, isCompleted: false });
    expect(kindOf(again, 'b')).toBe('starting');
    expect(kindOf(again, 'c')).toBe('none');
    expect([...again.podsOf('vm-a').keys()]).toEqual(['a']);
  });
  it('counts an entry only once it is durable', async () => {
    const journal = await open(new MemoryFile());
    const written = journal.append(say('a', STARTING));
    expect(kindOf(journal, 'a')).toBe('none');
    await written;
    expect(kindOf(journal, 'a')).toBe('starting');
  });
  it('writes those together that wait together', async () => {
    const file = new MemoryFile();
    const journal = await open(file);
    const pods = Array.from({ length: 100 }, (_, index) => `pod-${index}`);
    await journal.append(say('first', STARTING));
    const before = file.writeCount;
    await Promise.all(pods.map((pod) => journal.append(say(pod, STARTING))));
    // Each group needs one write for room, and one for what it says.
    expect(file.writeCount - before).toBeLessThan(10);
    expect([...(await open(file)).pods()]).toHaveLength(101);
  });
  it('refuses what cannot follow, and writes the rest', async () => {
    const file = new MemoryFile();
    const journal = await open(file);
    const wrong = journal.append(say('a', STARTED));
    const right = journal.append(say('b', STARTING));
    await expect(wrong).rejects.toThrow('"started" after "none"');
    await right;
    expect([...(await open(file)).pods()].map(({ podUID }) => podUID)).toEqual(['b']);
  });
  it('drops an entry that a crash tore', async () => {
    const torn = encodeRecord(say('b', STARTING)).subarray(0, 30);
    const file = new MemoryFile(Buffer.concat([encodeRecord(say('a', STARTING)), torn, ROOM]));
    const journal = await open(file);
    await journal.append(say('a', STARTED));
    expect([...(await open(file)).pods()].map(({ podUID, standing }) => `${podUID} ${standing.kind}`)).toEqual([
      'a holding',
    ]);
  });
  it('attests nothing when it is damaged', async () => {
    const bytes = Buffer.concat([encodeRecord(say('a', STARTING)), encodeRecord(say('a', STARTED))]);
    bytes[30] = (bytes[30] ?? 0) ^ 1;
    await expect(open(new MemoryFile(bytes))).rejects.toThrow(JournalDamagedError);
  });
  it.each([
    ['EIO', 'lost', 'EIO'],
    ['EIO', 'kept', 'EIO'],
    ['EIO', 'kept', 'ENOSPC'],
    ['ENOSPC', 'kept', 'ENOSPC'],
  ] as const)('makes sure that a failed entry never was: %s, bytes %s, then %s', async (code, bytes, replaceCode) => {
    const file = new MemoryFile();
    const journal = await open(file);
    await journal.append(say('a', STARTING));
    file.failures = [{ code, bytes }];
    await expect(journal.append(say('a', STARTED))).rejects.toThrow(code);
    expect(kindOf(journal, 'a')).toBe('starting');
    Object.assign(file, { isReplaceable: false, replaceCode });
    const written = file.writeCount;
    for (const pod of ['b', 'c']) await expect(journal.append(say(pod, STARTING))).rejects.toThrow(replaceCode);
    expect(file.writeCount).toBe(written);
    file.isReplaceable = true;
    await journal.append(say('b', STARTING));
    const again = await open(file);
    expect(kindOf(again, 'a')).toBe('starting');
    expect(kindOf(again, 'b')).toBe('starting');
  });
  it('can say on a full disk that a machine ended', async () => {
    const file = new MemoryFile();
    const journal = await open(file);
    for (let index = 0; index < 50; index++) {
      await journal.append(say(`pod-${index}`, STARTING));
      await journal.append(say(`pod-${index}`, STARTED));
    }
    const sizeBytes = file.contents?.length ?? 0;
    file.isFull = true;
    // Room for another pod cannot be had.
    let last = 0;
    await expect(
      (async () => {
        for (;;) await journal.append(say(`more-${last++}`, STARTING));
      })(),
    ).rejects.toThrow('ENOSPC');
    for (let index = 0; index < 50; index++) await journal.append(say(`pod-${index}`, ENDED));
    expect(file.contents?.length).toBe(sizeBytes);
    file.isFull = false;
    const again = await open(file);
    expect(kindOf(again, 'pod-49')).toBe('ended');
  });
  it('can bring to an end on a full disk what has begun: no guest stands still for want of room', async () => {
    const file = new MemoryFile();
    const journal = await open(file);
    const pods = Array.from({ length: 20 }, (_, index) => `pod-${index}`);
    for (const pod of pods) for (const entry of [STARTING, STARTED, RESERVED]) await journal.append(say(pod, entry));
    file.isFull = true;
    const untilFull = async (record: JournalRecord): Promise<never> => {
      for (;;) await journal.append(record);
    };
    await expect(untilFull(say('more', STARTING))).rejects.toThrow('ENOSPC');
    await expect(untilFull(say('pod-0', { kind: 'machine', event: 'stopped' }))).rejects.toThrow('ENOSPC');
    // That comes along where there is room, and nobody waits for it.
    const noted = Promise.allSettled(
      pods.map((pod) => journal.append(say(pod, { kind: 'machine', event: 'completed' }))),
    );
    const granted = pods.map((pod) =>
      journal.append(say(pod, { kind: 'granted', attempt: ATTEMPT, isPostCopy: false })),
    );
    await Promise.all(granted);
    expect((await noted).some(({ status }) => status === 'rejected')).toBe(true);
    for (const pod of pods) await journal.append(say(pod, ENDED));
    file.isFull = false;
    const again = await open(file);
    expect(pods.map((pod) => kindOf(again, pod))).toEqual(pods.map(() => 'ended'));
  });
  it('remembers the last pods of a machine that are over, and all that are not', async () => {
    const file = new MemoryFile();
    const journal = await open(file);
    await journal.append(say('live', STARTING, 'vm'));
    for (let index = 0; index < 20; index++) {
      await journal.append(say(`pod-${index}`, STARTING, 'vm'));
      await journal.append(say(`pod-${index}`, ENDED, 'vm'));
    }
    const again = await open(file);
    expect([...again.podsOf('vm').keys()]).toEqual([
      'live',
      ...Array.from({ length: 8 }, (_, index) => `pod-${index + 12}`),
    ]);
    expect([again.vmOf('pod-0'), again.vmOf('pod-19')]).toEqual([undefined, 'vm']);
  });
  it('stays short', async () => {
    const file = new MemoryFile();
    const journal = await open(file);
    await journal.append(say('a', STARTING));
    await journal.append(say('a', STARTED));
    for (let index = 0; index < 6000; index += 100) {
      await Promise.all(Array.from({ length: 100 }, () => journal.append(say('a', RESUMED))));
    }
    expect(file.replaceCount).toBeGreaterThan(1);
    expect(file.contents?.length ?? 0).toBeLessThan(1024 * 1024);
  });
  it('knows of a machine that was deleted what became of it: restored data may bring it back', async () => {
    const file = new MemoryFile();
    const journal = await open(file);
    await journal.append(say('a', STARTING));
    await journal.append(say('a', ENDED));
    await journal.append({ vm: 'vm-a', podUID: '', entry: { kind: 'forgotten' } });
    for (const each of [journal, await open(file)])
      expect([each.isDeleted('vm-a'), each.vmOf('a'), each.standing('vm-a', 'a').kind]).toEqual([
        true,
        'vm-a',
        'ended',
      ]);
  });
});
