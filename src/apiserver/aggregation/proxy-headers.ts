import { badRequest } from '../../api/status.ts';
import type { UserInfo } from '../http/message.ts';

/** What passes between a client and a backend, and what never does. */

type Headers = { readonly [name: string]: string | readonly string[] | undefined };

/** Meant for one connection only (RFC 9110, 7.6.1). */
const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Ours to say or ours to know: a client that sets these would be believed, or its secrets handed on. */
const NOT_FORWARDED: ReadonlySet<string> = new Set(['host', 'authorization', 'cookie', 'content-length', 'expect']);
const NOT_FORWARDED_PREFIXES = ['x-remote-', 'x-forwarded-', 'impersonate-', ':'];

/** The client's headers as the backend gets them: who asks is told by us alone. */
export function requestHeaders(
  headers: Headers,
  user: UserInfo,
  remoteAddress: string,
): Record<string, string | readonly string[]> {
  const perConnection = connectionTokens(headers);
  const forwarded: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    const isDropped =
      value === undefined ||
      HOP_BY_HOP.has(name) ||
      perConnection.has(name) ||
      NOT_FORWARDED.has(name) ||
      NOT_FORWARDED_PREFIXES.some((prefix) => name.startsWith(prefix));
    if (!isDropped) forwarded[name] = value;
  }
  if (remoteAddress !== '') forwarded['x-forwarded-for'] = remoteAddress;
  return Object.assign(forwarded, userHeaders(user));
}

/** The backend's headers as the client gets them. The length is left out, since the server frames the body anew. */
export function responseHeaders(headers: Headers): Record<string, string | readonly string[]> {
  const perConnection = connectionTokens(headers);
  const forwarded: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || HOP_BY_HOP.has(name) || perConnection.has(name) || name === 'content-length') continue;
    forwarded[name] = value;
  }
  return forwarded;
}

/** Headers that ask for an upgrade: what `requestHeaders` leaves out of it, put back. */
export function upgradeHeaders(headers: Headers): Record<string, string> {
  const protocol = headers['upgrade'];
  return { connection: 'Upgrade', upgrade: typeof protocol === 'string' ? protocol : 'websocket' };
}

/** X-Remote-User and its like, which a backend believes from whoever holds the front-proxy certificate. */
export function userHeaders(user: UserInfo): Record<string, string | readonly string[]> {
  const headers: Record<string, string | readonly string[]> = { 'x-remote-user': headerValue(user.username) };
  if (user.uid) headers['x-remote-uid'] = headerValue(user.uid);
  if (user.groups.length > 0) headers['x-remote-group'] = user.groups.map(headerValue);
  for (const [key, values] of Object.entries(user.extra ?? {})) {
    if (values.length > 0) headers[`x-remote-extra-${escapeKey(key)}`] = values.map(headerValue);
  }
  return headers;
}

function connectionTokens(headers: Headers): ReadonlySet<string> {
  const value = headers['connection'];
  const text = typeof value === 'string' ? value : (value ?? []).join(',');
  return new Set(text.split(',').map((token) => token.trim().toLowerCase()));
}

/** Header values are bytes; ours are UTF-8, as Go's are. */
function headerValue(text: string): string {
  // oxlint-disable-next-line no-control-regex -- these are the characters that would end a header
  if (/[\u0000-\u0008\u000a-\u001f\u007f]/.test(text)) {
    throw badRequest('the name of the user or one of its groups cannot be sent to an aggregated server');
  }
  return Buffer.from(text, 'utf8').toString('latin1');
}

/** Percent-encodes what a header's name cannot hold, and the percent sign itself. */
function escapeKey(key: string): string {
  return [...Buffer.from(key.toLowerCase(), 'utf8')]
    .map((byte) => {
      const character = String.fromCharCode(byte);
      return /[!#$&'*+\-.^_`|~0-9a-z]/.test(character)
        ? character
        : `%${byte.toString(16).padStart(2, '0').toUpperCase()}`;
    })
    .join('');
}
