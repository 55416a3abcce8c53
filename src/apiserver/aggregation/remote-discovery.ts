import type { DiscoveryResource, GroupVersionKind } from '../discovery/groups.ts';
import { parseLegacyResources } from '../discovery/legacy.ts';

/** What a backend says that it serves. Backends are others' code: nothing is taken on trust. */

export interface RemoteDocuments {
  readonly resources: readonly DiscoveryResource[];
  /** The hash of its OpenAPI v3 document, if it publishes one. */
  readonly openApiHash?: string;
}

/** A whole answer of a backend. */
export interface RemoteAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
}

/** Gets a path of the backend as the aggregator; rejects when no whole answer came. */
export type FetchRemote = (path: string, accept: string) => Promise<RemoteAnswer>;

const AGGREGATED = ['v2', 'v2beta1'].map(
  (version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
);

/**
 * Asks a backend for the resources of a group and version: the version's own document must be there, for it is what
 * clients will ask for; the aggregated one tells the same and more where a backend has it.
 */
export async function fetchRemoteDocuments(
  fetch: FetchRemote,
  group: string,
  version: string,
): Promise<RemoteDocuments> {
  const path = `/apis/${group}/${version}`;
  const own = await fetch(path, 'application/json');
  if (own.status < 200 || own.status >= 300) throw new Error(`bad status from ${path}: ${own.status}`);
  const resources = (await aggregated(fetch, group, version)) ?? parseLegacyResources(own.text);
  const openApiHash = await hashOf(fetch, `apis/${group}/${version}`);
  return openApiHash === undefined ? { resources } : { resources, openApiHash };
}

async function aggregated(
  fetch: FetchRemote,
  group: string,
  version: string,
): Promise<readonly DiscoveryResource[] | undefined> {
  try {
    const answer = await fetch('/apis', [...AGGREGATED, 'application/json'].join(','));
    if (answer.status !== 200 || !/as=APIGroupDiscoveryList/.test(answer.contentType)) return undefined;
    return parseAggregatedResources(answer.text, group, version);
  } catch {
    // Its absence costs nothing: the older form has been read already.
    return undefined;
  }
}

async function hashOf(fetch: FetchRemote, name: string): Promise<string | undefined> {
  try {
    const answer = await fetch('/openapi/v3', 'application/json');
    if (answer.status !== 200) return undefined;
    const url = fieldsOf(fieldsOf(fieldsOf(JSON.parse(answer.text))['paths'])[name])['serverRelativeURL'];
    return typeof url === 'string' ? (/[?&]hash=([0-9A-Za-z]{1,256})\b/.exec(url)?.[1] ?? undefined) : undefined;
  } catch {
    // Its absence costs nothing but `kubectl explain`.
    return undefined;
  }
}

/** The resources of one group and version in an APIGroupDiscoveryList; undefined where it does not have them. */
function parseAggregatedResources(text: string, group: string, version: string): DiscoveryResource[] | undefined {
  const found = itemsOf(fieldsOf(JSON.parse(text))['items'])
    .filter((item) => fieldsOf(item['metadata'])['name'] === group)
    .flatMap((item) => itemsOf(item['versions']))
    .find((each) => each['version'] === version);
  return found && itemsOf(found['resources']).map((entry) => resourceOf(entry, group, version));
}

function resourceOf(entry: Fields, group: string, version: string): DiscoveryResource {
  const shortNames = stringsOf(entry['shortNames']);
  const categories = stringsOf(entry['categories']);
  const subresources = itemsOf(entry['subresources']).map((each) => ({
    subresource: textOf(each['subresource']),
    responseKind: kindOf(each['responseKind'], group, version),
    verbs: stringsOf(each['verbs']),
  }));
  return {
    resource: textOf(entry['resource']),
    responseKind: kindOf(entry['responseKind'], group, version),
    scope: entry['scope'] === 'Namespaced' ? 'Namespaced' : 'Cluster',
    singularResource: textOf(entry['singularResource']),
    verbs: stringsOf(entry['verbs']),
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(subresources.length > 0 ? { subresources } : {}),
  };
}

type Fields = { readonly [field: string]: unknown };

function fieldsOf(value: unknown): Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function itemsOf(value: unknown): Fields[] {
  return Array.isArray(value) ? value.map(fieldsOf) : [];
}

function stringsOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** Some servers leave out the group and version of what is in their own. */
function kindOf(value: unknown, ownGroup: string, ownVersion: string): GroupVersionKind {
  const kind = textOf(fieldsOf(value)['kind']);
  const group = textOf(fieldsOf(value)['group']);
  const version = textOf(fieldsOf(value)['version']);
  return kind === '' || version !== '' ? { group, version, kind } : { group: ownGroup, version: ownVersion, kind };
}
