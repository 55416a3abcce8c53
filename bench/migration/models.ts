import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { report, rounded } from '../figures.ts';
import type { LoadConnection } from '../load-connection.ts';
import { cpuSeconds, memoryOf } from '../processes.ts';
import { freePort, RoomShares } from '../room-shares.ts';
import { ServerProcess } from '../server-process.ts';
import { perMachine, writesSoFar } from '../vm/writes.ts';

/**
 * Many migrations of model machines on a hundred nodes, all asked for at once: over HTTPS, on the durable engine, with the
 * agents in a process of their own. Machines and copies take no time, so this is what everything around QEMU costs.
 */

const NODES = 100;
const COUNTS = [100, 1000, 10_000];
const AT_ONCE = 50;
const LOOK_MS = 10;
const STILL_MS_MAX = 120_000;
const NODES_LOOK_MS = 500;
const REFUSALS_MAX = 10;
const ASK_AGAIN_MS = 1000;
/** Two from and to each node at most, as usual; in all as many as that leaves room for. */
const LIMITS = { parallelMigrationsPerCluster: 2 * NODES };
const CONFIGURATION = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const API = '/apis/kubevirt.io/v1/namespaces/default';
/** KubeVirt's virt-controller on a like machine with everything instant around it. */
const RIVAL: Readonly<Record<number, { perSecond: number; cpuMs: number }>> = {
  100: { perSecond: 4.4, cpuMs: 54 },
  1000: { perSecond: 2.3, cpuMs: 178 },
};

const agentsMain = fileURLToPath(new URL('model-agents.js', import.meta.url));

export async function models(counts: readonly number[] = COUNTS): Promise<void> {
  const inspectPort = await freePort();
  const server = new ServerProcess([`--inspect=127.0.0.1:${inspectPort}`]);
  let agents: ChildProcess | undefined;
  let rooms: RoomShares | undefined;
  try {
    await server.start();
    const connection = await server.connect();
    await allow(connection);
    agents = spawn(process.execPath, [agentsMain, server.url, server.directory, String(NODES)], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    if (agents.stdout) await once(agents.stdout, 'data');
    await nodesReady(connection);
    rooms = await RoomShares.attach(inspectPort);
    let machines = 0;
    for (const count of counts) {
      await appear(await server.connect(), machines, count);
      machines = count;
      await moveAll(server, rooms, agents.pid ?? 0, count);
    }
  } finally {
    agents?.kill('SIGKILL');
    // A process does not end while somebody inspects it.
    rooms?.close();
    await server.remove();
  }
}

/** Lets as many go at once as nodes have room for. */
async function allow(connection: LoadConnection): Promise<void> {
  const current = JSON.parse(await connection.text('GET', CONFIGURATION)) as { spec: { configuration?: object } };
  const { spec } = current;
  const body = { ...current, spec: { ...spec, configuration: { ...spec.configuration, migrations: LIMITS } } };
  await connection.request('PUT', CONFIGURATION, JSON.stringify(body));
}

/** A hundred agents that start are a load of their own, which is not what is measured. */
async function nodesReady(connection: LoadConnection): Promise<void> {
  const countReady = async (): Promise<number> => {
    const { items } = JSON.parse(await connection.text('GET', '/api/v1/nodes')) as { items: ReportedNode[] };
    const isReady = ({ status }: ReportedNode): boolean =>
      status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
    return items.filter(isReady).length;
  };
  while ((await countReady()) < NODES) await new Promise((resolve) => setTimeout(resolve, NODES_LOOK_MS));
}

interface ReportedNode {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] };
}

/** Starts machines until there are so many, and waits until all of them run. */
async function appear(connection: LoadConnection, from: number, to: number): Promise<void> {
  const running = await counted(connection, 'virtualmachineinstances', 'Running');
  const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
  await create(connection, 'virtualmachines', from, to, (name) => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { name },
    spec: { runStrategy: 'Always', template },
  }));
  await allSeen(() => running.size, to, 'machines run');
}

async function moveAll(server: ServerProcess, rooms: RoomShares, agents: number, count: number): Promise<void> {
  const connection = await server.connect();
  const succeeded = await counted(connection, 'virtualmachineinstancemigrations', 'Succeeded', `m${count}-`);
  const failed = await counted(connection, 'virtualmachineinstancemigrations', 'Failed', `m${count}-`);
  const writes = await writesSoFar(connection);
  await rooms.begin();
  const [serverSeconds, agentSeconds, startedMs] = [server.cpuSeconds(), cpuSeconds(agents), performance.now()];
  const refusals = await create(connection, 'virtualmachineinstancemigrations', 0, count, (vmiName) => ({
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: `m${count}-${vmiName}` },
    spec: { vmiName },
  }));
  await allSeen(() => succeeded.size + failed.size, count, 'migrations have ended');
  const seconds = (performance.now() - startedMs) / 1000;
  const serverMs = ((server.cpuSeconds() - serverSeconds) * 1000) / count;
  const shares = await rooms.end();
  const per = (before: number, after: number): number => ((after - before) * 1000) / count;
  const of = `${count} migrations of models on ${NODES} nodes`;
  const rival = RIVAL[count];
  report('migration', {
    figure: `${of}, migrations/s`,
    value: count / seconds,
    unit: '1/s',
    rival: rival?.perSecond,
    failed: failed.size,
    'asked again': refusals,
  });
  report('migration', {
    figure: `${of}, processor time of the whole control plane for each`,
    value: serverMs,
    unit: 'ms',
    agents: rounded(per(agentSeconds, cpuSeconds(agents))),
  });
  report('migration', {
    figure: `${of}, of that, controllers`,
    value: serverMs * shares.controllers,
    unit: 'ms',
    rival: rival?.cpuMs,
    'cluster loops': rounded(serverMs * shares['cluster loops']),
    webhooks: rounded(serverMs * shares.webhooks),
    server: rounded(serverMs * shares.server),
  });
  report('migration', {
    figure: `${of}, control plane, resident`,
    value: memoryOf(server.pid).residentMegabytes,
    unit: 'MB',
  });
  const written = perMachine(writes, await writesSoFar(connection), count);
  const value = Object.values(written).reduce((sum, each) => sum + each, 0);
  report('migration', { figure: `${of}, API writes for each`, value, unit: 'writes', ...written });
}

/** Waits as long as there is something new now and then. */
async function allSeen(countSeen: () => number, count: number, what: string): Promise<void> {
  let [seen, sinceMs] = [-1, performance.now()];
  while (countSeen() < count) {
    if (countSeen() > seen) [seen, sinceMs] = [countSeen(), performance.now()];
    if (performance.now() - sinceMs > STILL_MS_MAX) throw new Error(`only ${seen} of ${count} ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

/** The names of all objects that have been seen in a phase, whenever there is news. */
async function counted(connection: LoadConnection, resource: string, phase: string, prefix = ''): Promise<Set<string>> {
  const seen = new Set<string>();
  let rest = '';
  await connection.watch(`${API}/${resource}?watch=true`, (bytes) => {
    const lines = (rest + bytes.toString('latin1')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!line.includes(`"phase":"${phase}"`)) continue;
      const name = /"metadata":\{"name":"([^"]+)"/.exec(line)?.[1] ?? (JSON.parse(line) as Named).object.metadata.name;
      if (name.startsWith(prefix)) seen.add(name);
    }
  });
  return seen;
}

interface Named {
  readonly object: { readonly metadata: { readonly name: string } };
}

/** Answers how many had to be asked for again. */
async function create(
  connection: LoadConnection,
  resource: string,
  from: number,
  to: number,
  bodyOf: (name: string) => object,
): Promise<number> {
  let next = from;
  let refusals = 0;
  const worker = async (): Promise<void> => {
    while (next < to) {
      const body = JSON.stringify(bodyOf(`model-${next++}`));
      refusals += await persist(() => connection.request('POST', `${API}/${resource}`, body));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  return refusals;
}

/** Asks until it is taken, as people do whom a busy server refuses; answers how often it was not. */
async function persist(ask: () => Promise<unknown>): Promise<number> {
  for (let refusals = 0; ; refusals++) {
    try {
      await ask();
      return refusals;
    } catch (error) {
      if (refusals === REFUSALS_MAX) throw error;
      await new Promise((resolve) => setTimeout(resolve, ASK_AGAIN_MS));
    }
  }
}
