import type { EventReason } from '../api/event-reasons.ts';
import type { KubeObject } from '../api/meta.ts';
import { dnsSubdomainErrors } from '../api/names.ts';
import { ApiError } from '../api/status.ts';
import { type Env, sleep } from '../env/ports.ts';
import type { Client } from './client.ts';
import { errorText } from './error-text.ts';
import {
  type CoreEvent,
  type CorrelatedEvent,
  EventCorrelator,
  newEvent,
  type ObjectReference,
} from './event-correlator.ts';
import { LruMap } from './lru-map.ts';
import type { Resource } from './resource.ts';
import type { Service } from './service.ts';
import { withinTime } from './time-limit.ts';

export interface EventRecorderOptions {
  readonly client: Client;
  readonly env: Env;
  /** Who reports; shown by kubectl as the source. */
  readonly component: string;
  /** On which node, or which replica. */
  readonly host?: string;
}

/** What an event can be about: any object that knows its kind. */
export type EventTarget = Pick<KubeObject, 'apiVersion' | 'kind' | 'metadata'>;

const eventResource: Resource<CoreEvent> = {
  group: '',
  version: 'v1',
  plural: 'events',
  kind: 'Event',
  namespaced: true,
};

/** Events that wait to be written; past it new ones are dropped. Events are for people: losing some is better than growing. */
const PENDING_MAX = 10_000;
/**
 * So many are written at the same time. One after the other would be slower than what they tell of: a server that has a
 * thousand migrations under way takes its time to answer, and writes many events as quickly as one.
 */
const WRITES_AT_ONCE = 8;
/** Longer messages are cut: newer servers take no more. */
const MESSAGE_LENGTH_MAX = 1024;
const WRITTEN_MAX = 4096;
const TRIES_MAX = 12;
const RETRY_DELAY_MS = 10_000;
/** How long the end of the process may be held up by what is still to be written. */
const FLUSH_MS_MAX = 5000;
const REQUEST_MS_MAX = 10_000;

/**
 * Writes core/v1 Events about objects, in the background. Events that repeat before they are written are written once,
 * with their count. Nothing here ever throws or waits: an event is never worth the failure of what it tells about.
 */
export class EventRecorder<Reason extends string = EventReason> implements Service {
  readonly name = 'event recorder';
  readonly needsLeadership = false;
  readonly #client: Client;
  readonly #env: Env;
  readonly #source: CoreEvent['source'];
  readonly #correlator = new EventCorrelator();
  /** By key; in the order in which they will be written. */
  readonly #pending = new Map<string, CoreEvent>();
  /** Under which name the event of a key was last written. */
  readonly #written = new LruMap<string, string>(WRITTEN_MAX);
  /** Keys of those that are being written: what comes of such a key meanwhile waits until that is done. */
  readonly #underWay = new Set<string>();
  /** Writers that have nothing to do. */
  readonly #idle = new Set<() => void>();
  /** Tells this recorder's events from those that others record about the same object in the same millisecond. */
  readonly #ownNanos: bigint;
  #lastNanos = 0n;
  #droppedCount = 0;

  constructor(options: EventRecorderOptions) {
    const { client, env, component, host } = options;
    this.#client = client;
    this.#env = { ...env, log: env.log.child({ recorder: component }) };
    this.#ownNanos = BigInt(Math.floor(env.random.number() * 1_000_000));
    this.#source = host === undefined ? { component } : { component, host };
  }

  /**
   * Says that something happened to an object. The reason is one word in UpperCamelCase that programs can compare, the
   * message a sentence for people.
   */
  event(object: EventTarget, type: 'Normal' | 'Warning', reason: Reason, message: string): void {
    try {
      const about = { involvedObject: referenceTo(object), type, reason, message: shortened(message) };
      const nowMs = this.#env.clock.now();
      const event = newEvent(
        { ...about, source: this.#source },
        this.#newName(about.involvedObject.name, nowMs),
        nowMs,
      );
      const correlated = this.#correlator.correlate(event, nowMs);
      if (correlated) this.#enqueue(correlated);
    } catch (error) {
      this.#env.log.error('event not recorded', { reason, error: errorText(error) });
    }
  }

  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(Array.from({ length: WRITES_AT_ONCE }, () => this.#writeAll(signal)));
    await this.#flush();
  }

  async #writeAll(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const next = this.#next();
      if (!next) {
        await this.#wait(signal);
        continue;
      }
      this.#underWay.add(next.key);
      await this.#write(next, signal);
      this.#underWay.delete(next.key);
    }
  }

  #enqueue({ key, event }: CorrelatedEvent): void {
    if (this.#pending.size >= PENDING_MAX && !this.#pending.has(key)) {
      if (this.#droppedCount++ === 0) this.#env.log.warn('too many events, some are dropped');
      return;
    }
    this.#pending.set(key, event);
    const [wake] = this.#idle;
    wake?.();
  }

  /** Takes the oldest event out that nobody is in the way of. */
  #next(): CorrelatedEvent | undefined {
    for (const [key, event] of this.#pending) {
      if (this.#underWay.has(key)) continue;
      this.#pending.delete(key);
      return { key, event };
    }
    if (this.#pending.size > 0) return undefined;
    if (this.#droppedCount > 0) this.#env.log.warn('events were dropped', { count: this.#droppedCount });
    this.#droppedCount = 0;
    return undefined;
  }

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const wake = (): void => {
        signal.removeEventListener('abort', wake);
        this.#idle.delete(wake);
        resolve();
      };
      this.#idle.add(wake);
      signal.addEventListener('abort', wake, { once: true });
    });
  }

  async #write(correlated: CorrelatedEvent, signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries++) {
      const error = await this.#tryWrite(correlated, signal);
      if (error === undefined) return;
      if (signal.aborted) return this.#putBack(correlated);
      if (!isWorthRetrying(error) || tries === TRIES_MAX) return this.#giveUp(correlated.event, error);
      this.#env.log.warn('event not written yet', { error: errorText(error) });
      // The first wait is a random one, so that clients whose server went away do not all come back at once.
      await sleep(this.#env.clock, RETRY_DELAY_MS * (tries === 1 ? this.#env.random.number() : 1), signal);
    }
  }

  /** What is still to be written is tried once. */
  async #flush(): Promise<void> {
    const timeout = new AbortController();
    const timer = this.#env.clock.setTimer(() => timeout.abort(new Error('the process ends')), FLUSH_MS_MAX);
    await Promise.all(Array.from({ length: WRITES_AT_ONCE }, () => this.#writeRest(timeout.signal)));
    timer.cancel();
  }

  async #writeRest(signal: AbortSignal): Promise<void> {
    for (let next = this.#next(); next; next = this.#next()) {
      const error = await this.#tryWrite(next, signal);
      if (error === undefined) continue;
      this.#giveUp(next.event, error);
      if (!isWorthRetrying(error) || this.#pending.size === 0) continue;
      this.#env.log.warn('events not written before the end', { count: this.#pending.size });
      this.#pending.clear();
    }
  }

  /** Answers the error, if there was one. */
  async #tryWrite({ key, event }: CorrelatedEvent, signal: AbortSignal): Promise<unknown> {
    try {
      await withinTime(this.#env.clock, REQUEST_MS_MAX, signal, (each) => this.#createOrPatch(key, event, each));
      this.#written.set(key, event.metadata.name);
      return undefined;
    } catch (error) {
      return error ?? new Error('unknown');
    }
  }

  async #createOrPatch(key: string, event: CoreEvent, signal: AbortSignal): Promise<void> {
    const isWritten = this.#written.get(key) === event.metadata.name;
    try {
      if (isWritten) await this.#patch(event, signal);
      else await this.#client.create(eventResource, event, signal);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // Events are forgotten after an hour; and one whose creation was not answered may exist all the same.
      if (isWritten && error.code === 404) await this.#client.create(eventResource, event, signal);
      else if (!isWritten && error.reason === 'AlreadyExists') await this.#patch(event, signal);
      else throw error;
    }
  }

  async #patch(event: CoreEvent, signal: AbortSignal): Promise<void> {
    const { count, lastTimestamp, message, metadata } = event;
    const body = { count, lastTimestamp, message };
    await this.#client.patch(eventResource, metadata.namespace, metadata.name, { type: 'merge', body }, signal);
  }

  /** It goes to the front of the line, unless there is a newer one of its key. */
  #putBack({ key, event }: CorrelatedEvent): void {
    const rest = [...this.#pending];
    this.#pending.clear();
    this.#pending.set(key, event);
    for (const [otherKey, other] of rest) this.#pending.set(otherKey, other);
  }

  #giveUp(event: CoreEvent, error: unknown): void {
    const { reason, involvedObject } = event;
    this.#env.log.warn('event not written', { reason, object: involvedObject.name, error: errorText(error) });
  }

  /** The object's name and the time in nanoseconds, as client-go has it; two events hardly ever share one. */
  #newName(objectName: string, nowMs: number): string {
    const nanos = BigInt(Math.floor(nowMs)) * 1_000_000n + this.#ownNanos;
    this.#lastNanos = nanos > this.#lastNanos ? nanos : this.#lastNanos + 1n;
    const name = `${objectName}.${this.#lastNanos.toString(16)}`;
    return dnsSubdomainErrors(name).length === 0 ? name : this.#env.random.uuid();
  }
}

function referenceTo({ apiVersion, kind, metadata }: EventTarget): ObjectReference {
  const { name = '', namespace, uid, resourceVersion } = metadata;
  if (!kind || !apiVersion || name === '') throw new Error('the object says neither its kind nor its name');
  return { apiVersion, kind, name, namespace, uid, resourceVersion };
}

function shortened(message: string): string {
  return message.length <= MESSAGE_LENGTH_MAX ? message : `${message.slice(0, MESSAGE_LENGTH_MAX - 3)}...`;
}

/** Whether the server might take it later. What it has refused it will refuse again. */
function isWorthRetrying(error: unknown): boolean {
  return !(error instanceof ApiError) || error.code === 429 || error.code >= 500;
}
