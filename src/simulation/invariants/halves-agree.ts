import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { SYNCHRONIZATION_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { keyOf } from '../../kube/resource.ts';
import { peerOf } from '../../sync/controller/side.ts';
import type { ConfigMap } from '../../sync/trust/objects.ts';
import { MIGRATIONS } from '../buckets.ts';
import { isTrust, trustIn } from '../sync-trust.ts';
import type { InvariantAcross, Unsettled } from '../invariant.ts';

/**
 * In the end both halves of a pair say the same of how it ended, and nobody keeps either for the other's sake; unless the
 * other cluster alone has taken its trust back, and tells nothing any more: then people here have to do so, too.
 */
export function halvesAgree(): InvariantAcross {
  /** Verdicts by UID, also of those that are gone. */
  const verdicts = new Map<string, { readonly key: string; readonly phase: string }>();
  /** UIDs of targets by those of their sources. */
  const pairs = new Map<string, string>();
  /** The clusters that each one trusts, and whether that was revoked. */
  const trust = new Map<string, ReadonlyMap<string, boolean>>();
  /** The clusters of migrations, by their UIDs. */
  const homes = new Map<string, string>();
  const isHeardNoMore = (migration: VirtualMachineInstanceMigration): boolean => {
    const [here, peer] = [homes.get(migration.metadata.uid ?? '') ?? '', peerOf(migration) ?? ''];
    return trust.get(here)?.get(peer) === false && trust.get(peer)?.has(here) === false;
  };
  return {
    name: 'halves-agree',
    observeAcross({ bucket, key, object }, _state, cluster) {
      if (isTrust(bucket, key)) trust.set(cluster, trustIn((object as ConfigMap | undefined)?.data));
      if (bucket !== MIGRATIONS || !object) return undefined;
      const migration = object as VirtualMachineInstanceMigration;
      homes.set(migration.metadata.uid ?? '', cluster);
      const { sourceState, targetState } = migration.status?.migrationState ?? {};
      const [source, target] = [sourceState?.migrationUID, targetState?.migrationUID];
      if (source !== undefined && target !== undefined) pairs.set(source, target);
      const { uid = '' } = migration.metadata;
      if (isFinalMigration(migration))
        verdicts.set(uid, { key: keyOf(migration), phase: migration.status?.phase ?? '' });
      return undefined;
    },
    unsettledAcross(scenes) {
      const found: Unsettled[] = [];
      for (const [source, target] of pairs) {
        const [one, other] = [verdicts.get(source), verdicts.get(target)];
        if (one && other && one.phase !== other.phase)
          found.push({ key: one.key, what: `is ${one.phase}, and its other half ${other.key} is ${other.phase}` });
      }
      const all = scenes.flatMap(({ state }) => [...state.list(MIGRATIONS)] as VirtualMachineInstanceMigration[]);
      for (const migration of all) {
        const isKept = migration.metadata.finalizers?.includes(SYNCHRONIZATION_FINALIZER) === true;
        if (isKept && isFinalMigration(migration) && !isHeardNoMore(migration))
          found.push({ key: keyOf(migration), what: 'is over, and is kept' });
      }
      return found;
    },
  };
}
