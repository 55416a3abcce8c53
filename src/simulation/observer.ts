import type { MigrationState } from '../api/kubevirt/migration-state.ts';
import type { RightToRun } from '../api/kubevirt/right-to-run.ts';
import type { KubeObject } from '../api/meta.ts';
import type { Change, Store } from '../apiserver/storage/store.ts';
import type { Load } from './invariant.ts';
import type { Tracer } from './trace.ts';

/**
 * Sees everything that becomes durable, in order, as no client can: it stands beside the store, not behind a network.
 */

/** What is durable, as objects. */
export interface State {
  get(bucket: string, key: string): KubeObject | undefined;
  list(bucket: string): Iterable<KubeObject>;
}

/** One durable change. */
export interface Observation {
  readonly bucket: string;
  readonly key: string;
  readonly revision: number;
  /** The state after it; undefined where the object is gone. */
  readonly object: KubeObject | undefined;
  readonly previous: KubeObject | undefined;
  /** Whether it was only found on the disk by the next server: its own writer never heard of it. */
  readonly isFound: boolean;
  /** Whether it takes a pod away, and only an eviction can have asked for that. */
  readonly isEviction: boolean;
  /** Users who were deleting the object at that time. */
  readonly deleters: readonly string[];
  /** Whether anybody ever asked for this pod, by namespace and name, to be evicted. */
  readonly askedToGo: (pod: string) => boolean;
  /** Milliseconds since the start of the run. */
  readonly atMs: number;
  /** Whether nothing fails any more, and has not for a while. */
  readonly isCalm: boolean;
}

/** Heartbeats and stories: many, and nothing that anybody decides by. */
const IGNORED: ReadonlySet<string> = new Set(['leases.coordination.k8s.io', 'events', 'events.events.k8s.io']);

/** What every server writes at its start. */
const UNTOLD: ReadonlySet<string> = new Set([
  'apiservices.apiregistration.k8s.io',
  'clusterroles.rbac.authorization.k8s.io',
  'clusterrolebindings.rbac.authorization.k8s.io',
  'roles.rbac.authorization.k8s.io',
  'rolebindings.rbac.authorization.k8s.io',
]);

/** Whether the observer keeps the objects of a bucket. */
export function isObserved(bucket: string): boolean {
  return !IGNORED.has(bucket);
}

export interface ObserverOptions {
  readonly trace: Tracer;
  readonly elapsedMs: () => number;
  readonly isCalm: () => boolean;
  /** Whether only an eviction can be taking this pod away. */
  readonly isEvicted: (key: string) => boolean;
  /** Who is deleting the object at this moment. */
  readonly deleters: (bucket: string, key: string) => readonly string[];
  /** Whether anybody ever asked for the pod to be evicted. */
  readonly askedToGo: (key: string) => boolean;
  readonly onObservation: (observation: Observation, state: State) => void;
  readonly onLoad: (load: Load) => void;
}

export class Observer implements State {
  readonly #options: ObserverOptions;
  readonly #buckets = new Map<string, Map<string, KubeObject>>();
  #revision = 0;

  constructor(options: ObserverOptions) {
    this.#options = options;
  }

  get(bucket: string, key: string): KubeObject | undefined {
    return this.#buckets.get(bucket)?.get(key);
  }

  list(bucket: string): Iterable<KubeObject> {
    return this.#buckets.get(bucket)?.values() ?? [];
  }

  /** All buckets that hold anything. */
  *buckets(): Iterable<string> {
    for (const [bucket, objects] of this.#buckets) if (objects.size > 0) yield bucket;
  }

  /** A server has loaded what is on its disk: all that was durable before, and perhaps what nobody was told of. */
  loaded(store: Store): void {
    this.#options.onLoad({ revision: store.revision, knownRevision: this.#revision });
    this.#revision = store.revision;
    const buckets = new Set([...store.buckets(), ...this.#buckets.keys()]);
    for (const bucket of buckets) if (!IGNORED.has(bucket)) this.#reload(bucket, store);
  }

  committed(change: Change): void {
    this.#revision = change.revision;
    if (IGNORED.has(change.bucket)) return;
    const { bucket, key, revision } = change;
    const object = change.type === 'put' ? (JSON.parse(change.stored.text) as KubeObject) : undefined;
    if (!UNTOLD.has(bucket))
      this.#options.trace.add(
        'store',
        `${change.type} ${bucket} ${key} @${revision}${object ? summaryOf(object) : ''}`,
      );
    this.#observe({ bucket, key, revision, object, previous: this.get(bucket, key), isFound: false });
  }

  #reload(bucket: string, store: Store): void {
    const { items } = store.list(bucket);
    const found = new Set<string>();
    for (const { key, revision, text } of items) {
      found.add(key);
      const previous = this.get(bucket, key);
      if (previous && Number(previous.metadata.resourceVersion) === revision) continue;
      const object = JSON.parse(text) as KubeObject;
      this.#observe({ bucket, key, revision, object, previous, isFound: true });
    }
    for (const [key, previous] of this.#buckets.get(bucket) ?? [])
      if (!found.has(key))
        this.#observe({ bucket, key, revision: store.revision, object: undefined, previous, isFound: true });
  }

  #observe(seen: Omit<Observation, 'atMs' | 'isCalm' | 'isEviction' | 'deleters' | 'askedToGo'>): void {
    const { bucket, key, object } = seen;
    const isEviction = bucket === 'pods' && !seen.isFound && this.#options.isEvicted(key);
    const deleters = seen.isFound ? [] : this.#options.deleters(bucket, key);
    const { elapsedMs, isCalm, askedToGo } = this.#options;
    const observation = { ...seen, isEviction, deleters, askedToGo, atMs: elapsedMs(), isCalm: isCalm() };
    let objects = this.#buckets.get(bucket);
    if (!objects) this.#buckets.set(bucket, (objects = new Map()));
    if (object) objects.set(key, object);
    else objects.delete(key);
    this.#options.onObservation(observation, this);
  }
}

/** Who may execute a guest, in which epoch, and who may next. */
function recordOf({ epoch, holder, successor }: RightToRun): string {
  return `${epoch}:${holder?.node ?? 'nobody'}${successor ? `>${successor.node}` : ''}`;
}

/** How far a migration is, as a guest has it. */
function moveOf(state: MigrationState): string {
  const { migrationUid = '', sourceNode, targetNode, mode, failureReason, progress } = state;
  const told = [
    state.targetNodeAddress === undefined ? '' : 'ready',
    state.startTimestamp ? 'started' : '',
    mode ?? '',
    progress ? `${progress.percent}%` : '',
    state.abortRequested === true ? 'abort' : '',
    state.sourceLetter ? `source says ${state.sourceLetter.kind}` : '',
    state.targetLetter ? `target says ${state.targetLetter.kind}` : '',
    state.completed === true ? 'completed' : '',
    state.failed === true ? `failed: ${failureReason}` : '',
  ].filter((part) => part !== '');
  return `[${migrationUid.slice(0, 8)} ${sourceNode}>${targetNode} ${told.join(' ')}]`;
}

interface Summarized extends KubeObject {
  spec?: {
    nodeName?: string;
    unschedulable?: boolean;
    taints?: { key: string; effect: string }[];
    minAvailable?: unknown;
  };
  status?: {
    phase?: string;
    nominatedNodeName?: string;
    disruptionsAllowed?: number;
    rightToRun?: RightToRun;
    evacuationNodeName?: string;
    evacuationCauses?: { cause: string }[];
    migrationState?: MigrationState;
    conditions?: { type: string; status: string; reason?: string }[];
  };
}

/** What a reader of the trace wants to know of an object. */
function summaryOf(object: KubeObject): string {
  const { spec = {}, status = {}, metadata } = object as Summarized;
  const parts = [
    metadata.deletionTimestamp === undefined ? '' : 'deleting',
    spec.nodeName ? `on ${spec.nodeName}` : '',
    status.phase ?? '',
    status.nominatedNodeName ? `nominated ${status.nominatedNodeName}` : '',
    spec.unschedulable ? 'cordoned' : '',
    status.rightToRun ? recordOf(status.rightToRun) : '',
    status.migrationState ? moveOf(status.migrationState) : '',
    status.evacuationNodeName
      ? `leave ${status.evacuationNodeName} for ${(status.evacuationCauses ?? []).map(({ cause }) => cause).join('+')}`
      : '',
    ...(spec.taints ?? []).map(({ key, effect }) => `${key}:${effect}`),
    ...(status.conditions ?? []).map(
      ({ type, status: value, reason }) => `${type}=${value}${reason ? `(${reason})` : ''}`,
    ),
    status.disruptionsAllowed === undefined
      ? ''
      : `allows ${status.disruptionsAllowed} of ${String(spec.minAvailable)}`,
  ];
  return parts.map((part) => (part === '' ? '' : ` ${part}`)).join('');
}
