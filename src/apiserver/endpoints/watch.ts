import { apiVersionOf, type KubeObject } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { badRequest, expired } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import { toTable } from '../../machinery/table.ts';
import { WATCH_BUFFER_BYTES_MAX } from '../http/limits.ts';
import type { ApiResponse } from '../http/message.ts';
import { isTrue } from '../http/request-info.ts';
import { decodeStored, textFor } from '../registry/codec.ts';
import { type Change, ExpiredRevision, type Store, type Stored } from '../storage/store.ts';
import { watchBucket } from '../storage/watch.ts';
import { includeObjectOf, partialMetadata, readPage, refuseFuture, revisionOf } from './list.ts';
import type { Representation } from './negotiate.ts';
import { type Filter, filterOf } from './select.ts';

/** Watches: what is, then every change in order, with bookmarks, until the client or the time-out ends it. */

export interface WatchRequest {
  readonly env: Env;
  readonly store: Store;
  readonly definition: ResourceDefinition;
  readonly namespace: string;
  readonly query: URLSearchParams;
  readonly representation: Representation;
  readonly signal: AbortSignal;
}

type EventType = 'ADDED' | 'MODIFIED' | 'DELETED';

/** How long a watch lives unless told otherwise: between one and two times this, so that clients do not return all at once. */
const TIMEOUT_DEFAULT_MS = 30 * 60_000;
const BOOKMARK_INTERVAL_MS = 60_000;

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

/** Encoded once per change, shared by all plain watchers; gone with the change. */
const lines = new WeakMap<Change, Map<string, string>>();

function line(definition: ResourceDefinition, type: EventType, stored: Stored): string {
  return `{"type":"${type}","object":${textFor(definition, stored)}}\n`;
}

function sharedLine(definition: ResourceDefinition, type: EventType, change: Change): string {
  let known = lines.get(change);
  if (!known) lines.set(change, (known = new Map()));
  const key = `${type} ${definition.group}/${definition.version}`;
  let text = known.get(key);
  if (text === undefined) known.set(key, (text = line(definition, type, change.stored)));
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
    if (representation.as === 'Object') return sharedLine(definition, type, change);
    return this.#line(type, decodeStored(definition, change.stored));
  }

  bookmark(revision: number, annotations?: Record<string, string>): string {
    const { group, version, kind } = this.#request.definition;
    const metadata = {
      resourceVersion: String(revision),
      creationTimestamp: null,
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
    if (this.#hasSentColumns) table['columnDefinitions'] = [];
    this.#hasSentColumns = true;
    return table;
  }
}

function timeoutOf(request: WatchRequest): number {
  const text = request.query.get('timeoutSeconds');
  if (text === null || text === '' || text === '0') return TIMEOUT_DEFAULT_MS * (1 + request.env.random.number());
  if (!/^\d{1,9}$/.test(text))
    throw badRequest(`invalid timeoutSeconds ${JSON.stringify(text)}: it must be a number of seconds`);
  return Number(text) * 1000;
}

/** Answers a watch. Throws 410 at once when its revision has been compacted, so that the client lists anew. */
export function answerWatch(request: WatchRequest): ApiResponse {
  const { store, definition, namespace, query } = request;
  const filter = filterOf(definition, query);
  const since = revisionOf(query.get('resourceVersion'));
  const sendInitial = isTrue(query.get('sendInitialEvents'));
  if (query.get('sendInitialEvents') !== null && query.get('resourceVersionMatch') !== 'NotOlderThan')
    throw badRequest('sendInitialEvents requires resourceVersionMatch=NotOlderThan');
  refuseFuture(store, since);
  const timeoutMs = timeoutOf(request);
  const encoder = new EventEncoder(request);
  const initial: string[] = [];
  let start = since ?? store.revision;
  if (sendInitial || since === undefined) {
    const page = readPage(store, definition, namespace, selectorsOnly(query));
    start = Number(page.metadata.resourceVersion);
    for (const stored of page.items) initial.push(encoder.initial(stored));
    if (sendInitial && isTrue(query.get('allowWatchBookmarks')))
      initial.push(encoder.bookmark(start, { 'k8s.io/initial-events-end': 'true' }));
  }
  const scope = namespace === '' ? filter.namespace : namespace;
  const stop = new AbortController();
  const events = openEvents(
    request,
    start,
    definition.namespaced && scope ? `${scope}/` : undefined,
    stop.signal,
    (change) => {
      const type = eventOf(change, filter.matches);
      return type && encoder.change(type, change);
    },
  );
  const bookmark = isTrue(query.get('allowWatchBookmarks')) ? () => encoder.bookmark(store.revision) : undefined;
  return {
    status: 200,
    headers: { 'content-type': request.representation.contentType },
    body: watchStream(request, initial, events, bookmark, timeoutMs, stop),
  };
}

function selectorsOnly(query: URLSearchParams): URLSearchParams {
  const kept = new URLSearchParams();
  for (const name of ['labelSelector', 'fieldSelector']) if (query.has(name)) kept.set(name, query.get(name) ?? '');
  return kept;
}

function openEvents(
  request: WatchRequest,
  since: number,
  prefix: string | undefined,
  signal: AbortSignal,
  encode: (change: Change) => string | undefined,
): AsyncIterable<string> {
  try {
    return watchBucket(request.store, bucketOf(request.definition), {
      since,
      prefix,
      signal,
      bufferBytesMax: WATCH_BUFFER_BYTES_MAX,
      encode,
    });
  } catch (error) {
    if (error instanceof ExpiredRevision)
      throw expired(`too old resource version: ${since} (${request.store.oldestRevision})`);
    throw error;
  }
}

async function* watchStream(
  request: WatchRequest,
  initial: readonly string[],
  events: AsyncIterable<string>,
  bookmark: (() => string) | undefined,
  timeoutMs: number,
  stop: AbortController,
): AsyncGenerator<string> {
  const { clock } = request.env;
  const end = (): void => stop.abort();
  const timer = clock.setTimer(end, timeoutMs);
  request.signal.addEventListener('abort', end, { once: true });
  if (request.signal.aborted) end();
  try {
    if (initial.length > 0) yield initial.join('');
    const iterator = events[Symbol.asyncIterator]();
    let next = iterator.next();
    for (;;) {
      const result = bookmark ? await raceTimer(request, next) : await next;
      // A pending `next` means that everything up to the newest revision has been handed over.
      if (result === 'tick') yield bookmark?.() ?? '';
      else if (result.done) return;
      else {
        yield result.value;
        next = iterator.next();
      }
    }
  } finally {
    timer.cancel();
    request.signal.removeEventListener('abort', end);
    end();
  }
}

function raceTimer<T>(request: WatchRequest, next: Promise<T>): Promise<T | 'tick'> {
  return new Promise((resolve, reject) => {
    const timer = request.env.clock.setTimer(() => resolve('tick'), BOOKMARK_INTERVAL_MS);
    next.then(resolve, reject).finally(() => timer.cancel());
  });
}
