import { apiVersionOf, type KubeObject } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { type ApiError, expired } from '../../api/status.ts';
import type { Clock, Env, Timer } from '../../env/ports.ts';
import { toTable } from '../../machinery/table.ts';
import { WATCH_BUFFER_BYTES_MAX } from '../http/limits.ts';
import type { ApiResponse } from '../http/message.ts';
import { decodeStored, textFor } from '../registry/codec.ts';
import { readStored } from '../registry/recent-objects.ts';
import { type Change, ExpiredRevision, type Store, type Stored } from '../storage/store.ts';
import { type BucketWatch, watchBucket, type WatchOptions as BucketWatchOptions } from '../storage/watch.ts';
import { includeObjectOf, partialMetadata } from './list.ts';
import { refuseFuture, type WatchOptions, watchOptionsOf } from './list-options.ts';
import type { Representation } from './negotiate.ts';
import { prefixOf, readPage } from './page.ts';
import { type Filter, filterOf, interestInNamespace } from './select.ts';
import { Turns } from './turns.ts';

/** Watches: what is, then every change in order, with bookmarks, until the client or the time-out ends it. */

export interface WatchRequest {
  readonly env: Env;
  readonly store: Store;
  readonly definition: ResourceDefinition;
  readonly namespace: string;
  readonly query: URLSearchParams;
  readonly representation: Representation;
  readonly signal: AbortSignal;
  /** Takes what ends this watch when its resource is no longer served as it is now; answers what forgets it. */
  readonly onWithdrawn?: (end: () => void) => () => void;
}

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** How long a watch lives unless told otherwise: between one and two times this, so that clients do not return all at once. */
const TIMEOUT_DEFAULT_MS = 30 * 60_000;
const BOOKMARK_INTERVAL_MS = 60_000;
const BOOKMARK_BEFORE_END_MS = 2_000;

/** What a change means to a watcher that sees only what its selector matches. */
function eventOf(change: Change, matches: Filter['matches']): EventType | undefined {
  if (change.type === 'delete')
    return matches === undefined || matches(change.previous() ?? change.stored) ? 'DELETED' : undefined;
  const previous = change.previous();
  if (matches === undefined) return previous ? 'MODIFIED' : 'ADDED';
  const wasSeen = previous !== undefined && matches(previous);
  const isSeen = matches(change.stored);
  if (isSeen) return wasSeen ? 'MODIFIED' : 'ADDED';
  return wasSeen ? 'DELETED' : undefined;
}

function line(definition: ResourceDefinition, type: EventType, stored: Stored): string {
  return `{"type":"${type}","object":${textFor(definition, stored)}}\n`;
}

/** The last line that was made. The store tells all watchers of a change in a row, so the first makes it for all. */
interface LastLine {
  readonly change: Change;
  readonly type: EventType;
  readonly text: string;
}

const lastLines = new WeakMap<ResourceDefinition, LastLine>();

function sharedLine(definition: ResourceDefinition, type: EventType, change: Change): string {
  const last = lastLines.get(definition);
  if (last?.change === change && last.type === type) return last.text;
  const text = line(definition, type, change.stored);
  lastLines.set(definition, { change, type, text });
  return text;
}

class EventEncoder {
  readonly #request: WatchRequest;
  #hasSentColumns = false;

  constructor(request: WatchRequest) {
    this.#request = request;
  }

  /** An object that was there when the watch began. */
  initial(stored: Stored): string {
    const { definition, representation } = this.#request;
    if (representation.as === 'Object') return line(definition, 'ADDED', stored);
    return this.#line('ADDED', decodeStored(definition, stored));
  }

  change(type: EventType, change: Change): string {
    const { definition, representation } = this.#request;
    if (type === 'DELETED' && change.type === 'put') return this.#departure(change);
    if (representation.as === 'Object') return sharedLine(definition, type, change);
    return this.#line(type, readStored(definition, change.stored));
  }

  /** An object that goes on but has left the selector: shown as it was last seen, at the revision of its leaving. */
  #departure(change: Change): string {
    const object = decodeStored(this.#request.definition, change.previous() ?? change.stored);
    object.metadata.resourceVersion = String(change.revision);
    return this.#line('DELETED', object);
  }

  bookmark(revision: number, annotations?: Record<string, string>): string {
    const { group, version, kind } = this.#request.definition;
    const metadata = {
      resourceVersion: String(revision),
      ...(annotations ? { annotations } : {}),
    };
    return this.#line('BOOKMARK', { apiVersion: apiVersionOf(group, version), kind, metadata });
  }

  #line(type: string, object: KubeObject): string {
    return `${JSON.stringify({ type, object: this.#represent(type, object) })}\n`;
  }

  #represent(type: string, object: KubeObject): unknown {
    const { definition, representation, query, env } = this.#request;
    if (representation.as === 'PartialObjectMetadata') return partialMetadata(object);
    if (representation.as === 'Object') return object;
    const table = toTable(definition, type === 'BOOKMARK' ? [] : [object], {
      nowMs: env.clock.now(),
      includeObject: includeObjectOf(query),
      listMeta: { resourceVersion: object.metadata.resourceVersion },
    });
    // The columns travel once; after that they would only be repeated.
    if (this.#hasSentColumns) table['columnDefinitions'] = null;
    this.#hasSentColumns = true;
    return table;
  }
}

/** An error as the last event of a watch; clients of Kubernetes look for it there, once a watch has begun. */
function errorLine(error: ApiError): string {
  return `${JSON.stringify({ type: 'ERROR', object: error.toStatus() })}\n`;
}

function tooOld(store: Store, since: number): ApiError {
  return expired(`too old resource version: ${since} (${store.oldestRevision})`);
}

/** Answers a watch. One whose revision has been compacted begins and ends with the 410 that makes its client list anew. */
export async function answerWatch(request: WatchRequest): Promise<ApiResponse> {
  const { store, definition, namespace, query, representation } = request;
  const filter = filterOf(definition, query);
  const options = watchOptionsOf(query);
  refuseFuture(store, options.since);
  const encoder = new EventEncoder(request);
  const initial: string[] = [];
  let since = options.since ?? store.revision;
  if (options.sendInitialEvents) {
    const { clock } = request.env;
    const page = await readPage({ clock, store, definition, namespace, query: selectorsOnly(query) });
    since = Number(page.metadata.resourceVersion);
    const turns = new Turns(clock);
    for (const stored of page.items) {
      if (turns.isOver()) await turns.next();
      initial.push(encoder.initial(stored));
    }
    if (options.allowBookmarks) initial.push(encoder.bookmark(since, { 'k8s.io/initial-events-end': 'true' }));
  }
  const headers = { 'content-type': representation.contentType };
  try {
    const body = openWatch(request, options, encoder, {
      since,
      prefix: prefixOf(definition, namespace, filter),
      interest: filter.interest ?? (namespace === '' ? undefined : interestInNamespace(namespace)),
      opening: initial,
      encode: (change) => {
        const type = eventOf(change, filter.matches);
        return type && encoder.change(type, change);
      },
    });
    return { status: 200, headers, body };
  } catch (error) {
    if (error instanceof ExpiredRevision) return { status: 200, headers, body: errorLine(tooOld(store, since)) };
    throw error;
  }
}

function selectorsOnly(query: URLSearchParams): URLSearchParams {
  const kept = new URLSearchParams();
  for (const name of ['labelSelector', 'fieldSelector']) if (query.has(name)) kept.set(name, query.get(name) ?? '');
  return kept;
}

/** Opens the stream of events, and sets the clocks of its bookmarks and of its end. */
function openWatch(
  request: WatchRequest,
  options: WatchOptions,
  encoder: EventEncoder,
  what: Pick<BucketWatchOptions, 'since' | 'prefix' | 'interest' | 'opening' | 'encode'>,
): BucketWatch {
  const { env, store, definition, signal, onWithdrawn } = request;
  let timer: Timer | undefined;
  let bookmarks: Bookmarks | undefined;
  let forget: (() => void) | undefined;
  const watch = watchBucket(store, bucketOf(definition), {
    ...what,
    signal,
    bufferBytesMax: WATCH_BUFFER_BYTES_MAX,
    farewell: (error) => (error instanceof ExpiredRevision ? errorLine(tooOld(store, error.revision)) : undefined),
    onEnd: () => {
      timer?.cancel();
      forget?.();
      bookmarks?.stop();
    },
  });
  if (signal.aborted) return watch;
  const timeoutMs = options.timeoutMs ?? TIMEOUT_DEFAULT_MS * (1 + env.random.number());
  timer = env.clock.setTimer(() => void watch.return?.(), timeoutMs);
  const sendBookmark = (): void => watch.insert(() => encoder.bookmark(store.revision));
  if (options.allowBookmarks) bookmarks = new Bookmarks(env.clock, env.clock.now() + timeoutMs, sendBookmark);
  forget = onWithdrawn?.(() => watch.finish());
  return watch;
}

/** When bookmarks are due: now and then, and once more just before the end, so that the client returns from there. */
class Bookmarks {
  readonly #clock: Clock;
  readonly #deadlineMs: number;
  readonly #send: () => void;
  #timer: Timer;

  constructor(clock: Clock, deadlineMs: number, send: () => void) {
    this.#clock = clock;
    this.#deadlineMs = deadlineMs;
    this.#send = send;
    this.#timer = this.#next();
  }

  stop(): void {
    this.#timer.cancel();
  }

  #next(): Timer {
    const lastMs = this.#deadlineMs - BOOKMARK_BEFORE_END_MS - this.#clock.now();
    const delayMs = lastMs > 0 ? Math.min(lastMs, BOOKMARK_INTERVAL_MS) : BOOKMARK_INTERVAL_MS;
    return this.#clock.setTimer(() => {
      this.#send();
      this.#timer = this.#next();
    }, delayMs);
  }
}
