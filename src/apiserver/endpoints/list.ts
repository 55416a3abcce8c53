import { stringify } from 'yaml';
import { apiVersionOf, type KubeObject, type ListMeta } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { ApiError, badRequest, expired } from '../../api/status.ts';
import { toTable } from '../../machinery/table.ts';
import { LIST_CHUNK_BYTES, LIST_ITEMS_MAX } from '../http/limits.ts';
import type { ApiResponse } from '../http/message.ts';
import { decodeStored, textFor } from '../registry/codec.ts';
import { ExpiredRevision, type Store, type Stored } from '../storage/store.ts';
import { encodeContinue, listOptionsOf, refuseFuture } from './list-options.ts';
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

/** What a client is told whose next page is no longer known. */
const CONTINUE_EXPIRED =
  'The provided continue parameter is too old to display a consistent list result. Start a new list without it, or use the continue token in this response to get the rest as it is now, which may not fit what was listed before.';

/** A page of stored objects and what its metadata says. */
export interface Page {
  readonly items: readonly Stored[];
  readonly metadata: ListMeta;
}

/** Reads one page. Throws 410 when its revision has been compacted. */
export function readPage(
  store: Store,
  definition: ResourceDefinition,
  namespace: string,
  query: URLSearchParams,
): Page {
  const filter = filterOf(definition, query);
  const { revision, match, limit, continuation } = listOptionsOf(query);
  refuseFuture(store, revision ?? continuation?.revision);
  // Old clients that page from a revision mean exactly that one.
  const isExact = match === 'Exact' || (match === '' && limit !== undefined);
  const at = continuation ? continuation.revision : isExact ? revision : undefined;
  try {
    return collect(store, definition, namespace, filter, { limit, at, after: continuation?.after });
  } catch (error) {
    if (!(error instanceof ExpiredRevision)) throw error;
    if (continuation) throw expired(CONTINUE_EXPIRED, encodeContinue({ ...continuation, revision: undefined }));
    throw expired('The resourceVersion for the provided list is too old.');
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
