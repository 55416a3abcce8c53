import type { PersistentVolumeClaim, Pod } from '../../migration/fit/objects.ts';

/** Pods by the claims that they mount. */
export const byClaim = { claim: claimKeys };

/** The claims that a pod mounts, by `namespace/name`. */
export function claimKeys({ metadata, spec }: Pod): readonly string[] {
  return (spec?.volumes ?? []).flatMap(({ name, persistentVolumeClaim, ephemeral }) => {
    const claim = persistentVolumeClaim?.claimName ?? (ephemeral ? `${metadata.name}-${name}` : undefined);
    return claim === undefined ? [] : [`${metadata.namespace}/${claim}`];
  });
}

/** Whether a pod may have the claim mounted; without a node it has not, and gets none while the claim is leaving. */
export function usesClaim(pod: Pod, { metadata }: PersistentVolumeClaim): boolean {
  const { spec } = pod;
  if ((spec?.nodeName ?? '') === '') return false;
  const isOwn =
    metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === pod.metadata.uid) ?? false;
  return (spec?.volumes ?? []).some(({ name, persistentVolumeClaim, ephemeral }) => {
    if (persistentVolumeClaim) return persistentVolumeClaim.claimName === metadata.name;
    // A pod that nothing runs any more may itself be waiting for the claim that was made for it to go.
    return ephemeral && isOwn && `${pod.metadata.name}-${name}` === metadata.name && !isShutDown(pod);
  });
}

function isShutDown({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined && metadata.deletionGracePeriodSeconds === 0;
}
