import { withMigrationDefaults } from '../../api/kubevirt/complete-migration.ts';
import { causesOf } from '../../api/kubevirt/evacuation.ts';
import { isFeatureGateEnabled } from '../../api/kubevirt/feature-gates.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { EVACUATION_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { mostUrgent, priorityOfCause } from '../../migration/causes/served-causes.ts';
import { nextTryName } from '../migration/next-try.ts';

/** The migration by which a guest leaves its node. */

const PREFIX = 'kubevirt-evacuation-';

/**
 * The migration to be created. Its name follows from the guest, the node that it is to leave and the last try: whoever
 * tries to create it, and how often, there is one for each try.
 */
export function evacuationMigration(
  guest: VirtualMachineInstance,
  all: readonly VirtualMachineInstanceMigration[],
  configuration: KubeVirtConfiguration,
): VirtualMachineInstanceMigration {
  const { namespace = '', name = '' } = guest.metadata;
  const node = guest.status?.nodeName ?? '';
  const { cause } = mostUrgent(causesOf(guest));
  const isOrdered = isFeatureGateEnabled('MigrationPriorityQueue', configuration);
  const migration: VirtualMachineInstanceMigration = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: {
      namespace,
      name: nextTryName(PREFIX, guest, `evacuation of ${node}`, all),
      annotations: { [EVACUATION_ANNOTATION]: node },
    },
    spec: { vmiName: name, cause, ...(isOrdered ? { priority: priorityOfCause(cause) } : {}) },
  };
  return withMigrationDefaults(migration, { isOwnComponent: true });
}
