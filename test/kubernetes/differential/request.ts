import type { Anything } from '../../support/api.ts';

/**
 * One request of the table. Strings in its path, headers and body may hold `$ns`, a name that belongs to its group alone, and
 * `{{saved.metadata.uid}}`, what the same server answered to an earlier request of the group.
 */
export interface Request {
  /** Says what is asked; unique within its group. */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  /** Sent as JSON unless it is text or bytes. */
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  /** Under which name later requests find the answer. */
  readonly save?: string;
  /** A watch: the answer is its first so many events; where that is none, all that come until the server ends it. */
  readonly events?: number;
  /** What is compared of a body that is too large to be compared whole. */
  readonly view?: (body: Anything) => unknown;
  /** Asked again until this holds, since something else has to take notice first. */
  readonly until?: (answer: { readonly status: number; readonly body: Anything }) => boolean;
  /** With which status it is meant to be refused: two servers may agree about a misspelt request as well. */
  readonly refused?: number;
  /** Whether the answer is compared; a request that only sets the scene is not. */
  readonly compared: boolean;
}

/** Requests that build on each other. */
export interface Group {
  readonly name: string;
  readonly requests: readonly Request[];
}

type Extra = Partial<Omit<Request, 'name' | 'method' | 'path' | 'body'>>;

type Body = (name: string, path: string, body?: unknown, extra?: Extra) => Request;

interface Requests {
  readonly post: Body;
  readonly put: Body;
  readonly remove: Body;
  readonly get: (name: string, path: string, extra?: Extra) => Request;
  /** Any method. */
  readonly send: (method: string, ...rest: Parameters<Body>) => Request;
  /** The first so many events of a watch, or its end. */
  readonly watch: (name: string, path: string, events: number, extra?: Extra) => Request;
  readonly jsonPatch: Body;
  readonly mergePatch: Body;
  readonly strategicPatch: Body;
  readonly apply: Body;
}

function requests(common: Extra): Requests {
  const request =
    (method: string): Body =>
    (name, path, body, extra = {}) => ({
      name,
      method,
      path,
      compared: true,
      ...common,
      ...(body === undefined ? {} : { body }),
      ...extra,
    });
  const get: Requests['get'] = (name, path, extra) => request('GET')(name, path, undefined, extra);
  const patch =
    (type: string): Body =>
    (name, path, body, extra = {}) =>
      request('PATCH')(name, path, body, {
        ...extra,
        headers: { 'content-type': `application/${type}`, ...extra.headers },
      });
  return {
    post: request('POST'),
    put: request('PUT'),
    remove: request('DELETE'),
    get,
    send: (method, ...rest) => request(method)(...rest),
    watch: (name, path, events, extra) => get(name, path, { events, ...extra }),
    jsonPatch: patch('json-patch+json'),
    mergePatch: patch('merge-patch+json'),
    strategicPatch: patch('strategic-merge-patch+json'),
    apply: patch('apply-patch+yaml'),
  };
}

export const { post, put, remove, get, send, watch, jsonPatch, mergePatch, strategicPatch, apply } = requests({});

/** The same requests, meant to be refused with this status. */
export const refused = (status: number): Requests => requests({ refused: status });

/** An object without some of its members. */
export function without(object: Anything, ...keys: readonly string[]): Anything {
  return Object.fromEntries(Object.entries(object).filter(([key]) => !keys.includes(key)));
}

/** The same request, only to set the scene. */
export const silently = (requests: Request): Request => ({ ...requests, compared: false });

/** What other group's requests are about: a namespace of their own, which has the account that pods need. */
export const inNamespace = (requests: readonly Request[]): Request[] => [
  silently(post('makes the namespace', '/api/v1/namespaces', { metadata: { name: '$ns' } })),
  // Where a controller makes it as well, either may come first.
  silently(
    post(
      'makes the account',
      '/api/v1/namespaces/$ns/serviceaccounts',
      { metadata: { name: 'default' } },
      {
        until: ({ status }) => status === 201 || status === 409,
      },
    ),
  ),
  ...requests,
];

/** The same with a node of that name, on which nobody runs anything: pods of nodes that are not there are collected. */
export const onNode = (requests: readonly Request[]): Request[] =>
  inNamespace([silently(post('makes the node', '/api/v1/nodes', { metadata: { name: '$ns' } })), ...requests]);
