import type { ClusterState } from '../cluster-state.ts';
import type { Filter } from '../filter.ts';
import type { PersistentVolumeClaim } from '../objects.ts';
import type { ClaimUse, PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';
import { claimsOf, isBound, reachOf, volumePlanner, waitsForPod } from '../volume-plan.ts';

const refusal = (message: string): Reason => ({ filter: 'volumes', message, isResolvable: false });

const MISPLACED = refusal("node(s) didn't match PersistentVolume's node affinity");
const UNBOUND = refusal("node(s) didn't find available persistent volumes to bind");
const LOST = refusal('node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)');

/** Why the pod's claims keep it from every node; undefined where they do not. */
export function claimRefusal(pod: PodInfo, { lookups }: ClusterState): Reason | undefined {
  for (const use of pod.claims) {
    const message = claimProblem(pod, use, lookups.claim(`${pod.namespace}/${use.name}`));
    if (message !== undefined) return refusal(message);
  }
  const isWaiting = claimsOf(pod, lookups).some((claim) => !isBound(claim) && !waitsForPod(claim, lookups));
  return isWaiting ? refusal('pod has unbound immediate PersistentVolumeClaims') : undefined;
}

function claimProblem(
  pod: PodInfo,
  { name, isEphemeral }: ClaimUse,
  claim: PersistentVolumeClaim | undefined,
): string | undefined {
  const quoted = `persistentvolumeclaim ${JSON.stringify(name)}`;
  if (!claim)
    return isEphemeral ? `waiting for ephemeral volume controller to create the ${quoted}` : `${quoted} not found`;
  if (claim.status?.phase === 'Lost')
    return `${quoted} bound to non-existent persistentvolume ${JSON.stringify(claim.spec?.volumeName ?? '')}`;
  if (claim.metadata.deletionTimestamp !== undefined) return `${quoted} is being deleted`;
  if (isEphemeral && !claim.metadata.ownerReferences?.some(({ uid, controller }) => controller && uid === pod.uid))
    return `PVC ${claim.metadata.namespace}/${name} was not created for pod ${pod.key} (pod is not owner)`;
  return undefined;
}

/** The volumes of the pod's claims have to be reachable from the node, or to be had there. */
export function volumeFilter(pod: PodInfo, { lookups }: ClusterState): Filter | undefined {
  if (pod.claims.length === 0) return undefined;
  const plan = volumePlanner(pod, lookups);
  const volumes = claimsOf(pod, lookups)
    .filter(isBound)
    .map((claim) => lookups.volume(claim.spec?.volumeName ?? ''));
  const isLost = volumes.includes(undefined);
  const reaches = volumes.flatMap((volume) => (volume?.spec?.nodeAffinity?.required ? [reachOf(volume)] : []));
  return {
    reasons({ info }) {
      const isMisplaced = !reaches.every((reach) => reach(info));
      const isUnbound = plan !== undefined && plan(info) === undefined;
      if (!isMisplaced && !isUnbound && !isLost) return NO_REASONS;
      return [...(isMisplaced ? [MISPLACED] : []), ...(isUnbound ? [UNBOUND] : []), ...(isLost ? [LOST] : [])];
    },
  };
}
