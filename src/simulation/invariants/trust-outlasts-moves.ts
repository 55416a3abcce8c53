import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { KubeObject } from '../../api/meta.ts';
import { keyOf } from '../../kube/resource.ts';
import { wasHandedOff } from '../../migration/halves/past-phases.ts';
import { isKept, peerOf } from '../../sync/controller/side.ts';
import { type ConfigMap, TRUST_CONFIG_MAP } from '../../sync/trust/objects.ts';
import { MIGRATIONS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';

const KEY = `${SYSTEM_NAMESPACE}/${TRUST_CONFIG_MAP}`;

/** A cluster in which trust was revoked is trusted for as long as a guest may be on its way between it and this one. */
export function trustOutlastsMoves(): Invariant {
  return {
    name: 'trust-outlasts-moves',
    observe({ bucket, key, object, previous }, state) {
      if (bucket !== 'configmaps' || key !== KEY) return undefined;
      const left = trustedIn(object);
      const gone = new Set([...trustedIn(previous)].filter((peer) => !left.has(peer)));
      for (const migration of state.list(MIGRATIONS) as Iterable<VirtualMachineInstanceMigration>) {
        const peer = peerOf(migration) ?? '';
        if (!gone.has(peer) || !isKept(migration) || isFinalMigration(migration) || !wasHandedOff(migration)) continue;
        return `${peer} is trusted no more while ${keyOf(migration)}, which has to do with it, is ${migration.status?.phase}`;
      }
      return undefined;
    },
  };
}

function trustedIn(object: KubeObject | undefined): ReadonlySet<string> {
  const { data = {} } = (object ?? {}) as Partial<ConfigMap>;
  return new Set(Object.keys(data).flatMap((key) => /^(.+)\.crt$/.exec(key)?.[1] ?? []));
}
