import type { KubeObject } from '../api/meta.ts';
import { ApiError } from '../api/status.ts';
import { type Env, sleep } from '../env/ports.ts';
import { Backoff } from './backoff.ts';
import type { Applied } from './cache-changes.ts';
import type { Client, WatchEvent } from './client.ts';
import { type Course, type Ending, isTrouble, needsDelay, nextCourse, START } from './reflector-steps.ts';
import { keyOf, type Resource } from './resource.ts';
import { compareVersions, newerVersion } from './resource-version.ts';
import { TransportError } from './transport.ts';
import { WatchAttempt } from './watch-attempt.ts';

/**
 * Keeps a sink in step with a server: a snapshot, then changes, and again from wherever it broke off. It never gives up:
 * a resource that does not exist yet, or may not be read yet, is asked for until it can be.
 *
 * The position is the resourceVersion up to which everything has been handed to the sink. It only moves forward, so that
 * a server that lags behind (or its cache does) cannot take the sink back in time; unless it insists for minutes, which
 * no lag explains but a restored backup does.
 */

/** Who is kept in step. Throwing is fatal: it would be out of step from then on. */
export interface ReflectorSink<T extends KubeObject> {
  /** Everything there is, at a moment not before anything that came earlier (unless the server has been rewound). */
  replace(items: Iterable<T>, isRewound: boolean, signal: AbortSignal): Promise<void>;
  /** A change; the events before it have come as far as `position`. */
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T, position: string): Applied;
}

/** Which objects are followed. */
export interface ReflectorScope {
  /** Empty for all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
}

export interface ReflectorOptions<T extends KubeObject> {
  readonly client: Client;
  readonly resource: Resource<T>;
  readonly env: Env;
  readonly scope: ReflectorScope;
  readonly sink: ReflectorSink<T>;
}

/** client-go's: quick enough for a restart of the server, slow enough for a thousand clients at once. */
const BACKOFF = { baseMs: 800, maxMs: 30_000 };
/** A watch that lived this long was no failure: it is resumed at once. */
const HEALTHY_MS = 10_000;
/** Servers send a bookmark about once a minute; after two and a half of them the connection is taken for dead. */
const SILENCE_MS_MAX = 150_000;
/** How long a watch is asked to live: between one and two times this, so that servers can shed load by and by. */
const WATCH_SECONDS = 300;
/** Objects per page: what client-go asks for. */
const PAGE_LIMIT = 500;
/** How long, and how often in a row, snapshots from the past are refused. */
const REWIND_AFTER_MS = 5 * 60_000;
const REWIND_AFTER_REFUSALS = 10;

const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

export class Reflector<T extends KubeObject> {
  readonly #options: ReflectorOptions<T>;
  readonly #backoff: Backoff;
  #position: string | undefined;
  /** Since when the server has offered nothing but the past, and how often. */
  #past: { readonly sinceMs: number; readonly refusals: number } | undefined;

  constructor(options: ReflectorOptions<T>) {
    this.#options = options;
    this.#backoff = new Backoff(options.env.random, BACKOFF);
  }

  /** Up to where everything has been handed over; undefined before the first snapshot. */
  get position(): string | undefined {
    return this.#position;
  }

  /** Runs until the signal aborts. Rejects only with what the sink throws. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock } = this.#options.env;
    let course = START;
    while (!signal.aborted) {
      const startedMs = clock.now();
      const { ending, hasSnapshot } =
        course.step === 'list' ? await this.#list(course, signal) : await this.#follow(course, signal);
      if (signal.aborted) return;
      const next = nextCourse(course, ending, hasSnapshot);
      this.#log(course, ending, next);
      if (course.step !== 'list' && clock.now() - startedMs >= HEALTHY_MS) this.#backoff.reset();
      else if (needsDelay(course, ending)) await sleep(clock, this.#delayMs(ending), signal);
      course = next;
    }
  }

  #delayMs(ending: Ending): number {
    const askedForMs = ending.kind === 'refused' ? (ending.error.details?.retryAfterSeconds ?? 0) * 1000 : 0;
    return Math.max(this.#backoff.next(), Math.min(askedForMs, BACKOFF.maxMs));
  }

  async #list(course: Course, signal: AbortSignal): Promise<Stopped> {
    const { client, resource, scope } = this.#options;
    const items: T[] = [];
    let version: string | undefined;
    try {
      let token: string | undefined;
      do {
        const limit = course.isPaged ? PAGE_LIMIT : undefined;
        const page = await client.list(resource, { ...scope, limit, continue: token }, signal);
        for (const item of page.items) items.push(item);
        // All pages are of one moment.
        version ??= page.metadata.resourceVersion;
        token = page.metadata.continue;
      } while (token !== undefined && token !== '');
    } catch (error) {
      return { ending: endingOf(error), hasSnapshot: false };
    }
    return (await this.#replace(items, version, signal))
      ? { ending: { kind: 'listed' }, hasSnapshot: true }
      : { ending: { kind: 'past' }, hasSnapshot: false };
  }

  /** Hands over a snapshot, or refuses one from the past. */
  async #replace(items: Iterable<T>, version: string | undefined, signal: AbortSignal): Promise<boolean> {
    const { env, sink } = this.#options;
    const order = compareVersions(version, this.#position);
    const isPast = order !== undefined && order < 0;
    if (isPast) {
      const { sinceMs = env.clock.now(), refusals = 0 } = this.#past ?? {};
      this.#past = { sinceMs, refusals: refusals + 1 };
      if (env.clock.now() - sinceMs < REWIND_AFTER_MS || refusals < REWIND_AFTER_REFUSALS) return false;
      env.log.warn('the server has gone back in time; following it', { from: this.#position, to: version });
    }
    this.#past = undefined;
    await sink.replace(items, isPast, signal);
    // Had the hand-over been cut short, a later run must not go on as if it were complete.
    if (!signal.aborted) this.#position = version;
    return true;
  }

  /** Follows a watch to its end, one that begins with a snapshot or one that goes on from the position. */
  async #follow(course: Course, signal: AbortSignal): Promise<Stopped> {
    const attempt = new WatchAttempt<T>(this.#options.env.clock, SILENCE_MS_MAX, signal);
    let snapshot = course.step === 'stream' ? new Map<string, T>() : undefined;
    const stopped = (ending: Ending): Stopped => ({ ending, hasSnapshot: snapshot === undefined });
    try {
      const opening = await caught(attempt.open(() => this.#open(course, attempt.signal)));
      if (opening.error) return stopped(attempt.isSilent ? { kind: 'silent' } : opening.error);
      for (;;) {
        const { value: event, error } = await caught(attempt.next());
        if (attempt.isSilent) return stopped({ kind: 'silent' });
        if (error) return stopped(error);
        if (event === undefined) return stopped({ kind: 'ended' });
        if (event.type === 'ERROR') return stopped({ kind: 'refused', error: ApiError.fromStatus(event.object) });
        if (snapshot === undefined) {
          if (this.#take(event) === 'unclear') return stopped({ kind: 'unclear' });
        } else if (collect(snapshot, event)) {
          const { resourceVersion } = event.object.metadata;
          if (!(await this.#replace(snapshot.values(), resourceVersion, signal))) return stopped({ kind: 'past' });
          snapshot = undefined;
        }
      }
    } finally {
      attempt.close();
    }
  }

  #open(course: Course, signal: AbortSignal): Promise<AsyncIterable<WatchEvent<T>>> {
    const { client, resource, scope, env } = this.#options;
    const timeoutSeconds = Math.floor(WATCH_SECONDS * (1 + env.random.number()));
    const common = { ...scope, allowWatchBookmarks: true, timeoutSeconds };
    if (course.step === 'watch') return client.watch(resource, { ...common, resourceVersion: this.#position }, signal);
    return client.watch(resource, { ...common, sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' }, signal);
  }

  #take(event: ObjectEvent<T>): Applied {
    const version = event.object.metadata.resourceVersion;
    const applied =
      event.type === 'BOOKMARK' ? 'taken' : this.#options.sink.apply(event.type, event.object, this.#position ?? '');
    if (version !== undefined && applied !== 'unclear') this.#position = newerVersion(this.#position, version);
    return applied;
  }

  #log(course: Course, ending: Ending, next: Course): void {
    const { env, resource, scope } = this.#options;
    if (ending.kind === 'listed') return;
    const fields = { resource: resource.plural, ...scope, step: course.step, ending: ending.kind };
    const error = ending.kind === 'refused' || ending.kind === 'broken' ? ending.error.message : undefined;
    // Watches end all the time.
    if (isTrouble(course, ending, next)) env.log.warn('cannot follow a resource', { ...fields, error });
    else env.log.debug('following a resource stopped', { ...fields, error });
  }
}

/** How a step ended, and whether it left the sink at a position from which a watch can go on. */
interface Stopped {
  readonly ending: Ending;
  readonly hasSnapshot: boolean;
}

type ObjectEvent<T extends KubeObject> = Exclude<WatchEvent<T>, { type: 'ERROR' }>;

/** Adds an event to a snapshot under way; answers whether it was the mark of its end. */
function collect<T extends KubeObject>(snapshot: Map<string, T>, event: ObjectEvent<T>): boolean {
  if (event.type === 'BOOKMARK') return event.object.metadata.annotations?.[INITIAL_EVENTS_END] === 'true';
  if (event.type === 'DELETED') snapshot.delete(keyOf(event.object));
  else snapshot.set(keyOf(event.object), event.object);
  return false;
}

/** What a call to the server gave, or how it failed; errors of anything else go through. */
async function caught<V>(call: Promise<V>): Promise<{ readonly value?: V; readonly error?: Ending }> {
  try {
    return { value: await call };
  } catch (error) {
    return { error: endingOf(error) };
  }
}

function endingOf(error: unknown): Ending {
  if (error instanceof ApiError) return { kind: 'refused', error };
  if (error instanceof TransportError) return { kind: 'broken', error };
  throw error;
}
