import { closeSync, fdatasyncSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { median, report, rounded } from '../figures.ts';
import type { LoadConnection } from '../load-connection.ts';
import type { ServerProcess } from '../server-process.ts';
import { BENCH, CONFIG_MAPS, configMap, freshName } from './objects.ts';

/** Requests per second and what each costs the server, in rounds that alternate, so that noise meets all alike. */

const ROUNDS = 5;
const ROUND_MS = 1_500;
const CONNECTIONS = 4;
const UPDATED_OBJECTS = 16;

interface Load {
  readonly figure: string;
  readonly clients: number;
  readonly rival: number;
  readonly work: (connection: LoadConnection, client: number) => Promise<unknown>;
}

interface Round {
  readonly perSecond: number;
  readonly cpuMs: number;
}

const create = (connection: LoadConnection): Promise<unknown> =>
  connection.request('POST', CONFIG_MAPS, configMap(freshName()));
let stamp = 0;
const update = (connection: LoadConnection, client: number): Promise<unknown> =>
  connection.request('PUT', `${CONFIG_MAPS}/update-${client}`, configMap(`update-${client}`, String(stamp++)));
const get = (connection: LoadConnection, client: number): Promise<unknown> =>
  connection.request('GET', `${CONFIG_MAPS}/update-${client}`);

const LOADS: readonly Load[] = [
  { figure: 'durable creates', clients: 1, rival: 196, work: create },
  { figure: 'durable creates', clients: 16, rival: 402, work: create },
  { figure: 'durable creates', clients: 256, rival: 550, work: create },
  { figure: 'durable updates', clients: UPDATED_OBJECTS, rival: 345, work: update },
  { figure: 'gets', clients: UPDATED_OBJECTS, rival: 929, work: get },
];

/** Runs every load a few times and reports the medians. */
export async function throughput(server: ServerProcess): Promise<void> {
  await server.start();
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => server.connect()));
  for (let client = 0; client < UPDATED_OBJECTS; client++)
    await connections[0]?.request('POST', CONFIG_MAPS, configMap(`update-${client}`));
  const rounds = LOADS.map((): Round[] => []);
  const flushes: number[] = [];
  for (let round = 0; round <= ROUNDS; round++) {
    flushes.push(...flushTimes(server.directory));
    for (const [index, load] of LOADS.entries()) {
      const measured = await run(server, connections, load);
      // The first round warms up both sides.
      if (round > 0) rounds[index]?.push(measured);
    }
  }
  report(BENCH, { figure: 'one flush of this disk (4 KiB, fdatasync)', value: median(flushes), unit: 'ms' });
  for (const [index, { figure, clients, rival }] of LOADS.entries()) {
    const rates = (rounds[index] ?? []).map(({ perSecond }) => perSecond);
    report(BENCH, {
      figure,
      clients,
      value: median(rates),
      unit: '1/s',
      rival,
      least: rounded(Math.min(...rates)),
      most: rounded(Math.max(...rates)),
      serverCpuMsEach: rounded(median((rounds[index] ?? []).map(({ cpuMs }) => cpuMs))),
    });
  }
}

async function run(server: ServerProcess, connections: readonly LoadConnection[], load: Load): Promise<Round> {
  const cpuBefore = server.cpuSeconds();
  const startedMs = performance.now();
  let operations = 0;
  await Promise.all(
    Array.from({ length: load.clients }, async (_unused, client) => {
      const connection = connections[client % connections.length] as LoadConnection;
      while (performance.now() - startedMs < ROUND_MS) {
        await load.work(connection, client);
        operations++;
      }
    }),
  );
  const seconds = (performance.now() - startedMs) / 1000;
  return { perSecond: operations / seconds, cpuMs: ((server.cpuSeconds() - cpuBefore) * 1000) / operations };
}

/** What the disk takes to make a small write durable: the floor below a lone client's writes. */
function flushTimes(directory: string): number[] {
  const file = openSync(join(directory, 'flush'), 'w');
  const bytes = Buffer.alloc(4096, 1);
  const times = Array.from({ length: 20 }, (_unused, index) => {
    const startedMs = performance.now();
    writeSync(file, bytes, 0, bytes.length, index * bytes.length);
    fdatasyncSync(file);
    return performance.now() - startedMs;
  });
  closeSync(file);
  return times;
}
