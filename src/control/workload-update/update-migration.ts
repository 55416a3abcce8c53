import { withMigrationDefaults } from '../../api/kubevirt/complete-migration.ts';
import { isFeatureGateEnabled } from '../../api/kubevirt/feature-gates.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { MigrationPriority } from '../../api/kubevirt/migration-priority.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { VOLUME_UPDATE_LABEL, WORKLOAD_UPDATE_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { nextTryName } from '../migration/next-try.ts';
import type { Workload } from './decide.ts';
import type { UpdateNeed } from './update-need.ts';

/** The migration by which a guest gets another launcher. */

const PREFIX = 'kubevirt-workload-update-';
const LABEL_LENGTH_MAX = 63;

/** The migration to be created; for each try there is one, whoever tries to create it, and how often. */
export function updateMigration(
  { guest, need, migrations }: Workload & { readonly need: UpdateNeed },
  configuration: KubeVirtConfiguration,
): VirtualMachineInstanceMigration {
  const { namespace = '', name = '' } = guest.metadata;
  const isOrdered = isFeatureGateEnabled('MigrationPriorityQueue', configuration);
  const hasNewVolumes = need.changes.includes('VolumesChange');
  const migration: VirtualMachineInstanceMigration = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: {
      namespace,
      name: nextTryName(PREFIX, guest, 'workload-update', migrations),
      annotations: { [WORKLOAD_UPDATE_ANNOTATION]: '' },
      ...(hasNewVolumes ? { labels: { [VOLUME_UPDATE_LABEL]: volumeUpdateLabel(guest) } } : {}),
    },
    spec: { vmiName: name, cause: 'WorkloadUpdate', ...(isOrdered ? { priority: priorityOf(need) } : {}) },
  };
  return withMigrationDefaults(migration, { isOwnComponent: true });
}

/** Launchers are exchanged for the cluster's sake, changes are made for somebody who waits for them. */
function priorityOf({ isOutdated }: UpdateNeed): MigrationPriority {
  return isOutdated ? 'system-critical' : 'user-triggered';
}

/** As KubeVirt labels such migrations: by the guest's name, or its UID where a label has no room for that. */
function volumeUpdateLabel({ metadata }: VirtualMachineInstance): string {
  const { name = '', uid = '' } = metadata;
  return name.length > LABEL_LENGTH_MAX ? uid : name;
}
