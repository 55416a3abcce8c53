import type { KubeList, KubeObject } from '../api/meta.ts';
import { ApiError } from '../api/status.ts';
import { compareVersions } from './resource-version.ts';
import type { Transport, TransportRequest, TransportResponse } from './transport.ts';

/**
 * Reads as a server would answer them that lags behind: from an older state, which is had from the real server by asking
 * for exactly that revision.
 */

/** What of a request a lagging server answers differently. */
export interface PastRequest {
  readonly kind: 'list' | 'object' | 'stream' | 'tooNew';
  readonly revision: string;
  /** Of the collection, without a query. */
  readonly collection: string;
  readonly name: string;
  readonly query: URLSearchParams;
}

/** Whether a request is a watch. */
export function isWatch(request: TransportRequest): boolean {
  return request.method === 'GET' && /[?&]watch=(true|1)(&|$)/.test(request.path);
}

/** What to read from the past; undefined for what a lagging server answers like any other. */
export function pastRequest(request: TransportRequest, revision: string): PastRequest | undefined {
  const mark = request.path.indexOf('?');
  const path = mark < 0 ? request.path : request.path.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : request.path.slice(mark + 1));
  const parts = partsOf(path);
  if (!parts) return undefined;
  const common = { revision, query, ...parts };
  const asked = query.get('resourceVersion') ?? undefined;
  // A continued list, and one of a certain revision, is the same on every server that still has it.
  if (query.has('continue') || query.get('resourceVersionMatch') === 'Exact') return undefined;
  const order = compareVersions(asked, revision);
  const isTooNew = order !== undefined && order > 0;
  if (isWatch(request)) {
    // Without initial events a watch has no past: it begins, and hears nothing until the server has caught up.
    if (query.get('sendInitialEvents') !== 'true' && asked !== undefined) return undefined;
    return { kind: isTooNew ? 'tooNew' : 'stream', ...common };
  }
  if (parts.name !== '') return { kind: 'object', ...common };
  return { kind: isTooNew ? 'tooNew' : 'list', ...common };
}

/** The collection and the name that a path is about; undefined where it is about something else, or a subresource. */
function partsOf(path: string): { readonly collection: string; readonly name: string } | undefined {
  const root = /^\/(?:api\/[^/]+|apis\/[^/]+\/[^/]+)\//.exec(path)?.[0];
  if (root === undefined) return undefined;
  const rest = path.slice(root.length).split('/');
  const depth = rest[0] === 'namespaces' && rest.length > 2 ? 3 : 1;
  if (rest.length > depth + 1) return undefined;
  return { collection: root + rest.slice(0, depth).join('/'), name: rest[depth] ?? '' };
}

/** The newest revision that the server knows; undefined where it does not say. */
export async function currentVersion(transport: Transport, request: TransportRequest): Promise<number | undefined> {
  const past = pastRequest({ ...request, path: request.path.replace(/\?.*/, '') }, '1');
  if (!past) return undefined;
  const response = await transport.send({ ...request, path: `${past.collection}?limit=1` });
  const text = await textOf(response);
  if (response.status !== 200) return undefined;
  const version = Number((JSON.parse(text) as KubeList).metadata.resourceVersion);
  return Number.isSafeInteger(version) ? version : undefined;
}

/** Answers a request as of its revision; as of now where the server no longer knows that one. */
export async function readPast(
  transport: Transport,
  request: TransportRequest,
  past: PastRequest,
): Promise<TransportResponse> {
  if (past.kind === 'tooNew') return json(504, new ApiError(504, 'Timeout', 'Too large resource version').toStatus());
  const response = await transport.send({ ...request, path: pathInPast(past) });
  if (response.status === 410) return transport.send(request);
  if (response.status !== 200 || past.kind === 'list') return response;
  const list = JSON.parse(await textOf(response)) as KubeList;
  if (past.kind === 'stream') return streamOf(transport, request, past, list);
  const object = list.items[0];
  if (object) return json(200, complete(list, object));
  return json(404, new ApiError(404, 'NotFound', `"${past.name}" not found`, { name: past.name }).toStatus());
}

function pathInPast({ kind, revision, collection, name, query }: PastRequest): string {
  const changed = new URLSearchParams();
  for (const key of ['labelSelector', 'fieldSelector', ...(kind === 'list' ? ['limit'] : [])]) {
    const value = query.get(key);
    if (value !== null) changed.set(key, value);
  }
  changed.set('resourceVersion', revision);
  changed.set('resourceVersionMatch', 'Exact');
  if (kind === 'object') changed.set('fieldSelector', `metadata.name=${decodeURIComponent(name)}`);
  return `${collection}?${changed.toString()}`;
}

/** Initial events from the past, and then a watch that goes on from there. */
async function streamOf(
  transport: Transport,
  request: TransportRequest,
  past: PastRequest,
  list: KubeList,
): Promise<TransportResponse> {
  const query = new URLSearchParams(past.query);
  query.delete('sendInitialEvents');
  query.delete('resourceVersionMatch');
  query.set('resourceVersion', past.revision);
  const response = await transport.send({ ...request, path: `${past.collection}?${query.toString()}` });
  if (response.status !== 200) return response;
  const metadata = { resourceVersion: past.revision, annotations: { 'k8s.io/initial-events-end': 'true' } };
  const events = list.items.map((item) => ({ type: 'ADDED', object: complete(list, item) }));
  const hasMark = past.query.get('sendInitialEvents') === 'true' && past.query.get('allowWatchBookmarks') === 'true';
  if (hasMark) events.push({ type: 'BOOKMARK', object: complete(list, { metadata }) });
  return { ...response, body: chain(events.map((event) => `${JSON.stringify(event)}\n`).join(''), response.body) };
}

async function* chain(first: string, rest: AsyncIterable<string>): AsyncGenerator<string> {
  if (first !== '') yield first;
  yield* rest;
}

/** With what kube-apiserver leaves out of the items of a list. */
function complete(list: KubeList, object: Partial<KubeObject> & Pick<KubeObject, 'metadata'>): KubeObject {
  const { apiVersion = list.apiVersion, kind = list.kind.replace(/List$/, '') } = object;
  return { ...object, apiVersion, kind };
}

/** The resourceVersion of the object in a line of a watch. */
export function versionOfLine(line: string): string | undefined {
  return (JSON.parse(line) as { object?: { metadata?: { resourceVersion?: string } } }).object?.metadata
    ?.resourceVersion;
}

function json(status: number, body: object): TransportResponse {
  return {
    status,
    headers: { 'content-type': 'application/json' },
    body: chain(`${JSON.stringify(body)}\n`, nothing()),
  };
}

async function* nothing(): AsyncGenerator<string> {
  // There is no more.
}

async function textOf(response: TransportResponse): Promise<string> {
  let text = '';
  for await (const piece of response.body) text += piece;
  return text;
}
