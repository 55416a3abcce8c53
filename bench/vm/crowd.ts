import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { probe, virtualMachine } from '../../test/support/guest-manifests.ts';
import { median, report, rounded } from '../figures.ts';
import { cpuSeconds, memoryOf } from '../processes.ts';
import { ByHand } from './by-hand.ts';
import { LocalCluster } from './local-cluster.ts';
import { Progress } from './progress.ts';
import { perMachine, writesSoFar } from './writes.ts';

/** Many small machines at once on a few nodes: how long, what it costs, and what is left to do once they run. */

const NODES = 3;
const FEW = 10;
const MANY = 50;
/** After so long all is written that follows from what happened. */
const SETTLED_MS = 5000;
const REST_MS = 20_000;

export async function crowd(): Promise<void> {
  const cluster = new LocalCluster(NODES);
  try {
    await cluster.start();
    cluster.importGuests();
    const progress = await Progress.follow(cluster);
    await sleep(SETTLED_MS);
    await reportRest(cluster, 0);
    await appear(cluster, progress, FEW);
    reportMemory(cluster, FEW);
    await disappear(cluster, progress, FEW);
    const byHand = await appear(cluster, progress, MANY);
    await reportRest(cluster, MANY);
    await disappear(cluster, progress, MANY);
    await byHandAtOnce(cluster, byHand);
  } finally {
    cluster.remove();
  }
}

const named = (count: number): string[] => Array.from({ length: count }, (_, index) => `crowd-${index}`);

async function appear(cluster: LocalCluster, progress: Progress, count: number): Promise<ByHand> {
  const connection = await cluster.connect();
  const names = named(count);
  const before = await writesSoFar(connection);
  const startedMs = performance.now();
  const cpuBefore = cpuOf(cluster);
  const spoken = names.map(async (name) => {
    await progress.apply(virtualMachine(name, probe({ tickMs: 1000 })));
    return progress.reaches(name, 'Spoken');
  });
  await Promise.all(names.map((name) => progress.reaches(name, 'Running')));
  const runningSeconds = (performance.now() - startedMs) / 1000;
  await Promise.all(spoken);
  const spokenSeconds = (performance.now() - startedMs) / 1000;
  const cpu = difference(cpuBefore, cpuOf(cluster));
  await sleep(SETTLED_MS);
  const writes = perMachine(before, await writesSoFar(connection), count);
  const figure = (what: string): string => `${count} bare-metal guests at once, ${what}`;
  report('vm', { figure: figure('all Running'), value: runningSeconds, unit: 's' });
  report('vm', { figure: figure('all have spoken'), value: spokenSeconds, unit: 's' });
  report('vm', { figure: figure('processor time until then'), value: total(cpu), unit: 's', ...cpu });
  report('vm', { figure: figure('API writes per machine'), value: total(writes), unit: 'writes', ...writes });
  const [qemu = 0] = cluster.qemus();
  return ByHand.like(qemu, join(cluster.directory, `hand-${count}`));
}

async function disappear(cluster: LocalCluster, progress: Progress, count: number): Promise<void> {
  const connection = await cluster.connect();
  const before = await writesSoFar(connection);
  const startedMs = performance.now();
  await progress.delete(...named(count));
  const seconds = (performance.now() - startedMs) / 1000;
  await sleep(SETTLED_MS);
  const writes = perMachine(before, await writesSoFar(connection), count);
  report('vm', { figure: `${count} bare-metal guests deleted at once, all gone`, value: seconds, unit: 's' });
  report('vm', {
    figure: `API writes per machine that is deleted, of ${count}`,
    value: total(writes),
    unit: 'writes',
    ...writes,
  });
}

async function byHandAtOnce(cluster: LocalCluster, byHand: ByHand): Promise<void> {
  const startedMs = performance.now();
  const times = await Promise.all(Array.from({ length: MANY }, () => byHand.start()));
  const seconds = (performance.now() - startedMs) / 1000;
  const { qemu = 0 } = cpuOf(cluster);
  await byHand.end();
  const monitorSeconds = Math.max(...times.map(({ monitorMs }) => monitorMs)) / 1000;
  report('vm', { figure: `${MANY} of the same QEMU by hand at once, all answer`, value: monitorSeconds, unit: 's' });
  report('vm', { figure: `${MANY} of the same QEMU by hand at once, all have spoken`, value: seconds, unit: 's' });
  report('vm', { figure: `${MANY} of the same QEMU by hand, processor time until then`, value: qemu, unit: 's' });
}

/** What a cluster keeps and uses while nothing happens. */
async function reportRest(cluster: LocalCluster, machines: number): Promise<void> {
  reportMemory(cluster, machines);
  const before = cpuOf(cluster);
  await sleep(REST_MS);
  const { controlPlane = 0, agents = 0 } = difference(before, cpuOf(cluster));
  const percent = (seconds: number): number => (seconds / (REST_MS / 1000)) * 100;
  const at = `at rest with ${machines} guests`;
  report('vm', { figure: `control plane ${at}`, value: percent(controlPlane), unit: '% of a core' });
  report('vm', { figure: `agents of ${NODES} nodes ${at}`, value: percent(agents), unit: '% of a core' });
}

function reportMemory(cluster: LocalCluster, machines: number): void {
  const all = cluster.agents().map(memoryOf);
  const sum = (field: keyof (typeof all)[number]): number => all.reduce((sum, memory) => sum + memory[field], 0);
  report('vm', {
    figure: `agents of ${NODES} nodes with ${machines} guests together, resident`,
    value: sum('residentMegabytes'),
    unit: 'MB',
    proportional: rounded(sum('proportionalMegabytes')),
    private: rounded(sum('privateMegabytes')),
  });
  report('vm', {
    figure: `control plane with ${machines} guests, resident`,
    value: memoryOf(cluster.controlPlane).residentMegabytes,
    unit: 'MB',
  });
  const qemus = cluster.qemus().map((pid) => memoryOf(pid).proportionalMegabytes);
  if (qemus.length > 0) report('vm', { figure: `each QEMU, its part of memory`, value: median(qemus), unit: 'MB' });
}

function cpuOf(cluster: LocalCluster): Record<string, number> {
  const sum = (pids: readonly number[]): number => pids.reduce((seconds, pid) => seconds + cpuSeconds(pid), 0);
  return { controlPlane: cpuSeconds(cluster.controlPlane), agents: sum(cluster.agents()), qemu: sum(cluster.qemus()) };
}

function difference(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  return Object.fromEntries(Object.entries(after).map(([what, value]) => [what, rounded(value - (before[what] ?? 0))]));
}

function total(parts: Readonly<Record<string, number>>): number {
  return Object.values(parts).reduce((sum, part) => sum + part, 0);
}
