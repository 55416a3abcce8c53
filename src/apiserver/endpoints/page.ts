import type { ListMeta } from '../../api/meta.ts';
import { bucketOf, type ResourceDefinition } from '../../api/resource.ts';
import { ApiError, expired } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import { LIST_ITEMS_MAX } from '../http/limits.ts';
import { ExpiredRevision, type Store, type Stored } from '../storage/store.ts';
import { encodeContinue, listOptionsOf, refuseFuture } from './list-options.ts';
import { type Filter, filterOf } from './select.ts';
import { Turns } from './turns.ts';

/** Which stored objects a list is about: one consistent revision over all pages. */

export interface PageRequest {
  readonly clock: Clock;
  readonly store: Store;
  readonly definition: ResourceDefinition;
  readonly namespace: string;
  readonly query: URLSearchParams;
  /** How many objects one answer may hold; tests grant less. */
  readonly itemsMax?: number;
}

/** What a client is told whose next page is no longer known. */
const CONTINUE_EXPIRED =
  'The provided continue parameter is too old to display a consistent list result. Start a new list without it, or use the continue token in this response to get the rest as it is now, which may not fit what was listed before.';

/** A page of stored objects and what its metadata says. */
export interface Page {
  readonly items: readonly Stored[];
  readonly metadata: ListMeta;
}

/** Reads one page, in turns. Rejects with 410 when its revision has been compacted. */
export async function readPage(request: PageRequest): Promise<Page> {
  const { store, definition, query } = request;
  const filter = filterOf(definition, query);
  const { revision, match, limit, continuation } = listOptionsOf(query);
  refuseFuture(store, revision ?? continuation?.revision);
  // Old clients that page from a revision mean exactly that one.
  const isExact = match === 'Exact' || (match === '' && limit !== undefined);
  const at = continuation ? continuation.revision : isExact ? revision : undefined;
  try {
    return await collect(request, filter, { limit, at, after: continuation?.after });
  } catch (error) {
    if (!(error instanceof ExpiredRevision)) throw error;
    if (continuation) throw expired(CONTINUE_EXPIRED, encodeContinue({ ...continuation, revision: undefined }));
    throw expired('The resourceVersion for the provided list is too old.');
  }
}

/** How the keys of all objects begin that a list or watch can be about; undefined where that is not known. */
export function prefixOf(definition: ResourceDefinition, namespace: string, filter: Filter): string | undefined {
  if (!definition.namespaced) return filter.name;
  const scope = namespace === '' ? filter.namespace : namespace;
  return scope ? `${scope}/${filter.name ?? ''}` : undefined;
}

async function collect(
  { clock, store, definition, namespace, itemsMax = LIST_ITEMS_MAX }: PageRequest,
  filter: Filter,
  page: { limit?: number | undefined; at?: number | undefined; after?: string | undefined },
): Promise<Page> {
  // Who pages may be given less than he asks for.
  const limit = page.limit === undefined ? undefined : Math.min(page.limit, itemsMax);
  const bucket = bucketOf(definition);
  const { matches } = filter;
  const prefix = prefixOf(definition, namespace, filter);
  if (!matches) {
    const { items, revision, more, remaining } = store.list(bucket, { prefix, ...page, limit: limit ?? itemsMax });
    if (more && limit === undefined) throw tooLong(itemsMax);
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
  const turns = new Turns(clock);
  for (const stored of items) {
    if (turns.isOver()) await turns.next();
    if (!matches(stored)) continue;
    // One more than the page holds: only then is there a next one. How many remain is not known without reading on.
    if (limit === undefined && selected.length === itemsMax) throw tooLong(itemsMax);
    if (limit !== undefined && selected.length === limit) {
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

function tooLong(itemsMax: number): ApiError {
  return new ApiError(
    413,
    'RequestEntityTooLarge',
    `the list has more than ${itemsMax} items; page it with limit and continue`,
  );
}
