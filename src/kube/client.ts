import { setMaxListeners } from 'node:events';
import type { JsonObject, KubeList, KubeObject } from '../api/meta.ts';
import { apiVersionOf } from '../api/meta.ts';
import { ApiError, type Status } from '../api/status.ts';
import { pathOf, type Resource } from './resource.ts';
import { type Transport, TransportError, type TransportResponse } from './transport.ts';
import { readLines } from './lines.ts';

/**
 * A Kubernetes client without opinions: objects go out and come in as they are, so that fields nobody here knows
 * survive a read-modify-write. Every method rejects with ApiError when the server refuses, and with TransportError when
 * nobody knows.
 */

export interface ListOptions {
  /** Empty for all namespaces. */
  readonly namespace?: string;
  readonly labelSelector?: string;
  readonly fieldSelector?: string;
  readonly limit?: number;
  readonly continue?: string;
  readonly resourceVersion?: string;
  readonly resourceVersionMatch?: 'Exact' | 'NotOlderThan';
}

export interface WatchOptions extends Omit<ListOptions, 'limit' | 'continue'> {
  readonly allowWatchBookmarks?: boolean;
  readonly sendInitialEvents?: boolean;
  readonly timeoutSeconds?: number;
}

export type WatchEvent<T extends KubeObject = KubeObject> =
  | { readonly type: 'ADDED' | 'MODIFIED' | 'DELETED' | 'BOOKMARK'; readonly object: T }
  | { readonly type: 'ERROR'; readonly object: Status };

export interface WriteOptions {
  readonly dryRun?: boolean;
  /** A write through a subresource: `status`, `scale`, `finalize`... */
  readonly subresource?: string;
}

export interface DeleteOptions {
  readonly gracePeriodSeconds?: number;
  readonly propagationPolicy?: 'Orphan' | 'Background' | 'Foreground';
  readonly preconditions?: { readonly uid?: string; readonly resourceVersion?: string };
  readonly dryRun?: boolean;
}

/** A patch in one of the four languages that servers speak. */
export type Patch =
  | { readonly type: 'merge'; readonly body: JsonObject }
  | { readonly type: 'strategic'; readonly body: JsonObject }
  | { readonly type: 'json'; readonly body: readonly JsonObject[] }
  | { readonly type: 'apply'; readonly body: JsonObject; readonly force?: boolean };

const PATCH_TYPES: { readonly [type in Patch['type']]: string } = {
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  json: 'application/json-patch+json',
  apply: 'application/apply-patch+yaml',
};

/** What a request may have besides its path. */
interface Sending {
  readonly body?: unknown;
  readonly type?: string;
  readonly accept?: string;
}

type Query = { readonly [name: string]: string | number | boolean | undefined };

/** What answers are asked for as: whole objects, or nothing but their metadata where the server can leave out the rest. */
interface Accepted {
  readonly object: string;
  readonly list: string;
}

const WHOLE: Accepted = { object: 'application/json', list: 'application/json' };
const METADATA: Accepted = {
  object: 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json',
  list: 'application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
};

export class Client {
  readonly #transport: Transport;
  readonly #fieldManager: string;
  readonly #accepted: Accepted;

  /** `fieldManager` is the name that this client's writes are recorded under. */
  constructor(transport: Transport, fieldManager: string, accepted: Accepted = WHOLE) {
    this.#transport = transport;
    this.#fieldManager = fieldManager;
    this.#accepted = accepted;
  }

  /**
   * The same client, except that it is answered with the metadata of objects alone, which may say another apiVersion and
   * kind than the objects have. Not for a read-modify-write by `update`: the rest would be lost.
   */
  metadataOnly(): Client {
    return new Client(this.#transport, this.#fieldManager, METADATA);
  }

  async get<T extends KubeObject>(
    resource: Resource<T>,
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<T> {
    return this.#json('GET', objectPath(resource, namespace, name), {}, signal, { accept: this.#accepted.object });
  }

  /**
   * The object; undefined where the server says that there is none of the name. That it does not serve the kind, as it may
   * for a moment after a restart, says nothing of any object, and is an error.
   */
  async find<T extends KubeObject>(
    resource: Resource<T>,
    namespace: string,
    name: string,
    signal: AbortSignal,
  ): Promise<T | undefined> {
    try {
      return await this.get(resource, namespace, name, signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 404) throw error;
      if (error.details?.name === name) return undefined;
      throw new Error(`the server does not serve ${resource.plural}, and nothing is known of them`, { cause: error });
    }
  }

  async list<T extends KubeObject>(
    resource: Resource<T>,
    options: ListOptions,
    signal: AbortSignal,
  ): Promise<KubeList<T>> {
    const { namespace = '', ...query } = options;
    const accept = this.#accepted.list;
    const list = await this.#json<KubeList<T>>('GET', pathOf(resource, namespace), query, signal, { accept });
    if (!Array.isArray((list.items ??= []))) throw new TransportError('the server answered a list without items');
    // kube-apiserver leaves out of a list's items what the list says of all of them.
    for (const item of list.items) {
      item.apiVersion ??= apiVersionOf(resource.group, resource.version);
      item.kind ??= resource.kind;
    }
    return list;
  }

  /** Resolves once the server has accepted the watch. The iteration ends when the server ends it. */
  async watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions,
    signal: AbortSignal,
  ): Promise<AsyncIterable<WatchEvent<T>>> {
    const { namespace = '', ...query } = options;
    const more = { accept: this.#accepted.object };
    const response = await this.#send('GET', pathOf(resource, namespace), { ...query, watch: true }, signal, more);
    return events(response);
  }

  async create<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    signal: AbortSignal,
    options: WriteOptions = {},
  ): Promise<T> {
    const path = pathOf(resource, object.metadata.namespace ?? '');
    return this.#json('POST', path, this.#writeQuery(options), signal, {
      body: complete(resource, object),
    });
  }

  /** Replaces; the object's resourceVersion, if it has one, must be the newest. */
  async update<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    signal: AbortSignal,
    options: WriteOptions = {},
  ): Promise<T> {
    const { namespace = '', name = '' } = object.metadata;
    const path = objectPath(resource, namespace, name, options.subresource);
    return this.#json('PUT', path, this.#writeQuery(options), signal, {
      body: complete(resource, object),
    });
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    namespace: string,
    name: string,
    patch: Patch,
    signal: AbortSignal,
    options: WriteOptions = {},
  ): Promise<T> {
    const path = objectPath(resource, namespace, name, options.subresource);
    const query = { ...this.#writeQuery(options), ...(patch.type === 'apply' ? { force: patch.force ?? false } : {}) };
    const accept = this.#accepted.object;
    return this.#json('PATCH', path, query, signal, { body: patch.body, type: PATCH_TYPES[patch.type], accept });
  }

  /** Answers the object as it is now where it is not gone at once, else the Status of its deletion. */
  async delete(
    resource: Resource,
    namespace: string,
    name: string,
    signal: AbortSignal,
    options: DeleteOptions = {},
  ): Promise<KubeObject | Status> {
    const body = bodyOf(options);
    const accept = this.#accepted.object;
    return this.#json('DELETE', objectPath(resource, namespace, name), {}, signal, { body, accept });
  }

  /** Deletes all objects of a namespace that the selectors match. */
  async deleteCollection(
    resource: Resource,
    selection: Pick<ListOptions, 'labelSelector' | 'fieldSelector'> & { readonly namespace: string },
    signal: AbortSignal,
    options: DeleteOptions = {},
  ): Promise<void> {
    const { namespace, ...query } = selection;
    // Nobody means the objects of all namespaces by an empty name.
    if (resource.namespaced && namespace === '') throw new Error(`all ${resource.plural} were to be deleted`);
    await this.#json('DELETE', pathOf(resource, namespace), query, signal, { body: bodyOf(options) });
  }

  /** POSTs to a subresource: an eviction, a binding, a token request. */
  async post<T = KubeObject | Status>(
    resource: Resource,
    namespace: string,
    name: string,
    subresource: string,
    body: KubeObject,
    signal: AbortSignal,
  ): Promise<T> {
    return this.#json('POST', objectPath(resource, namespace, name, subresource), {}, signal, { body });
  }

  /** GETs a path that is no object: discovery, versions, health. */
  async getPath<T>(path: string, signal: AbortSignal, options: { readonly accept?: string } = {}): Promise<T> {
    return this.#json('GET', path, {}, signal, options);
  }

  #writeQuery(options: WriteOptions): Query {
    return { fieldManager: this.#fieldManager, ...(options.dryRun ? { dryRun: 'All' } : {}) };
  }

  async #json<T>(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    query: Query,
    signal: AbortSignal,
    more: Sending = {},
  ): Promise<T> {
    const response = await this.#send(method, path, query, signal, more);
    return parsed(await textOf(response)) as T;
  }

  async #send(
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
    path: string,
    query: Query,
    signal: AbortSignal,
    { body, type = 'application/json', accept = 'application/json' }: Sending,
  ): Promise<TransportResponse> {
    const headers: Record<string, string> = {
      accept,
      'user-agent': `${this.#fieldManager}/godwit`,
    };
    if (body !== undefined) headers['content-type'] = type;
    // One signal may end everything that a process does: that many requests listen to it is no leak.
    setMaxListeners(0, signal);
    const response = await this.#transport.send({
      method,
      path: withQuery(path, query),
      headers,
      signal,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    if (response.status >= 200 && response.status < 300) return response;
    throw errorOf(response, await textOf(response));
  }
}

/** The path of one object. A name that is missing must never turn a request into one for all objects. */
function objectPath(resource: Resource, namespace: string, name: string, subresource = ''): string {
  if (name === '' || (resource.namespaced && namespace === ''))
    throw new Error(`an object of ${resource.plural} was asked for without saying which: "${namespace}/${name}"`);
  return pathOf(resource, namespace, name, subresource);
}

function bodyOf({ dryRun, ...rest }: DeleteOptions): object {
  return { apiVersion: 'v1', kind: 'DeleteOptions', ...rest, ...(dryRun ? { dryRun: ['All'] } : {}) };
}

function complete(resource: Resource, object: KubeObject): KubeObject {
  return { ...object, apiVersion: apiVersionOf(resource.group, resource.version), kind: resource.kind };
}

function withQuery(path: string, query: Query): string {
  const entries = Object.entries(query).filter(([, value]) => value !== undefined && value !== '' && value !== false);
  if (entries.length === 0) return path;
  return `${path}?${entries.map(([name, value]) => `${name}=${encodeURIComponent(String(value))}`).join('&')}`;
}

/** Answers of a client; larger ones are no answers of an API server. */
const ANSWER_LENGTH_MAX = 512 * 1024 * 1024;

async function textOf(response: TransportResponse): Promise<string> {
  const parts: string[] = [];
  let length = 0;
  for await (const part of response.body) {
    parts.push(part);
    length += part.length;
    if (length > ANSWER_LENGTH_MAX) throw new TransportError('the answer is too large');
  }
  return parts.join('');
}

/** An answer that is no JSON was cut short, or is not from an API server. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new TransportError(`the server's answer is no JSON: ${text.slice(0, EXCERPT_LENGTH)}`, error);
  }
}

/** As much of an answer that nobody understands as helps to recognise it. */
const EXCERPT_LENGTH = 200;

function errorOf({ status, headers }: TransportResponse, text: string): ApiError {
  const error = statusOf(status, text);
  const retryAfterSeconds = Number(headers['retry-after']);
  if (error.details?.retryAfterSeconds !== undefined || !(retryAfterSeconds > 0)) return error;
  return new ApiError(error.code, error.reason, error.message, { ...error.details, retryAfterSeconds });
}

function statusOf(code: number, text: string): ApiError {
  try {
    const status = JSON.parse(text) as Partial<Status> | null;
    if (status?.kind === 'Status') return ApiError.fromStatus({ ...status, code: status.code ?? code });
  } catch {
    // Not every proxy on the way speaks Status.
  }
  return new ApiError(code, 'Unknown', `the server answered ${code}: ${text.slice(0, EXCERPT_LENGTH)}`);
}

async function* events<T extends KubeObject>(response: TransportResponse): AsyncGenerator<WatchEvent<T>> {
  for await (const line of readLines(response.body)) {
    if (line !== '') yield eventOf<T>(line);
  }
}

function eventOf<T extends KubeObject>(line: string): WatchEvent<T> {
  const event = parsed(line) as Partial<WatchEvent<T>> | null;
  const isEvent = typeof event?.type === 'string' && typeof event.object === 'object' && event.object !== null;
  if (!isEvent || (event.type !== 'ERROR' && typeof event.object.metadata !== 'object'))
    throw new TransportError(`the watch sent what is no event: ${line.slice(0, EXCERPT_LENGTH)}`);
  return event as WatchEvent<T>;
}
