import { closeSync, fstatSync, openSync, readSync, statSync } from 'node:fs';

/** What an API server was asked, by its own audit log. */

/** Requests by who asked and for what, such as `PATCH pods/status`; those that were refused have the code besides. */
export type Requests = ReadonlyMap<string, ReadonlyMap<string, number>>;

interface AuditEvent {
  readonly verb: string;
  readonly user: { readonly username: string };
  readonly objectRef?: { readonly resource?: string; readonly subresource?: string };
  readonly responseStatus?: { readonly code?: number };
}

/** As HTTP has them, and as the rival's are counted. */
const METHODS: ReadonlyMap<string, string> = new Map([
  ['create', 'POST'],
  ['update', 'PUT'],
  ['patch', 'PATCH'],
  ['get', 'GET'],
  ['list', 'LIST'],
  ['delete', 'DELETE'],
  ['deletecollection', 'DELETE'],
]);

/** Whose requests they are, by the beginning of the user's name. */
const CLIENTS: readonly (readonly [prefix: string, client: string])[] = [
  ['system:serviceaccount:kubevirt:godwit-controller', 'controllers'],
  ['system:serviceaccount:kubevirt:godwit-extension', 'extension'],
  ['system:node:', 'agents'],
  ['system:kube-scheduler', 'kube-scheduler'],
  ['system:serviceaccount:kube-system:', 'kube-controller-manager'],
  ['system:kube-controller-manager', 'kube-controller-manager'],
  ['kubernetes-admin', 'user'],
];

/** How much of the log there is by now. */
export function logLength(path: string): number {
  return statSync(path).size;
}

/** All that was asked and answered since the log had this length. What was not about objects, and watches, do not count. */
export function requestsSince(path: string, length: number): Requests {
  const requests = new Map<string, Map<string, number>>();
  for (const line of tailOf(path, length).split('\n')) {
    if (line === '') continue;
    const { verb, user, objectRef, responseStatus } = JSON.parse(line) as AuditEvent;
    const method = METHODS.get(verb);
    const client = CLIENTS.find(([prefix]) => user.username.startsWith(prefix))?.[1];
    if (method === undefined || client === undefined || objectRef?.resource === undefined) continue;
    const { resource, subresource } = objectRef;
    const code = responseStatus?.code ?? 0;
    const what = [
      `${method} ${resource}${subresource === undefined ? '' : `/${subresource}`}`,
      ...(code >= 400 ? [`(${code})`] : []),
    ].join(' ');
    const counts = requests.get(client) ?? new Map<string, number>();
    counts.set(what, (counts.get(what) ?? 0) + 1);
    requests.set(client, counts);
  }
  return requests;
}

function tailOf(path: string, from: number): string {
  const file = openSync(path, 'r');
  try {
    const bytes = Buffer.alloc(fstatSync(file).size - from);
    const read = readSync(file, bytes, 0, bytes.length, from);
    const text = bytes.toString('utf8', 0, read);
    // The last line may be half written.
    return text.slice(0, text.lastIndexOf('\n') + 1);
  } finally {
    closeSync(file);
  }
}
