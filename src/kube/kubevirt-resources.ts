import type { KubeVirt } from '../api/kubevirt/kube-virt.ts';
import type { MigrationPolicy } from '../api/kubevirt/migration-policy.ts';
import type { VirtualMachine } from '../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../api/kubevirt/virtual-machine-instance-migration.ts';
import type { KubeObject } from '../api/meta.ts';
import type { Resource } from './resource.ts';

/** KubeVirt's resources, as controllers, agents and commands speak of them. */

function resource<T extends KubeObject>(plural: string, kind: string): Resource<T> {
  return { group: 'kubevirt.io', version: 'v1', plural, kind, namespaced: true };
}

export const virtualMachines = resource<VirtualMachine>('virtualmachines', 'VirtualMachine');
export const virtualMachineInstances = resource<VirtualMachineInstance>(
  'virtualmachineinstances',
  'VirtualMachineInstance',
);
export const kubeVirts = resource<KubeVirt>('kubevirts', 'KubeVirt');
export const virtualMachineInstanceMigrations = resource<VirtualMachineInstanceMigration>(
  'virtualmachineinstancemigrations',
  'VirtualMachineInstanceMigration',
);
export const migrationPolicies: Resource<MigrationPolicy> = {
  group: 'migrations.kubevirt.io',
  version: 'v1alpha1',
  plural: 'migrationpolicies',
  kind: 'MigrationPolicy',
  namespaced: false,
};
