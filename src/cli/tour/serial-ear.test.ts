import { appendFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import { SerialEar } from './serial-ear.ts';

let directory = '';
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'godwit-test-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const logOf = (node: string, podUID: string): string => join(directory, 'nodes', node, 'runs', podUID, 'serial.log');

/** Lets time pass, and what waits for it go on. */
async function pass(clock: ManualClock, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10) {
    clock.advance(10);
    await new Promise((resolve) => setImmediate(resolve));
  }
}

describe('an ear at serial ports', () => {
  it('hears what is said from now on, in machines that come later too', async () => {
    const [source, target] = [logOf('node-1', 'a'), logOf('node-2', 'b')];
    mkdirSync(dirname(source), { recursive: true });
    writeFileSync(source, 'said before\n');
    const clock = new ManualClock(0);
    const ear = new SerialEar(directory, clock);
    const stopping = new AbortController();
    const listening = ear.listen(stopping.signal);
    await pass(clock, 100);
    expect(ear.heardIn('a')).toEqual([]);
    appendFileSync(source, 'one\n');
    await pass(clock, 50);
    appendFileSync(source, 'two\n');
    await pass(clock, 50);
    mkdirSync(dirname(target), { recursive: true });
    writeFileSync(target, 'three\n');
    await pass(clock, 200);
    stopping.abort();
    await listening;
    expect(ear.heardIn('a')).toEqual([110, 160]);
    expect(ear.heardIn('b')).toEqual([300]);
    expect(ear.heardIn('c')).toEqual([]);
  });

  it('goes on hearing a log that has begun anew', async () => {
    const log = logOf('node-1', 'a');
    mkdirSync(dirname(log), { recursive: true });
    writeFileSync(log, 'x'.repeat(1000));
    const clock = new ManualClock(0);
    const ear = new SerialEar(directory, clock);
    const stopping = new AbortController();
    const listening = ear.listen(stopping.signal);
    writeFileSync(log, '');
    await pass(clock, 20);
    appendFileSync(log, 'one\n');
    await pass(clock, 20);
    stopping.abort();
    await listening;
    expect(ear.heardIn('a')).toEqual([30]);
  });
});
