import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { LoadConnection } from '../load-connection.ts';
import { AUTHORITY } from '../migration/model-cluster.ts';
import { allow } from '../migration/model-crowd.ts';
import { until } from '../migration/until.ts';
import { ServerProcess } from '../server-process.ts';
import { cordon, drainNode } from './drained-node.ts';
import { webhookLatency } from './webhook-latency.ts';

/**
 * A thousand model machines on one of eleven nodes that is drained: over HTTPS, on the durable engine, with the agents in a
 * process of their own. Machines and copies take no time, so this is what everything around QEMU takes. Then what the
 * webhook for evictions takes beside so many.
 */

const NODES = 11;
const GUESTS = Array.from({ length: 1000 }, (_, index) => `model-${index}`);
const AT_ONCE = 50;
/** As many at once as there are places for: what is measured is not how long others take. */
const LIMITS = {
  parallelMigrationsPerCluster: 200,
  parallelOutboundMigrationsPerNode: 200,
  parallelInboundMigrationsPerNode: 20,
};
const API = '/apis/kubevirt.io/v1/namespaces/default';
const agentsMain = fileURLToPath(new URL('../migration/model-agents.js', import.meta.url));

export async function models(): Promise<void> {
  await withModels(GUESTS, async (server, node) => {
    await drainNode(await server.connect(), { node, guests: GUESTS, kind: 'models' });
    await webhookLatency(server);
  });
}

/** The webhooks alone, with next to nothing beside them. */
export async function webhooks(): Promise<void> {
  await withModels([], (server) => webhookLatency(server));
}

async function withModels(
  guests: readonly string[],
  measure: (server: ServerProcess, node: string) => Promise<void>,
): Promise<void> {
  const server = new ServerProcess((process.env['GODWIT_BENCH_NODE_OPTIONS'] ?? '').split(' ').filter(Boolean));
  let agents: ChildProcess | undefined;
  try {
    await server.start();
    const connection = await server.connect();
    await allow(connection, LIMITS);
    const args = [server.url, join(server.directory, AUTHORITY), String(NODES), String(2 * GUESTS.length)];
    agents = spawn(process.execPath, [agentsMain, ...args], { stdio: ['pipe', 'pipe', 'inherit'] });
    if (agents.stdout) await once(agents.stdout, 'data');
    const [node = '', ...others] = await nodesOf(connection);
    for (const other of others) await cordon(connection, other, true);
    await appear(connection, guests);
    for (const other of others) await cordon(connection, other, false);
    await measure(server, node);
  } finally {
    agents?.kill('SIGKILL');
    await server.remove();
  }
}

function nodesOf(connection: LoadConnection): Promise<string[]> {
  return until(async () => {
    const { items } = JSON.parse(await connection.text('GET', '/api/v1/nodes')) as {
      items: readonly { readonly metadata: { readonly name: string } }[];
    };
    return items.length === NODES ? items.map(({ metadata }) => metadata.name) : undefined;
  }, 'not all nodes are there');
}

async function appear(connection: LoadConnection, guests: readonly string[]): Promise<void> {
  const running = new Set<string>();
  let rest = '';
  await connection.watch(`${API}/virtualmachineinstances?watch=true`, (bytes) => {
    const lines = (rest + bytes.toString('utf8')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      const isUp = line.includes('"phase":"Running"') && line.includes('"LiveMigratable"');
      if (isUp) running.add((JSON.parse(line) as { object: { metadata: { name: string } } }).object.metadata.name);
    }
  });
  const spec = { evictionStrategy: 'LiveMigrate', domain: { devices: {}, memory: { guest: '64Mi' } } };
  const waiting = [...guests];
  const worker = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const machine = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name },
        spec: { runStrategy: 'Always', template: { spec } },
      };
      await connection.request('POST', `${API}/virtualmachines`, JSON.stringify(machine));
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await until(() => (running.size === guests.length ? true : undefined), 'not all guests run');
}
