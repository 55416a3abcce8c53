import type { KubeObject } from '../meta.ts';
import { type CustomKind, customResourceDefinitionOf } from './custom-kind.ts';
import { virtualMachineClusterInstancetype, virtualMachineInstancetype } from './instancetype.ts';
import { kubeVirt } from './kube-virt.ts';
import { migrationPolicy } from './migration-policy.ts';
import { virtualMachineClusterPreference, virtualMachinePreference } from './preference.ts';
import { virtualMachine } from './virtual-machine.ts';
import { virtualMachineInstance } from './virtual-machine-instance.ts';
import { virtualMachineInstanceMigration } from './virtual-machine-instance-migration.ts';

/** The kinds of KubeVirt's API groups that we define. */
export const KUBEVIRT_KINDS: readonly CustomKind[] = [
  virtualMachine,
  virtualMachineInstance,
  virtualMachineInstanceMigration,
  migrationPolicy,
  kubeVirt,
  virtualMachineInstancetype,
  virtualMachineClusterInstancetype,
  virtualMachinePreference,
  virtualMachineClusterPreference,
];

/** Their CustomResourceDefinitions, ready to be applied. */
export const KUBEVIRT_CRDS: readonly KubeObject[] = KUBEVIRT_KINDS.map(customResourceDefinitionOf);
