import { child, type FieldError, invalid, notSupported, required } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import { dnsSubdomainErrors, pathSegmentErrors } from '../../names.ts';
import type { Column, ResourceDefinition, Strategy } from '../../resource.ts';
import { list, message, str } from '../../schema.ts';
import { ageColumn, column, nameColumn, wideColumn } from '../columns.ts';
import { type Fields, has, objectAt, objectsAt, setDefault, textAt } from '../core/fields.ts';
import { builtin, objectSchema } from '../meta.ts';
import { isSame } from '../validation.ts';

/** rbac.authorization.k8s.io/v1 RoleBinding and ClusterRoleBinding. */

const RBAC = 'io.k8s.api.rbac.v1';
const GROUP = 'rbac.authorization.k8s.io';

const subject = message(
  `${RBAC}.Subject`,
  'A user, a group or a service account.',
  {
    kind: [1, str(), 'User, Group or ServiceAccount.'],
    apiGroup: [2, str(), 'Empty for service accounts, rbac.authorization.k8s.io for the others.'],
    name: [3, str(), 'The name.'],
    namespace: [4, str(), "A service account's namespace."],
  },
  { required: ['kind', 'name'], 'x-kubernetes-map-type': 'atomic' },
);

const roleRef = message(
  `${RBAC}.RoleRef`,
  'The role that is granted.',
  {
    apiGroup: [1, str(), 'Always rbac.authorization.k8s.io.'],
    kind: [2, str(), 'Role or ClusterRole.'],
    name: [3, str(), "The role's name."],
  },
  { required: ['apiGroup', 'kind', 'name'], 'x-kubernetes-map-type': 'atomic' },
);

const roleBinding = objectSchema(
  `${RBAC}.RoleBinding`,
  'Grants a role within its namespace.',
  {
    subjects: [2, list(subject), 'Whom the role is granted to.'],
    roleRef: [3, roleRef, 'The role; it cannot be changed.'],
  },
  { required: ['roleRef'] },
);

const clusterRoleBinding = objectSchema(
  `${RBAC}.ClusterRoleBinding`,
  'Grants a ClusterRole in the whole cluster.',
  {
    subjects: [2, list(subject), 'Whom the role is granted to.'],
    roleRef: [3, roleRef, 'The role; it cannot be changed.'],
  },
  { required: ['roleRef'] },
);

function applyDefaults(binding: KubeObject): void {
  const reference = objectAt(binding, 'roleRef');
  if (reference !== undefined) setDefault(reference, 'apiGroup', GROUP);
  for (const each of objectsAt(binding, 'subjects')) {
    if (each['kind'] === 'User' || each['kind'] === 'Group') setDefault(each, 'apiGroup', GROUP);
  }
}

function roleRefErrors(reference: Fields | undefined, kinds: readonly string[]): FieldError[] {
  if (reference === undefined) return [];
  const errors: FieldError[] = [];
  const apiGroup = textAt(reference, 'apiGroup');
  if (apiGroup !== GROUP) errors.push(notSupported('roleRef.apiGroup', apiGroup, [GROUP]));
  const kind = textAt(reference, 'kind');
  if (has(reference, 'kind') && !kinds.includes(kind)) errors.push(notSupported('roleRef.kind', kind, kinds));
  const name = textAt(reference, 'name');
  if (has(reference, 'name') && name === '') errors.push(required('roleRef.name'));
  return [...errors, ...pathSegmentErrors(name).map((detail) => invalid('roleRef.name', name, detail))];
}

function subjectErrors(each: Fields, isNamespaced: boolean, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const name = textAt(each, 'name');
  const apiGroup = textAt(each, 'apiGroup');
  const kind = textAt(each, 'kind');
  if (has(each, 'name') && name === '') errors.push(required(child(path, 'name')));
  if (kind === 'ServiceAccount') {
    if (name !== '') {
      errors.push(...dnsSubdomainErrors(name).map((detail) => invalid(child(path, 'name'), name, detail)));
    }
    if (apiGroup !== '') errors.push(notSupported(child(path, 'apiGroup'), apiGroup, ['']));
    if (!isNamespaced && textAt(each, 'namespace') === '') errors.push(required(child(path, 'namespace')));
  } else if (kind === 'User' || kind === 'Group') {
    if (apiGroup !== GROUP) errors.push(notSupported(child(path, 'apiGroup'), apiGroup, [GROUP]));
  } else if (has(each, 'kind')) {
    errors.push(notSupported(child(path, 'kind'), kind, ['ServiceAccount', 'User', 'Group']));
  }
  return errors;
}

function bindingStrategy(isNamespaced: boolean, roleKinds: readonly string[]): Strategy {
  return {
    applyDefaults,
    validate: (binding) => [
      ...roleRefErrors(objectAt(binding, 'roleRef'), roleKinds),
      ...objectsAt(binding, 'subjects').flatMap((each, index) =>
        subjectErrors(each, isNamespaced, child('subjects', index)),
      ),
    ],
    validateUpdate: (binding, old) =>
      isSame(binding.roleRef, old.roleRef) ? [] : [invalid('roleRef', binding.roleRef, 'cannot change roleRef')],
  };
}

function subjectsText(binding: KubeObject, kind: string): string {
  return objectsAt(binding, 'subjects')
    .filter((each) => each['kind'] === kind)
    .map((each) =>
      kind === 'ServiceAccount' ? `${textAt(each, 'namespace')}/${textAt(each, 'name')}` : textAt(each, 'name'),
    )
    .join(', ');
}

const bindingColumns: readonly Column[] = [
  nameColumn,
  column('Role', 'string', 'The role that is granted.', (_spec, _status, binding) => {
    const reference = objectAt(binding, 'roleRef');
    return `${textAt(reference, 'kind')}/${textAt(reference, 'name')}`;
  }),
  ageColumn,
  wideColumn('Users', 'string', 'Users that it is granted to.', (_spec, _status, binding) =>
    subjectsText(binding, 'User'),
  ),
  wideColumn('Groups', 'string', 'Groups that it is granted to.', (_spec, _status, binding) =>
    subjectsText(binding, 'Group'),
  ),
  wideColumn('ServiceAccounts', 'string', 'Service accounts that it is granted to.', (_spec, _status, binding) =>
    subjectsText(binding, 'ServiceAccount'),
  ),
];

/** Grants a role within a namespace. */
export const roleBindingDefinition: ResourceDefinition = builtin({
  group: GROUP,
  version: 'v1',
  plural: 'rolebindings',
  kind: 'RoleBinding',
  namespaced: true,
  createsOnUpdate: true,
  schema: roleBinding,
  nameRule: 'path-segment',
  columns: bindingColumns,
  strategy: bindingStrategy(true, ['Role', 'ClusterRole']),
});

/** Grants a ClusterRole in the whole cluster. */
export const clusterRoleBindingDefinition: ResourceDefinition = builtin({
  group: GROUP,
  version: 'v1',
  plural: 'clusterrolebindings',
  kind: 'ClusterRoleBinding',
  namespaced: false,
  createsOnUpdate: true,
  schema: clusterRoleBinding,
  nameRule: 'path-segment',
  columns: bindingColumns,
  strategy: bindingStrategy(false, ['ClusterRole']),
});
