import { apiVersionOf } from '../../api/meta.ts';
import { ALL_VERBS, type ResourceDefinition, type SubresourceDefinition } from '../../api/resource.ts';
import { compareVersions, CUSTOM_PRIORITY, groupPriority } from './priority.ts';

/** What is served, as apidiscovery.k8s.io/v2 tells it; the older forms are derived from this one. */

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

export interface DiscoverySubresource {
  readonly subresource: string;
  readonly responseKind: GroupVersionKind;
  readonly verbs: readonly string[];
}

export interface DiscoveryResource {
  readonly resource: string;
  readonly responseKind: GroupVersionKind;
  readonly scope: 'Namespaced' | 'Cluster';
  readonly singularResource: string;
  readonly verbs: readonly string[];
  readonly shortNames?: readonly string[];
  readonly categories?: readonly string[];
  readonly subresources?: readonly DiscoverySubresource[];
}

export interface DiscoveryVersion {
  readonly version: string;
  readonly resources: readonly DiscoveryResource[];
  /** Stale: the server behind it did not answer, this is what it said last. */
  readonly freshness: 'Current' | 'Stale';
}

export interface DiscoveryGroup {
  /** Empty for the core group. */
  readonly name: string;
  /** The preferred version first. */
  readonly versions: readonly DiscoveryVersion[];
}

/** A group and version that another server serves through an APIService. */
export interface RemoteGroupVersion extends DiscoveryVersion {
  readonly group: string;
  readonly groupPriority: number;
  readonly versionPriority: number;
  /** The hash of its OpenAPI v3 document, if that server publishes one. */
  readonly openApiHash?: string;
}

interface Candidate {
  readonly version: DiscoveryVersion;
  readonly versionPriority: number;
}

/** What kube-apiserver gives to versions of custom resources, and close enough for the built-in ones. */
const LOCAL_VERSION_PRIORITY = 100;

/** All groups in order of priority. Where a remote server claims a version that is served here, it wins. */
export function groupsOf(
  definitions: readonly ResourceDefinition[],
  remotes: readonly RemoteGroupVersion[],
): DiscoveryGroup[] {
  const groups = new Map<string, { priority: number; versions: Map<string, Candidate> }>();
  const add = (group: string, priority: number, version: DiscoveryVersion, versionPriority: number): void => {
    const known = groups.get(group) ?? { priority, versions: new Map<string, Candidate>() };
    known.priority = Math.max(known.priority, priority);
    known.versions.set(version.version, { version, versionPriority });
    groups.set(group, known);
  };
  for (const [key, members] of byGroupVersion(definitions)) {
    const { group, version, custom } = members[0] ?? { group: '', version: key };
    const resources = [...members].sort((a, b) => (a.plural < b.plural ? -1 : 1)).map(resourceOf);
    const priority = custom ? CUSTOM_PRIORITY : groupPriority(group);
    add(group, priority, { version, resources, freshness: 'Current' }, LOCAL_VERSION_PRIORITY);
  }
  for (const { group, groupPriority: priority, versionPriority, version, resources, freshness } of remotes) {
    add(group, priority, { version, resources, freshness }, versionPriority);
  }
  return [...groups]
    .sort(([a, x], [b, y]) => y.priority - x.priority || (a < b ? -1 : 1))
    .map(([name, { versions }]) => ({ name, versions: [...versions.values()].sort(byPreference).map(versionOf) }));
}

const versionOf = (candidate: Candidate): DiscoveryVersion => candidate.version;

function byPreference(a: Candidate, b: Candidate): number {
  return b.versionPriority - a.versionPriority || compareVersions(a.version.version, b.version.version);
}

/** Definitions by `group/version`, in the order in which each was first met. */
export function byGroupVersion(definitions: readonly ResourceDefinition[]): Map<string, ResourceDefinition[]> {
  const grouped = new Map<string, ResourceDefinition[]>();
  for (const definition of definitions) {
    const key = apiVersionOf(definition.group, definition.version);
    const members = grouped.get(key);
    if (members) members.push(definition);
    else grouped.set(key, [definition]);
  }
  return grouped;
}

function resourceOf(definition: ResourceDefinition): DiscoveryResource {
  const { group, version, kind, shortNames = [], categories = [], subresources = [] } = definition;
  const sorted = [...subresources].sort((a, b) => (a.name < b.name ? -1 : 1));
  return {
    resource: definition.plural,
    responseKind: { group, version, kind },
    scope: definition.namespaced ? 'Namespaced' : 'Cluster',
    singularResource: definition.singular,
    verbs: definition.verbs ?? ALL_VERBS,
    ...(shortNames.length > 0 ? { shortNames } : {}),
    ...(categories.length > 0 ? { categories } : {}),
    ...(sorted.length > 0 ? { subresources: sorted.map((each) => subresourceOf(definition, each)) } : {}),
  };
}

function subresourceOf(parent: ResourceDefinition, subresource: SubresourceDefinition): DiscoverySubresource {
  return {
    subresource: subresource.name,
    responseKind: kindOfSubresource(parent, subresource),
    verbs: subresource.verbs,
  };
}

/** The kind that a subresource speaks; its parent's unless it says otherwise. */
export function kindOfSubresource(parent: ResourceDefinition, subresource: SubresourceDefinition): GroupVersionKind {
  return {
    group: subresource.group ?? parent.group,
    version: subresource.version ?? parent.version,
    kind: subresource.kind ?? parent.kind,
  };
}
