import type { KubeObject } from '../../api/meta.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Invariant, Unsettled } from '../invariant.ts';
import type { State } from '../observer.ts';

/** In the end nothing is left whose owners are all gone, and nothing in a namespace that is gone. */
export function garbageSettles(): Invariant {
  return {
    name: 'garbage-settles',
    unsettled: ({ state, buckets }) => {
      const uids = new Set<string>();
      for (const bucket of buckets) for (const { metadata } of state.list(bucket)) uids.add(metadata.uid ?? '');
      return buckets.flatMap((bucket) =>
        [...state.list(bucket)].flatMap((object): Unsettled[] => {
          const what = garbage(object, uids, state);
          return what === undefined ? [] : [{ key: keyOf(object), what: `${bucket} ${what}` }];
        }),
      );
    },
  };
}

function garbage({ metadata }: KubeObject, uids: ReadonlySet<string>, state: State): string | undefined {
  const { namespace = '', ownerReferences = [] } = metadata;
  if (namespace !== '' && !state.get('namespaces', namespace)) return `is in namespace ${namespace}, which is gone`;
  if (ownerReferences.length === 0 || ownerReferences.some(({ uid }) => uids.has(uid))) return undefined;
  return `has no owner left of ${ownerReferences.map(({ name }) => name).join(', ')}`;
}
