import { apiVersionOf, parseApiVersion } from '../../api/meta.ts';
import type {
  DiscoveryGroup,
  DiscoveryResource,
  DiscoverySubresource,
  DiscoveryVersion,
  GroupVersionKind,
} from './groups.ts';

/** The older forms of discovery: APIGroupList, APIGroup and APIResourceList, one request per version. */

interface LegacyResource {
  readonly name: string;
  readonly singularName: string;
  readonly namespaced: boolean;
  readonly group?: string;
  readonly version?: string;
  readonly kind: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
}

/** metav1.APIGroup, without its own kind and apiVersion. */
export function legacyGroup(group: DiscoveryGroup): object {
  const versions = group.versions.map(({ version }) => ({ groupVersion: apiVersionOf(group.name, version), version }));
  return { name: group.name, versions, preferredVersion: versions[0] };
}

/** metav1.APIResourceList. */
export function legacyResources(group: string, version: DiscoveryVersion): object {
  return {
    kind: 'APIResourceList',
    // Absent for the core group on real servers too.
    ...(group === '' ? {} : { apiVersion: 'v1' }),
    groupVersion: apiVersionOf(group, version.version),
    resources: version.resources.flatMap((resource) => legacyEntries(resource, group, version.version)),
  };
}

function legacyEntries(resource: DiscoveryResource, group: string, version: string): LegacyResource[] {
  const { responseKind, shortNames, categories, verbs, subresources = [] } = resource;
  const namespaced = resource.scope === 'Namespaced';
  const entries: LegacyResource[] = subresources.map((subresource) => ({
    name: `${resource.resource}/${subresource.subresource}`,
    singularName: '',
    namespaced,
    ...foreign(subresource.responseKind, group, version),
    kind: subresource.responseKind.kind,
    verbs: subresource.verbs,
  }));
  // A server may offer subresources of what it does not serve itself.
  if (responseKind.kind === '') return entries;
  const own: LegacyResource = {
    name: resource.resource,
    singularName: resource.singularResource,
    namespaced,
    ...foreign(responseKind, group, version),
    kind: responseKind.kind,
    verbs,
    ...(shortNames ? { shortNames } : {}),
    ...(categories ? { categories } : {}),
  };
  return [own, ...entries];
}

/** Group and version are told only where they are not the list's own. */
function foreign(kind: GroupVersionKind, group: string, version: string): { group?: string; version?: string } {
  return kind.group === group && kind.version === version ? {} : { group: kind.group, version: kind.version };
}

/** What another server sent, before anyone has looked at it. */
type Unchecked = { readonly [field in keyof LegacyResource]?: unknown };

/** More resources than any server has; a list beyond it is not believed. */
const RESOURCES_MAX = 10_000;

/** Reads an APIResourceList that another server sent. Throws when it is none. */
export function parseLegacyResources(text: string): DiscoveryResource[] {
  const list = JSON.parse(text) as { kind?: unknown; groupVersion?: unknown; resources?: unknown } | null;
  if (list?.kind !== 'APIResourceList' || !Array.isArray(list.resources) || list.resources.length > RESOURCES_MAX) {
    throw new Error('the answer is not an APIResourceList');
  }
  const own = parseApiVersion(typeof list.groupVersion === 'string' ? list.groupVersion : '');
  const resources = new Map<string, DiscoveryResource & { subresources: DiscoverySubresource[] }>();
  for (const entry of list.resources as Unchecked[]) {
    const [plural = '', subresource] = textOf(entry.name).split('/', 2);
    const responseKind = {
      group: textOf(entry.group) || own.group,
      version: textOf(entry.version) || own.version,
      kind: textOf(entry.kind),
    };
    const known = resources.get(plural);
    if (subresource === undefined) {
      resources.set(plural, { ...resourceOf(entry, plural, responseKind), subresources: known?.subresources ?? [] });
      continue;
    }
    const parent = known ?? { ...resourceOf({ namespaced: entry.namespaced }, plural, NO_KIND), subresources: [] };
    parent.subresources.push({ subresource, responseKind, verbs: strings(entry.verbs) });
    resources.set(plural, parent);
  }
  return [...resources.values()];
}

const NO_KIND: GroupVersionKind = { group: '', version: '', kind: '' };

function resourceOf(
  entry: Unchecked,
  plural: string,
  responseKind: GroupVersionKind,
): Omit<DiscoveryResource, 'subresources'> {
  const shortNames = strings(entry.shortNames);
  const categories = strings(entry.categories);
  return {
    resource: plural,
    responseKind,
    scope: entry.namespaced === true ? 'Namespaced' : 'Cluster',
    singularResource: textOf(entry.singularName),
    verbs: strings(entry.verbs),
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((each): each is string => typeof each === 'string') : [];
}
