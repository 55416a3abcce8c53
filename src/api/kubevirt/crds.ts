import type { KubeObject } from '../meta.ts';
import { type CustomKind, customResourceDefinitionOf } from './custom-kind.ts';
import { virtualMachineClusterInstancetype, virtualMachineInstancetype } from './instancetype.ts';
import { kubeVirt } from './kube-virt.ts';
import { virtualMachineClusterPreference, virtualMachinePreference } from './preference.ts';
import { virtualMachine } from './virtual-machine.ts';
import { virtualMachineInstance } from './virtual-machine-instance.ts';

/** The kinds of KubeVirt's API groups that we define. */
const KUBEVIRT_KINDS: readonly CustomKind[] = [
  virtualMachine,
  virtualMachineInstance,
  kubeVirt,
  virtualMachineInstancetype,
  virtualMachineClusterInstancetype,
  virtualMachinePreference,
  virtualMachineClusterPreference,
];

/** Their CustomResourceDefinitions, ready to be applied. */
export const KUBEVIRT_CRDS: readonly KubeObject[] = KUBEVIRT_KINDS.map(customResourceDefinitionOf);
