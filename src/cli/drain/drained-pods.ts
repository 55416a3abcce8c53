import { controllerOf } from '../../kube/owner.ts';
import type { Pod } from '../../migration/fit/objects.ts';

/** What becomes of the pods of a node that is emptied; pure. The rules are those of `kubectl drain`. */

export interface PodRules {
  /** Also pods that nobody makes anew elsewhere. */
  readonly force: boolean;
  /** Also pods that lose what they keep on the node. */
  readonly deleteEmptydirData: boolean;
}

export type PodDecision =
  | { readonly kind: 'evict' }
  /** It stays, and the node counts as empty with it. */
  | { readonly kind: 'leave'; readonly why: string }
  /** Nobody has said that it may go. */
  | { readonly kind: 'refuse'; readonly why: string };

const MIRROR_ANNOTATION = 'kubernetes.io/config.mirror';

/** The guest that a launcher pod is of, by its owner: labels can be on any pod. */
export function launchedGuestUid(pod: Pod): string | undefined {
  const owner = controllerOf(pod);
  return owner?.kind === 'VirtualMachineInstance' && owner.apiVersion.startsWith('kubevirt.io/')
    ? owner.uid
    : undefined;
}

/** Decides what becomes of a pod. */
export function decidePod(pod: Pod, { force, deleteEmptydirData }: PodRules): PodDecision {
  const owner = controllerOf(pod);
  if (pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed') return leave('it has ended');
  if (launchedGuestUid(pod) !== undefined) return { kind: 'evict' };
  if (Object.hasOwn(pod.metadata.annotations ?? {}, MIRROR_ANNOTATION)) return leave('it belongs to its node');
  if (owner?.kind === 'DaemonSet') return leave('its DaemonSet would put it back');
  if (owner?.kind === 'Pod') return leave('it goes with the pod that it is for');
  if (!owner && !force)
    return { kind: 'refuse', why: 'nobody would make it anew elsewhere; --force evicts it all the same' };
  const keepsData = (pod.spec?.volumes ?? []).some((volume) => Object.hasOwn(volume, 'emptyDir'));
  if (keepsData && !deleteEmptydirData)
    return {
      kind: 'refuse',
      why: 'it would lose what is in its emptyDir; --delete-emptydir-data evicts it all the same',
    };
  return { kind: 'evict' };
}

function leave(why: string): PodDecision {
  return { kind: 'leave', why };
}
