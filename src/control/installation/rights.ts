import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { LEDGER_NAME } from '../migration/ledger-object.ts';
import { INSTANCETYPES, PREFERENCES } from '../resources.ts';

/** Whom the controllers act as, and what they may do. */

/** The controllers' account. */
export const CONTROLLER_ACCOUNT = 'godwit-controller';
const ROLE = 'godwit:controller';

/** The controllers' own identity. */
export const CONTROLLER_IDENTITY = {
  user: `system:serviceaccount:${SYSTEM_NAMESPACE}:${CONTROLLER_ACCOUNT}`,
  groups: ['system:serviceaccounts', `system:serviceaccounts:${SYSTEM_NAMESPACE}`],
} as const;

const SUBJECTS = [{ kind: 'ServiceAccount', name: CONTROLLER_ACCOUNT, namespace: SYSTEM_NAMESPACE }];

const READ = ['get', 'list', 'watch'];
const SIZINGS = [...INSTANCETYPES.values(), ...PREFERENCES.values()].map(({ plural }) => plural);

function rule(verbs: readonly string[], apiGroup: string, ...resources: readonly string[]): object {
  return { verbs, apiGroups: [apiGroup], resources };
}

/** The account with its role: no more than the controllers do. */
export function controllerRights(): KubeObject[] {
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: CONTROLLER_ACCOUNT, namespace: SYSTEM_NAMESPACE } },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: ROLE },
      rules: [
        rule([...READ, 'patch'], 'kubevirt.io', 'virtualmachines'),
        rule([...READ, 'create', 'patch', 'delete'], 'kubevirt.io', 'virtualmachineinstances'),
        rule(['patch'], 'kubevirt.io', 'virtualmachines/status', 'virtualmachineinstances/status'),
        // Whoever names an owner that blocks its deletion must be able to hold that owner.
        rule(['update'], 'kubevirt.io', 'virtualmachines/finalizers', 'virtualmachineinstances/finalizers'),
        rule(READ, 'kubevirt.io', 'kubevirts'),
        // How many guests have an old launcher.
        rule(['patch'], 'kubevirt.io', 'kubevirts/status'),
        rule([...READ, 'create', 'patch', 'delete'], 'kubevirt.io', 'virtualmachineinstancemigrations'),
        rule(['patch'], 'kubevirt.io', 'virtualmachineinstancemigrations/status'),
        rule(['get'], 'instancetype.kubevirt.io', ...SIZINGS),
        rule([...READ, 'create', 'patch', 'delete'], '', 'pods'),
        rule(['create'], '', 'pods/eviction'),
        rule([...READ, 'patch'], '', 'persistentvolumeclaims'),
        rule([...READ, 'create', 'delete'], '', 'persistentvolumes'),
        rule(READ, 'storage.k8s.io', 'storageclasses'),
        rule(['get', 'create'], 'apps', 'controllerrevisions'),
        rule([...READ, 'create', 'patch', 'delete'], 'policy', 'poddisruptionbudgets'),
        rule(['create', 'patch'], '', 'events'),
        rule(READ, '', 'nodes', 'namespaces', 'resourcequotas'),
        // The condition DrainBlocked; and labels, which a status brings along: whether guests can be scheduled there.
        rule(['patch'], '', 'nodes/status'),
        rule(READ, 'migrations.kubevirt.io', 'migrationpolicies'),
        // By what the API server is known, no node is.
        { ...rule(['get'], '', 'services'), resourceNames: ['kubernetes'] },
        { ...rule(['get'], 'discovery.k8s.io', 'endpointslices'), resourceNames: ['kubernetes'] },
        rule(READ, 'certificates.k8s.io', 'certificatesigningrequests'),
        rule(['update'], 'certificates.k8s.io', 'certificatesigningrequests/approval'),
        {
          ...rule(['approve'], 'certificates.k8s.io', 'signers'),
          resourceNames: ['kubernetes.io/kubelet-serving'],
        },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: ROLE },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: ROLE },
      subjects: SUBJECTS,
    },
    ...ownObjectRights(),
  ];
}

/** What the controllers may do with objects of their own, which are all in one namespace. */
function ownObjectRights(): KubeObject[] {
  const metadata = { name: ROLE, namespace: SYSTEM_NAMESPACE };
  const apiVersion = 'rbac.authorization.k8s.io/v1';
  return [
    {
      apiVersion,
      kind: 'Role',
      metadata,
      rules: [
        { ...rule(['get', 'update'], '', 'configmaps'), resourceNames: [LEDGER_NAME] },
        // Nobody can be allowed to create objects of one name only.
        rule(['create'], '', 'configmaps'),
        // Whose the keys of pairs of migrations are.
        rule(['get', 'create', 'update', 'delete'], 'coordination.k8s.io', 'leases'),
      ],
    },
    {
      apiVersion,
      kind: 'RoleBinding',
      metadata,
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: ROLE },
      subjects: SUBJECTS,
    },
  ];
}
