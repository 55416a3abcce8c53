import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { HttpsWebhookTransport } from '../../src/apiserver/admission/webhooks/https-transport.ts';
import { HttpsBackendTransport } from '../../src/apiserver/aggregation/https-backend.ts';
import { ApiServerCore } from '../../src/apiserver/core.ts';
import type { ApiRequest, ApiResponse } from '../../src/apiserver/http/message.ts';
import { type ClusterPki, loadOrCreatePki } from '../../src/apiserver/pki/cluster-pki.ts';
import { MemoryEngine, type MemoryEngineOptions } from '../../src/apiserver/storage/memory-engine.ts';
import { Store } from '../../src/apiserver/storage/store.ts';
import type { Clock, Env } from '../../src/env/ports.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { silentLogger } from '../../src/env/test.ts';
import { DAY_MS } from '../../src/machinery/x509/authority.ts';
import { Answer, type Api, encodeBody, EventStream, type RequestOptions } from './api.ts';

/** The API server without sockets and disks, in this very process: milliseconds to start, and its clock and disk can be chosen. */

export interface InProcessOptions {
  readonly env?: Partial<Env>;
  /** How many changes a watch can look back on. */
  readonly historyChangesMax?: number;
  readonly engine?: MemoryEngineOptions;
  /** What has its disk, which is left as it is. */
  readonly from?: InProcessApi;
  /** Whether the cluster's own loops will run beside it. */
  readonly hasDefaultAccounts?: boolean;
}

/** Whom requests come from; nobody where undefined. */
export type Caller = Pick<NonNullable<ApiRequest['certificate']>, 'commonName' | 'organizations'> | undefined;

const ADMIN: Caller = { commonName: 'kubernetes-admin', organizations: ['system:masters'] };

/** Keys of servers that have stopped, by the day at which they were made: they do for the next ones, and take longer to make than all else. */
const spare = new Map<number, ClusterPki[]>();

/** Keys that no other server has at the same time. */
async function takePki(clock: Clock): Promise<{ readonly pki: ClusterPki; readonly giveBack: () => void }> {
  const day = Math.floor(clock.now() / DAY_MS);
  const free = spare.get(day) ?? [];
  spare.set(day, free);
  const pki = free.pop() ?? (await newPki(clock));
  return { pki, giveBack: () => void free.push(pki) };
}

/** Draws nothing from what a test may have seeded: it would draw more the first time. */
async function newPki(clock: Clock): Promise<ClusterPki> {
  const directory = await mkdtemp(join(tmpdir(), 'godwit-test-'));
  const pki = await loadOrCreatePki(directory, { clock, random: realRandom, log: silentLogger }, []);
  await rm(directory, { recursive: true });
  return pki;
}

export class InProcessApi implements Api {
  readonly env: Env;
  readonly store: Store;
  readonly core: ApiServerCore;
  readonly #engine: MemoryEngine;
  readonly #stop: () => Promise<void>;

  private constructor(
    { env, store, core, engine }: { env: Env; store: Store; core: ApiServerCore; engine: MemoryEngine },
    stop: () => Promise<void>,
  ) {
    this.env = env;
    this.store = store;
    this.core = core;
    this.#engine = engine;
    this.#stop = stop;
  }

  static async start(options: InProcessOptions = {}): Promise<InProcessApi> {
    const { hasDefaultAccounts = false } = options;
    const env: Env = { clock: realClock, random: realRandom, log: silentLogger, ...options.env };
    const { pki, giveBack } = await takePki(env.clock);
    const { from } = options;
    const engine = from ? from.#engine.crash(options.engine) : new MemoryEngine(options.engine);
    const store = await Store.open(engine, {
      onFatal: (error) => {
        throw error;
      },
      ...(options.historyChangesMax === undefined ? {} : { historyChangesMax: options.historyChangesMax }),
    });
    const webhookTransport = new HttpsWebhookTransport(env.clock);
    const backendTransport = new HttpsBackendTransport(env.clock, () => pki.frontProxyClient);
    const core = new ApiServerCore({
      env,
      store,
      pki,
      issuer: 'https://test',
      webhookTransport,
      backendTransport,
      hasDefaultAccounts,
    });
    await core.start();
    // Its controllers write a little at first; tests that look at revisions want to be alone.
    for (let revision = 0; revision !== store.revision; ) {
      ({ revision } = store);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return new InProcessApi({ env, store, core, engine }, async () => {
      await core.stop();
      webhookTransport.close();
      backendTransport.close();
      await store.close();
      giveBack();
    });
  }

  /** The same server, asked by somebody else. */
  as(caller: Caller): Api {
    return {
      request: (method, path, options) => this.#request(caller, method, path, options ?? {}),
      watch: (path, options) => this.#watch(caller, path, options ?? {}),
    };
  }

  request(method: string, path: string, options: RequestOptions = {}): Promise<Answer> {
    return this.#request(ADMIN, method, path, options);
  }

  watch(path: string, options: RequestOptions = {}): Promise<EventStream> {
    return this.#watch(ADMIN, path, options);
  }

  /** The answer as the HTTP server gets it, its body not yet read. */
  handle(method: string, path: string, options: RequestOptions = {}): Promise<ApiResponse> {
    return this.core.handle(toRequest(ADMIN, method, path, options, new AbortController().signal));
  }

  async stop(): Promise<void> {
    await this.#stop();
  }

  async #request(caller: Caller, method: string, path: string, options: RequestOptions): Promise<Answer> {
    const { status, headers, body } = await this.core.handle(
      toRequest(caller, method, path, options, new AbortController().signal),
    );
    if (typeof body === 'string') return new Answer(status, headers, body);
    if (body instanceof Uint8Array) return new Answer(status, headers, Buffer.from(body).toString('utf8'));
    let text = '';
    for await (const chunk of body) text += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8');
    return new Answer(status, headers, text);
  }

  async #watch(caller: Caller, path: string, options: RequestOptions): Promise<EventStream> {
    const gone = new AbortController();
    const { status, headers, body } = await this.core.handle(toRequest(caller, 'GET', path, options, gone.signal));
    const stream = new EventStream(status, headers, () => gone.abort());
    if (typeof body === 'string' || body instanceof Uint8Array) {
      if (status === 200) stream.push(body.toString());
      stream.finish('clean');
    } else void pump(body, stream);
    return stream;
  }
}

async function pump(body: AsyncIterable<string | Uint8Array>, stream: EventStream): Promise<void> {
  try {
    for await (const chunk of body)
      stream.push(typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString('utf8'));
    stream.finish('clean');
  } catch {
    // The HTTP server would reset the stream here.
    stream.finish('broken');
  }
}

function toRequest(
  caller: Caller,
  method: string,
  target: string,
  options: RequestOptions,
  signal: AbortSignal,
): ApiRequest {
  const { bytes, headers } = encodeBody(options);
  const [path = '', query = ''] = target.split('?', 2);
  return {
    method,
    path,
    query: new URLSearchParams(query),
    headers: { 'user-agent': 'test', ...headers },
    body: async () => bytes ?? new Uint8Array(),
    ...(caller ? { certificate: { ...caller, fingerprint: 'AA:BB' } } : {}),
    remoteAddress: '127.0.0.1',
    signal,
  };
}
