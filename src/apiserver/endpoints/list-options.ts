import { type FieldError, forbidden, notSupported } from '../../api/field-error.ts';
import { ApiError, badRequest, invalidObject } from '../../api/status.ts';
import { isTrue } from '../http/request-info.ts';
import type { Store } from '../storage/store.ts';

/** The parameters of lists and watches, checked in kube-apiserver's order and refused in its words. */

/** Where a list goes on. */
export interface Continuation {
  /** The revision of the whole list; undefined where the client has accepted that its end is newer than its beginning. */
  readonly revision: number | undefined;
  /** The last key that was listed. */
  readonly after: string;
}

export interface ListOptions {
  /** Undefined when unset or "0", both of which mean "as new as you have". */
  readonly revision: number | undefined;
  readonly match: '' | 'Exact' | 'NotOlderThan';
  readonly limit: number | undefined;
  readonly continuation: Continuation | undefined;
}

export interface WatchOptions {
  readonly since: number | undefined;
  readonly sendInitialEvents: boolean;
  readonly allowBookmarks: boolean;
  /** Undefined to leave it to the server. */
  readonly timeoutMs: number | undefined;
}

const TOKEN_VERSION = 'godwit.dev/v1';
const NEWEST = -1;

/** Reads the parameters of a list. Throws 400 for what cannot be read and 422 for what does not go together. */
export function listOptionsOf(query: URLSearchParams): ListOptions {
  const text = query.get('resourceVersion') ?? '';
  const match = query.get('resourceVersionMatch') ?? '';
  const token = query.get('continue') ?? '';
  const errors: FieldError[] = [];
  if (match !== '') {
    if (text === '')
      errors.push(
        forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden unless resourceVersion is provided'),
      );
    if (token !== '')
      errors.push(forbidden('resourceVersionMatch', 'resourceVersionMatch is forbidden when continue is provided'));
    if (match !== 'Exact' && match !== 'NotOlderThan')
      errors.push(notSupported('resourceVersionMatch', match, ['Exact', 'NotOlderThan', '']));
    if (match === 'Exact' && text === '0')
      errors.push(
        forbidden('resourceVersionMatch', 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'),
      );
  }
  if (query.has('sendInitialEvents'))
    errors.push(forbidden('sendInitialEvents', 'sendInitialEvents is forbidden for list'));
  refuse(errors);
  const revision = revisionOf(text);
  if (token !== '' && revision !== undefined)
    throw badRequest('specifying resource version is not allowed when using continue');
  return {
    revision,
    match: match as ListOptions['match'],
    limit: wholeNumber(query, 'limit'),
    continuation: token === '' ? undefined : decodeContinue(token),
  };
}

/** Reads the parameters of a watch. Throws as `listOptionsOf` does. */
export function watchOptionsOf(query: URLSearchParams): WatchOptions {
  const match = query.get('resourceVersionMatch') ?? '';
  const isInitialSaid = query.has('sendInitialEvents');
  const errors: FieldError[] = [];
  if (isInitialSaid && match !== 'NotOlderThan')
    errors.push(
      forbidden('resourceVersionMatch', 'sendInitialEvents requires setting resourceVersionMatch to NotOlderThan'),
    );
  if (match !== '' && !isInitialSaid)
    errors.push(
      forbidden(
        'resourceVersionMatch',
        'resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided',
      ),
    );
  if (match !== '' && match !== 'NotOlderThan')
    errors.push(notSupported('resourceVersionMatch', match, ['NotOlderThan']));
  refuse(errors);
  const since = revisionOf(query.get('resourceVersion'));
  const seconds = wholeNumber(query, 'timeoutSeconds');
  return {
    since,
    // Old clients begin a watch at no revision in particular and expect to be told what there is.
    sendInitialEvents: isInitialSaid ? isTrue(query.get('sendInitialEvents')) : since === undefined,
    allowBookmarks: isTrue(query.get('allowWatchBookmarks')),
    timeoutMs: seconds === undefined ? undefined : seconds * 1000,
  };
}

/** A resourceVersion parameter as a revision. */
export function revisionOf(text: string | null): number | undefined {
  if (text === null || text === '' || text === '0') return undefined;
  if (!/^\d{1,15}$/.test(text)) {
    const reason = `strconv.ParseUint: parsing ${JSON.stringify(text)}: invalid syntax`;
    throw badRequest(`invalid resource version: resourceVersion: Invalid value: ${JSON.stringify(text)}: ${reason}`);
  }
  return Number(text);
}

/** Refuses a revision from the future: it belongs to another server, or to one that lost its data. */
export function refuseFuture(store: Store, revision: number | undefined): void {
  if (revision === undefined || revision <= store.revision) return;
  throw new ApiError(504, 'Timeout', `Timeout: Too large resource version: ${revision}, current: ${store.revision}`, {
    causes: [{ reason: 'ResourceVersionTooLarge', message: 'Too large resource version' }],
    retryAfterSeconds: 1,
  });
}

/** The token with which a client asks for the next page. */
export function encodeContinue({ revision, after }: Continuation): string {
  return Buffer.from(JSON.stringify({ v: TOKEN_VERSION, rv: revision ?? NEWEST, start: after })).toString('base64url');
}

function decodeContinue(token: string): Continuation {
  const refused = (cause?: unknown): ApiError =>
    badRequest('invalid continue token: continue key is not valid: it was not given out by this server', cause);
  let value: { v?: unknown; rv?: unknown; start?: unknown } | null;
  try {
    value = JSON.parse(Buffer.from(token, 'base64url').toString('utf8')) as typeof value;
  } catch (error) {
    throw refused(error);
  }
  const { v, rv, start } = value ?? {};
  if (v !== TOKEN_VERSION || !Number.isSafeInteger(rv) || typeof start !== 'string') throw refused();
  const revision = rv as number;
  if (revision <= 0 && revision !== NEWEST) throw refused();
  return { revision: revision === NEWEST ? undefined : revision, after: start };
}

function wholeNumber(query: URLSearchParams, name: string): number | undefined {
  const text = query.get(name);
  if (text === null || text === '') return undefined;
  if (!/^-?\d{1,18}$/.test(text)) throw badRequest(`strconv.ParseInt: parsing ${JSON.stringify(text)}: invalid syntax`);
  // Less than one is no limit.
  return Number(text) > 0 ? Number(text) : undefined;
}

function refuse(errors: readonly FieldError[]): void {
  if (errors.length > 0) throw invalidObject('meta.k8s.io', 'ListOptions', '', errors);
}
