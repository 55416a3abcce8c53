import { percentile, report, rounded } from '../figures.ts';
import type { LoadConnection } from '../load-connection.ts';
import { until } from '../migration/until.ts';

/** A node whose guests are all evicted, and what is seen of that from outside. */

const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/default';
const PODS = '/api/v1/namespaces/default/pods';
/** What kubectl waits before it asks again; here only for who was not marked. */
const RETRY_MS = 1000;
/** So many evictions are under way at once; kubectl begins fifty each second. */
const AT_ONCE = 50;
/** A thousand guests take their time, on a machine that has other things to do. */
const EMPTY_MS_MAX = 20 * 60_000;

interface Watched {
  readonly type: string;
  readonly object: {
    readonly metadata: { readonly name: string; readonly ownerReferences?: readonly { readonly name: string }[] };
    readonly spec?: { readonly nodeName?: string; readonly vmiName?: string };
    readonly status?: { readonly phase?: string; readonly nodeName?: string };
  };
}

/** When things were first seen of each guest, by its name. */
class Sights {
  readonly #seen = new Map<string, Map<string, number>>();

  note(what: string, guest: string): void {
    const seen = this.#seen.get(what) ?? new Map<string, number>();
    this.#seen.set(what, seen);
    if (!seen.has(guest)) seen.set(guest, performance.now());
  }

  count(what: string): number {
    return this.#seen.get(what)?.size ?? 0;
  }

  /** How long after the first time each guest had it, ascending. */
  after(times: ReadonlyMap<string, number>, what: string): number[] {
    const seen = this.#seen.get(what) ?? new Map<string, number>();
    return [...seen].map(([guest, atMs]) => atMs - (times.get(guest) ?? Number.NaN)).sort((a, b) => a - b);
  }
}

export interface DrainOptions {
  readonly node: string;
  readonly guests: readonly string[];
  /** What the guests are, in a figure. */
  readonly kind: string;
}

/** Cordons the node, evicts all of its launcher pods, and reports how long it took until it was empty. */
export async function drainNode(connection: LoadConnection, { node, guests, kind }: DrainOptions): Promise<void> {
  const sights = new Sights();
  await watched(connection, `${KUBEVIRT}/virtualmachineinstancemigrations?watch=true`, ({ object }) => {
    const guest = object.spec?.vmiName ?? '';
    sights.note('asked', guest);
    if (object.status?.phase) sights.note(object.status.phase, guest);
  });
  const left = new Set(guests);
  await watched(connection, `${KUBEVIRT}/virtualmachineinstances?watch=true`, ({ object }) => {
    const { nodeName } = object.status ?? {};
    if (nodeName !== undefined && nodeName !== node) left.delete(object.metadata.name);
  });
  const pods = new Map<string, string>();
  await watched(connection, `${PODS}?watch=true`, ({ type, object }) => {
    const { name, ownerReferences = [] } = object.metadata;
    const isOver = type === 'DELETED' || object.status?.phase === 'Succeeded' || object.status?.phase === 'Failed';
    if (object.spec?.nodeName !== node || ownerReferences.length === 0) return;
    if (isOver) pods.delete(name);
    else pods.set(name, ownerReferences[0]?.name ?? '');
  });
  await until(() => (pods.size === guests.length ? true : undefined), 'not all guests are on the node');
  await cordon(connection, node, true);
  const startedMs = performance.now();
  const evicted = new Map<string, number>();
  const waiting = [...pods];
  const worker = async (): Promise<void> => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [pod, guest] = next;
      evicted.set(guest, performance.now());
      for (; !(await isMarkedBy(connection, pod)); await new Promise((resolve) => setTimeout(resolve, RETRY_MS)));
      sights.note('answered', guest);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  const isEmpty = (): true | undefined => (left.size === 0 && pods.size === 0 ? true : undefined);
  await until(isEmpty, 'the node does not become empty', EMPTY_MS_MAX);
  const seconds = (performance.now() - startedMs) / 1000;
  const of = `${guests.length} ${kind} on a node that is drained`;
  for (const [what, words] of [
    ['answered', 'eviction to answer'],
    ['asked', 'eviction to migration'],
    ['Running', 'eviction to copy under way'],
  ] as const) {
    const times = sights.after(evicted, what);
    const [first, last] = [rounded(times[0] ?? Number.NaN), rounded(times.at(-1) ?? Number.NaN)];
    report('eviction', { figure: `${of}, ${words}, median`, value: percentile(times, 0.5), unit: 'ms', first, last });
  }
  report('eviction', { figure: `${of}, node empty`, value: seconds, unit: 's', failed: sights.count('Failed') });
}

/** Evicts a pod once; answers whether its guest is on its way by that. A budget says no also where no webhook was heard. */
async function isMarkedBy(connection: LoadConnection, pod: string): Promise<boolean> {
  const refusal = await evict(connection, pod);
  return refusal === undefined || refusal.includes('triggered evacuation') || refusal.includes('not found');
}

/** Evicts a pod, in earnest or not; answers why that was refused. */
export async function evict(connection: LoadConnection, pod: string, isDryRun = false): Promise<string | undefined> {
  const deleteOptions = isDryRun ? { deleteOptions: { dryRun: ['All'] } } : {};
  const metadata = { name: pod, namespace: 'default' };
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata, ...deleteOptions };
  try {
    await connection.request('POST', `${PODS}/${pod}/eviction`, JSON.stringify(body));
    return undefined;
  } catch (error) {
    return String(error);
  }
}

/** Sets whether a node takes no more pods. Its agent writes to it, too: one of the two may have to look again. */
export async function cordon(connection: LoadConnection, node: string, isCordoned: boolean): Promise<void> {
  const path = `/api/v1/nodes/${node}`;
  await until(async () => {
    const found = JSON.parse(await connection.text('GET', path)) as { metadata: object; spec?: object };
    // Small, as bodies of a load connection have to be.
    const metadata = { ...found.metadata, managedFields: undefined };
    const spec = { ...found.spec, unschedulable: isCordoned };
    const body = JSON.stringify({ ...found, metadata, spec, status: undefined });
    return connection.request('PUT', path, body).catch(() => undefined);
  }, `${node} cannot be written`);
}

async function watched(connection: LoadConnection, path: string, onEvent: (event: Watched) => void): Promise<void> {
  let rest = '';
  await connection.watch(path, (bytes) => {
    const lines = (rest + bytes.toString('utf8')).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onEvent(JSON.parse(line) as Watched);
  });
}
