import { availableParallelism, loadavg } from 'node:os';
import { bystanders } from './apiserver/bystanders.ts';
import { startAndMemory } from './apiserver/memory.ts';
import { lists } from './apiserver/lists.ts';
import { BENCH } from './apiserver/objects.ts';
import { throughput } from './apiserver/throughput.ts';
import { watches } from './apiserver/watches.ts';
import { report } from './figures.ts';
import { ServerProcess } from './server-process.ts';

/**
 * The API server under load from this process, on the same machine. Objects are ConfigMaps of 1 KiB, every write is on
 * disk before it is answered. The rival's figures: kube-apiserver 1.34 with etcd, two cores shared with the load.
 * Arguments choose parts: `npm run bench -- apiserver throughput watches`.
 */

const parts: { readonly [name: string]: (server: ServerProcess) => Promise<void> } = {
  memory: startAndMemory,
  throughput,
  lists,
  watches,
  bystanders,
};

const [oneMinute = 0] = loadavg();
// What else the machine is doing weighs on every figure; a quiet one is near 0.
report(BENCH, { figure: 'load before', value: oneMinute, unit: 'processes', cores: availableParallelism() });

const asked = process.argv.slice(2);
for (const name of asked.length > 0 ? asked : Object.keys(parts)) {
  const part = parts[name];
  if (!part) throw new Error(`there is no part ${name}; there are ${Object.keys(parts).join(', ')}`);
  const server = new ServerProcess();
  try {
    await part(server);
  } finally {
    await server.remove();
  }
}
