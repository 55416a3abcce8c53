import { describe, expect, it } from 'vitest';
import { ManualClock, seededRandom } from '../env/test.ts';
import { ModelDisk, type WriteFault } from './model-disk.ts';

const text = (bytes: Uint8Array | undefined): string => Buffer.from(bytes ?? []).toString();

function setUp() {
  const clock = new ManualClock();
  const faults: WriteFault[] = [];
  const disk = new ModelDisk({ clock, random: seededRandom(3), delayMs: () => 5, fault: () => faults.shift() });
  const soon = async <T>(promise: Promise<T>): Promise<T> => {
    promise.catch(() => undefined);
    clock.advance(10);
    return promise;
  };
  return { clock, disk, faults, soon, journal: disk.journal(clock), files: disk.files(clock) };
}

describe('the model of a disk', () => {
  it('keeps what was answered when the power fails, and some of the rest', async () => {
    const { clock, disk, journal, soon } = setUp();
    expect(await soon(journal.read())).toBeUndefined();
    await soon(journal.replace(Buffer.from('first ')));
    await soon(journal.write(6, Buffer.from('second ')));
    let isAnswered = false;
    void journal.write(13, Buffer.from('third')).then(() => (isAnswered = true));
    disk.crash();
    clock.advance(100);
    await Promise.resolve();
    expect(isAnswered).toBe(false);
    expect(text(await soon(disk.journal(clock).read()))).toMatch(/^first second .{0,5}$/s);
  });

  it('writes into what is there, and behind it, and into nothing that anybody else has', async () => {
    const { journal, soon } = setUp();
    const mine = Buffer.from('0123');
    await soon(journal.replace(mine));
    const read = await soon(journal.read());
    for (const [at, word] of [
      [4, 'abcd'],
      [1, '--'],
      [8, 'e'],
      [9, 'fghijklmnopqrstuvwxyz'],
    ] as const)
      await soon(journal.write(at, Buffer.from(word)));
    expect(text(await soon(journal.read()))).toBe('0--3abcdefghijklmnopqrstuvwxyz');
    expect([text(mine), text(read)]).toEqual(['0123', '0123']);
  });

  it('does what it was asked for though nobody lives to hear of it', async () => {
    const { clock, disk, soon } = setUp();
    const dead = { now: () => clock.now(), setTimer: () => ({ cancel: () => undefined }) };
    void disk.journal(dead).replace(Buffer.from('a last word'));
    clock.advance(100);
    expect(text(await soon(disk.journal(clock).read()))).toBe('a last word');
  });

  it('fails with and without having written some of it', async () => {
    const { faults, journal, soon } = setUp();
    await soon(journal.replace(Buffer.from('whole ')));
    faults.push('disk-full', 'failed-sync', 'failed-sync');
    await expect(soon(journal.write(6, Buffer.from('part')))).rejects.toMatchObject({ code: 'ENOSPC' });
    expect(text(await soon(journal.read()))).toBe('whole ');
    await expect(soon(journal.replace(Buffer.from('other')))).rejects.toMatchObject({ code: 'EIO' });
    await expect(soon(journal.write(6, Buffer.from('part')))).rejects.toMatchObject({ code: 'EIO' });
    expect(text(await soon(journal.read()))).toMatch(/^whole .{0,4}$/s);
  });

  it('has files besides, until another disk takes its place', async () => {
    const { disk, clock, files, journal, soon } = setUp();
    await soon(journal.replace(Buffer.from('journal')));
    await soon(files.replace('/a/notes/1', Buffer.from('one'), { mode: 0o600 }));
    await soon(files.replace('/a/notes/2', Buffer.from('two'), { mode: 0o600 }));
    await soon(files.remove('/a/notes/2'));
    expect(await soon(files.list('/a/notes'))).toEqual(['1']);
    disk.replace();
    expect(await soon(disk.files(clock).list('/a/notes'))).toEqual([]);
    expect(await soon(disk.journal(clock).read())).toBeUndefined();
  });
});
