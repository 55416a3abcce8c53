import { setTimeout as sleep } from 'node:timers/promises';
import { median, report, rounded } from '../figures.ts';
import type { ServerProcess } from '../server-process.ts';
import { BENCH, CONFIG_MAPS, configMap, fill, PAYLOAD } from './objects.ts';

/** Large lists, and what others notice of them. */

const ROUNDS = 7;

export async function lists(server: ServerProcess): Promise<void> {
  await server.start();
  const connection = await server.connect();
  const other = await server.connect();
  await connection.request('POST', CONFIG_MAPS, configMap('small'));
  let have = 1;
  for (const [count, rival] of [
    [10_000, 565],
    [100_000, undefined],
  ] as const) {
    await fill(connection, count - have);
    have = count;
    const times: number[] = [];
    const waits: number[] = [];
    const cpuBefore = server.cpuSeconds();
    for (let round = 0; round < ROUNDS; round++) {
      const startedMs = performance.now();
      const listing = { isDone: false };
      const gets = (async () => {
        while (!listing.isDone) {
          const sentMs = performance.now();
          await other.request('GET', `${CONFIG_MAPS}/small`);
          waits.push(performance.now() - sentMs);
          await sleep(2);
        }
      })();
      const bytes = await connection.request('GET', CONFIG_MAPS);
      times.push(performance.now() - startedMs);
      listing.isDone = true;
      await gets;
      if (bytes < count * PAYLOAD.length) throw new Error(`the list of ${count} has only ${bytes} bytes`);
    }
    report(BENCH, {
      figure: `list of ${count} objects`,
      value: median(times),
      unit: 'ms',
      rival,
      serverCpuMsEach: rounded(((server.cpuSeconds() - cpuBefore) * 1000) / ROUNDS),
      longestWaitOfOtherGetMs: rounded(Math.max(...waits)),
    });
  }
}
