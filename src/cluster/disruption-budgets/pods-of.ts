import type { Informer } from '../../kube/informer.ts';
import { labelSelectorText, nothing, type Selector } from '../../machinery/selectors.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { labelIn } from '../indexes.ts';

/** An informer of pods with the indexes `byNamespace` and `byLabel`. */
export type PodSource = Pick<Informer<Pod>, 'byIndex' | 'countByIndex' | 'position' | 'listNotOlderThan'>;

/** Longer selectors are not sent: servers, and proxies before them, limit what a request line may hold. */
const SELECTOR_LENGTH_MAX = 2048;

/** The pods of a namespace that a selector selects, as far as the cache knows; costs what the rarest label finds. */
export function cachedPods(pods: PodSource, namespace: string, selector: Selector): readonly Pod[] {
  if (selector === nothing) return [];
  let find = (): readonly Pod[] => pods.byIndex('namespace', namespace);
  let fewest = pods.countByIndex('namespace', namespace);
  for (const { key, operator, values } of selector.requirements) {
    if (operator !== 'In') continue;
    const places = [...new Set(values)].map((value) => labelIn(namespace, key, value));
    const count = places.reduce((sum, place) => sum + pods.countByIndex('label', place), 0);
    if (count > fewest) continue;
    fewest = count;
    find = () => places.flatMap((place) => pods.byIndex('label', place));
  }
  return find().filter(({ metadata }) => selector.matches(metadata.labels));
}

/** The same as the server knows it, at least as of the given resourceVersion. */
export async function freshPods(
  pods: PodSource,
  namespace: string,
  selector: Selector,
  resourceVersion: string,
  signal: AbortSignal,
): Promise<readonly Pod[]> {
  if (selector === nothing) return [];
  const text = labelSelectorText(selector);
  const scope = text.length > SELECTOR_LENGTH_MAX ? { namespace } : { namespace, labelSelector: text };
  const found = await pods.listNotOlderThan(resourceVersion, scope, signal);
  return found.filter(({ metadata }) => selector.matches(metadata.labels));
}
