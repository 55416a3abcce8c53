import { describe, expect, it } from 'vitest';
import { created, createErrors, updateErrors } from '../test-kinds.ts';
import { clusterRoleBindingDefinition, roleBindingDefinition } from './bindings.ts';
import { clusterRoleDefinition, roleDefinition } from './roles.ts';

const GROUP = 'rbac.authorization.k8s.io';
const rule = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };

describe('roles', () => {
  it('name verbs, groups and resources', () => {
    expect(createErrors(roleDefinition, { rules: [rule, { ...rule, resourceNames: ['x'] }] })).toEqual([]);
    expect(createErrors(roleDefinition, {})).toEqual([]);
    expect(createErrors(roleDefinition, { rules: [{ verbs: [] }] })).toEqual([
      'rules[0].verbs: Required value: verbs must contain at least one value',
      'rules[0].apiGroups: Required value: resource rules must supply at least one api group',
      'rules[0].resources: Required value: resource rules must supply at least one resource',
    ]);
  });

  it('name other paths only in the whole cluster, and alone', () => {
    const paths = { verbs: ['get'], nonResourceURLs: ['/healthz'] };
    expect(createErrors(clusterRoleDefinition, { rules: [paths] })).toEqual([]);
    expect(createErrors(roleDefinition, { rules: [paths] })).toEqual([
      'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: namespaced rules cannot apply to non-resource URLs',
    ]);
    expect(createErrors(clusterRoleDefinition, { rules: [{ ...paths, resources: ['pods'] }] })).toEqual([
      'rules[0].nonResourceURLs: Invalid value: ["/healthz"]: rules cannot apply to both regular resources and non-resource URLs',
    ]);
  });

  it('aggregate by selectors', () => {
    const aggregate = (clusterRoleSelectors: unknown): object => ({ aggregationRule: { clusterRoleSelectors } });
    expect(createErrors(clusterRoleDefinition, aggregate([{ matchLabels: { a: 'b' } }]))).toEqual([]);
    expect(createErrors(clusterRoleDefinition, aggregate([]))).toHaveLength(1);
    expect(createErrors(clusterRoleDefinition, aggregate([{ matchLabels: { a: '!' } }]))).toHaveLength(1);
  });
});

describe('bindings', () => {
  const roleRef = { apiGroup: GROUP, kind: 'ClusterRole', name: 'r' };

  it('are completed with the group', () => {
    const binding = {
      roleRef: { kind: 'Role', name: 'r' },
      subjects: [
        { kind: 'User', name: 'u' },
        { kind: 'ServiceAccount', name: 's', namespace: 'n' },
      ],
    };
    expect(created(roleBindingDefinition, binding)).toMatchObject({
      roleRef: { apiGroup: GROUP },
      subjects: [{ kind: 'User', apiGroup: GROUP }, { kind: 'ServiceAccount' }],
    });
    expect(createErrors(roleBindingDefinition, binding)).toEqual([]);
  });

  it.each<[object, string[]]>([
    [{ kind: 'Group', name: 'g' }, []],
    [{ kind: 'User', name: '' }, ['subjects[0].name: Required value']],
    [
      { kind: 'User', name: 'u', apiGroup: 'x' },
      [`subjects[0].apiGroup: Unsupported value: "x": supported values: "${GROUP}"`],
    ],
    [{ kind: 'ServiceAccount', name: 's' }, ['subjects[0].namespace: Required value']],
    [
      { kind: 'ServiceAccount', name: 's', namespace: 'n', apiGroup: 'x' },
      ['subjects[0].apiGroup: Unsupported value: "x": supported values: ""'],
    ],
    [
      { kind: 'Robot', name: 'r' },
      ['subjects[0].kind: Unsupported value: "Robot": supported values: "ServiceAccount", "User", "Group"'],
    ],
  ])('grant to %j', (subject, errors) => {
    expect(createErrors(clusterRoleBindingDefinition, { roleRef: { ...roleRef }, subjects: [subject] })).toEqual(
      errors,
    );
  });

  it.each<[object, string[]]>([
    [{ kind: 'Role', name: 'r' }, ['roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"']],
    [{ kind: 'ClusterRole', name: '' }, ['roleRef.name: Required value']],
    [{ kind: 'ClusterRole', name: 'a/b' }, ['roleRef.name: Invalid value: "a/b": may not contain \'/\'']],
  ])('of the whole cluster refer to %j', (reference, errors) => {
    expect(createErrors(clusterRoleBindingDefinition, { roleRef: reference })).toEqual(errors);
  });

  it('keep their role', () => {
    const changed = { roleRef: { ...roleRef, name: 'other' } };
    expect(updateErrors(roleBindingDefinition, { roleRef: { ...roleRef } }, { roleRef: { ...roleRef } })).toEqual([]);
    expect(updateErrors(roleBindingDefinition, changed, { roleRef: { ...roleRef } })).toEqual([
      `roleRef: Invalid value: ${JSON.stringify(changed.roleRef)}: cannot change roleRef`,
    ]);
  });
});
