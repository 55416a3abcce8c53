import type { ClientHttp2Session } from 'node:http2';
import { setTimeout as sleep } from 'node:timers/promises';
import { median, percentile, report } from './figures.ts';
import { call, ServerProcess } from './server-process.ts';

/**
 * The API server under load from this process, on the same machine. Objects are ConfigMaps of 1 KiB, every write is on
 * disk before it is answered. The rival's figures: kube-apiserver 1.34 with etcd, two cores shared with the load.
 */

const BENCH = 'apiserver';
const NAMESPACE = '/api/v1/namespaces/default/configmaps';
const PHASE_MS = 5_000;
const PAYLOAD = 'x'.repeat(1024);

let counter = 0;
const configMap = (name: string, stamp = ''): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, ...(stamp ? { annotations: { stamp } } : {}) },
    data: { payload: PAYLOAD },
  });

/** Runs `work` in so many loops at once for a while; answers operations per second and server CPU per operation. */
async function load(
  server: ServerProcess,
  sessions: readonly ClientHttp2Session[],
  clients: number,
  work: (session: ClientHttp2Session, client: number) => Promise<unknown>,
): Promise<{ rate: number; cpuMs: number }> {
  const cpuBefore = server.cpuSeconds();
  const startedMs = performance.now();
  let operations = 0;
  await Promise.all(
    Array.from({ length: clients }, async (_unused, client) => {
      const session = sessions[client % sessions.length];
      while (session && performance.now() - startedMs < PHASE_MS) {
        await work(session, client);
        operations++;
      }
    }),
  );
  const seconds = (performance.now() - startedMs) / 1000;
  return { rate: operations / seconds, cpuMs: ((server.cpuSeconds() - cpuBefore) * 1000) / operations };
}

async function fill(session: ClientHttp2Session, count: number): Promise<void> {
  const total =
    Number(
      (
        JSON.parse((await call(session, 'GET', `${NAMESPACE}?limit=1`)).body) as {
          metadata: { remainingItemCount?: number };
        }
      ).metadata.remainingItemCount ?? 0,
    ) + 1;
  let left = count - total;
  await Promise.all(
    Array.from({ length: 128 }, async () => {
      while (left-- > 0) await call(session, 'POST', NAMESPACE, configMap(`fill-${counter++}`));
    }),
  );
}

async function writesAndReads(server: ServerProcess): Promise<void> {
  const sessions = Array.from({ length: 4 }, () => server.connect());
  await load(server, sessions, 16, (session) => call(session, 'POST', NAMESPACE, configMap(`warm-${counter++}`)));
  for (const [clients, rival] of [
    [1, 196],
    [16, 402],
    [256, 550],
  ] as const) {
    const { rate, cpuMs } = await load(server, sessions, clients, (session) =>
      call(session, 'POST', NAMESPACE, configMap(`create-${counter++}`)),
    );
    report(BENCH, {
      figure: 'durable creates',
      clients,
      value: rate,
      unit: '1/s',
      rival,
      serverCpuMsEach: Number(cpuMs.toPrecision(3)),
    });
  }
  const update = async (session: ClientHttp2Session, client: number): Promise<unknown> =>
    call(session, 'PUT', `${NAMESPACE}/update-${client}`, configMap(`update-${client}`, String(counter++)));
  for (let client = 0; client < 16; client++)
    await call(sessions[0] as ClientHttp2Session, 'POST', NAMESPACE, configMap(`update-${client}`));
  const updates = await load(server, sessions, 16, update);
  report(BENCH, {
    figure: 'durable updates',
    clients: 16,
    value: updates.rate,
    unit: '1/s',
    rival: 345,
    serverCpuMsEach: Number(updates.cpuMs.toPrecision(3)),
  });
  const gets = await load(server, sessions, 16, (session, client) =>
    call(session, 'GET', `${NAMESPACE}/update-${client}`),
  );
  report(BENCH, {
    figure: 'gets',
    clients: 16,
    value: gets.rate,
    unit: '1/s',
    rival: 929,
    serverCpuMsEach: Number(gets.cpuMs.toPrecision(3)),
  });
}

async function lists(server: ServerProcess): Promise<void> {
  const session = server.connect();
  await call(
    session,
    'POST',
    '/api/v1/namespaces',
    JSON.stringify({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'lists' } }),
  );
  const path = '/api/v1/namespaces/lists/configmaps';
  let left = 10_000;
  await Promise.all(
    Array.from({ length: 128 }, async () => {
      while (left-- > 0) await call(session, 'POST', path, configMap(`list-${counter++}`));
    }),
  );
  const times: number[] = [];
  for (let round = 0; round < 7; round++) {
    const startedMs = performance.now();
    const { body } = await call(session, 'GET', path);
    times.push(performance.now() - startedMs);
    if (body.length < 10_000 * PAYLOAD.length) throw new Error('the list is short');
  }
  report(BENCH, { figure: 'list of 10 000 objects', value: median(times), unit: 'ms', rival: 565 });
}

async function watches(
  server: ServerProcess,
  watchers: number,
  rival: readonly [number, number] | undefined,
): Promise<void> {
  const latencies: number[] = [];
  const sessions = Array.from({ length: 10 }, () => server.connect());
  const streams = await Promise.all(
    Array.from({ length: watchers }, (_unused, index) => {
      const stream = (sessions[index % sessions.length] as ClientHttp2Session).request({
        ':path': `${NAMESPACE}?watch=true&resourceVersion=0&fieldSelector=metadata.name%3Dwatched`,
      });
      stream.on('data', (chunk: Buffer) => {
        const text = chunk.toString('latin1');
        for (let at = text.indexOf('"stamp":"'); at >= 0; at = text.indexOf('"stamp":"', at + 9))
          latencies.push(performance.now() - Number(text.slice(at + 9, text.indexOf('"', at + 9))));
      });
      return new Promise<typeof stream>((resolve, reject) => {
        stream.on('response', () => resolve(stream));
        stream.on('error', reject);
      });
    }),
  );
  const writer = server.connect();
  const cpuBefore = server.cpuSeconds();
  const changes = 1000;
  const startedMs = performance.now();
  for (let change = 0; change < changes; change++) {
    const dueMs = startedMs + change * 10;
    if (dueMs > performance.now()) await sleep(dueMs - performance.now());
    await call(writer, 'PUT', `${NAMESPACE}/watched`, configMap('watched', String(performance.now())));
  }
  const seconds = (performance.now() - startedMs) / 1000;
  const deadlineMs = performance.now() + 20_000;
  while (latencies.length < watchers * changes && performance.now() < deadlineMs) await sleep(50);
  const sorted = latencies.sort((a, b) => a - b);
  const details = {
    watchers,
    changesPerSecond: Number((changes / seconds).toPrecision(3)),
    delivered: sorted.length,
    expected: watchers * changes,
    serverCpuShare: Number(((server.cpuSeconds() - cpuBefore) / seconds).toPrecision(3)),
  };
  report(BENCH, {
    figure: 'watch latency p50',
    value: percentile(sorted, 0.5),
    unit: 'ms',
    ...(rival ? { rival: rival[0] } : {}),
    ...details,
  });
  report(BENCH, {
    figure: 'watch latency p99',
    value: percentile(sorted, 0.99),
    unit: 'ms',
    ...(rival ? { rival: rival[1] } : {}),
    ...details,
  });
  for (const stream of streams) stream.close();
  for (const session of sessions) session.destroy();
}

async function memory(server: ServerProcess): Promise<void> {
  for (const [count, rival] of [
    [10_000, 516],
    [100_000, undefined],
  ] as const) {
    const session = server.connect();
    await fill(session, count);
    const loadedMegabytes = server.memoryMegabytes();
    await server.stop();
    const startMs = await server.start();
    const after = server.connect();
    await call(after, 'GET', `${NAMESPACE}?limit=500`);
    report(BENCH, {
      figure: `memory at ${count} objects, after writing them`,
      value: loadedMegabytes,
      unit: 'MB',
      ...(rival ? { rival } : {}),
    });
    report(BENCH, {
      figure: `memory at ${count} objects, after a restart`,
      value: server.memoryMegabytes(),
      unit: 'MB',
      ...(rival ? { rival } : {}),
    });
    report(BENCH, { figure: `start-up at ${count} objects`, value: startMs, unit: 'ms' });
  }
}

const server = new ServerProcess();
try {
  await server.start();
  report(BENCH, { figure: 'memory when empty', value: server.memoryMegabytes(), unit: 'MB' });
  await memory(server);
  await server.stop();
  server.remove();
  await server.start();
  await writesAndReads(server);
  await lists(server);
  await call(server.connect(), 'POST', NAMESPACE, configMap('watched', String(performance.now())));
  await watches(server, 200, [16.5, 76]);
  await watches(server, 1000, undefined);
} finally {
  await server.stop();
  server.remove();
}
