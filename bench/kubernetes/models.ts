import { loadavg } from 'node:os';
import { report, rounded } from '../figures.ts';
import { allow, allSeen, counted, create } from '../migration/model-crowd.ts';
import { cpuSeconds, memoryOf } from '../processes.ts';
import { KubernetesCluster, type ProcessName } from './cluster.ts';
import { logLength, type Requests, requestsSince } from './requests.ts';

/**
 * Migrations of model guests on ten nodes of a real Kubernetes control plane, all asked for at once: what they take, what
 * the API server is asked for each, and by whom. Guests are not of machines, and their copies take no time, as the rival
 * was measured.
 */

const NODES = 10;
/** Nothing waits for its turn. */
const NO_LIMITS = {
  parallelMigrationsPerCluster: 10_000,
  parallelOutboundMigrationsPerNode: 10_000,
  parallelInboundMigrationsPerNode: 10_000,
};
const USUAL_LIMITS = {};

export interface Run {
  readonly count: number;
  /** Whether no more go at once than usual. */
  readonly isLimited: boolean;
}

interface RivalRun {
  readonly seconds: number;
  readonly cpuMs: number;
  readonly megabytes: number;
  readonly serverSeconds: number;
}

/** KubeVirt's virt-controller on a like machine; of two runs the better one. */
const RIVAL: Readonly<Record<string, RivalRun>> = {
  '100': { seconds: 22.7, cpuMs: 54, megabytes: 113, serverSeconds: 21 },
  '500': { seconds: 149, cpuMs: 106, megabytes: 210, serverSeconds: 146 },
  '1000': { seconds: 434, cpuMs: 178, megabytes: 343, serverSeconds: 323 },
  '100 limited': { seconds: 42, cpuMs: 84, megabytes: 112, serverSeconds: 31 },
};
/** Its writes for each guest that starts and moves, conflicts included: its controller's, and with those of a handler that pretends. */
const RIVAL_WRITES = { controllers: 32.4, all: 37.4 };

/** On a control plane of its own, as everything in it costs those who watch. */
export async function run({ count, isLimited }: Run): Promise<void> {
  const cluster = new KubernetesCluster();
  try {
    // Each node might have all, and guests are at two places for a moment.
    await cluster.start(NODES, 2 * count);
    const connection = await cluster.connect();
    await allow(connection, isLimited ? USUAL_LIMITS : NO_LIMITS);
    const started = await measured(cluster, () => startAll(cluster, count));
    const moved = await measured(cluster, () => moveAll(cluster, count));
    const of = `${count} migrations of models on ${NODES} nodes${isLimited ? ', the usual limits' : ''}`;
    tellCost(cluster, of, { count, isLimited }, moved);
    tellRequests(`${of}, to start`, started.requests, count);
    tellRequests(of, moved.requests, count);
    const writes = (clients: readonly string[]): number =>
      (writesOf(clients, started.requests) + writesOf(clients, moved.requests)) / count;
    report('kubernetes', {
      figure: `${of}, writes of the controllers, start included`,
      value: writes(['controllers']),
      unit: 'writes',
      rival: RIVAL_WRITES.controllers,
    });
    report('kubernetes', {
      figure: `${of}, writes of controllers, extension and agents, start included`,
      value: writes(OURS),
      unit: 'writes',
      rival: RIVAL_WRITES.all,
    });
  } finally {
    await cluster.remove();
  }
}

interface Measured {
  readonly seconds: number;
  readonly cpuSeconds: ReadonlyMap<ProcessName, number>;
  readonly requests: Requests;
  readonly failed: number;
}

async function measured(cluster: KubernetesCluster, work: () => Promise<number>): Promise<Measured> {
  const processes = cluster.processes();
  const cpu = (): Map<ProcessName, number> => new Map([...processes].map(([name, pid]) => [name, cpuSeconds(pid)]));
  const [before, length, startedMs] = [cpu(), logLength(cluster.auditLog), performance.now()];
  const failed = await work();
  const seconds = (performance.now() - startedMs) / 1000;
  const used = new Map([...cpu()].map(([name, after]) => [name, after - (before.get(name) ?? 0)] as const));
  // Who hears of the end late writes late: what a migration costs is all that is written for it.
  await settled(cluster);
  return { seconds, cpuSeconds: used, requests: requestsSince(cluster.auditLog, length), failed };
}

/** Waits until next to nothing is asked any more. */
async function settled(cluster: KubernetesCluster): Promise<void> {
  for (let length = -1; logLength(cluster.auditLog) - length > QUIET_BYTES; ) {
    length = logLength(cluster.auditLog);
    await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  }
}

const SETTLE_MS = 3000;
/** A handful of requests. */
const QUIET_BYTES = 10_000;

async function startAll(cluster: KubernetesCluster, count: number): Promise<number> {
  const connection = await cluster.connect();
  const running = await counted(connection, 'virtualmachineinstances', 'Running');
  await create(connection, 'virtualmachineinstances', 0, count, (name) => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name },
    spec: { domain: { devices: {}, memory: { guest: '64Mi' } } },
  }));
  await allSeen(() => running.size, count, 'guests run');
  return 0;
}

/** Answers how many have failed. */
async function moveAll(cluster: KubernetesCluster, count: number): Promise<number> {
  const connection = await cluster.connect();
  const migrations = 'virtualmachineinstancemigrations';
  const succeeded = await counted(connection, migrations, 'Succeeded');
  const failed = await counted(connection, migrations, 'Failed');
  await create(connection, migrations, 0, count, (vmiName) => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: vmiName },
    spec: { vmiName },
  }));
  await allSeen(() => succeeded.size + failed.size, count, 'migrations have ended');
  return failed.size;
}

function tellCost(cluster: KubernetesCluster, of: string, { count, isLimited }: Run, moved: Measured): void {
  const rival = RIVAL[`${count}${isLimited ? ' limited' : ''}`];
  const load = rounded(loadavg()[0] ?? 0);
  const { seconds, failed } = moved;
  report('kubernetes', { figure: `${of}, total`, value: seconds, unit: 's', rival: rival?.seconds, failed, load });
  const used = (name: ProcessName): number => moved.cpuSeconds.get(name) ?? Number.NaN;
  const others = (['extension', 'agents', 'kube-scheduler', 'kube-controller-manager', 'etcd'] as const).map(
    (name) => [name, rounded(used(name))] as const,
  );
  report('kubernetes', {
    figure: `${of}, processor time of the controllers for each`,
    value: (used('controllers') * 1000) / count,
    unit: 'ms',
    rival: rival?.cpuMs,
  });
  report('kubernetes', {
    figure: `${of}, processor time of kube-apiserver`,
    value: used('kube-apiserver'),
    unit: 's',
    rival: rival?.serverSeconds,
    ...Object.fromEntries(others),
  });
  report('kubernetes', {
    figure: `${of}, controllers, resident`,
    value: memoryOf(cluster.processes().get('controllers') ?? 0).residentMegabytes,
    unit: 'MB',
    rival: rival?.megabytes,
  });
}

/** One line for each client, most first. */
function tellRequests(of: string, requests: Requests, count: number): void {
  for (const [client, counts] of requests) {
    const each = [...counts].map(([what, times]) => [what, times / count] as const);
    const value = each.reduce((sum, [, times]) => sum + times, 0);
    const details = each.toSorted(([, one], [, other]) => other - one).map(([what, times]) => [what, rounded(times)]);
    report('kubernetes', {
      figure: `${of}, API requests of ${client} for each`,
      value,
      unit: 'requests',
      ...(Object.fromEntries(details) as Record<string, number>),
    });
  }
}

const OURS = ['controllers', 'extension', 'agents'];

/** What was written, or would have been, had it not been refused. */
function writesOf(clients: readonly string[], requests: Requests): number {
  const all = clients.flatMap((client) => [...(requests.get(client) ?? [])]);
  return all.filter(([what]) => /^(POST|PUT|PATCH|DELETE) /.test(what)).reduce((sum, [, times]) => sum + times, 0);
}
