import { percentile, report, rounded } from '../figures.ts';
import type { LoadConnection } from '../load-connection.ts';
import type { ServerProcess } from '../server-process.ts';
import { until } from '../migration/until.ts';
import { evict } from './drained-node.ts';

/** How long evictions take at a steady rate: of guests that are kept, and of pods that nobody is asked about. */

const PER_SECOND = 200;
const SECONDS = 10;
/** So many are counted, and so many asked for at once meanwhile. */
const COUNTED = 800;
const AT_ONCE = 8;
const PODS = '/api/v1/namespaces/default/pods';
const GUESTS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const REGISTRATION = '/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/virt-api-validator';
const KEPT = Array.from({ length: 20 }, (_, index) => `kept-${index}`);
const PLAIN = Array.from({ length: 20 }, (_, index) => `plain-${index}`);

interface Pods {
  readonly items: readonly {
    readonly metadata: { readonly name: string; readonly ownerReferences?: readonly { readonly name: string }[] };
    readonly status?: { readonly phase?: string };
  }[];
}

export async function webhookLatency(server: ServerProcess): Promise<void> {
  const connection = await server.connect();
  const launchers = await keptLaunchers(connection);
  for (const name of PLAIN) {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name },
      spec: { containers: [{ name: 'c', image: 'i' }] },
    };
    // Nobody schedules it: it is there to be evicted, and never is.
    await connection.request('POST', PODS, JSON.stringify({ ...pod, spec: { ...pod.spec, schedulerName: 'nobody' } }));
  }
  await measured(server, connection, 'the first request for a guest, which a dry run does not mark', launchers, true);
  for (const pod of launchers) await evict(connection, pod);
  await measured(server, connection, 'a request for a guest that is marked', launchers, false);
  await measured(server, connection, 'an unrelated pod, with the webhooks registered', PLAIN, true);
  await connection.request('DELETE', REGISTRATION);
  await measured(server, connection, 'an unrelated pod, without webhooks', PLAIN, true);
}

/** Launchers of guests that others are to move, so that they stay where they are. */
async function keptLaunchers(connection: LoadConnection): Promise<string[]> {
  for (const name of KEPT) {
    const spec = { evictionStrategy: 'External', domain: { devices: {}, memory: { guest: '64Mi' } } };
    const guest = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', metadata: { name }, spec };
    await connection.request('POST', GUESTS, JSON.stringify(guest));
  }
  return until(async () => {
    const { items } = JSON.parse(await connection.text('GET', PODS)) as Pods;
    const found = items.filter(
      ({ metadata, status }) => status?.phase === 'Running' && KEPT.includes(metadata.ownerReferences?.[0]?.name ?? ''),
    );
    return found.length === KEPT.length ? found.map(({ metadata }) => metadata.name) : undefined;
  }, 'not all of those that are kept run');
}

/** Asks, and reports what it costs the server, which a busy machine does not change; then how long answers take. */
async function measured(
  server: ServerProcess,
  connection: LoadConnection,
  what: string,
  pods: readonly string[],
  isDryRun: boolean,
): Promise<void> {
  const before = { seconds: server.cpuSeconds(), requests: await requestsOf(connection) };
  await Promise.all(
    Array.from({ length: AT_ONCE }, async (_, worker) => {
      for (let index = worker; index < COUNTED; index += AT_ONCE)
        await evict(connection, pods[index % pods.length] ?? '', isDryRun);
    }),
  );
  report('eviction', {
    figure: `an eviction, ${AT_ONCE} at once, ${what}, processor time of the server`,
    value: ((server.cpuSeconds() - before.seconds) * 1000) / COUNTED,
    unit: 'ms',
    requestsEach: rounded(((await requestsOf(connection)) - before.requests) / COUNTED),
  });
  await steadily(connection, what, pods, isDryRun);
}

/** Asks at a steady rate, whether or not there are answers, and reports how long these took. */
async function steadily(
  connection: LoadConnection,
  what: string,
  pods: readonly string[],
  isDryRun: boolean,
): Promise<void> {
  const startMs = performance.now();
  const latencies: number[] = [];
  const refusals = new Map<string, number>();
  const one = async (index: number): Promise<void> => {
    const dueMs = startMs + (index * 1000) / PER_SECOND;
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())));
    const refusal = await evict(connection, pods[index % pods.length] ?? '', isDryRun);
    // From when it was due: who has to wait for others has waited, too.
    latencies.push(performance.now() - dueMs);
    const words = wordsOf(refusal);
    refusals.set(words, (refusals.get(words) ?? 0) + 1);
  };
  await Promise.all(Array.from({ length: PER_SECOND * SECONDS }, (_, index) => one(index)));
  latencies.sort((a, b) => a - b);
  const figure = (share: string): string => `evictions at ${PER_SECOND}/s, ${what}, ${share}`;
  const answers = Object.fromEntries(refusals);
  report('eviction', { figure: figure('p50'), value: percentile(latencies, 0.5), unit: 'ms', ...answers });
  report('eviction', { figure: figure('p99'), value: percentile(latencies, 0.99), unit: 'ms' });
}

/** Who refused. */
function wordsOf(refusal: string | undefined): string {
  if (refusal === undefined) return 'allowed';
  if (refusal.includes('disruption budget')) return 'budget';
  return refusal.includes('admission webhook') ? 'webhook' : 'server';
}

/** All requests that the server has answered; watches count when they end. */
async function requestsOf(connection: LoadConnection): Promise<number> {
  const metrics = await connection.text('GET', '/metrics');
  const counts = [...metrics.matchAll(/^apiserver_request_total\{.*\} (\d+)$/gm)].map(([, count]) => Number(count));
  return counts.reduce((sum, count) => sum + count, 0);
}
