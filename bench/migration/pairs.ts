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
import { handTls } from './tls.ts';

/**
 * A guest that moves, beside the same QEMU that is moved by hand over QMP, in turns: how long it takes, how long the guest
 * is not heard, encrypted and not, and what is written to the API. While one moves, the other stands still.
 */

const NODES = 2;
const PAIRS = 5;
const TICK_MS = 5;
/** What a guest works on leaves room for itself and for what QEMU keeps of its memory. */
const SPARE_MIB = 24;
const DIRTY_MIB_PER_SECOND = 40;
const SIZES_MIB = [128, 512, 2048];
/** After so long all is written that follows from what happened. */
const SETTLED_MS = 2000;
const POLICIES = '/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies';
const PLAIN = { plain: 'yes' };

interface Case {
  readonly sizeMiB: number;
  readonly dirtyMiBPerSecond: number;
  readonly isEncrypted: boolean;
}

/** Every size, idle and busy, as it is by default; the largest idle and busy one also unencrypted. */
function cases(): Case[] {
  const rates = [0, DIRTY_MIB_PER_SECOND];
  return [true, false].flatMap((isEncrypted) =>
    SIZES_MIB.flatMap((sizeMiB) => rates.map((dirtyMiBPerSecond) => ({ sizeMiB, dirtyMiBPerSecond, isEncrypted }))),
  );
}

export async function pairs(): Promise<void> {
  const cluster = new LocalCluster(NODES);
  try {
    await cluster.start();
    cluster.importGuests();
    const connection = await cluster.connect();
    const policy = {
      apiVersion: 'migrations.kubevirt.io/v1alpha1',
      kind: 'MigrationPolicy',
      metadata: { name: 'plain' },
      spec: { disableTLS: true, selectors: { virtualMachineInstanceSelector: PLAIN } },
    };
    await connection.request('POST', POLICIES, JSON.stringify(policy));
    const progress = await Progress.follow(cluster);
    const moves = await GodwitMoves.on(cluster);
    for (const [index, each] of cases().entries()) await compare(cluster, progress, moves, each, index);
    moves.close();
  } finally {
    cluster.remove();
  }
}

async function compare(
  cluster: LocalCluster,
  progress: Progress,
  moves: GodwitMoves,
  each: Case,
  index: number,
): Promise<void> {
  const { sizeMiB, dirtyMiBPerSecond, isEncrypted } = each;
  const name = `guest-${index}`;
  await progress.apply(labelled(name, each));
  await progress.reaches(name, 'Spoken');
  const processOf = async (): Promise<number> => Number(readFileSync(await moves.processOf(name), 'latin1'));
  const directory = join(cluster.directory, `hand-${index}`);
  const learnt = learn(await processOf(), directory);
  const tls = isEncrypted ? await handTls(join(directory, 'tls'), learnt.owner) : undefined;
  const byHand = new HandMoves({ learnt, directory, firstPort: 23_000 + 100 * index, tls });
  await byHand.start();
  const ours: Move[] = [];
  const theirs: Move[] = [];
  try {
    // The first of each warms everything up.
    for (let pair = 0; pair <= PAIRS; pair++) {
      const own = await still(byHand.pid, () => moves.move(name));
      const bare = await still(await processOf(), () => byHand.move());
      if (pair === 0) continue;
      ours.push(own);
      theirs.push(bare);
      if (pair === PAIRS)
        report('migration', {
          figure: `${title(each)}, when what is seen`,
          value: own.settledMs,
          unit: 'ms',
          phases: own.phases,
        });
    }
  } finally {
    await byHand.close();
  }
  reportPair(title(each), medianMove(ours), medianMove(theirs));
  if (sizeMiB === SIZES_MIB[0] && dirtyMiBPerSecond === 0) await reportWrites(cluster, moves, name);
  await progress.delete(name);
}

function title({ sizeMiB, dirtyMiBPerSecond, isEncrypted }: Case): string {
  const doing = dirtyMiBPerSecond === 0 ? 'idle' : `writing ${dirtyMiBPerSecond} MiB/s`;
  return `${sizeMiB} MiB, ${doing}, ${isEncrypted ? 'encrypted' : 'plain'}`;
}

function labelled(name: string, { sizeMiB, dirtyMiBPerSecond, isEncrypted }: Case): { metadata: { name: string } } {
  const work = `mib=${sizeMiB - SPARE_MIB} hz=200 rate=${dirtyMiBPerSecond}`;
  const spec = probe({ tickMs: TICK_MS, memory: `${sizeMiB}Mi`, arguments: work });
  const machine = virtualMachine(name, spec) as {
    metadata: { name: string };
    spec: { template: { metadata: { labels: object } } };
  };
  if (!isEncrypted) machine.spec.template.metadata.labels = { ...machine.spec.template.metadata.labels, ...PLAIN };
  return machine;
}

/** Lets a process stand still meanwhile. */
async function still<T>(pid: number, act: () => Promise<T>): Promise<T> {
  process.kill(pid, 'SIGSTOP');
  try {
    return await act();
  } finally {
    process.kill(pid, 'SIGCONT');
  }
}

function reportPair(of: string, ours: Move, theirs: Move): void {
  for (const [figure, field] of [
    ['until the guest is heard at its target', 'totalMs'],
    ['until it is said to be over', 'settledMs'],
    ['silence of the guest', 'downtimeMs'],
  ] as const)
    report('migration', {
      figure: `${of}, ${figure}`,
      value: ours[field],
      unit: 'ms',
      byHand: rounded(theirs[field]),
      moreMs: rounded(ours[field] - theirs[field]),
      ratio: rounded(ours[field] / theirs[field]),
    });
}

async function reportWrites(cluster: LocalCluster, moves: GodwitMoves, name: string): Promise<void> {
  const connection = await cluster.connect();
  await sleep(SETTLED_MS);
  const before = await writesSoFar(connection);
  for (let move = 0; move < PAIRS; move++) await moves.move(name);
  await sleep(SETTLED_MS);
  const writes = perMachine(before, await writesSoFar(connection), PAIRS);
  const value = Object.values(writes).reduce((sum, count) => sum + count, 0);
  report('migration', { figure: 'API writes per migration', value, unit: 'writes', ...writes });
}
