import { isMarked } from '../api/kubevirt/evacuation.ts';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import type { LauncherPod } from './resources.ts';

/**
 * What the descheduler reads of launcher pods. It decides by pods alone: what owners say of their machines has to be on
 * the pods, and that a guest is on its way out already, so that it is not asked to leave again and again.
 */

/** Whether a guest may be moved to even things out, as its owner says, also while it runs. */
const FOLLOWED = ['descheduler.alpha.kubernetes.io/evict', 'descheduler.alpha.kubernetes.io/prefer-no-eviction'];
const IN_PROGRESS = 'descheduler.alpha.kubernetes.io/eviction-in-progress';

type Annotations = { readonly [key: string]: string } | undefined;
/** A merge patch of annotations; null for what goes. */
type AnnotationChanges = Record<string, string | null>;

/** What has to change of an object's annotations to say what another one's say to the descheduler. */
export function followedAnnotations(leader: Annotations, follower: Annotations): AnnotationChanges {
  return changes(follower, new Map(FOLLOWED.map((name) => [name, valueOf(leader, name)])));
}

/** What has to change of the annotations of the pod that a guest is in. */
export function deschedulerChanges(
  guest: VirtualMachineInstance,
  { metadata }: Pick<LauncherPod, 'metadata'>,
): AnnotationChanges {
  const inProgress = new Map([[IN_PROGRESS, isMarked(guest) ? 'true' : undefined]]);
  return {
    ...followedAnnotations(guest.metadata.annotations, metadata.annotations),
    ...changes(metadata.annotations, inProgress),
  };
}

function changes(found: Annotations, wanted: ReadonlyMap<string, string | undefined>): AnnotationChanges {
  const changed = [...wanted].filter(([name, value]) => valueOf(found, name) !== value);
  return Object.fromEntries(changed.map(([name, value]) => [name, value ?? null]));
}

function valueOf(annotations: Annotations, name: string): string | undefined {
  return annotations && Object.hasOwn(annotations, name) ? annotations[name] : undefined;
}
