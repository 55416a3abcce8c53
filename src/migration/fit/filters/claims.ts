import type { ClusterState } from '../cluster-state.ts';
import type { Filter } from '../filter.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';

const REASONS: readonly Reason[] = [
  {
    filter: 'claims',
    message:
      'node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod',
    isResolvable: true,
  },
];

/** A claim that only one pod may mount must not be mounted by another, on whatever node. */
export function claimFilter(pod: PodInfo, cluster: ClusterState): Filter | undefined {
  const exclusive = new Set(
    pod.claims
      .map(({ name }) => `${pod.namespace}/${name}`)
      .filter((key) => cluster.lookups.claim(key)?.spec?.accessModes?.includes('ReadWriteOncePod')),
  );
  if (exclusive.size === 0) return undefined;
  let users = [...exclusive].reduce((sum, key) => sum + cluster.claimUsers(key), 0);
  return {
    reasons: () => (users > 0 ? REASONS : NO_REASONS),
    imagine(other, _node, by) {
      users += by * other.claims.filter(({ name }) => exclusive.has(`${other.namespace}/${name}`)).length;
    },
  };
}
