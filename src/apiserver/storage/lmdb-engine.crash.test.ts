import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { programOf } from '../../env/program.fixture.ts';
import { seededRandom } from '../../env/test.ts';
import { openLmdbEngine } from './lmdb-engine.ts';

/** Real processes, really killed. */

// Each round waits for the disk a hundred times, which others write to as well.
vi.setConfig({ testTimeout: 300_000 });

const fixture = programOf(join(import.meta.dirname, 'crash-writer.fixture.ts'));
const run = promisify(execFile);
const ROUNDS = 15;
const BATCHES_KEPT = 20;

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'godwit-crash-'));
});

afterAll(async () => {
  await rm(directory, { recursive: true, force: true });
});

/** Kills the child when it has printed so many lines; answers the last number that it printed. */
async function killAfter(child: ChildProcess, linesMax: number): Promise<number> {
  let text = '';
  child.stdout?.on('data', (chunk: Buffer) => {
    text += chunk.toString('utf8');
    if (text.split('\n').length > linesMax) child.kill('SIGKILL');
  });
  const [, signal] = await once(child, 'close');
  expect(signal).toBe('SIGKILL');
  return Number(text.slice(0, text.lastIndexOf('\n')).split('\n').at(-1));
}

/** Which batches the log holds; fails if one of them is not whole. */
async function wholeBatches(): Promise<number[]> {
  const found = new Map<number, { size: number; indexes: number[] }>();
  const engine = await openLmdbEngine(join(directory, 'log'));
  await engine.load((entry) => {
    const { batch, size, index } = JSON.parse(entry.text) as { batch: number; size: number; index: number };
    const known = found.get(batch) ?? { size, indexes: [] };
    known.indexes.push(index);
    found.set(batch, known);
  });
  await engine.close();
  for (const { size, indexes } of found.values()) {
    expect(indexes).toEqual(Array.from({ length: size }, (_, index) => index));
  }
  return [...found.keys()];
}

describe('kill -9', () => {
  it('loses no acknowledged commit and leaves none by half', async () => {
    const random = seededRandom(1);
    let newest = 0;
    for (let round = 0; round < ROUNDS; round++) {
      const child = spawn(process.execPath, [fixture, 'write', directory], { stdio: ['ignore', 'pipe', 'inherit'] });
      const acknowledged = await killAfter(child, 1 + Math.floor(random.number() * 100));
      const batches = await wholeBatches();
      const last = batches.at(-1) ?? 0;
      // One commit was in flight: it may have made it to the disk without our hearing of it.
      expect([acknowledged, acknowledged + 1]).toContain(last);
      expect(acknowledged).toBeGreaterThan(newest);
      const count = Math.min(last, BATCHES_KEPT);
      expect(batches).toEqual(Array.from({ length: count }, (_, index) => last - count + 1 + index));
      newest = last;
    }
  });
});

describe('a full disk', () => {
  /** A small disk of its own, for those who may mount one. */
  const script = 'mount -t tmpfs -o size=4m tmpfs "$1" && shift && exec "$@"';
  const onSmallDisk = (path: string, command: string[]): string[] => [
    '-rm',
    'sh',
    '-c',
    script,
    'sh',
    path,
    ...command,
  ];

  it('refuses commits without losing anything, and takes them again when there is room', async (context) => {
    const path = join(directory, 'small');
    await mkdir(path);
    const canMount = await run('unshare', onSmallDisk(path, ['true'])).then(
      () => true,
      () => false,
    );
    if (!canMount) context.skip('this user may not mount a file system');
    const command = [process.execPath, fixture, 'fill', path];
    const { stdout } = await run('unshare', onSmallDisk(path, command));
    expect(Number(stdout)).toBeGreaterThan(10);
  });
});
