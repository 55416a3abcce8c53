import { mkdirSync, readFileSync, symlinkSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { probe, virtualMachine } from '../../test/support/guest-manifests.ts';
import { SerialTimes } from '../../test/support/serial-times.ts';
import { report, rounded } from '../figures.ts';
import { GodwitMoves } from '../migration/godwit-moves.ts';
import { medianMove, type Move } from '../migration/move.ts';
import { still } from '../migration/still.ts';
import { LocalCluster } from '../vm/local-cluster.ts';
import { Progress } from '../vm/progress.ts';
import { joinClusters, type Joined } from './clusters.ts';
import { type End, endIn, PairedMachines } from './paired-machines.ts';
import { reportStream, streamCounts } from './stream-counts.ts';

/**
 * The same guest three times: one goes from node to node inside its namespace, one into another namespace and back, one
 * into another cluster and back; in turns, and while one moves the others stand still.
 */

const SIZES_MIB = [128, 512];
const ROUNDS = 5;
const TICK_MS = 5;
const OTHER_NAMESPACE = 'elsewhere';

export async function moves(counts: readonly number[] = []): Promise<void> {
  const [rounds = ROUNDS, ...sizes] = counts;
  const [east, west] = [new LocalCluster(2), new LocalCluster(1)];
  try {
    for (const cluster of [east, west]) {
      await cluster.start();
      cluster.importProbe();
    }
    const [one, other] = await joinClusters(east, west);
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: OTHER_NAMESPACE } };
    await one.connection.request('POST', '/api/v1/namespaces', JSON.stringify(namespace));
    const times = new SerialTimes(nodesOfBoth(east, west));
    try {
      for (const sizeMiB of sizes.length > 0 ? sizes : SIZES_MIB) await compare({ one, other, times }, sizeMiB, rounds);
    } finally {
      times.stop();
    }
  } finally {
    east.remove();
    west.remove();
  }
}

/** One directory with the nodes of both clusters. */
function nodesOfBoth(east: LocalCluster, west: LocalCluster): string {
  const directory = join(east.directory, 'both');
  mkdirSync(directory);
  for (const [prefix, { dataDirectory, nodes }] of [
    ['east', east],
    ['west', west],
  ] as const)
    for (let node = 1; node <= nodes; node++)
      symlinkSync(join(dataDirectory, 'nodes', `node-${node}`), join(directory, `${prefix}-${node}`));
  return directory;
}

interface Scene {
  readonly one: Joined;
  readonly other: Joined;
  readonly times: SerialTimes;
}

async function compare({ one, other, times }: Scene, sizeMiB: number, rounds: number): Promise<void> {
  const machine = (name: string, runStrategy: string) =>
    virtualMachine(name, probe({ tickMs: TICK_MS, memory: `${sizeMiB}Mi` }), { runStrategy }) as {
      metadata: { name: string };
    };
  const progress = await Progress.follow(one.cluster);
  const inside = await GodwitMoves.on(one.cluster);
  const local = `inside-${sizeMiB}`;
  await progress.apply(machine(local, 'Always'));
  await progress.reaches(local, 'Spoken');
  const home = await endIn(one, 'default');
  const paired = (name: string, there: End): PairedMachines =>
    new PairedMachines({ name: `${name}-${sizeMiB}`, ends: [home, there], times, machine });
  const namespaces = paired('namespaces', await endIn(one, OTHER_NAMESPACE));
  const clusters = paired('clusters', await endIn(other, 'default'));
  await namespaces.start();
  await clusters.start();
  const pidOfInside = async (): Promise<number> => Number(readFileSync(await inside.processOf(local), 'latin1'));
  const taken: Record<'inside' | 'namespaces' | 'clusters', Move[]> = { inside: [], namespaces: [], clusters: [] };
  let before = await streamCounts(one);
  // The first of each warms everything up.
  for (let round = 0; round <= rounds; round++) {
    const elsewhere = await pidOf(clusters);
    const ownMove = await still([await pidOf(namespaces), elsewhere], () => inside.move(local));
    const namespaceMove = await still([await pidOfInside(), elsewhere], () => namespaces.move());
    const clusterMove = await still([await pidOfInside(), await pidOf(namespaces)], () => clusters.move());
    if (round === 0) {
      before = await streamCounts(one);
      continue;
    }
    taken.inside.push(ownMove);
    taken.namespaces.push(namespaceMove);
    taken.clusters.push(clusterMove);
  }
  const of = `${sizeMiB} MiB, idle`;
  reportMoves(`${of}, into another namespace`, medianMove(taken.namespaces), medianMove(taken.inside));
  reportMoves(`${of}, into another cluster`, medianMove(taken.clusters), medianMove(taken.inside));
  reportStream(`${of}, between clusters`, before, await streamCounts(one), rounds);
  inside.close();
  await progress.delete(local);
  for (const each of [namespaces, clusters]) await each.remove();
}

async function pidOf(machines: PairedMachines): Promise<number> {
  const { node, podUID } = await machines.holder();
  const runs = join(machines.here.cluster.dataDirectory, 'nodes', node, 'runs');
  return Number(readFileSync(join(runs, podUID, 'qemu.pid'), 'latin1'));
}

function reportMoves(of: string, pair: Move, inside: Move): void {
  for (const [figure, field] of [
    ['until the guest is heard at its target', 'totalMs'],
    ['until it is said to be over', 'settledMs'],
    ['silence of the guest', 'downtimeMs'],
  ] as const)
    report('decentralized', {
      figure: `${of}, ${figure}`,
      value: pair[field],
      unit: 'ms',
      insideOneNamespace: rounded(inside[field]),
      moreMs: rounded(pair[field] - inside[field]),
      ratio: rounded(pair[field] / inside[field]),
      load: rounded(loadavg()[0] ?? 0),
    });
}
