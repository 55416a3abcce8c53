import { child, type FieldError, invalid, required } from '../../field-error.ts';
import type { KubeObject } from '../../meta.ts';
import type { ResourceDefinition } from '../../resource.ts';
import { list, message, str } from '../../schema.ts';
import { type Fields, has, objectAt, objectsAt, textsAt } from '../core/fields.ts';
import { builtin, labelSelector, objectSchema } from '../meta.ts';
import { labelSelectorErrors } from '../validation.ts';

/** rbac.authorization.k8s.io/v1 Role and ClusterRole. */

const RBAC = 'io.k8s.api.rbac.v1';

const policyRule = message(
  `${RBAC}.PolicyRule`,
  'What may be done to which resources.',
  {
    verbs: [1, list(str()), 'The verbs; `*` is all.'],
    apiGroups: [2, list(str()), 'The groups; the empty string is the core group, `*` is all.'],
    resources: [3, list(str()), 'The resources and subresources; `*` is all.'],
    resourceNames: [4, list(str()), 'The names that the rule is limited to; empty means all.'],
    nonResourceURLs: [5, list(str()), 'Paths that are no resources; a trailing `*` matches the rest.'],
  },
  { required: ['verbs'] },
);

const role = objectSchema(`${RBAC}.Role`, 'Rules that can be granted within its namespace.', {
  rules: [2, list(policyRule), 'What the role allows.'],
});

const aggregationRule = message(`${RBAC}.AggregationRule`, 'Whose rules a ClusterRole is put together from.', {
  clusterRoleSelectors: [1, list(labelSelector), 'Which ClusterRoles add their rules.'],
});

const clusterRole = objectSchema(
  `${RBAC}.ClusterRole`,
  'Rules that can be granted in any namespace or in the whole cluster.',
  {
    rules: [2, list(policyRule), 'What the role allows.'],
    aggregationRule: [
      3,
      aggregationRule,
      'If set, the rules are put together from other ClusterRoles and own ones are overwritten.',
    ],
  },
);

function ruleErrors(rule: Fields, isNamespaced: boolean, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (has(rule, 'verbs') && textsAt(rule, 'verbs').length === 0) {
    errors.push(required(child(path, 'verbs'), 'verbs must contain at least one value'));
  }
  const urls = textsAt(rule, 'nonResourceURLs');
  const count = (field: string): number => textsAt(rule, field).length;
  if (urls.length > 0) {
    const urlsPath = child(path, 'nonResourceURLs');
    if (isNamespaced) errors.push(invalid(urlsPath, urls, 'namespaced rules cannot apply to non-resource URLs'));
    if (count('apiGroups') + count('resources') + count('resourceNames') > 0) {
      const detail = 'rules cannot apply to both regular resources and non-resource URLs';
      errors.push(invalid(urlsPath, urls, detail));
    }
    return errors;
  }
  if (count('apiGroups') === 0) {
    errors.push(required(child(path, 'apiGroups'), 'resource rules must supply at least one api group'));
  }
  if (count('resources') === 0) {
    errors.push(required(child(path, 'resources'), 'resource rules must supply at least one resource'));
  }
  return errors;
}

function rulesErrors(role: KubeObject, isNamespaced: boolean): FieldError[] {
  return objectsAt(role, 'rules').flatMap((rule, index) => ruleErrors(rule, isNamespaced, child('rules', index)));
}

function aggregationErrors(role: KubeObject): FieldError[] {
  const aggregation = objectAt(role, 'aggregationRule');
  if (aggregation === undefined) return [];
  const path = 'aggregationRule.clusterRoleSelectors';
  const selectors = objectsAt(aggregation, 'clusterRoleSelectors');
  if (selectors.length === 0) {
    return [required(path, 'at least one clusterRoleSelector required if aggregationRule is non-nil')];
  }
  return selectors.flatMap((selector, index) => labelSelectorErrors(selector, child(path, index)));
}

/** Rules that can be granted within a namespace. */
export const roleDefinition: ResourceDefinition = builtin({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'roles',
  kind: 'Role',
  namespaced: true,
  createsOnUpdate: true,
  schema: role,
  nameRule: 'path-segment',
  strategy: { validate: (object) => rulesErrors(object, true) },
});

/** Rules that can be granted anywhere. */
export const clusterRoleDefinition: ResourceDefinition = builtin({
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'clusterroles',
  kind: 'ClusterRole',
  namespaced: false,
  createsOnUpdate: true,
  schema: clusterRole,
  nameRule: 'path-segment',
  strategy: { validate: (object) => [...rulesErrors(object, false), ...aggregationErrors(object)] },
});
