import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { report, rounded } from '../figures.ts';
import type { LoadConnection } from '../load-connection.ts';
import { cpuSeconds, memoryOf } from '../processes.ts';
import { freePort, RoomShares } from '../room-shares.ts';
import { ServerProcess } from '../server-process.ts';
import { perMachine, writesSoFar } from '../vm/writes.ts';
import { AUTHORITY } from './model-cluster.ts';
import { allow, allSeen, counted, create, nodesReady } from './model-crowd.ts';

/**
 * Many migrations of model machines on a hundred nodes, all asked for at once: over HTTPS, on the durable engine, with the
 * agents in a process of their own. Machines and copies take no time, so this is what everything around QEMU costs.
 */

const NODES = 100;
const COUNTS = [100, 1000, 10_000];
/** Two from and to each node at most, as usual; in all as many as that leaves room for. */
const LIMITS = { parallelMigrationsPerCluster: 2 * NODES };
/** KubeVirt's virt-controller on a like machine with everything instant around it. */
const RIVAL: Readonly<Record<number, { perSecond: number; cpuMs: number }>> = {
  100: { perSecond: 4.4, cpuMs: 54 },
  1000: { perSecond: 2.3, cpuMs: 178 },
};

/** So many, and all that is kept of them, do not fit in the heap that Node.js allows by itself. */
const MANY = 1000;
const HEAP_OF_MANY = '--max-old-space-size=10240';

const agentsMain = fileURLToPath(new URL('model-agents.js', import.meta.url));

export async function models(counts: readonly number[] = COUNTS): Promise<void> {
  const inspectPort = await freePort();
  const heap = Math.max(...counts) > MANY ? [HEAP_OF_MANY] : [];
  const server = new ServerProcess([...heap, `--inspect=127.0.0.1:${inspectPort}`]);
  let agents: ChildProcess | undefined;
  let rooms: RoomShares | undefined;
  try {
    await server.start();
    const connection = await server.connect();
    await allow(connection, LIMITS);
    const args = [server.url, join(server.directory, AUTHORITY), String(NODES)];
    agents = spawn(process.execPath, [...heap, agentsMain, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (agents.stdout) await once(agents.stdout, 'data');
    await nodesReady(connection, NODES);
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
