import { report, rounded } from '../figures.ts';
import type { LoadConnection } from '../load-connection.ts';
import type { ServerProcess } from '../server-process.ts';
import { BENCH, CONFIG_MAPS, fill } from './objects.ts';

/** What a write costs that concerns none of those who watch, as a pod of one node concerns the agents of all others. */

const CREATES = 10_000;
const WATCHES_PER_CONNECTION = 100;

export async function bystanders(server: ServerProcess): Promise<void> {
  await server.start();
  const writer = await server.connect();
  // Not counted: code that has not run yet is slow.
  await fill(writer, CREATES);
  for (const watchers of [0, 1_000, 3_000]) await create(server, writer, watchers);
}

async function create(server: ServerProcess, writer: LoadConnection, watchers: number): Promise<void> {
  const connections: LoadConnection[] = [];
  let heard = 0;
  for (let first = 0; first < watchers; first += WATCHES_PER_CONNECTION) {
    const connection = await server.connect();
    connections.push(connection);
    await Promise.all(
      Array.from({ length: WATCHES_PER_CONNECTION }, (_unused, index) =>
        connection.watch(`${CONFIG_MAPS}?watch=true&labelSelector=node%3Dnode-${first + index}`, () => void heard++),
      ),
    );
  }
  const cpuBefore = server.cpuSeconds();
  const startedMs = performance.now();
  await fill(writer, CREATES);
  const seconds = (performance.now() - startedMs) / 1000;
  report(BENCH, {
    figure: 'processor time per create, with watchers whom it does not concern',
    value: ((server.cpuSeconds() - cpuBefore) * 1000) / CREATES,
    unit: 'ms',
    watchers,
    heard,
    createsPerSecond: rounded(CREATES / seconds),
  });
  for (const connection of connections) connection.close();
}
