import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { KubeObject } from '../api/meta.ts';
import { SERVICE_ACCOUNT, SERVICE_NAME } from './identity.ts';
import { SECRET_NAME } from './server/serving-certificate.ts';
import { SUBRESOURCE_GROUP, SUBRESOURCE_VERSIONS, SUBRESOURCES, type Subresource } from './subresources/group.ts';

/** Who may do what: users with machines, by roles that are part of Kubernetes' own, and the extension itself. */

interface Rule {
  readonly verbs: readonly string[];
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
}

const RBAC = 'rbac.authorization.k8s.io';
const READ = ['get', 'list', 'watch'];
const EDIT = ['get', 'delete', 'create', 'update', 'patch', 'list', 'watch'];
const MACHINES = ['virtualmachines', 'virtualmachineinstances'];
const MIGRATIONS = ['virtualmachineinstancemigrations'];
const POLICIES = 'migrations.kubevirt.io';
const INSTANCETYPES = [
  'virtualmachineinstancetypes',
  'virtualmachineclusterinstancetypes',
  'virtualmachinepreferences',
  'virtualmachineclusterpreferences',
];

function rule(verbs: readonly string[], apiGroup: string, resources: readonly string[]): Rule {
  return { verbs, apiGroups: [apiGroup], resources };
}

/** Roles that make admins, editors and viewers of a namespace those of its machines, and what everybody may see. */
export function userRights(): KubeObject[] {
  return [
    userRole('admin', [
      ...subresourceRules(isForEditors),
      rule([...EDIT, 'deletecollection'], 'kubevirt.io', MACHINES),
      ...readMigrations(),
      rule([...EDIT, 'deletecollection'], 'instancetype.kubevirt.io', INSTANCETYPES),
    ]),
    userRole('edit', [
      ...subresourceRules(isForEditors),
      rule(EDIT, 'kubevirt.io', MACHINES),
      ...readMigrations(),
      rule(EDIT, 'instancetype.kubevirt.io', INSTANCETYPES),
      rule(['get', 'list'], 'kubevirt.io', ['kubevirts']),
    ]),
    userRole('view', [
      // What was said on the console is as good as the console to whoever looks for passwords.
      ...subresourceRules(({ subresource }) => subresource === 'guestosinfo' || subresource === 'migrationpolicy'),
      rule(READ, 'kubevirt.io', MACHINES),
      ...readMigrations(),
      rule(READ, 'instancetype.kubevirt.io', INSTANCETYPES),
      rule(['get', 'list'], 'kubevirt.io', ['kubevirts']),
    ]),
    // Part of no other role: migrations take from what all have in common, so an admin says who may ask for them.
    clusterRole('kubevirt.io:migrate', [
      ...subresourceRules((each) => !isForEditors(each) && !isOverride(each)),
      rule([...EDIT, 'deletecollection'], 'kubevirt.io', MIGRATIONS),
    ]),
    // Nor this one: whoever is wrong about the other side has the same guest run twice.
    clusterRole('kubevirt.io:reclaim', subresourceRules(isOverride)),
    clusterRole('kubevirt.io:default', [
      rule(['get', 'list'], 'kubevirt.io', ['kubevirts']),
      rule(['get', 'list'], SUBRESOURCE_GROUP, ['version']),
    ]),
    binding('kubevirt.io:default', { kind: 'Group', apiGroup: RBAC, name: 'system:authenticated' }),
    clusterRole('instancetype.kubevirt.io:view', [
      rule(READ, 'instancetype.kubevirt.io', [
        'virtualmachineclusterinstancetypes',
        'virtualmachineclusterpreferences',
      ]),
    ]),
    binding('instancetype.kubevirt.io:view', { kind: 'Group', apiGroup: RBAC, name: 'system:authenticated' }),
  ];
}

function isForEditors({ subresource }: Subresource): boolean {
  return !['migrate', 'evacuate/cancel', 'reclaim'].includes(subresource);
}

function isOverride({ subresource }: Subresource): boolean {
  return subresource === 'reclaim';
}

function readMigrations(): Rule[] {
  return [rule(READ, 'kubevirt.io', MIGRATIONS), rule(READ, POLICIES, ['migrationpolicies'])];
}

/** The rights to all subresources that are wanted, one rule for each verb. */
function subresourceRules(isWanted: (each: Subresource) => boolean): Rule[] {
  const named = (method: Subresource['method']): string[] =>
    SUBRESOURCES.filter((each) => each.method === method && isWanted(each)).flatMap(({ resource, subresource }) => {
      // API servers know subresources by their first word, we by all of them.
      const [first = ''] = subresource.split('/');
      return [...new Set([first, subresource])].map((each) => `${resource}/${each}`);
    });
  return [rule(['get'], SUBRESOURCE_GROUP, named('GET')), rule(['update'], SUBRESOURCE_GROUP, named('PUT'))].filter(
    ({ resources }) => resources.length > 0,
  );
}

const EXTENSION_ROLE = 'godwit:extension';
const ACCOUNT = { kind: 'ServiceAccount', name: SERVICE_ACCOUNT, namespace: SYSTEM_NAMESPACE };

/** The extension's account with its roles: no more than it does. */
export function extensionRights(): KubeObject[] {
  return [
    { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: SERVICE_ACCOUNT, namespace: SYSTEM_NAMESPACE } },
    clusterRole(EXTENSION_ROLE, [
      rule(['get', 'patch'], 'kubevirt.io', MACHINES),
      rule(['patch'], 'kubevirt.io', ['virtualmachines/status', 'virtualmachineinstances/status']),
      rule(READ, 'kubevirt.io', ['kubevirts']),
      rule([...READ, 'create'], 'kubevirt.io', MIGRATIONS),
      rule(READ, POLICIES, ['migrationpolicies']),
      rule(['get'], 'instancetype.kubevirt.io', INSTANCETYPES),
      rule(READ, '', ['nodes']),
      // Whoever is to be evicted is looked at, and what keeps it.
      rule(['get', 'list'], '', ['pods']),
      rule(READ, 'policy', ['poddisruptionbudgets']),
      rule(['create', 'patch'], '', ['events']),
      // Policies choose by their labels.
      rule(['get'], '', ['namespaces']),
      // Consoles, logs and what is done to guests: agents have these, kubelets do not know the name.
      rule(['get', 'update'], '', ['nodes/guests']),
      rule(['create'], 'authorization.k8s.io', ['subjectaccessreviews']),
      ...OWN_WEBHOOKS.flatMap(([resource, name]) => [
        rule(['create'], 'admissionregistration.k8s.io', [resource]),
        { ...rule(['get', 'patch'], 'admissionregistration.k8s.io', [resource]), resourceNames: [name] },
      ]),
      rule(['create'], 'apiregistration.k8s.io', ['apiservices']),
      { ...rule(['get', 'patch'], 'apiregistration.k8s.io', ['apiservices']), resourceNames: OWN_API_SERVICES },
    ]),
    binding(EXTENSION_ROLE, ACCOUNT),
    {
      apiVersion: `${RBAC}/v1`,
      kind: 'Role',
      metadata: { name: EXTENSION_ROLE, namespace: SYSTEM_NAMESPACE },
      rules: [
        rule(['create'], '', ['secrets']),
        { ...rule(['get', 'update'], '', ['secrets']), resourceNames: [SECRET_NAME] },
        rule(['create'], '', ['services']),
        { ...rule(['get', 'patch'], '', ['services']), resourceNames: [SERVICE_NAME] },
        { ...rule(['create'], '', ['serviceaccounts/token']), resourceNames: [SERVICE_ACCOUNT] },
      ],
    },
    roleBinding(SYSTEM_NAMESPACE, EXTENSION_ROLE, EXTENSION_ROLE),
    // Where the API server says whom to believe.
    roleBinding('kube-system', EXTENSION_ROLE, 'extension-apiserver-authentication-reader'),
  ];
}

const OWN_WEBHOOKS = [
  ['validatingwebhookconfigurations', 'virt-api-validator'],
  ['mutatingwebhookconfigurations', 'virt-api-mutator'],
] as const;
const OWN_API_SERVICES = SUBRESOURCE_VERSIONS.map((version) => `${version}.${SUBRESOURCE_GROUP}`);

/** Part of Kubernetes' role of the same name, in every namespace where that is bound. */
function userRole(name: string, rules: readonly Rule[]): KubeObject {
  return clusterRole(`kubevirt.io:${name}`, rules, { [`${RBAC}/aggregate-to-${name}`]: 'true' });
}

function clusterRole(name: string, rules: readonly Rule[], labels: Record<string, string> = {}): KubeObject {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRole',
    metadata: { name, labels: { 'kubevirt.io': '', ...labels } },
    rules,
  };
}

function binding(name: string, subject: object): KubeObject {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'ClusterRoleBinding',
    metadata: { name, labels: { 'kubevirt.io': '' } },
    roleRef: { apiGroup: RBAC, kind: 'ClusterRole', name },
    subjects: [subject],
  };
}

function roleBinding(namespace: string, name: string, role: string): KubeObject {
  return {
    apiVersion: `${RBAC}/v1`,
    kind: 'RoleBinding',
    metadata: { name, namespace },
    roleRef: { apiGroup: RBAC, kind: 'Role', name: role },
    subjects: [ACCOUNT],
  };
}
