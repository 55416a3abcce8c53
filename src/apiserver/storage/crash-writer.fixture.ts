/**
 * A process that writes until it is killed, or until its disk is full. Run by `lmdb-engine.crash.test.ts`.
 *
 * Each commit appends one batch and drops another whole, so that at every moment the log holds the same number of
 * whole batches. A commit's number is printed only after it was acknowledged.
 */
import { rmSync, writeFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { openLmdbEngine } from './lmdb-engine.ts';
import { type Engine, type LogEntry, StorageError } from './port.ts';

const BATCHES_KEPT = 20;

interface Batch {
  readonly number: number;
  readonly entries: readonly LogEntry[];
}

async function main(mode: string | undefined, directory: string | undefined): Promise<void> {
  if (directory === undefined) throw new Error('usage: crash-writer write|fill DIRECTORY');
  const ballast = join(directory, 'ballast');
  if (mode === 'fill') writeFileSync(ballast, Buffer.alloc(1024 * 1024));
  const engine = await openLmdbEngine(join(directory, 'log'));
  const batches = await load(engine);
  if (mode === 'fill') await fillTwice(engine, batches, () => rmSync(ballast));
  else for (;;) await writeNext(engine, batches);
}

async function load(engine: Engine): Promise<Batch[]> {
  const byNumber = new Map<number, LogEntry[]>();
  await engine.load((entry) => {
    const { batch } = JSON.parse(entry.text) as { batch: number };
    byNumber.set(batch, [...(byNumber.get(batch) ?? []), entry]);
  });
  return [...byNumber].map(([number, entries]) => ({ number, entries }));
}

/** Batches of 1 to 40 entries, of a few bytes to a few hundred kilobytes. */
function nextBatch(last: Batch | undefined): Batch {
  const number = (last?.number ?? 0) + 1;
  const size = 1 + ((number * 7) % 40);
  const revision = (last?.entries.at(-1)?.revision ?? 1) + 1;
  const entries = Array.from({ length: size }, (_, index): LogEntry => {
    const padding = 'x'.repeat(number % 29 === 0 ? 20_000 : (number * 131 + index * 17) % 1500);
    const text = JSON.stringify({ batch: number, size, index, padding });
    return { revision: revision + index, type: 'put', bucket: 'pods', key: `p${index}`, text, previous: 0 };
  });
  return { number, entries };
}

async function writeNext(engine: Engine, batches: Batch[]): Promise<void> {
  const batch = nextBatch(batches.at(-1));
  const oldest = batches.length >= BATCHES_KEPT ? batches[0] : undefined;
  await engine.commit(batch.entries, oldest?.entries.map((entry) => entry.revision) ?? []);
  if (oldest !== undefined) batches.shift();
  batches.push(batch);
  writeSync(1, `${batch.number}\n`);
}

/** Fills the disk, checks that nothing is lost by that, makes room, and goes on. */
async function fillTwice(engine: Engine, batches: Batch[], makeRoom: () => void): Promise<void> {
  const append = async (): Promise<void> => {
    const batch = nextBatch(batches.at(-1));
    await engine.commit(batch.entries, []);
    batches.push(batch);
  };
  for (let attempt = 0; attempt < 5; attempt++) await refusalOf(append);
  checkAll(engine, batches);
  makeRoom();
  const before = batches.length;
  await refusalOf(append);
  if (batches.length < before + 5) throw new Error('it does not go on when there is room again');
  checkAll(engine, batches);
  await engine.close();
  writeSync(1, `${batches.length}\n`);
}

async function refusalOf(append: () => Promise<void>): Promise<void> {
  for (;;) {
    try {
      await append();
    } catch (error) {
      if (error instanceof StorageError && !error.fatal) return;
      throw error;
    }
  }
}

function checkAll(engine: Engine, batches: readonly Batch[]): void {
  for (const batch of batches) {
    for (const entry of batch.entries) {
      if (engine.read(entry.revision)?.text !== entry.text) throw new Error(`revision ${entry.revision} is lost`);
    }
  }
  const next = (batches.at(-1)?.entries.at(-1)?.revision ?? 1) + 1;
  if (engine.read(next) !== undefined) throw new Error(`revision ${next} was refused, but is there`);
}

await main(process.argv[2], process.argv[3]);
