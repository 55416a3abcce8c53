import { stringify } from 'yaml';
import { apiVersionOf, type KubeObject, type ListMeta } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { ApiError, badRequest, expired } from '../../api/status.ts';
import { toTable } from '../../machinery/table.ts';
import { LIST_CHUNK_BYTES, LIST_ITEMS_MAX } from '../http/limits.ts';
import type { ApiResponse } from '../http/message.ts';
import { decodeStored, textFor } from '../registry/codec.ts';
import { ExpiredRevision, type Store, type Stored } from '../storage/store.ts';
import type { Representation } from './negotiate.ts';
import { type Filter, filterOf } from './select.ts';

/** Lists: one consistent revision over all pages, selected and in the form asked for, streamed when large. */

export interface ListRequest {
  readonly store: Store;
  readonly definition: ResourceDefinition;
  readonly namespace: string;
  readonly query: URLSearchParams;
  readonly representation: Representation;
  readonly nowMs: number;
}

/** A page of stored objects and what its metadata says. */
export interface Page {
  readonly items: readonly Stored[];
  readonly metadata: ListMeta;
}

interface Continuation {
  readonly revision: number;
  readonly after: string;
}

function encodeContinue(continuation: Continuation): string {
  return Buffer.from(
    JSON.stringify({ v: 'godwit.dev/v1', rv: continuation.revision, start: continuation.after }),
  ).toString('base64url');
}

function decodeContinue(token: string): Continuation {
  try {
    const { v, rv, start } = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as Record<string, unknown>;
    if (v === 'godwit.dev/v1' && Number.isSafeInteger(rv) && typeof start === 'string')
      return { revision: rv as number, after: start };
  } catch (error) {
    throw badRequest('continue key is not valid: it was not given out by this server', error);
  }
  throw badRequest('continue key is not valid: it was not given out by this server');
}

/** A resourceVersion parameter as a revision; undefined when unset or "0", both of which mean "as new as you have". */
export function revisionOf(text: string | null): number | undefined {
  if (text === null || text === '' || text === '0') return undefined;
  if (!/^\d{1,15}$/.test(text))
    throw badRequest(`invalid resource version ${JSON.stringify(text)}: it must be a number that this server gave out`);
  return Number(text);
}

/** Refuses a revision from the future: it belongs to another server, or to one that lost its data. */
export function refuseFuture(store: Store, revision: number | undefined): void {
  if (revision === undefined || revision <= store.revision) return;
  throw new ApiError(504, 'Timeout', `Too large resource version: ${revision}, current: ${store.revision}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
}

function limitOf(query: URLSearchParams): number | undefined {
  const text = query.get('limit');
  if (text === null || text === '' || text === '0') return undefined;
  if (!/^\d{1,9}$/.test(text)) throw badRequest(`invalid limit ${JSON.stringify(text)}: it must be a positive number`);
  return Number(text);
}

function exactRevision(store: Store, query: URLSearchParams): number | undefined {
  const revision = revisionOf(query.get('resourceVersion'));
  const match = query.get('resourceVersionMatch') ?? '';
  if (!['', 'Exact', 'NotOlderThan'].includes(match))
    throw badRequest(
      `invalid resourceVersionMatch ${JSON.stringify(match)}: supported values: "Exact", "NotOlderThan"`,
    );
  if (match !== '' && query.get('resourceVersion') === null)
    throw badRequest('resourceVersionMatch is forbidden unless resourceVersion is provided');
  refuseFuture(store, revision);
  return match === 'Exact' ? revision : undefined;
}

/** Reads one page. Throws 410 when its revision has been compacted. */
export function readPage(
  store: Store,
  definition: ResourceDefinition,
  namespace: string,
  query: URLSearchParams,
): Page {
  const filter = filterOf(definition, query);
  const limit = limitOf(query);
  const token = query.get('continue') ?? '';
  const continuation = token === '' ? undefined : decodeContinue(token);
  const at = continuation?.revision ?? exactRevision(store, query);
  try {
    return collect(store, definition, namespace, filter, { limit, at, after: continuation?.after });
  } catch (error) {
    if (!(error instanceof ExpiredRevision)) throw error;
    if (continuation)
      throw expired(
        'The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter.',
      );
    throw expired(`The resourceVersion for the provided list is too old.`);
  }
}

function collect(
  store: Store,
  definition: ResourceDefinition,
  namespace: string,
  filter: Filter,
  page: { limit?: number | undefined; at?: number | undefined; after?: string | undefined },
): Page {
  const bucket = bucketOf(definition);
  const { matches } = filter;
  const scope = namespace === '' ? filter.namespace : namespace;
  const prefix = definition.namespaced && scope ? `${scope}/` : undefined;
  if (!matches) {
    const { items, revision, more, remaining } = store.list(bucket, { prefix, ...page });
    if (items.length > LIST_ITEMS_MAX)
      throw new ApiError(
        413,
        'RequestEntityTooLarge',
        `the list has more than ${LIST_ITEMS_MAX} items; page it with limit and continue`,
      );
    const last = items.at(-1);
    if (!more || !last) return { items, metadata: { resourceVersion: String(revision) } };
    return {
      items,
      metadata: {
        resourceVersion: String(revision),
        continue: encodeContinue({ revision, after: last.key }),
        remainingItemCount: remaining,
      },
    };
  }
  const { items, revision } = store.list(bucket, { prefix, at: page.at, after: page.after });
  const selected: Stored[] = [];
  for (const stored of items) {
    if (!matches(stored)) continue;
    // One more than the page holds: only then is there a next one. How many remain is not known without reading on.
    if (page.limit !== undefined && selected.length === page.limit) {
      const last = selected.at(-1);
      return {
        items: selected,
        metadata: { resourceVersion: String(revision), continue: encodeContinue({ revision, after: last?.key ?? '' }) },
      };
    }
    selected.push(stored);
  }
  return { items: selected, metadata: { resourceVersion: String(revision) } };
}

/** `metadata` alone, as metadata-only clients ask for. */
export function partialMetadata(object: KubeObject): KubeObject {
  return { apiVersion: 'meta.k8s.io/v1', kind: 'PartialObjectMetadata', metadata: object.metadata };
}

/** Which part of each object a Table carries. */
export function includeObjectOf(query: URLSearchParams): 'None' | 'Metadata' | 'Object' {
  const value = query.get('includeObject') ?? '';
  if (value === '' || value === 'Metadata') return 'Metadata';
  if (value === 'None' || value === 'Object') return value;
  throw badRequest(`invalid includeObject ${JSON.stringify(value)}: supported values: "None", "Metadata", "Object"`);
}

/** Answers a list. */
export function answerList(request: ListRequest): ApiResponse {
  const { store, definition, namespace, query, representation, nowMs } = request;
  const { items, metadata } = readPage(store, definition, namespace, query);
  const headers = { 'content-type': representation.contentType };
  if (representation.as === 'Table') {
    const table = toTable(
      definition,
      items.map((stored) => decodeStored(definition, stored)),
      { nowMs, includeObject: includeObjectOf(query), listMeta: metadata },
    );
    return { status: 200, headers, body: representation.format === 'yaml' ? stringify(table) : JSON.stringify(table) };
  }
  const isPartial = representation.as === 'PartialObjectMetadata';
  const kind = isPartial ? 'PartialObjectMetadataList' : definition.listKind;
  const apiVersion = isPartial ? 'meta.k8s.io/v1' : apiVersionOf(definition.group, definition.version);
  const opening = `{"kind":${JSON.stringify(kind)},"apiVersion":${JSON.stringify(apiVersion)},"metadata":${JSON.stringify(metadata)},"items":[`;
  const encode = (stored: Stored): string =>
    isPartial ? JSON.stringify(partialMetadata(decodeStored(definition, stored))) : textFor(definition, stored);
  const chunks = chunksOf(opening, items, encode);
  if (representation.format === 'yaml')
    return { status: 200, headers, body: stringify(JSON.parse([...chunks].join(''))) };
  const first = chunks.next().value ?? '';
  const second = chunks.next();
  return { status: 200, headers, body: second.done ? first : stream(first, second.value, chunks) };
}

function* chunksOf(
  opening: string,
  items: readonly Stored[],
  encode: (stored: Stored) => string,
): Generator<string, undefined> {
  let parts = [opening];
  let length = opening.length;
  for (const [index, stored] of items.entries()) {
    const text = encode(stored);
    parts.push(index === 0 ? text : `,${text}`);
    length += text.length;
    if (length < LIST_CHUNK_BYTES) continue;
    yield parts.join('');
    parts = [];
    length = 0;
  }
  parts.push(']}\n');
  yield parts.join('');
}

async function* stream(first: string, second: string, rest: Iterable<string>): AsyncGenerator<string> {
  yield first;
  yield second;
  yield* rest;
}
