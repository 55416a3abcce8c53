import { setTimeout as sleep } from 'node:timers/promises';
import { median, report, rounded } from '../figures.ts';
import type { ServerProcess } from '../server-process.ts';
import { BENCH, CONFIG_MAPS, fill } from './objects.ts';

/** What it costs to hold objects, and to start with them. */

const RESTARTS = 3;
/** How long after the load memory is looked at: what a quiet server keeps. */
const QUIET_MS = 2_000;

export async function startAndMemory(server: ServerProcess): Promise<void> {
  report(BENCH, { figure: 'first start (keys, certificates, roles)', value: await server.start(), unit: 'ms' });
  reportMemory(server, 'memory when empty');
  await restart(server, 0);
  let have = 0;
  for (const [count, rival] of [
    [10_000, 516],
    [100_000, undefined],
  ] as const) {
    await fill(await server.connect(), count - have);
    have = count;
    await sleep(QUIET_MS);
    reportMemory(server, `memory at ${count} objects, after writing them`, rival);
    await restart(server, count);
    const connection = await server.connect();
    await connection.request('GET', `${CONFIG_MAPS}?limit=500`);
    reportMemory(server, `memory at ${count} objects, after a restart`, rival);
  }
}

function reportMemory(server: ServerProcess, figure: string, rival?: number): void {
  const { residentMegabytes, privateMegabytes } = server.memory();
  report(BENCH, {
    figure,
    value: residentMegabytes,
    unit: 'MB',
    rival,
    privateMegabytes: rounded(privateMegabytes),
  });
}

async function restart(server: ServerProcess, count: number): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < RESTARTS; round++) {
    await server.stop();
    times.push(await server.start());
  }
  report(BENCH, { figure: `start-up at ${count} objects`, value: median(times), unit: 'ms' });
}
