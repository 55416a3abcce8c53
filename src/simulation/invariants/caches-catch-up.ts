import { keyOf } from '../../kube/resource.ts';
import type { Invariant, ObservedCache, Unsettled } from '../invariant.ts';
import type { State } from '../observer.ts';

/** Whoever follows a resource ends up with exactly what is durable: nothing missing, nothing old, nothing that is gone. */
export function cachesCatchUp(): Invariant {
  return {
    name: 'caches-catch-up',
    unsettled: ({ state, caches }) => caches.flatMap((cache) => [...differences(cache, state)]),
  };
}

function* differences(cache: ObservedCache, state: State): Iterable<Unsettled> {
  const { owner, bucket, isWhole } = cache;
  for (const object of state.list(bucket)) {
    const key = keyOf(object);
    const known = cache.get(key)?.metadata.resourceVersion;
    const actual = object.metadata.resourceVersion;
    if (known !== actual && (known !== undefined || isWhole))
      yield { key, what: `${bucket} is at ${actual}; ${owner} knows ${known ?? 'nothing'} of it` };
  }
  for (const object of cache.list()) {
    const key = keyOf(object);
    if (!state.get(bucket, key)) yield { key, what: `${bucket} is gone; ${owner} still knows it` };
  }
}
