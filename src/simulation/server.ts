import { setMaxListeners } from 'node:events';
import { builtinDefinitions } from '../api/kinds/builtins.ts';
import { KUBEVIRT_CRDS } from '../api/kubevirt/crds.ts';
import { bucketOf } from '../api/resource.ts';
import { BackendError, type BackendTransport } from '../apiserver/aggregation/backend.ts';
import type { WebhookTransport } from '../apiserver/admission/webhooks/transport.ts';
import { ApiServerCore } from '../apiserver/core.ts';
import { MemoryEngine, type MemoryEngineOptions } from '../apiserver/storage/memory-engine.ts';
import type { Engine, LogEntry } from '../apiserver/storage/port.ts';
import { type Amend, renewLog } from '../apiserver/storage/renew-log.ts';
import { type Change, Store } from '../apiserver/storage/store.ts';
import type { Env, Logger } from '../env/ports.ts';
import { errorText } from '../kube/error-text.ts';
import type { LocalHandler, LocalRequest, LocalResponse } from '../kube/in-process-transport.ts';
import { simulatedPki } from './keys.ts';
import type { Streams } from './streams.ts';
import type { Tracer } from './trace.ts';
import { ProcessClock, type VirtualClock } from './virtual-clock.ts';

/** An engine that survives the crash of its server, as far as things had reached its disk. */
export interface CrashableEngine extends Engine {
  crash(): MemoryEngine;
}

export interface ServerOptions {
  readonly clock: VirtualClock;
  readonly streams: Streams;
  readonly trace: Tracer;
  readonly log: (component: string) => Logger;
  readonly disk: MemoryEngineOptions;
  /** The way to webhooks. */
  readonly webhooks: WebhookTransport;
  readonly historyChangesMax?: number | undefined;
  /** How long a server that has ended is away. */
  readonly downMs: () => number;
  /** A disk that is worse than it says, for planted bugs. */
  readonly spoilDisk?: ((engine: MemoryEngine) => CrashableEngine) | undefined;
  /** Called with each request that arrives; answers what to call when it has been answered. */
  readonly onRequest: (request: LocalRequest) => () => void;
  /** Called with the store of each incarnation when it has loaded what is on disk, and before anything is written. */
  readonly onLoaded: (store: Store) => void;
  /** Called when no server can start from what is on the disk. */
  readonly onUnusable: (message: string) => void;
  /** Called after each durable change. */
  readonly onCommit: (change: Change) => void;
}

/** One life of the server, from a start to a crash. */
export interface Incarnation {
  readonly handle: LocalHandler;
  /** Aborts when it is gone, and all its connections with it. */
  readonly gone: AbortSignal;
}

/** Kinds of ours are custom ones: some scenarios install them. */
const CUSTOM_BUCKETS = KUBEVIRT_CRDS.map(({ metadata }) => metadata.name ?? '');
const BUCKETS = [...new Set([...builtinDefinitions.map(bucketOf), ...CUSTOM_BUCKETS])];

const noBackends: BackendTransport = {
  send: () => Promise.reject(new BackendError('a simulation has no backends')),
  upgrade: () => Promise.reject(new BackendError('a simulation has no backends')),
};

/**
 * The real API server on the real store, on a disk in memory. It can crash at any time, in the middle of whatever it is
 * doing; what had not reached the disk is then gone, and it comes back with what had.
 */
export class SimulatedServer {
  readonly #options: ServerOptions;
  #engine: CrashableEngine;
  #current: { readonly incarnation: Incarnation; readonly end: () => void } | undefined;
  #store: Store | undefined;
  #isReady = false;
  #lives = 0;

  constructor(options: ServerOptions) {
    this.#options = options;
    this.#engine = this.#spoilt(new MemoryEngine(options.disk));
  }

  /** The server as clients find it; undefined while there is none. */
  get current(): Incarnation | undefined {
    return this.#isReady ? this.#current?.incarnation : undefined;
  }

  /** What is durable now, as nobody but an observer sees it. */
  get store(): Store | undefined {
    return this.#store;
  }

  /** Starts, and resolves when it serves, or has crashed before it could. */
  async start(): Promise<void> {
    const { clock, streams, log, trace, onLoaded, onCommit, onRequest } = this.#options;
    const life = ++this.#lives;
    const processClock = new ProcessClock(clock);
    const gone = new AbortController();
    // As many as it has connections.
    setMaxListeners(0, gone.signal);
    const env: Env = { clock: processClock, random: streams.of(`server/${life}`), log: log('server') };
    const end = (): void => {
      processClock.stop();
      gone.abort();
    };
    const isCurrent = (): boolean => this.#lives === life && !gone.signal.aborted;
    const store = await this.#load(processClock, isCurrent);
    if (!store) return;
    this.#store = store;
    onLoaded(store);
    for (const bucket of BUCKETS) store.subscribe(bucket, onCommit);
    const core = new ApiServerCore({
      env,
      store,
      pki: simulatedPki(env),
      issuer: 'https://simulation',
      webhookTransport: this.#options.webhooks,
      backendTransport: noBackends,
    });
    const handle = async (request: LocalRequest): Promise<LocalResponse> => {
      const end = onRequest(request);
      const response = await core.handle(request);
      end();
      return response;
    };
    this.#current = { incarnation: { handle, gone: gone.signal }, end };
    const started = core.start().catch((error: unknown) => {
      // What failed is known already, or is a bug that the log shows.
      if (isCurrent()) this.crash(`cannot start: ${String(error)}`);
    });
    await Promise.race([started, new Promise((resolve) => gone.signal.addEventListener('abort', resolve))]);
    if (!isCurrent()) return;
    this.#isReady = true;
    trace.add('server', `serves from revision ${store.revision}`);
  }

  /** Ends in the middle of everything, and starts again after a while. */
  crash(why: string): void {
    const { clock, trace, downMs } = this.#options;
    if (!this.#current) return;
    trace.add('server', `crashes: ${why}`);
    this.#isReady = false;
    this.#current.end();
    this.#current = undefined;
    this.#engine = this.#spoilt(this.#engine.crash());
    clock.setTimer(() => void this.start(), downMs());
  }

  /** A copy of what is on its disk. */
  async backUp(): Promise<readonly LogEntry[]> {
    const entries: LogEntry[] = [];
    await this.#engine.load((entry) => entries.push(entry));
    return entries;
  }

  /** Ends, and serves what it had when the copy was made; `amend` says what is to be other than it was. */
  async restore(backup: readonly LogEntry[], amend: Amend): Promise<void> {
    const { clock, disk, trace } = this.#options;
    trace.add('server', 'is restored');
    this.stop();
    const engine = new MemoryEngine(disk);
    await engine.commit(backup, []);
    await renewLog(engine, clock.now(), amend);
    this.#engine = this.#spoilt(engine.crash());
    await this.start();
  }

  /** Ends for good. */
  stop(): void {
    this.#isReady = false;
    this.#current?.end();
    this.#current = undefined;
  }

  async #load(clock: ProcessClock, isCurrent: () => boolean): Promise<Store | undefined> {
    const { historyChangesMax, onUnusable } = this.#options;
    const onFatal = (error: Error): void => {
      if (isCurrent()) this.crash(`storage failed: ${error.message}`);
    };
    try {
      return await Store.open(this.#engine, { clock, onFatal, ...(historyChangesMax ? { historyChangesMax } : {}) });
    } catch (error) {
      onUnusable(`what is on the disk cannot be loaded: ${errorText(error)}`);
      return undefined;
    }
  }

  #spoilt(engine: MemoryEngine): CrashableEngine {
    return this.#options.spoilDisk?.(engine) ?? engine;
  }
}
