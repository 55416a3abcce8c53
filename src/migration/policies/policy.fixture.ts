import type { MigrationPolicy, MigrationPolicySpec } from '../../api/kubevirt/migration-policy.ts';

type Labels = { readonly [key: string]: string };

/** A policy for these labels of guests and of namespaces. */
export function makePolicy(
  name: string,
  labels: Labels,
  namespaceLabels: Labels = {},
  options: Omit<MigrationPolicySpec, 'selectors'> = {},
): MigrationPolicy {
  return {
    apiVersion: 'migrations.kubevirt.io/v1alpha1',
    kind: 'MigrationPolicy',
    metadata: { name },
    spec: {
      selectors: { virtualMachineInstanceSelector: { ...labels }, namespaceSelector: { ...namespaceLabels } },
      ...options,
    },
  };
}
