import {
  CANCELED,
  DEADLINE_EXCEEDED,
  TransportError,
  type WebhookRequest,
  type WebhookResponse,
  type WebhookTransport,
} from '../apiserver/admission/webhooks/transport.ts';
import { configurationOf } from '../control/context.ts';
import type { Clock, Timer } from '../env/ports.ts';
import { EXTENSION_IDENTITY, SERVICE_NAME } from '../extension/identity.ts';
import { WatchedCordons } from '../extension/webhooks/cordons.ts';
import { IndexedRivals } from '../extension/webhooks/rivals.ts';
import { WebhookServer } from '../extension/webhooks/webhook-server.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { Manager } from '../kube/manager.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import type { Program } from './component.ts';
import type { SimulatedProcess } from './process.ts';
import { unending } from './world.ts';

/**
 * The way from the server to the webhooks for evictions, in a process of their own that dies as any other: the real ones,
 * reached without HTTPS.
 */
export class EvictionWebhooks implements WebhookTransport {
  readonly #clock: Clock;
  readonly #latencyMs: () => number;
  #door: { readonly process: SimulatedProcess; readonly server: WebhookServer } | undefined;

  constructor(options: { readonly clock: Clock; readonly latencyMs: () => number }) {
    this.#clock = options.clock;
    this.#latencyMs = options.latencyMs;
  }

  /** The process of the webhooks, with no more rights than they are installed with. */
  readonly program: Program = async (process, clientOf) => {
    const { env, name } = process;
    const client = clientOf(EXTENSION_IDENTITY);
    const informers = new SharedInformers({ client, env });
    const rivals = new IndexedRivals(client, informers);
    const cordons = new WatchedCordons(client, informers);
    const configuration = configurationOf(informers);
    const recorder = new EventRecorder({ client, env, component: SERVICE_NAME });
    const { clock, random } = env;
    // Evictions do not depend on what nodes have to say.
    const unheard = (): readonly string[] => [];
    const server = new WebhookServer({ client, configuration, unheard, clock, random, recorder, rivals, cordons });
    const manager = new Manager({ env, name }).add(...informers.all(), recorder);
    const running = manager.run(unending());
    await Promise.race([manager.synced, running]);
    this.#door = { process, server };
    await running;
  };

  call(request: WebhookRequest): Promise<WebhookResponse> {
    const door = this.#door;
    if (!door?.process.isAlive) return Promise.reject(new TransportError('connect: connection refused'));
    const { process, server } = door;
    const gone = new AbortController();
    return new Promise((resolve, reject) => {
      const timers: Timer[] = [];
      const end = (act: () => void) => (): void => {
        for (const timer of timers) timer.cancel();
        gone.abort();
        act();
      };
      const fail = (message: string) => end(() => reject(new TransportError(message)));
      timers.push(this.#clock.setTimer(fail(DEADLINE_EXCEEDED), request.timeoutMs));
      request.signal.addEventListener('abort', fail(CANCELED), { once: true });
      process.killed.addEventListener('abort', fail('EOF'), { once: true });
      const ask = async (): Promise<void> => {
        const answer = await server.handle(requestOf(request, gone.signal));
        const body = new TextEncoder().encode(answer.body as string);
        end(() => resolve({ status: answer.status, body }))();
      };
      const send = (): void => void ask().catch((error: unknown) => fail(String(error))());
      timers.push(this.#clock.setTimer(send, this.#latencyMs()));
    });
  }
}

function requestOf({ url, body }: WebhookRequest, signal: AbortSignal): Parameters<WebhookServer['handle']>[0] {
  const { pathname, searchParams } = new URL(url);
  return {
    method: 'POST',
    path: pathname,
    query: searchParams,
    headers: { 'content-type': ['application/json'] },
    clientName: undefined,
    body: () => Promise.resolve(new TextEncoder().encode(body)),
    signal,
  };
}
