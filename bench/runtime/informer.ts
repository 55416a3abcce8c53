import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { KubeObject } from '../../src/api/meta.ts';
import { realClock } from '../../src/env/real.ts';
import { seededRandom, silentLogger } from '../../src/env/test.ts';
import { Client } from '../../src/kube/client.ts';
import { Informer } from '../../src/kube/informer.ts';
import { withoutManagedFields } from '../../src/kube/object-cache.ts';
import type { Resource } from '../../src/kube/resource.ts';
import type { Transport, TransportRequest, TransportResponse } from '../../src/kube/transport.ts';
import { median, report, rounded } from '../figures.ts';

/**
 * What an informer costs: a server that answers from prepared text, so that only the way from text to cache and handlers
 * is measured, in processor time. Pods are as a kubelet leaves them, managed fields included.
 */

const BENCH = 'runtime';
const PODS: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
const POD_COUNT = 20_000;
const EVENT_COUNT = 100_000;
const ROUNDS = 3;
/** How much of a watch comes in one piece. */
const PIECE_LENGTH = 64 * 1024;
const OWNER_COUNT = 500;
const NODE_COUNT = 1_000;

const indexes = {
  node: (pod: KubeObject) => [(pod['spec'] as { nodeName: string }).nodeName],
  owner: (pod: KubeObject) => (pod.metadata.ownerReferences ?? []).map(({ uid }) => uid),
  app: (pod: KubeObject) => [pod.metadata.labels?.['app'] ?? ''],
};

/** Reports events per second, objects per second of a first list, and the memory that a cached object takes. */
export async function measureInformer(): Promise<void> {
  const server = new PreparedServer(POD_COUNT);
  const events = server.prepareEvents(EVENT_COUNT);
  const rounds: Measurement[] = [];
  for (let round = 0; round <= ROUNDS; round++) rounds.push(await follow(server, events));
  // The first one warms up.
  const [, ...warm] = rounds;
  const bytes = Math.round(podText(0, 1).length);
  const details = { objectBytes: bytes, indexes: Object.keys(indexes).length };
  const value = (of: (measurement: Measurement) => number): number => median(warm.map(of));
  report(BENCH, {
    figure: 'informer events',
    value: value((each) => each.eventsPerSecond),
    unit: 'per second',
    ...details,
  });
  report(BENCH, {
    figure: `informer objects of a first list of ${POD_COUNT}`,
    value: value((each) => each.listedPerSecond),
    unit: 'per second',
    parseOnly: rounded(parsedPerSecond(server)),
    ...details,
  });
  for (const [what, transform] of [
    ['as it came', undefined],
    ['without managed fields', withoutManagedFields],
  ] as const) {
    const figure = `memory per cached object, ${what}`;
    report(BENCH, { figure, value: await memoryPerObject(server, transform), unit: 'bytes', ...details });
  }
}

interface Measurement {
  readonly eventsPerSecond: number;
  readonly listedPerSecond: number;
}

async function follow(server: PreparedServer, events: readonly string[]): Promise<Measurement> {
  const stop = new AbortController();
  const informer = informerOn(server);
  let told = 0;
  const end = new Promise<void>((resolve) =>
    informer.onChange(({ isInitial }) => {
      if (!isInitial && ++told === EVENT_COUNT) resolve();
    }),
  );
  const listing = stopwatch();
  const running = informer.run(stop.signal);
  await informer.synced;
  const listedPerSecond = POD_COUNT / listing();
  const following = stopwatch();
  await server.emit(events);
  await end;
  const eventsPerSecond = EVENT_COUNT / following();
  stop.abort();
  await running;
  return { eventsPerSecond, listedPerSecond };
}

async function memoryPerObject(server: PreparedServer, transform?: (pod: KubeObject) => KubeObject): Promise<number> {
  const before = heapBytes();
  const stop = new AbortController();
  const informer = informerOn(server, transform);
  const running = informer.run(stop.signal);
  await informer.synced;
  await server.watched();
  const bytes = (heapBytes() - before) / informer.size;
  stop.abort();
  await running;
  return bytes;
}

function informerOn(server: PreparedServer, transform?: (pod: KubeObject) => KubeObject): Informer<KubeObject> {
  const env = { clock: realClock, random: seededRandom(1), log: silentLogger };
  return new Informer({ client: new Client(server, 'bench'), resource: PODS, env, indexes, transform });
}

/** The same text through the language's own parser: what no informer can undercut. */
function parsedPerSecond(server: PreparedServer): number {
  const elapsed = stopwatch();
  let count = 0;
  for (const page of server.pages) count += (JSON.parse(page) as { items: unknown[] }).items.length;
  return count / elapsed();
}

/** Seconds of this process' processor time since it was started. */
function stopwatch(): () => number {
  const before = process.cpuUsage();
  return () => {
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1e6;
  };
}

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

function heapBytes(): number {
  collectGarbage();
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Lists in pages and watches; refuses initial events, so that the list is measured. */
class PreparedServer implements Transport {
  readonly pages: string[] = [];
  readonly #count: number;
  #deliver: ((pieces: readonly string[]) => void) | undefined;

  constructor(count: number) {
    this.#count = count;
    for (let start = 0; start < count; start += 500) {
      const items = Array.from({ length: Math.min(500, count - start) }, (_, index) =>
        podText(start + index, 1 + start + index),
      );
      const token = start + 500 < count ? `,"continue":"${start / 500 + 1}"` : '';
      const metadata = `{"resourceVersion":"${count}"${token}}`;
      this.pages.push(`{"kind":"PodList","apiVersion":"v1","metadata":${metadata},"items":[${items.join(',')}]}`);
    }
  }

  /** Changes of one pod after the other, as a watch would send them. */
  prepareEvents(count: number): string[] {
    const pieces: string[] = [];
    let piece = '';
    for (let index = 0; index < count; index++) {
      piece += `{"type":"MODIFIED","object":${podText((index * 7) % this.#count, this.#count + 1 + index)}}\n`;
      if (piece.length < PIECE_LENGTH && index < count - 1) continue;
      pieces.push(piece);
      piece = '';
    }
    return pieces;
  }

  /** Resolves when somebody watches: what it took to list is no longer held then. */
  async watched(): Promise<void> {
    while (!this.#deliver) await new Promise((resolve) => setImmediate(resolve));
  }

  /** Resolves when somebody watches, who gets all of it. */
  async emit(pieces: readonly string[]): Promise<void> {
    await this.watched();
    this.#deliver?.(pieces);
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const query = new URLSearchParams(request.path.split('?')[1]);
    if (query.has('sendInitialEvents')) return { status: 422, headers: {}, body: texts('{}') };
    if (!query.has('watch'))
      return { status: 200, headers: {}, body: texts(this.pages[Number(query.get('continue') ?? 0)] ?? '') };
    return { status: 200, headers: {}, body: this.#watch(request.signal) };
  }

  close(): void {
    this.#deliver = undefined;
  }

  async *#watch(signal: AbortSignal): AsyncGenerator<string> {
    const pieces = await new Promise<readonly string[]>((resolve) => {
      this.#deliver = resolve;
      signal.addEventListener('abort', () => resolve([]), { once: true });
    });
    this.#deliver = undefined;
    yield* pieces;
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  }
}

async function* texts(text: string): AsyncGenerator<string> {
  yield text;
}

/** A running pod of one container, some three kilobytes. */
function podText(index: number, version: number): string {
  const id = String(index).padStart(12, '0');
  const time = '2026-11-01T08:00:00Z';
  const uid = (kind: number, number: number): string =>
    `${String(kind).padStart(8, '0')}-0000-4000-8000-${String(number).padStart(12, '0')}`;
  const owner = index % OWNER_COUNT;
  const condition = (type: string) => ({ type, status: 'True', lastProbeTime: null, lastTransitionTime: time });
  const managed = (manager: string, fieldsV1: object, subresource?: string) => ({
    manager,
    operation: 'Update',
    apiVersion: 'v1',
    time,
    fieldsType: 'FieldsV1',
    fieldsV1,
    subresource,
  });
  const fields = (...names: readonly string[]) => Object.fromEntries(names.map((name) => [`f:${name}`, {}]));
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: `web-${id}`,
      generateName: 'web-',
      namespace: `team-${index % 50}`,
      uid: uid(1, index),
      resourceVersion: String(version),
      creationTimestamp: time,
      labels: { app: `web-${owner}`, 'pod-template-hash': `hash${owner}`, tier: 'front' },
      annotations: { 'example.com/checksum': id.repeat(4) },
      ownerReferences: [
        {
          apiVersion: 'apps/v1',
          kind: 'ReplicaSet',
          name: `web-${owner}`,
          uid: uid(2, owner),
          controller: true,
          blockOwnerDeletion: true,
        },
      ],
      managedFields: [
        managed('kube-controller-manager', {
          'f:metadata': {
            'f:generateName': {},
            'f:labels': fields('app', 'pod-template-hash', 'tier'),
            'f:ownerReferences': { '.': {}, [`k:{"uid":"${uid(2, owner)}"}`]: {} },
          },
          'f:spec': {
            'f:containers': {
              'k:{"name":"web"}': {
                '.': {},
                ...fields('image', 'imagePullPolicy', 'name', 'resources', 'terminationMessagePath'),
              },
            },
            ...fields(
              'dnsPolicy',
              'enableServiceLinks',
              'restartPolicy',
              'schedulerName',
              'securityContext',
              'terminationGracePeriodSeconds',
            ),
          },
        }),
        managed(
          'kubelet',
          {
            'f:status': {
              'f:conditions': Object.fromEntries(
                ['ContainersReady', 'Initialized', 'Ready'].map((type) => [
                  `k:{"type":"${type}"}`,
                  { '.': {}, ...fields('lastProbeTime', 'lastTransitionTime', 'status', 'type') },
                ]),
              ),
              ...fields('containerStatuses', 'hostIP', 'phase', 'podIP', 'podIPs', 'startTime'),
            },
          },
          'status',
        ),
      ],
    },
    spec: {
      volumes: [
        {
          name: 'token',
          projected: {
            defaultMode: 420,
            sources: [{ serviceAccountToken: { expirationSeconds: 3607, path: 'token' } }],
          },
        },
      ],
      containers: [
        {
          name: 'web',
          image: 'registry.example.com/team/web:1.2.3',
          resources: { limits: { memory: '512Mi' }, requests: { cpu: '100m', memory: '256Mi' } },
          volumeMounts: [{ name: 'token', readOnly: true, mountPath: '/var/run/secrets/kubernetes.io/serviceaccount' }],
          terminationMessagePath: '/dev/termination-log',
          terminationMessagePolicy: 'File',
          imagePullPolicy: 'IfNotPresent',
        },
      ],
      restartPolicy: 'Always',
      terminationGracePeriodSeconds: 30,
      dnsPolicy: 'ClusterFirst',
      serviceAccountName: 'default',
      nodeName: `node-${index % NODE_COUNT}`,
      schedulerName: 'default-scheduler',
      priority: 0,
      preemptionPolicy: 'PreemptLowerPriority',
    },
    status: {
      phase: 'Running',
      conditions: ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'].map(condition),
      hostIP: '192.0.2.1',
      podIP: `10.${index % 256}.${(index >> 8) % 256}.7`,
      startTime: time,
      containerStatuses: [
        {
          name: 'web',
          state: { running: { startedAt: time } },
          ready: true,
          restartCount: 0,
          image: 'registry.example.com/team/web:1.2.3',
          containerID: `containerd://${id.repeat(5)}`,
        },
      ],
      qosClass: 'Burstable',
    },
  });
}
