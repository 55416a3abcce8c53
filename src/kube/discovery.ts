import { apiVersionOf, parseApiVersion } from '../api/meta.ts';
import type { Client } from './client.ts';
import { errorText } from './error-text.ts';
import type { Resource } from './resource.ts';

/** What a server serves, and in which versions: for those who have to do with all kinds, also those yet to be invented. */

export interface DiscoveredResource extends Resource {
  readonly verbs: readonly string[];
}

export interface Discovery {
  /** Every version of every resource; the one that the server prefers before the others of the same resource. */
  readonly resources: readonly DiscoveredResource[];
  /** Groups and versions (`group/version`) that are served in principle, but not described now; and why not. */
  readonly failures: ReadonlyMap<string, string>;
}

interface AggregatedGroups {
  readonly kind: string;
  readonly items?: readonly {
    readonly metadata?: { readonly name?: string };
    readonly versions?: readonly AggregatedVersion[];
  }[];
}

interface AggregatedVersion {
  readonly version: string;
  readonly freshness?: string;
  readonly resources?: readonly {
    readonly resource: string;
    readonly responseKind?: { readonly kind?: string };
    readonly scope: string;
    readonly verbs?: readonly string[];
  }[];
}

/** The older form, one document per version. */
interface ResourceList {
  readonly resources?: readonly {
    readonly name: string;
    readonly kind: string;
    readonly namespaced: boolean;
    readonly verbs?: readonly string[];
  }[];
}

interface GroupList {
  readonly kind: string;
  readonly groups?: readonly {
    readonly name: string;
    readonly versions: readonly { readonly version: string }[];
    readonly preferredVersion?: { readonly version: string };
  }[];
}

interface CoreVersions {
  readonly kind: string;
  readonly versions?: readonly string[];
}

const AGGREGATED = ['v2', 'v2beta1'].map(
  (version) => `application/json;g=apidiscovery.k8s.io;v=${version};as=APIGroupDiscoveryList`,
);
const ACCEPT = [...AGGREGATED, 'application/json'].join(',');

/** Asks for all that is served. Rejects where the server does not say; what it says of some groups alone is no failure. */
export async function discover(client: Client, signal: AbortSignal): Promise<Discovery> {
  const resources: DiscoveredResource[] = [];
  const failures = new Map<string, string>();
  for (const root of ['/api', '/apis']) {
    const answer = await client.getPath<AggregatedGroups | GroupList | CoreVersions>(root, signal, { accept: ACCEPT });
    if (answer.kind === 'APIGroupDiscoveryList') readAggregated(answer as AggregatedGroups, resources, failures);
    else await readEach(client, versionsOf(answer), { resources, failures }, signal);
  }
  return { resources, failures };
}

/** Each resource once, in the version that the server prefers. */
export function preferredResources(discovery: Discovery): DiscoveredResource[] {
  const preferred = new Map<string, DiscoveredResource>();
  for (const resource of discovery.resources) {
    const id = `${resource.plural}.${resource.group}`;
    if (!preferred.has(id)) preferred.set(id, resource);
  }
  return [...preferred.values()];
}

/** The failures in one sentence, as client-go puts it. */
export function failureText(failures: Discovery['failures']): string {
  const each = [...failures].map(([groupVersion, why]) => `${groupVersion}: ${why}`).toSorted();
  return `unable to retrieve the complete list of server APIs: ${each.join(', ')}`;
}

function readAggregated(
  { items = [] }: AggregatedGroups,
  resources: DiscoveredResource[],
  failures: Map<string, string>,
): void {
  for (const { metadata, versions = [] } of items) {
    const group = metadata?.name ?? '';
    for (const { version, freshness, resources: described = [] } of versions) {
      const groupVersion = apiVersionOf(group, version);
      if (freshness === 'Stale') {
        failures.set(groupVersion, `stale GroupVersion discovery: ${groupVersion}`);
        continue;
      }
      for (const { resource: plural, responseKind, scope, verbs = [] } of described) {
        // What says no kind is there for its subresources alone.
        const kind = responseKind?.kind ?? '';
        if (kind !== '') resources.push({ group, version, plural, kind, namespaced: scope === 'Namespaced', verbs });
      }
    }
  }
}

/** What the older form says is served, the preferred version of each group first. */
function versionsOf(answer: GroupList | CoreVersions): string[] {
  if ('versions' in answer) return [...(answer.versions ?? [])];
  const { groups = [] } = answer as GroupList;
  return groups.flatMap(({ name, versions, preferredVersion }) => {
    const preferred = preferredVersion?.version ?? versions[0]?.version;
    const all = versions.map(({ version }) => version);
    const ordered = all.filter((each) => each === preferred).concat(all.filter((each) => each !== preferred));
    return ordered.map((version) => apiVersionOf(name, version));
  });
}

async function readEach(
  client: Client,
  groupVersions: readonly string[],
  found: { readonly resources: DiscoveredResource[]; readonly failures: Map<string, string> },
  signal: AbortSignal,
): Promise<void> {
  const answers = await Promise.allSettled(
    groupVersions.map((each) =>
      client.getPath<ResourceList>(`${each.includes('/') ? '/apis' : '/api'}/${each}`, signal),
    ),
  );
  for (const [index, answer] of answers.entries()) {
    const groupVersion = groupVersions[index] ?? '';
    if (answer.status === 'rejected') {
      found.failures.set(groupVersion, errorText(answer.reason));
      continue;
    }
    for (const { name: plural, kind, namespaced, verbs = [] } of answer.value.resources ?? []) {
      if (!plural.includes('/'))
        found.resources.push({ ...parseApiVersion(groupVersion), plural, kind, namespaced, verbs });
    }
  }
}
