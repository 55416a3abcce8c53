import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { credentialsIn } from '../credentials.ts';
import { report, rounded } from '../figures.ts';
import type { LoadConnection } from '../load-connection.ts';
import { AUTHORITY } from '../migration/model-cluster.ts';
import { cpuSeconds, memoryOf } from '../processes.ts';
import { LocalCluster } from '../vm/local-cluster.ts';
import { joinClusters, type Joined, synchronizationPid } from './clusters.ts';
import { ask } from './paired-machines.ts';
import { SeenMigrations } from './seen-migrations.ts';
import { reportStream, streamCounts } from './stream-counts.ts';

/**
 * Many model machines that go from one cluster to another, all asked for at once: over HTTPS, on durable engines, with the
 * synchronization controllers in processes of their own, and all agents in another one. Machines and copies take no time,
 * so this is what everything around QEMU costs.
 */

const NODES = 50;
const COUNTS = [1000];
const AT_ONCE = 50;
const LOOK_MS = 20;
const STILL_MS_MAX = 180_000;
/** Two from and to each node at most, as usual; in all as many as that leaves room for. */
const LIMITS = { parallelMigrationsPerCluster: 2 * NODES };
const API = '/apis/kubevirt.io/v1/namespaces/default';
const NAMESPACE = 'default';

const agentsMain = fileURLToPath(new URL('pair-agents.js', import.meta.url));

export async function models(counts: readonly number[] = COUNTS): Promise<void> {
  const [east, west] = [new LocalCluster(0), new LocalCluster(0)];
  let agents: ChildProcess | undefined;
  try {
    await east.start();
    await west.start();
    const joined = await joinClusters(east, west, LIMITS);
    const args = [east, west].flatMap(({ dataDirectory }) => [serverOf(dataDirectory), join(dataDirectory, AUTHORITY)]);
    agents = spawn(process.execPath, [agentsMain, String(NODES), ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (agents.stdout) await once(agents.stdout, 'data');
    for (const { connection } of joined) await nodesReady(connection);
    for (const count of counts) await moveAll(joined, agents.pid ?? 0, count);
  } finally {
    agents?.kill('SIGKILL');
    east.remove();
    west.remove();
  }
}

function serverOf(dataDirectory: string): string {
  const { host, port } = credentialsIn(join(dataDirectory, 'kubeconfig'));
  return `https://${host}:${port}`;
}

interface List {
  readonly items: readonly {
    readonly metadata: { readonly name: string };
    readonly status?: {
      readonly phase?: string;
      readonly conditions?: readonly { readonly type: string; readonly status: string }[];
    };
  }[];
}

function nodesReady(connection: LoadConnection): Promise<void> {
  const isReady = ({ status }: List['items'][number]): boolean =>
    status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
  return allThere('nodes are ready', NODES, async () => {
    const { items } = JSON.parse(await connection.text('GET', '/api/v1/nodes')) as List;
    return items.filter(isReady).length;
  });
}

async function moveAll([east, west]: readonly [Joined, Joined], agents: number, count: number): Promise<void> {
  const names = Array.from({ length: count }, (_, index) => `m${count}-${index}`);
  await appear(east.connection, names, 'Always', 'Running');
  await appear(west.connection, names, 'WaitAsReceiver', 'WaitingForSync');
  const sent = await SeenMigrations.on(await east.cluster.connect(), NAMESPACE);
  const received = await SeenMigrations.on(await west.cluster.connect(), NAMESPACE);
  const pids = {
    'control plane of the source': east.cluster.controlPlane,
    'control plane of the target': west.cluster.controlPlane,
    'synchronization at the source': synchronizationPid(east),
    'synchronization at the target': synchronizationPid(west),
    'agents of both': agents,
  };
  const cpu = (): readonly number[] => Object.values(pids).map(cpuSeconds);
  const [before, counts, startedMs] = [cpu(), await streamCounts(east), performance.now()];
  await eachAtOnce(names, async (name) => {
    await ask(west.connection, NAMESPACE, name, { vmiName: name, receive: { key: `bench-${name}` } });
    const sendTo = { key: `bench-${name}`, connectURL: west.address };
    await ask(east.connection, NAMESPACE, name, { vmiName: name, sendTo });
  });
  const ended = (seen: SeenMigrations): number =>
    ['Succeeded', 'Failed'].flatMap((phase) => seen.in(phase)).filter((name) => name.startsWith(`m${count}-`)).length;
  await allThere('halves are over', 2 * count, () => ended(sent) + ended(received));
  const seconds = (performance.now() - startedMs) / 1000;
  const used = cpu().map((after, index) => ((after - (before[index] ?? 0)) * 1000) / count);
  const of = `${count} pairs of models on ${NODES} nodes in each of two clusters`;
  const failed = [...new Set([...sent.in('Failed'), ...received.in('Failed')])];
  const load = rounded(loadavg()[0] ?? 0);
  report('decentralized', {
    figure: `${of}, migrations/s`,
    value: count / seconds,
    unit: '1/s',
    failed: failed.length,
    ...(failed[0] === undefined ? {} : { reason: sent.reasonOf(failed[0]) }),
    load,
  });
  const value = used.reduce((sum, each) => sum + each, 0);
  const parts = Object.fromEntries(Object.keys(pids).map((what, index) => [what, rounded(used[index] ?? 0)]));
  report('decentralized', {
    figure: `${of}, processor time for each, all processes`,
    value,
    unit: 'ms',
    ...parts,
    load,
  });
  for (const [what, pid] of Object.entries(pids))
    report('decentralized', { figure: `${of}, ${what}, resident`, value: memoryOf(pid).residentMegabytes, unit: 'MB' });
  reportStream(of, counts, await streamCounts(east), count);
}

/** Makes machines, and waits until the guests of all are in a phase. */
async function appear(
  connection: LoadConnection,
  names: readonly string[],
  runStrategy: string,
  phase: string,
): Promise<void> {
  const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
  const annotations = { 'kubevirt.io/restore-run-strategy': 'Always' };
  await eachAtOnce(names, async (name) => {
    const kind = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachine' };
    const machine = { ...kind, metadata: { name, annotations }, spec: { runStrategy, template } };
    await connection.request('POST', `${API}/virtualmachines`, JSON.stringify(machine));
  });
  const wanted = new Set(names);
  await allThere(`guests are ${phase}`, names.length, async () => {
    const { items } = JSON.parse(await connection.text('GET', `${API}/virtualmachineinstances`)) as List;
    return items.filter(({ metadata, status }) => status?.phase === phase && wanted.has(metadata.name)).length;
  });
}

async function eachAtOnce(names: readonly string[], act: (name: string) => Promise<unknown>): Promise<void> {
  const waiting = [...names];
  const worker = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) await act(name);
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
}

/** Waits as long as there is something new now and then. */
async function allThere(what: string, count: number, look: () => number | Promise<number>): Promise<void> {
  let [most, sinceMs] = [-1, performance.now()];
  for (;;) {
    const seen = await look();
    if (seen >= count) return;
    if (seen > most) [most, sinceMs] = [seen, performance.now()];
    if (performance.now() - sinceMs > STILL_MS_MAX) throw new Error(`only ${most} of ${count} ${what}`);
    // Looking costs, too.
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS + count / 10));
  }
}
