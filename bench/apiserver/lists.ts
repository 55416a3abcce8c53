import { setTimeout as sleep } from 'node:timers/promises';
import { median, report, rounded } from '../figures.ts';
import type { ServerProcess } from '../server-process.ts';
import { BENCH, CONFIG_MAPS, configMap, fill, PAYLOAD } from './objects.ts';

/** Large lists, and what others notice of them. */

const ROUNDS = 7;

export async function lists(server: ServerProcess): Promise<void> {
  await server.start();
  const connection = await server.connect();
  await connection.request('POST', CONFIG_MAPS, configMap('small'));
  await fill(connection, 9_999);
  await measure(server, { figure: 'list of 10000 objects', query: '', bytesMin: 10_000 * PAYLOAD.length, rival: 565 });
  await fill(connection, 90_000);
  await measure(server, { figure: 'list of 100000 objects', query: '', bytesMin: 100_000 * PAYLOAD.length });
  await measure(server, {
    figure: 'list of none of 100000 objects, by a label',
    query: '?labelSelector=no%3Dsuch',
    bytesMin: 0,
  });
}

interface List {
  readonly figure: string;
  readonly query: string;
  readonly bytesMin: number;
  readonly rival?: number;
}

/** Lists a few times, while somebody else gets one small object after the other. */
async function measure(server: ServerProcess, { figure, query, bytesMin, rival }: List): Promise<void> {
  const connection = await server.connect();
  const other = await server.connect();
  const times: number[] = [];
  const waits: number[] = [];
  const cpuBefore = server.cpuSeconds();
  for (let round = 0; round < ROUNDS; round++) {
    const listing = { isDone: false };
    const gets = (async () => {
      while (!listing.isDone) {
        const sentMs = performance.now();
        await other.request('GET', `${CONFIG_MAPS}/small`);
        waits.push(performance.now() - sentMs);
        await sleep(2);
      }
    })();
    const startedMs = performance.now();
    const bytes = await connection.request('GET', `${CONFIG_MAPS}${query}`);
    times.push(performance.now() - startedMs);
    listing.isDone = true;
    await gets;
    if (bytes < bytesMin) throw new Error(`the ${figure} has only ${bytes} bytes`);
  }
  report(BENCH, {
    figure,
    value: median(times),
    unit: 'ms',
    rival,
    serverCpuMsEach: rounded(((server.cpuSeconds() - cpuBefore) * 1000) / ROUNDS),
    longestWaitOfOtherGetMs: rounded(Math.max(...waits)),
  });
}
