import type { KubeObject } from '../../api/meta.ts';
import type { Invariant } from '../invariant.ts';
import type { Observation, State } from '../observer.ts';

/**
 * The garbage collector deletes only what has had owners, of whom none is left but those that are being deleted in the
 * foreground; and nothing whose owner was deleted without it.
 */

const COLLECTOR = 'system:serviceaccount:kube-system:generic-garbage-collector';
const OWNER_BUCKETS: { readonly [kind: string]: string } = { ConfigMap: 'configmaps', Secret: 'secrets' };

export function onlyGarbageCollected(): Invariant {
  /** Those, with an owner each, who were there when that owner was to be deleted without them. */
  const spared = new Set<string>();
  return {
    name: 'only-garbage-collected',
    observe(observation, state) {
      const { object, previous, bucket, key, deleters } = observation;
      const { uid = '', finalizers = [], deletionTimestamp } = object?.metadata ?? {};
      const wasGoing = previous?.metadata.deletionTimestamp !== undefined;
      if (deletionTimestamp !== undefined && !wasGoing && finalizers.includes('orphan'))
        for (const child of dependentsOf(uid, state)) spared.add(`${uid} ${child}`);
      if (!previous || !isDeletion(observation) || !deleters.every((user) => user === COLLECTOR)) return undefined;
      if (deleters.length === 0) return undefined;
      const owners = previous.metadata.ownerReferences ?? [];
      const what = `${bucket} ${key} was collected as garbage`;
      if (owners.length === 0) return `${what}, though it has no owner`;
      for (const { kind, name, uid: owner } of owners) {
        if (spared.has(`${owner} ${previous.metadata.uid}`))
          return `${what}, though its owner ${name} was deleted without its dependents`;
        const live = ownerOf(kind, name, owner, previous, state);
        if (live && !isGoingWithDependents(live)) return `${what}, though its owner ${name} is there`;
      }
      return undefined;
    },
  };
}

function* dependentsOf(owner: string, state: State): Iterable<string> {
  for (const bucket of Object.values(OWNER_BUCKETS))
    for (const { metadata } of state.list(bucket))
      if (metadata.ownerReferences?.some(({ uid }) => uid === owner)) yield metadata.uid ?? '';
}

/** Whether the change begins a deletion, or is one. */
function isDeletion({ object, previous }: Observation): boolean {
  if (previous?.metadata.deletionTimestamp !== undefined) return false;
  return object === undefined || object.metadata.deletionTimestamp !== undefined;
}

function ownerOf(kind: string, name: string, uid: string, child: KubeObject, state: State): KubeObject | undefined {
  const bucket = OWNER_BUCKETS[kind];
  const owner = bucket === undefined ? undefined : state.get(bucket, `${child.metadata.namespace}/${name}`);
  return owner?.metadata.uid === uid ? owner : undefined;
}

function isGoingWithDependents({ metadata }: KubeObject): boolean {
  return metadata.deletionTimestamp !== undefined && (metadata.finalizers ?? []).includes('foregroundDeletion');
}
