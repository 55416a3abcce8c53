import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import type { DiscoveredResource } from '../../kube/discovery.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Pod } from '../../migration/fit/objects.ts';

/** How long objects that a finalizer holds are given before somebody looks again. */
const FINALIZER_SECONDS = 15;

/** What is left of one resource after its objects were asked to go. */
export interface Remains {
  readonly count: number;
  /** The resourceVersion as of which there were that many. */
  readonly version: string;
  /** How many of them each finalizer holds. */
  readonly finalizers: ReadonlyMap<string, number>;
  /** How long it may take until they are gone; 0 where nobody knows. */
  readonly seconds: number;
  /** What went wrong, if something did. */
  readonly failure?: string;
}

/** Nothing, or nobody knows what. */
export const NOTHING: Remains = { count: 0, version: '', finalizers: new Map(), seconds: 0 };

/**
 * Deletes all objects of one resource in a namespace, and looks for what is left. Rejects only when the signal aborts:
 * what goes wrong with one resource must not keep the others.
 *
 * `graceSeconds` is how long these objects may take by themselves.
 */
export async function deleteContent(
  client: Client,
  resource: DiscoveredResource,
  namespace: string,
  graceSeconds: number,
  signal: AbortSignal,
): Promise<Remains> {
  try {
    await deleteAll(client, resource, namespace, signal);
    const left = await listed(client, resource, namespace, signal);
    return left.items.length === 0 ? NOTHING : remainsOf(left, resource, namespace, graceSeconds);
  } catch (error) {
    signal.throwIfAborted();
    return { ...NOTHING, seconds: graceSeconds, failure: messageOf(error) };
  }
}

/** How long the pods may take that still run, at most: as long as the most patient of them. */
export function graceSecondsOf(pods: Iterable<Pod>): number {
  let seconds = 0;
  for (const { spec, status } of pods) {
    if (status?.phase === 'Succeeded' || status?.phase === 'Failed') continue;
    seconds = Math.max(seconds, spec?.terminationGracePeriodSeconds ?? 0);
  }
  return seconds;
}

/** The text of an error as people are shown it. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function deleteAll(
  client: Client,
  resource: DiscoveredResource,
  namespace: string,
  signal: AbortSignal,
): Promise<void> {
  // What else is in the namespace goes as well: nothing may be left to a garbage collector, or be made an orphan.
  const options = { propagationPolicy: 'Background' } as const;
  if (resource.verbs.includes('deletecollection')) {
    const isDone = await unlessUnknown(client.deleteCollection(resource, { namespace }, signal, options));
    if (isDone) return;
  }
  for (const { metadata } of (await listed(client, resource, namespace, signal)).items) {
    await unlessUnknown(client.delete(resource, namespace, metadata.name ?? '', signal, options));
  }
}

async function listed(
  client: Client,
  resource: DiscoveredResource,
  namespace: string,
  signal: AbortSignal,
): Promise<Listed> {
  if (!resource.verbs.includes('list')) return { items: [], version: '' };
  const list = await unlessUnknown(client.metadataOnly().list(resource as Resource, { namespace }, signal));
  return { items: list?.value.items ?? [], version: list?.value.metadata.resourceVersion ?? '' };
}

interface Listed {
  readonly items: readonly KubeObject[];
  readonly version: string;
}

/** What a server answers; undefined where it does not know what it was asked for, or not how to do it. */
async function unlessUnknown<T>(answer: Promise<T>): Promise<{ readonly value: T } | undefined> {
  try {
    return { value: await answer };
  } catch (error) {
    if (error instanceof ApiError && (error.code === 404 || error.code === 405)) return undefined;
    throw error;
  }
}

function remainsOf(
  { items, version: listVersion }: Listed,
  { group, version, plural }: Resource,
  namespace: string,
  graceSeconds: number,
): Remains {
  const finalizers = new Map<string, number>();
  for (const { metadata } of items) {
    for (const each of metadata.finalizers ?? []) finalizers.set(each, (finalizers.get(each) ?? 0) + 1);
  }
  const remains = { count: items.length, version: listVersion, finalizers };
  if (graceSeconds > 0) return { ...remains, seconds: graceSeconds };
  if (finalizers.size > 0) return { ...remains, seconds: FINALIZER_SECONDS };
  const what = `${group}/${version}, Resource=${plural}`;
  const failure = `unexpected items still remain in namespace: ${namespace} for gvr: ${what}`;
  return { ...remains, seconds: 0, failure };
}
