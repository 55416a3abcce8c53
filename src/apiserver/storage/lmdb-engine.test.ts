import { mkdir, mkdtemp, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { open } from 'lmdb';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { decodeEntry, encodeEntry } from './entry-codec.ts';
import { openLmdbEngine } from './lmdb-engine.ts';
import type { Engine, LogEntry } from './port.ts';

let directory: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'godwit-lmdb-'));
});

afterEach(async () => {
  await rm(directory, { recursive: true, force: true });
});

function entry(revision: number, text = '{}', more: Partial<LogEntry> = {}): LogEntry {
  return { revision, type: 'put', bucket: 'pods', key: `default/p${revision}`, text, previous: 0, ...more };
}

async function loaded(engine: Engine): Promise<LogEntry[]> {
  const entries: LogEntry[] = [];
  await engine.load((each) => entries.push(each));
  return entries;
}

describe('the LMDB engine', () => {
  it('gives back what was committed, in order of revision, also to the next process', async () => {
    const engine = await openLmdbEngine(directory);
    expect(await loaded(engine)).toEqual([]);
    const big = entry(5, JSON.stringify({ data: 'x'.repeat(3_000_000) }));
    const odd = entry(300, '{"text":"grüße, 世界 🌍\\u0000\\n"}', {
      bucket: 'ünï.example.com',
      key: 'a\nb',
      previous: 5,
    });
    // Beyond 32 bits, and committed later than its neighbours.
    const late = entry(2 ** 40, '', { type: 'delete', previous: 300 });
    await engine.commit([entry(2), entry(3), entry(4)], []);
    await engine.commit([big], [3]);
    await engine.commit([odd, late], [2, 77]);
    const expected = [entry(4), big, odd, late];
    expect(engine.read(300)).toEqual(odd);
    expect(engine.read(3)).toBeUndefined();
    await engine.close();
    const next = await openLmdbEngine(directory);
    expect(await loaded(next)).toEqual(expected);
    expect(next.read(2 ** 40)).toEqual(late);
    await next.commit([], [5]);
    expect(next.read(5)).toBeUndefined();
    await next.close();
  });

  it('commits batches larger than its internal buffers', async () => {
    const engine = await openLmdbEngine(directory);
    const entries = Array.from({ length: 5000 }, (_, index) => entry(index + 2, `{"index":${index}}`));
    await engine.commit(entries, []);
    await engine.commit(
      [],
      entries.slice(0, 4000).map((each) => each.revision),
    );
    await engine.close();
    const next = await openLmdbEngine(directory);
    expect(await loaded(next)).toEqual(entries.slice(4000));
    await next.close();
  });

  it('keeps its directory and files private', async () => {
    const path = join(directory, 'deep', 'data');
    await mkdir(path, { recursive: true, mode: 0o755 });
    const engine = await openLmdbEngine(path);
    await engine.commit([entry(2)], []);
    const modes = await Promise.all([path, join(path, 'data.mdb'), join(path, 'lock.mdb')].map((each) => stat(each)));
    expect(modes.map(({ mode }) => (mode & 0o777).toString(8))).toEqual(['700', '600', '600']);
    await engine.close();
  });

  it('refuses other formats by name, and leaves them as they are', async () => {
    for (const [record, message] of [
      ['godwit-log 2', 'is of format "godwit-log 2", this version reads "godwit-log 1"'],
      [undefined, 'is of an unknown format'],
    ] as const) {
      const path = join(directory, String(record));
      const foreign = open<Buffer, number>(path, { encoding: 'binary', noSubdir: false });
      if (record !== undefined) await foreign.put(0, Buffer.from(record));
      await foreign.put(7, Buffer.from('something'));
      await foreign.close();
      await expect(openLmdbEngine(path)).rejects.toThrow(message);
      const again = open<Buffer, number>(path, { encoding: 'binary', noSubdir: false });
      expect(again.get(7)?.toString()).toBe('something');
      await again.close();
    }
  });

  it('refuses what is no database, rather than let it crash the process', async () => {
    const file = join(directory, 'data.mdb');
    for (const garbage of [Buffer.alloc(100_000, 'garbage'), Buffer.from('short'), Buffer.alloc(40_000)]) {
      await writeFile(file, garbage);
      await expect(openLmdbEngine(directory)).rejects.toThrow(`${file} is damaged or not a database`);
    }
    // What a first start left behind that was killed at once.
    await writeFile(file, '');
    const engine = await openLmdbEngine(directory);
    expect(await loaded(engine)).toEqual([]);
    await engine.close();
  });

  it('says which entry is damaged', async () => {
    const engine = await openLmdbEngine(directory);
    await engine.close();
    const raw = open<Buffer, number>(directory, { encoding: 'binary', noSubdir: false });
    await raw.put(9, Buffer.from('["put",0,"pods"]\n{}'));
    await raw.close();
    const next = await openLmdbEngine(directory);
    await expect(loaded(next)).rejects.toThrow('the log entry of revision 9 is damaged');
    expect(() => next.read(9)).toThrow('damaged');
    await next.close();
  });
});

describe('the encoding of entries', () => {
  it('gives back every entry', () => {
    const entries = fc.record({
      revision: fc.maxSafeNat(),
      type: fc.constantFrom('put' as const, 'delete' as const),
      bucket: fc.string({ unit: 'binary' }),
      key: fc.string({ unit: 'binary' }),
      text: fc.oneof(fc.json(), fc.string({ unit: 'binary' })),
      previous: fc.maxSafeNat(),
    });
    fc.assert(
      fc.property(entries, (each) => {
        expect(decodeEntry(each.revision, encodeEntry(each))).toEqual(each);
      }),
    );
  });

  it.each([
    '',
    '{}',
    '\n',
    'null\n',
    '[]\n',
    '["patch",0,"b","k"]\n',
    '["put",0.5,"b","k"]\n',
    '["put",0,1,"k"]\n',
    '["put",0,"b"\n',
  ])('refuses %j', (bytes) => {
    expect(() => decodeEntry(5, Buffer.from(bytes))).toThrow('revision 5 is damaged');
  });
});
