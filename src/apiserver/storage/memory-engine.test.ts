import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../env/test.ts';
import { MemoryEngine, type MemoryEngineOptions } from './memory-engine.ts';
import type { Engine, LogEntry } from './port.ts';

function entry(revision: number): LogEntry {
  return { revision, type: 'put', bucket: 'pods', key: `p${revision}`, text: `{"revision":${revision}}`, previous: 0 };
}

async function revisions(engine: Engine): Promise<number[]> {
  const found: number[] = [];
  await engine.load((each) => found.push(each.revision));
  return found;
}

/** A delay that lasts until it is told to end. */
function gate(): { delay: () => Promise<void>; open: () => Promise<void> } {
  const waiting: (() => void)[] = [];
  return {
    delay: () => new Promise((resolve) => waiting.push(resolve)),
    async open() {
      waiting.shift()?.();
      for (let turn = 0; turn < 10; turn++) await Promise.resolve();
    },
  };
}

describe('the memory engine', () => {
  it('keeps what was acknowledged through a crash', async () => {
    const engine = new MemoryEngine();
    await engine.commit([entry(2), entry(3)], []);
    await engine.commit([entry(4)], [2]);
    const next = engine.crash();
    expect(await revisions(next)).toEqual([3, 4]);
    expect(next.read(4)).toEqual(entry(4));
    expect(next.read(2)).toBeUndefined();
    await expect(engine.commit([entry(5)], [])).rejects.toMatchObject({ fatal: true });
  });

  it('tears a commit that was not synced, which is then there whole or not at all', async () => {
    const outcomes = new Set<string>();
    for (let seed = 0; seed < 3000; seed++) {
      const { delay, open } = gate();
      const engine = new MemoryEngine({ random: seededRandom(seed), delay });
      const first = engine.commit([entry(2)], []);
      await open();
      await open();
      await first;
      void engine.commit([entry(3), entry(4)], [2]);
      outcomes.add(String(await revisions(engine.crash({}))));
    }
    expect([...outcomes].sort()).toEqual(['2', '3,4']);
  });

  it('never answers a commit that a crash interrupts, even when it has reached the disk', async () => {
    const { delay, open } = gate();
    const engine = new MemoryEngine({ delay });
    let answered = false;
    void engine.commit([entry(2)], []).finally(() => {
      answered = true;
    });
    await open();
    const next = engine.crash({});
    await open();
    expect(answered).toBe(false);
    expect(await revisions(next)).toEqual([2]);
  });

  it('writes nothing to a full disk, and works again when there is room', async () => {
    const faults: ('disk-full' | undefined)[] = ['disk-full'];
    const engine = new MemoryEngine({ fault: () => faults.shift() });
    await expect(engine.commit([entry(2)], [])).rejects.toMatchObject({ fatal: false });
    await engine.commit([entry(3)], []);
    expect(await revisions(engine.crash())).toEqual([3]);
  });

  it('fails for good when a sync fails, keeping all of that commit or none', async () => {
    const outcomes = new Set<string>();
    for (let seed = 0; seed < 3000; seed++) {
      const options: MemoryEngineOptions = { random: seededRandom(seed), fault: () => 'failed-sync' };
      const engine = new MemoryEngine(options);
      await expect(engine.commit([entry(2), entry(3)], [])).rejects.toMatchObject({ fatal: true });
      await expect(engine.commit([entry(4)], [])).rejects.toMatchObject({ fatal: true });
      outcomes.add(String(await revisions(engine.crash({}))));
    }
    expect([...outcomes].sort()).toEqual(['', '2,3']);
  });

  it('insists on one commit at a time', async () => {
    const engine = new MemoryEngine();
    const first = engine.commit([entry(2)], []);
    await expect(engine.commit([entry(3)], [])).rejects.toThrow('one commit at a time');
    await first;
    await engine.close();
    await expect(engine.commit([entry(4)], [])).rejects.toThrow('closed');
  });
});
