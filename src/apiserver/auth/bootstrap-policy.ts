import type { KubeObject } from '../../api/meta.ts';
import { HEALTH_PATHS } from '../health.ts';
import { NODE_CLIENT_USER } from '../pki/cluster-pki.ts';
import {
  editRules,
  eventRules,
  kubeControllerManagerRules,
  kubeSchedulerRules,
  nodeRules,
  viewRules,
} from './bootstrap-rules.ts';
import { controllerRoles } from './controller-roles.ts';
import { READ, READ_WRITE, resources, urls } from './rule-builders.ts';
import type { PolicyRule } from './policy-rule.ts';
import { MASTERS_GROUP } from './rbac.ts';
import { RBAC_GROUP, type RoleRef, type Subject } from './role-index.ts';
import { AUTHENTICATED_GROUP, UNAUTHENTICATED_GROUP } from './users.ts';

/**
 * The roles and bindings that every cluster has, by the names that manifests and people expect. One thing is stricter
 * than upstream's: whoever shows no credentials sees the server's health and nothing else, not even its version. And
 * nodes can join with nothing but a bootstrap token, which elsewhere is kubeadm's doing.
 */

export const AUTO_UPDATE_ANNOTATION = 'rbac.authorization.kubernetes.io/autoupdate';
const AGGREGATE = 'rbac.authorization.k8s.io/aggregate-to';
const CERTIFICATES = 'certificates.k8s.io';
const VERSION = ['/version', '/version/'];
const OPENID = ['/.well-known/openid-configuration', '/openid/v1/jwks'].flatMap((path) => [path, `${path}/`]);

/** All of them, roles before the bindings that refer to them. Each call makes new objects. */
export function bootstrapObjects(): KubeObject[] {
  return [
    ...userRoles(),
    ...systemRoles(),
    ...certificateRoles(),
    ...bindings(),
    ...controllerObjects(),
    ...kubeSystemObjects(),
  ];
}

/** The roles that people are given, gathered by label so that others can add to them. */
function userRoles(): KubeObject[] {
  return [
    clusterRole('cluster-admin', [resources(['*'], '*', '*'), urls(['*'], '*')]),
    gatheringRole('admin'),
    gatheringRole('edit', 'admin'),
    gatheringRole('view', 'edit'),
    clusterRole(
      'system:aggregate-to-admin',
      [
        resources(['create'], 'authorization.k8s.io', 'localsubjectaccessreviews'),
        resources(READ_WRITE, RBAC_GROUP, 'roles', 'rolebindings'),
      ],
      { [`${AGGREGATE}-admin`]: 'true' },
    ),
    clusterRole('system:aggregate-to-edit', editRules(), { [`${AGGREGATE}-edit`]: 'true' }),
    clusterRole('system:aggregate-to-view', viewRules(), { [`${AGGREGATE}-view`]: 'true' }),
  ];
}

function systemRoles(): KubeObject[] {
  return [
    clusterRole('system:basic-user', [
      resources(['create'], 'authorization.k8s.io', 'selfsubjectaccessreviews', 'selfsubjectrulesreviews'),
      resources(['create'], 'authentication.k8s.io', 'selfsubjectreviews'),
    ]),
    clusterRole('system:discovery', [
      urls(['get'], ...HEALTH_PATHS, ...VERSION, '/openapi', '/openapi/*', '/api', '/api/*', '/apis', '/apis/*'),
    ]),
    clusterRole('system:public-info-viewer', [urls(['get'], ...HEALTH_PATHS)]),
    clusterRole('system:monitoring', [
      urls(['get'], '/metrics', '/metrics/slis', ...HEALTH_PATHS, ...HEALTH_PATHS.map((path) => `${path}/*`)),
      resources(['get'], '', 'nodes/metrics'),
    ]),
    clusterRole('system:auth-delegator', [
      resources(['create'], 'authentication.k8s.io', 'tokenreviews'),
      resources(['create'], 'authorization.k8s.io', 'subjectaccessreviews'),
    ]),
    clusterRole('system:kube-aggregator', [resources(READ, '', 'services', 'endpoints')]),
    clusterRole('system:service-account-issuer-discovery', [urls(['get'], ...OPENID)]),
    clusterRole('system:kube-scheduler', kubeSchedulerRules()),
    clusterRole('system:kube-controller-manager', kubeControllerManagerRules()),
    clusterRole('system:node', nodeRules()),
    clusterRole('system:kubelet-api-admin', [
      resources(READ, '', 'nodes'),
      resources(['proxy'], '', 'nodes'),
      resources(['*'], '', 'nodes/log', 'nodes/metrics', 'nodes/proxy', 'nodes/stats'),
    ]),
    clusterRole('system:node-bootstrapper', [
      resources(['create', 'get', 'list', 'watch'], CERTIFICATES, 'certificatesigningrequests'),
    ]),
  ];
}

/** What the signer asks about before it approves by itself, and what people need who approve by hand. */
function certificateRoles(): KubeObject[] {
  const automatic = ['nodeclient', 'selfnodeclient'].map((subresource) =>
    clusterRole(`system:certificates.k8s.io:certificatesigningrequests:${subresource}`, [
      resources(['create'], CERTIFICATES, `certificatesigningrequests/${subresource}`),
    ]),
  );
  const signers = ['kubelet-serving', 'kube-apiserver-client', 'kube-apiserver-client-kubelet'];
  const approvers = signers.map((signer) =>
    clusterRole(`system:certificates.k8s.io:${signer}-approver`, [
      { ...resources(['approve'], CERTIFICATES, 'signers'), resourceNames: [`kubernetes.io/${signer}`] },
    ]),
  );
  return [...automatic, ...approvers];
}

function bindings(): KubeObject[] {
  const nodeClient = 'system:certificates.k8s.io:certificatesigningrequests:nodeclient';
  const selfNodeClient = 'system:certificates.k8s.io:certificatesigningrequests:selfnodeclient';
  return [
    clusterRoleBinding('cluster-admin', 'cluster-admin', group(MASTERS_GROUP)),
    clusterRoleBinding('system:basic-user', 'system:basic-user', group(AUTHENTICATED_GROUP)),
    clusterRoleBinding('system:discovery', 'system:discovery', group(AUTHENTICATED_GROUP)),
    clusterRoleBinding(
      'system:public-info-viewer',
      'system:public-info-viewer',
      group(AUTHENTICATED_GROUP),
      group(UNAUTHENTICATED_GROUP),
    ),
    clusterRoleBinding('system:monitoring', 'system:monitoring', group('system:monitoring')),
    clusterRoleBinding(
      'system:service-account-issuer-discovery',
      'system:service-account-issuer-discovery',
      group('system:serviceaccounts'),
    ),
    clusterRoleBinding('system:kube-scheduler', 'system:kube-scheduler', user('system:kube-scheduler')),
    clusterRoleBinding(
      'system:kube-controller-manager',
      'system:kube-controller-manager',
      user('system:kube-controller-manager'),
    ),
    // Bound to nobody, as upstream: the Node authorizer lets each node do what is its own.
    clusterRoleBinding('system:node', 'system:node'),
    clusterRoleBinding('system:kubelet-api-admin', 'system:kubelet-api-admin', user(NODE_CLIENT_USER)),
    clusterRoleBinding('system:node-bootstrapper', 'system:node-bootstrapper', group('system:bootstrappers')),
    clusterRoleBinding('system:node-bootstrapper:approve', nodeClient, group('system:bootstrappers')),
    clusterRoleBinding('system:node:renew', selfNodeClient, group('system:nodes')),
  ];
}

/** Each controller's role, and who has it: its own service account. */
function controllerObjects(): KubeObject[] {
  return controllerRoles().flatMap(({ account, rules }) => {
    const name = `system:controller:${account}`;
    const subject: Subject = { kind: 'ServiceAccount', name: account, namespace: 'kube-system' };
    return [clusterRole(name, rules), clusterRoleBinding(name, name, subject)];
  });
}

/** What lets an aggregated API server learn whom to trust, and who removes tokens that have ended. */
function kubeSystemObjects(): KubeObject[] {
  const name = 'extension-apiserver-authentication';
  const reader = `${name}-reader`;
  const cleaner = 'system:controller:token-cleaner';
  const metadata = (objectName: string): KubeObject['metadata'] => ({
    ...defaultMetadata(objectName),
    namespace: 'kube-system',
  });
  return [
    {
      apiVersion: `${RBAC_GROUP}/v1`,
      kind: 'Role',
      metadata: metadata(reader),
      rules: [{ ...resources(READ, '', 'configmaps'), resourceNames: [name] }],
    },
    {
      apiVersion: `${RBAC_GROUP}/v1`,
      kind: 'RoleBinding',
      metadata: metadata(`system::${reader}`),
      roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name: reader } satisfies RoleRef,
      subjects: [user('system:kube-controller-manager'), user('system:kube-scheduler')],
    },
    {
      apiVersion: `${RBAC_GROUP}/v1`,
      kind: 'Role',
      metadata: metadata(cleaner),
      rules: [resources([...READ, 'delete'], '', 'secrets'), ...eventRules()],
    },
    {
      apiVersion: `${RBAC_GROUP}/v1`,
      kind: 'RoleBinding',
      metadata: metadata(cleaner),
      roleRef: { apiGroup: RBAC_GROUP, kind: 'Role', name: cleaner } satisfies RoleRef,
      subjects: [{ kind: 'ServiceAccount', name: 'token-cleaner', namespace: 'kube-system' }],
    },
  ];
}

function clusterRole(
  name: string,
  rules: readonly PolicyRule[],
  labels: Readonly<Record<string, string>> = {},
): KubeObject {
  const metadata = defaultMetadata(name);
  metadata.labels = { ...metadata.labels, ...labels };
  return { apiVersion: `${RBAC_GROUP}/v1`, kind: 'ClusterRole', metadata, rules };
}

/** A role that holds whatever is labelled for it, and is itself part of another one. */
function gatheringRole(name: string, partOf?: string): KubeObject {
  const role = clusterRole(name, [], partOf === undefined ? {} : { [`${AGGREGATE}-${partOf}`]: 'true' });
  role['aggregationRule'] = { clusterRoleSelectors: [{ matchLabels: { [`${AGGREGATE}-${name}`]: 'true' } }] };
  return role;
}

function clusterRoleBinding(name: string, roleName: string, ...subjects: readonly Subject[]): KubeObject {
  const roleRef: RoleRef = { apiGroup: RBAC_GROUP, kind: 'ClusterRole', name: roleName };
  return {
    apiVersion: `${RBAC_GROUP}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: defaultMetadata(name),
    roleRef,
    subjects,
  };
}

function defaultMetadata(name: string): KubeObject['metadata'] {
  return {
    name,
    labels: { 'kubernetes.io/bootstrapping': 'rbac-defaults' },
    annotations: { [AUTO_UPDATE_ANNOTATION]: 'true' },
  };
}

function group(name: string): Subject {
  return { apiGroup: RBAC_GROUP, kind: 'Group', name };
}

function user(name: string): Subject {
  return { apiGroup: RBAC_GROUP, kind: 'User', name };
}
