import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { probe, virtualMachine } from '../../test/support/guest-manifests.ts';
import { report, rounded } from '../figures.ts';
import { learn } from '../learnt-command-line.ts';
import { LocalCluster } from '../vm/local-cluster.ts';
import { Progress } from '../vm/progress.ts';
import { perMachine, writesSoFar } from '../vm/writes.ts';
import { GodwitMoves } from './godwit-moves.ts';
import { HandMoves } from './hand-moves.ts';
import { medianMove, type Move } from './move.ts';
import { still } from './still.ts';
import { handTls } from './tls.ts';

/**
 * A guest that moves, beside the same QEMU that is moved by hand over QMP, in turns: how long it takes, how long the guest
 * is not heard, and what is written to the API. Both ways are taken by either: encrypted, and plain, with the same group
 * to agree on keys and over as many channels. While one moves, the others stand still.
 */

const NODES = 2;
const ROUNDS = 5;
const TICK_MS = 5;
/** What a guest works on leaves room for itself and for what QEMU keeps of its memory. */
const SPARE_MIB = 24;
const DIRTY_MIB_PER_SECOND = 40;
const SIZES_MIB = [128, 512, 2048];
/** After so long all is written that follows from what happened. */
const SETTLED_MS = 2000;

interface Case {
  readonly sizeMiB: number;
  readonly dirtyMiBPerSecond: number;
}

/** Every size, idle and busy. */
const CASES: readonly Case[] = SIZES_MIB.flatMap((sizeMiB) =>
  [0, DIRTY_MIB_PER_SECOND].map((dirtyMiBPerSecond) => ({ sizeMiB, dirtyMiBPerSecond })),
);

export async function pairs(): Promise<void> {
  const cluster = new LocalCluster(NODES);
  try {
    await cluster.start();
    cluster.importGuests();
    const progress = await Progress.follow(cluster);
    const moves = await GodwitMoves.on(cluster);
    for (const [index, each] of CASES.entries()) await compare({ cluster, progress, moves }, each, index);
    moves.close();
  } finally {
    cluster.remove();
  }
}

interface Scene {
  readonly cluster: LocalCluster;
  readonly progress: Progress;
  readonly moves: GodwitMoves;
}

async function compare({ cluster, progress, moves }: Scene, each: Case, index: number): Promise<void> {
  const name = `guest-${index}`;
  await progress.apply(machineFor(name, each) as { metadata: { name: string } });
  await progress.reaches(name, 'Spoken');
  const processOf = async (): Promise<number> => Number(readFileSync(await moves.processOf(name), 'latin1'));
  const directory = join(cluster.directory, `hand-${index}`);
  const learnt = learn(await processOf(), directory);
  const common = { learnt, firstPort: 23_000 + 100 * index };
  const tls = await handTls(join(directory, 'credentials'), learnt.owner);
  const encrypted = new HandMoves({ ...common, directory: join(directory, 'tls'), tls });
  const plain = new HandMoves({ ...common, directory: join(directory, 'plain'), firstPort: common.firstPort + 50 });
  const [ours, oursPlainly, theirs, plainly]: Move[][] = [[], [], [], []];
  let phases: Readonly<Record<string, number>> = {};
  try {
    await encrypted.start();
    await plain.start();
    // The first of each warms everything up.
    for (let round = 0; round <= ROUNDS; round++) {
      const own = await still([encrypted.pid, plain.pid], () => moves.move(name));
      await moves.encrypt(false);
      const ownPlainly = await still([encrypted.pid, plain.pid], () => moves.move(name));
      await moves.encrypt(true);
      const byHand = await still([await processOf(), plain.pid], () => encrypted.move(own.channels));
      const bare = await still([await processOf(), encrypted.pid], () => plain.move(ownPlainly.channels));
      if (round === 0) continue;
      ours?.push(own);
      oursPlainly?.push(ownPlainly);
      theirs?.push(byHand);
      plainly?.push(bare);
      phases = own.phases;
    }
  } finally {
    await encrypted.close();
    await plain.close();
  }
  const medians = [ours, theirs, plainly, oursPlainly].map((moved) => medianMove(moved ?? [])) as [
    Move,
    Move,
    Move,
    Move,
  ];
  reportCase(title(each), ...medians);
  report('migration', { figure: `${title(each)}, what is seen when`, value: medians[0].settledMs, unit: 'ms', phases });
  if (index === 0) await reportWrites(cluster, moves, name);
  await progress.delete(name);
}

function title({ sizeMiB, dirtyMiBPerSecond }: Case): string {
  return `${sizeMiB} MiB, ${dirtyMiBPerSecond === 0 ? 'idle' : `writing ${dirtyMiBPerSecond} MiB/s`}`;
}

function machineFor(name: string, { sizeMiB, dirtyMiBPerSecond }: Case): object {
  const work = `mib=${sizeMiB - SPARE_MIB} hz=200 rate=${dirtyMiBPerSecond}`;
  return virtualMachine(name, probe({ tickMs: TICK_MS, memory: `${sizeMiB}Mi`, arguments: work }));
}

function reportCase(of: string, ours: Move, byHand: Move, plainly: Move, oursPlainly: Move): void {
  for (const [figure, field] of [
    ['until the guest is heard at its target', 'totalMs'],
    ['until it is said to be over', 'settledMs'],
    ['silence of the guest', 'downtimeMs'],
  ] as const)
    report('migration', {
      figure: `${of}, ${figure}`,
      value: ours[field],
      unit: 'ms',
      byHand: rounded(byHand[field]),
      byHandPlainly: rounded(plainly[field]),
      plainly: rounded(oursPlainly[field]),
      moreMs: rounded(ours[field] - byHand[field]),
      ratio: rounded(ours[field] / byHand[field]),
    });
}

async function reportWrites(cluster: LocalCluster, moves: GodwitMoves, name: string): Promise<void> {
  const connection = await cluster.connect();
  await sleep(SETTLED_MS);
  const before = await writesSoFar(connection);
  for (let move = 0; move < ROUNDS; move++) await moves.move(name);
  await sleep(SETTLED_MS);
  const writes = perMachine(before, await writesSoFar(connection), ROUNDS);
  const value = Object.values(writes).reduce((sum, count) => sum + count, 0);
  report('migration', { figure: 'API writes per migration', value, unit: 'writes', ...writes });
}
