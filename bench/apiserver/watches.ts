import { setTimeout as sleep } from 'node:timers/promises';
import { percentile, report, rounded } from '../figures.ts';
import type { LoadConnection } from '../load-connection.ts';
import type { ServerProcess } from '../server-process.ts';
import { BENCH, CONFIG_MAPS, configMap } from './objects.ts';

/** How soon, and whether, every watcher hears of every change. */

const CHANGES = 1_000;
const CHANGES_PER_SECOND = 100;
const CONNECTIONS = 10;
const STAMP = Buffer.from('"stamp":"');
const NEWLINE = 0x0a;
/** How long stragglers are waited for. */
const PATIENCE_MS = 20_000;

export async function watches(server: ServerProcess): Promise<void> {
  await server.start();
  const writer = await server.connect();
  await writer.request('POST', CONFIG_MAPS, configMap('watched', 'none'));
  await watch(server, 200, { p50: 16.5, p99: 76 });
  await watch(server, 1_000, undefined);
}

async function watch(
  server: ServerProcess,
  watchers: number,
  rival: { readonly p50: number; readonly p99: number } | undefined,
): Promise<void> {
  const writer = await server.connect();
  const connections = await Promise.all(Array.from({ length: CONNECTIONS }, () => server.connect()));
  const expected = watchers * CHANGES;
  const latencies = new Float64Array(expected);
  let sampled = 0;
  let delivered = 0;
  const onData = (bytes: Buffer): void => {
    // Each event ends with the only newline in it.
    for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) delivered++;
    for (let at = bytes.indexOf(STAMP); at >= 0; at = bytes.indexOf(STAMP, at + 1)) {
      const sentMs = Number(bytes.toString('latin1', at + STAMP.length, bytes.indexOf('"', at + STAMP.length)));
      // A stamp that two frames share is no loss among so many.
      if (sentMs > 0 && sampled < expected) latencies[sampled++] = performance.now() - sentMs;
    }
  };
  const version = resourceVersion(await writer.text('GET', `${CONFIG_MAPS}/watched`));
  const path = `${CONFIG_MAPS}?watch=true&resourceVersion=${version}&fieldSelector=metadata.name%3Dwatched`;
  await Promise.all(
    Array.from({ length: watchers }, (_unused, index) =>
      (connections[index % CONNECTIONS] as LoadConnection).watch(path, onData),
    ),
  );
  const cpuBefore = server.cpuSeconds();
  const startedMs = performance.now();
  const writes: Promise<number>[] = [];
  for (let change = 0; change < CHANGES; change++) {
    const waitMs = startedMs + (change * 1000) / CHANGES_PER_SECOND - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    // Not waited for: a slow server must not get fewer changes.
    writes.push(writer.request('PUT', `${CONFIG_MAPS}/watched`, configMap('watched', performance.now().toFixed(3))));
  }
  await Promise.all(writes);
  const seconds = (performance.now() - startedMs) / 1000;
  const deadlineMs = performance.now() + PATIENCE_MS;
  const isComplete = (): boolean => delivered >= expected;
  while (!isComplete() && performance.now() < deadlineMs) await sleep(20);
  const sorted = latencies.subarray(0, sampled).sort();
  const details = {
    watchers,
    changesPerSecond: rounded(CHANGES / seconds),
    delivered,
    expected,
    serverCpuShare: rounded((server.cpuSeconds() - cpuBefore) / seconds),
    serverMegabytes: rounded(server.memory().residentMegabytes),
  };
  report(BENCH, {
    figure: 'watch latency p50',
    value: percentile(sorted, 0.5),
    unit: 'ms',
    rival: rival?.p50,
    ...details,
  });
  report(BENCH, {
    figure: 'watch latency p99',
    value: percentile(sorted, 0.99),
    unit: 'ms',
    rival: rival?.p99,
    ...details,
  });
  for (const connection of connections) connection.close();
}

function resourceVersion(text: string): string {
  return (JSON.parse(text) as { metadata: { resourceVersion: string } }).metadata.resourceVersion;
}
