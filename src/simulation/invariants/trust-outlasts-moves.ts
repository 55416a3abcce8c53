import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { keyOf } from '../../kube/resource.ts';
import { wasHandedOff } from '../../migration/halves/past-phases.ts';
import { isKept, peerOf } from '../../sync/controller/side.ts';
import type { ConfigMap } from '../../sync/trust/objects.ts';
import { MIGRATIONS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';
import { isTrust, trustIn } from '../sync-trust.ts';

/** A cluster in which trust was revoked is trusted for as long as a guest may be on its way between it and this one. */
export function trustOutlastsMoves(): Invariant {
  return {
    name: 'trust-outlasts-moves',
    observe({ bucket, key, object, previous }, state) {
      if (!isTrust(bucket, key)) return undefined;
      const left = trustIn((object as ConfigMap | undefined)?.data);
      const gone = new Set(
        [...trustIn((previous as ConfigMap | undefined)?.data).keys()].filter((peer) => !left.has(peer)),
      );
      for (const migration of state.list(MIGRATIONS) as Iterable<VirtualMachineInstanceMigration>) {
        const peer = peerOf(migration) ?? '';
        if (!gone.has(peer) || !isKept(migration) || isFinalMigration(migration) || !wasHandedOff(migration)) continue;
        return `${peer} is trusted no more while ${keyOf(migration)}, which has to do with it, is ${migration.status?.phase}`;
      }
      return undefined;
    },
  };
}
