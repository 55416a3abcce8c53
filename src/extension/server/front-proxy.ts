import type { KubeObject } from '../../api/meta.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import type { ExtensionRequest } from './message.ts';

/** Whom to believe who a request comes from: the API server publishes that for all servers behind it. */

/** Who asks, as the API server authenticated them. */
export interface UserInfo {
  readonly username: string;
  readonly uid?: string;
  readonly groups: readonly string[];
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

export interface FrontProxyTrust {
  /** PEM of the authority whose clients may name users. */
  readonly proxyAuthorityPem: string;
  /** Those of its clients that may; all of them where empty. */
  readonly allowedNames: readonly string[];
  /** PEM of the cluster's own authority, which signs the certificates of nodes. */
  readonly clusterAuthorityPem: string;
  readonly usernameHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
}

interface ConfigMap extends KubeObject {
  data?: Record<string, string>;
}

const configMaps: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};

/** Where every API server publishes it. */
const PUBLISHED = { namespace: 'kube-system', name: 'extension-apiserver-authentication' };

/** Reads what the API server publishes now. */
export async function readTrust(client: Client, signal: AbortSignal): Promise<FrontProxyTrust> {
  return trustOf(await client.get(configMaps, PUBLISHED.namespace, PUBLISHED.name, signal));
}

/** What is published, taken apart. Throws where it does not say whom to believe. */
export function trustOf({ data = {} }: ConfigMap): FrontProxyTrust {
  const text = (key: string): string => (Object.hasOwn(data, key) ? (data[key] ?? '') : '');
  const proxyAuthorityPem = text('requestheader-client-ca-file');
  const usernameHeaders = namesIn(text('requestheader-username-headers'));
  if (proxyAuthorityPem === '' || usernameHeaders.length === 0)
    throw new Error(`${PUBLISHED.namespace}/${PUBLISHED.name} names no front proxy: aggregation is not configured`);
  return {
    proxyAuthorityPem,
    clusterAuthorityPem: text('client-ca-file'),
    allowedNames: namesIn(text('requestheader-allowed-names')),
    usernameHeaders: usernameHeaders.map((name) => name.toLowerCase()),
    uidHeaders: namesIn(text('requestheader-uid-headers')).map((name) => name.toLowerCase()),
    groupHeaders: namesIn(text('requestheader-group-headers')).map((name) => name.toLowerCase()),
    extraHeaderPrefixes: namesIn(text('requestheader-extra-headers-prefix')).map((name) => name.toLowerCase()),
  };
}

function namesIn(text: string): string[] {
  if (text === '') return [];
  const names: unknown = JSON.parse(text);
  return Array.isArray(names) ? names.filter((name): name is string => typeof name === 'string') : [];
}

/** Who asks; undefined where nobody who may say so says it. */
export function userOf(trust: FrontProxyTrust, request: ExtensionRequest): UserInfo | undefined {
  const { clientName, headers } = request;
  if (clientName === undefined) return undefined;
  if (trust.allowedNames.length > 0 && !trust.allowedNames.includes(clientName)) return undefined;
  const first = (names: readonly string[]): string | undefined =>
    names.map((name) => headers[name]?.[0]).find((value) => value !== undefined && value !== '');
  const username = first(trust.usernameHeaders);
  if (username === undefined) return undefined;
  const uid = first(trust.uidHeaders);
  const extra = extraOf(trust, headers);
  return {
    username: decoded(username),
    ...(uid === undefined ? {} : { uid: decoded(uid) }),
    groups: trust.groupHeaders.flatMap((name) => headers[name] ?? []).map(decoded),
    ...(Object.keys(extra).length === 0 ? {} : { extra }),
  };
}

function extraOf(
  { extraHeaderPrefixes }: FrontProxyTrust,
  headers: ExtensionRequest['headers'],
): Record<string, readonly string[]> {
  const extra: [string, readonly string[]][] = [];
  for (const [name, values = []] of Object.entries(headers)) {
    const prefix = extraHeaderPrefixes.find((each) => name.startsWith(each));
    if (prefix !== undefined) extra.push([unescaped(name.slice(prefix.length)), values.map(decoded)]);
  }
  return Object.fromEntries(extra);
}

/** Headers are bytes, of which Node makes characters one by one; what they say is UTF-8. */
function decoded(value: string): string {
  return Buffer.from(value, 'latin1').toString('utf8');
}

function unescaped(key: string): string {
  try {
    return decodeURIComponent(key);
  } catch {
    // Nothing that was escaped: it means itself.
    return key;
  }
}
