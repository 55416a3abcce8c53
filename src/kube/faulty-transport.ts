import { ApiError, serviceUnavailable, tooManyRequests } from '../api/status.ts';
import { type Clock, type Random, sleep, type Timer } from '../env/ports.ts';
import { cancelled } from './abort.ts';
import {
  drawEventFate,
  drawRequestFate,
  EVENTS_REMEMBERED,
  FAULT_NAMES,
  type FaultName,
  type FaultPlan,
  NO_FAULTS,
  type RequestFate,
} from './faults.ts';
import { Gate } from './gate.ts';
import { readLines } from './lines.ts';
import { compareVersions } from './resource-version.ts';
import { currentVersion, isWatch, pastRequest, readPast, versionOfLine } from './stale-reads.ts';
import { type Transport, TransportError, type TransportRequest, type TransportResponse } from './transport.ts';

/**
 * A transport that fails as networks and servers do, by a plan and from a seed. What it does to reads are the three
 * perturbations of the Sieve paper: a stale state (the server lags; what was seen is unseen again), an unobserved state
 * (what happens while a watch is cut or expired is never told) and an intermediate state (the client crashes between
 * two writes, and starts again from half of its work).
 */

export interface FaultyTransportOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly plan?: Partial<FaultPlan>;
  /** Told when the client crashes; that has to abort all its requests, none of which is answered any more. */
  readonly onCrash?: () => void;
  /** Told of each fault that befalls a request, or its answer. */
  readonly onFault?: (name: FaultName, request: TransportRequest) => void;
  /**
   * Keeps Kubernetes' promise that who asks for no version, or for a certain one, gets it: a lagging server then shows
   * the past only to watches, and to reads that ask for any version (0).
   */
  readonly readsAreConsistent?: boolean;
}

const CONFLICT =
  'the object has been modified; please apply your changes to the latest version and try again (injected)';

export class FaultyTransport implements Transport {
  readonly #inner: Transport;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #options: FaultyTransportOptions;
  readonly #counts = new Map<FaultName, number>(FAULT_NAMES.map((name) => [name, 0]));
  readonly #network = new Gate();
  readonly #caughtUp = new Gate();
  #plan: FaultPlan;
  /** The newest revision that a lagging server knows. */
  #frozenAt: string | undefined;
  #thawTimer: Timer | undefined;

  constructor(inner: Transport, options: FaultyTransportOptions) {
    this.#inner = inner;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#options = options;
    this.#plan = { ...NO_FAULTS, ...options.plan };
  }

  /** What goes wrong from now on. */
  get plan(): FaultPlan {
    return this.#plan;
  }

  set plan(plan: Partial<FaultPlan>) {
    this.#plan = { ...NO_FAULTS, ...plan };
  }

  /** How often each fault was injected. */
  get injected(): { readonly [name in FaultName]: number } {
    return Object.fromEntries(this.#counts) as { [name in FaultName]: number };
  }

  get isPartitioned(): boolean {
    return !this.#network.isOpen;
  }

  /** Nothing passes any more, in either direction, until `heal`. */
  partition(): void {
    if (!this.isPartitioned) this.#count('partition');
    this.#network.close();
  }

  heal(): void {
    this.#network.open();
  }

  /** Reads show the state as of this revision, and watches nothing newer, until `thaw`. Writes are not affected. */
  freeze(revision: string): void {
    this.#count('stale');
    this.#frozenAt = revision;
    this.#caughtUp.close();
  }

  thaw(): void {
    this.#thawTimer?.cancel();
    this.#thawTimer = undefined;
    this.#frozenAt = undefined;
    this.#caughtUp.open();
  }

  /** No fault is injected any more; what is held back arrives. */
  calm(): void {
    this.plan = NO_FAULTS;
    this.heal();
    this.thaw();
  }

  async send(request: TransportRequest): Promise<TransportResponse> {
    const { signal } = request;
    if (signal.aborted) throw cancelled(signal);
    const fate = drawRequestFate(this.#plan, this.#random, request.method);
    if (fate.slowBeforeMs + fate.slowAfterMs > 0) this.#count('slow', request);
    await this.#pass(fate.slowBeforeMs, signal);
    const refusal = this.#refusal(fate, request);
    if (refusal) return refusal;
    if (fate.fate === 'requestLost') return this.#lose('requestLost', fate.lostMs, request);
    if (fate.fate === 'crashBefore' && this.#options.onCrash) return this.#crash(request);
    if (fate.staleMs > 0) await this.#beginToLag(request, fate);
    const response = await this.#forward(request);
    if (fate.fate === 'crashAfter' && this.#options.onCrash) return this.#crash(request, response);
    if (fate.fate === 'answerLost') return this.#lose('answerLost', fate.lostMs, request, response);
    await this.#pass(fate.slowAfterMs, signal);
    return isWatch(request) && response.status === 200
      ? { ...response, body: this.#faultyEvents(response.body, request) }
      : response;
  }

  close(): void {
    this.#thawTimer?.cancel();
    this.#inner.close();
  }

  #count(name: FaultName, request?: TransportRequest): void {
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    if (request) this.#options.onFault?.(name, request);
  }

  /** Goes over the network: takes its time, and waits for a partition to heal, though not forever. */
  async #pass(delayMs: number, signal: AbortSignal): Promise<void> {
    if (delayMs > 0) await sleep(this.#clock, delayMs, signal);
    const hasPassed = await this.#network.passWithin(this.#clock, this.#plan.timeoutMs, signal);
    if (signal.aborted) throw cancelled(signal);
    if (!hasPassed) throw new TransportError('no answer came in time (partition)');
  }

  /** An answer that the server would have given for reasons of its own, without doing anything. */
  #refusal({ fate, isWatchExpired }: RequestFate, request: TransportRequest): TransportResponse | undefined {
    if (fate === 'conflict') {
      this.#count('conflict', request);
      return answer(new ApiError(409, 'Conflict', CONFLICT));
    }
    if (fate === 'tooMany' || fate === 'notReady') {
      this.#count('unavailable', request);
      return answer(
        fate === 'tooMany'
          ? tooManyRequests('too many requests (injected)', 1)
          : serviceUnavailable('not ready (injected)'),
      );
    }
    if (!isWatchExpired || !isWatch(request) || !/[?&]resourceVersion=/.test(request.path)) return undefined;
    this.#count('watchExpired', request);
    return answer(EXPIRED);
  }

  async #lose(
    name: FaultName,
    lostMs: number,
    request: TransportRequest,
    response?: TransportResponse,
  ): Promise<never> {
    const { signal } = request;
    this.#count(name, request);
    if (response) abandon(response);
    await sleep(this.#clock, lostMs, signal);
    throw signal.aborted ? cancelled(signal) : new TransportError(`no answer came (${name})`);
  }

  async #crash(request: TransportRequest, response?: TransportResponse): Promise<never> {
    const { signal } = request;
    this.#count('crash', request);
    if (response) abandon(response);
    this.#options.onCrash?.();
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
    throw cancelled(signal);
  }

  async #beginToLag(request: TransportRequest, { staleMs, staleRevisions }: RequestFate): Promise<void> {
    if (this.#frozenAt !== undefined) return;
    const current = await currentVersion(this.#inner, request);
    if (current === undefined || this.#frozenAt !== undefined) return;
    this.freeze(String(Math.max(1, current - staleRevisions)));
    this.#options.onFault?.('stale', request);
    this.#thawTimer = this.#clock.setTimer(() => this.thaw(), staleMs);
  }

  async #forward(request: TransportRequest): Promise<TransportResponse> {
    if (this.#frozenAt === undefined || request.method !== 'GET') return this.#inner.send(request);
    const isPromised = this.#options.readsAreConsistent && !/[?&]resourceVersion=0(&|$)/.test(request.path);
    const past = isPromised ? undefined : pastRequest(request, this.#frozenAt);
    return past === undefined ? this.#inner.send(request) : readPast(this.#inner, request, past);
  }

  async *#faultyEvents(body: AsyncIterable<string>, request: TransportRequest): AsyncGenerator<string> {
    const { signal } = request;
    const recent: string[] = [];
    for await (const line of readLines(body)) {
      const fate = drawEventFate(this.#plan, this.#random);
      if (fate.delayMs > 0) {
        this.#count('watchDelay', request);
        await sleep(this.#clock, fate.delayMs, signal);
      }
      await this.#arrive(line, signal);
      if (signal.aborted) return;
      if (fate.cut !== undefined) {
        this.#count('watchCut', request);
        if (fate.cut === 'broken') throw new TransportError('the connection broke (injected)');
        return;
      }
      if (fate.isExpired) {
        this.#count('watchExpired', request);
        yield `${JSON.stringify({ type: 'ERROR', object: EXPIRED.toStatus() })}\n`;
        return;
      }
      yield `${line}\n`;
      recent.unshift(line);
      if (recent.length > EVENTS_REMEMBERED) recent.pop();
      const again = fate.again === undefined ? undefined : recent[fate.again];
      if (again === undefined) continue;
      this.#count('watchDuplicate', request);
      yield `${again}\n`;
    }
  }

  /** Waits until an event can be here: the network lets it through, and the server knows of it. */
  async #arrive(line: string, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.#network.pass(signal);
      if (this.#frozenAt === undefined || !isAfter(versionOfLine(line), this.#frozenAt)) return;
      await this.#caughtUp.pass(signal);
    }
  }
}

const EXPIRED = new ApiError(410, 'Expired', 'too old resource version (injected)');

function isAfter(version: string | undefined, other: string): boolean {
  const order = compareVersions(version, other);
  return order !== undefined && order > 0;
}

function answer(error: ApiError): TransportResponse {
  const retryAfter = error.details?.retryAfterSeconds;
  return {
    status: error.code,
    headers: { 'content-type': 'application/json', ...(retryAfter ? { 'retry-after': String(retryAfter) } : {}) },
    body: once(`${JSON.stringify(error.toStatus())}\n`),
  };
}

async function* once(text: string): AsyncGenerator<string> {
  yield text;
}

/** Lets go of an answer that never arrives. */
function abandon(response: TransportResponse): void {
  // How it ends is of interest to nobody.
  response.body[Symbol.asyncIterator]()
    .return?.()
    .catch(() => undefined);
}
