import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { KubeObject } from '../api/meta.ts';
import { TRUST_OBJECTS, TRUST_RULES } from './trust/objects.ts';

/** Whom the synchronization controller acts as, and what it may do. */

/** Its account and its lease, as KubeVirt names them. */
export const SYNCHRONIZATION_ACCOUNT = 'kubevirt-synchronization-controller';
export const SYNCHRONIZATION_LEASE = 'virt-synchronization-controller';

const ROLE = 'godwit:synchronization';
const RBAC = 'rbac.authorization.k8s.io';
const READ = ['get', 'list', 'watch'];

/** The synchronization controller's own identity. */
export const SYNCHRONIZATION_IDENTITY = {
  user: `system:serviceaccount:${SYSTEM_NAMESPACE}:${SYNCHRONIZATION_ACCOUNT}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${SYSTEM_NAMESPACE}`],
} as const;

const SUBJECTS = [{ kind: 'ServiceAccount', name: SYNCHRONIZATION_ACCOUNT, namespace: SYSTEM_NAMESPACE }];

function rule(verbs: readonly string[], apiGroup: string, ...resources: readonly string[]): object {
  return { verbs, apiGroups: [apiGroup], resources };
}

/**
 * The account with its roles, and the objects that hold its trust: it may do no more than it does, and can neither make nor
 * delete anything but its lease.
 */
export function synchronizationRights(): KubeObject[] {
  return [
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: SYNCHRONIZATION_ACCOUNT, namespace: SYSTEM_NAMESPACE },
    },
    role('ClusterRole', { name: ROLE }, [
      rule(READ, 'kubevirt.io', 'virtualmachineinstances', 'kubevirts'),
      // Their finalizers and their other half's cluster.
      rule([...READ, 'patch'], 'kubevirt.io', 'virtualmachineinstancemigrations'),
      rule(
        ['patch'],
        'kubevirt.io',
        'virtualmachineinstances/status',
        'virtualmachineinstancemigrations/status',
        'kubevirts/status',
      ),
      // By which keys agents are known.
      rule(READ, '', 'nodes'),
      // Its UID is the cluster's.
      { ...rule(['get'], '', 'namespaces'), resourceNames: ['kube-system'] },
    ]),
    binding('ClusterRole', { name: ROLE }),
    role('Role', { name: ROLE, namespace: SYSTEM_NAMESPACE }, [
      // Nobody can be allowed to create objects of one name only.
      rule(['create'], 'coordination.k8s.io', 'leases'),
      { ...rule(['get', 'update'], 'coordination.k8s.io', 'leases'), resourceNames: [SYNCHRONIZATION_LEASE] },
      ...TRUST_RULES,
    ]),
    binding('Role', { name: ROLE, namespace: SYSTEM_NAMESPACE }),
    ...TRUST_OBJECTS,
  ];
}

function role(kind: 'Role' | 'ClusterRole', metadata: KubeObject['metadata'], rules: readonly object[]): KubeObject {
  return { apiVersion: `${RBAC}/v1`, kind, metadata, rules };
}

function binding(kind: 'Role' | 'ClusterRole', metadata: KubeObject['metadata']): KubeObject {
  const roleRef = { apiGroup: RBAC, kind, name: ROLE };
  return { apiVersion: `${RBAC}/v1`, kind: `${kind}Binding`, metadata, roleRef, subjects: SUBJECTS };
}
