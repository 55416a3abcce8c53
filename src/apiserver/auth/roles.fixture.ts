import type { KubeObject } from '../../api/meta.ts';

/** Roles and bindings in one line each. */

const RBAC = 'rbac.authorization.k8s.io';

interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups?: readonly string[];
  readonly resources?: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly nonResourceURLs?: readonly string[];
}

export function clusterRole(name: string, rules: readonly Rule[], labels: Record<string, string> = {}): KubeObject {
  return { apiVersion: `${RBAC}/v1`, kind: 'ClusterRole', metadata: { name, labels }, rules };
}

export function role(namespace: string, name: string, rules: readonly Rule[]): KubeObject {
  return { apiVersion: `${RBAC}/v1`, kind: 'Role', metadata: { namespace, name }, rules };
}

/** `subject` is written `User:name`, `Group:name` or `ServiceAccount:namespace/name` (either part may be empty). */
function subjectOf(text: string): Record<string, string> {
  const colon = text.indexOf(':');
  const [kind, rest] = [text.slice(0, colon), text.slice(colon + 1)];
  if (kind !== 'ServiceAccount') return { kind, apiGroup: RBAC, name: rest };
  const [namespace = '', name = ''] = rest.split('/');
  return namespace === '' ? { kind, name } : { kind, name, namespace };
}

export function clusterBinding(name: string, roleName: string, ...subjects: readonly string[]): KubeObject {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name: roleName },
    subjects: subjects.map(subjectOf),
  };
}

export function roleBinding(
  namespace: string,
  name: string,
  roleRef: readonly [kind: string, name: string],
  ...subjects: readonly string[]
): KubeObject {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { namespace, name },
    roleRef: { apiGroup: RBAC, kind: roleRef[0], name: roleRef[1] },
    subjects: subjects.map(subjectOf),
  };
}
