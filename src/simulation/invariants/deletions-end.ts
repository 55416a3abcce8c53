import { keyOf } from '../../kube/resource.ts';
import type { Invariant, Unsettled } from '../invariant.ts';

/** What is being deleted is gone in the end. */
export function deletionsEnd(): Invariant {
  return {
    name: 'deletions-end',
    unsettled({ state, buckets }) {
      const found: Unsettled[] = [];
      for (const bucket of buckets) {
        for (const object of state.list(bucket)) {
          const { deletionTimestamp, finalizers = [] } = object.metadata;
          if (deletionTimestamp === undefined) continue;
          const held = finalizers.length > 0 ? `, held by ${finalizers.join(', ')}` : '';
          found.push({ key: keyOf(object), what: `${bucket} deleted at ${deletionTimestamp} and still there${held}` });
        }
      }
      return found;
    },
  };
}
