import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { UserInfo } from '../http/message.ts';
import type { AdmissionAttributes } from '../registry/contract.ts';
import { EscalationAdmission } from './escalation.ts';
import { RbacAuthorizer } from './rbac.ts';
import { clusterBinding, clusterRole, role, roleBinding } from './roles.fixture.ts';
import { TestRegistry, userContext } from '../registry/registry.fixture.ts';

const RBAC = 'rbac.authorization.k8s.io';
const ann: UserInfo = { username: 'ann', groups: ['staff', 'system:authenticated'] };
const secrets = [{ verbs: ['get'], apiGroups: [''], resources: ['secrets'] }];
const pods = [{ verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] }];
const everything = [
  { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
  { verbs: ['*'], nonResourceURLs: ['*'] },
];

async function setup(
  ...objects: KubeObject[]
): Promise<(object: KubeObject, old?: KubeObject, user?: UserInfo) => Promise<string>> {
  const registry = await TestRegistry.open(...objects);
  const plugin = new EscalationAdmission(new RbacAuthorizer(registry));
  return async (object, old, user = ann) => {
    const definition = registry.definition(RBAC, 'v1', `${object.kind.toLowerCase()}s`);
    if (!definition) throw new Error('no definition');
    const attributes: AdmissionAttributes = {
      operation: old ? 'UPDATE' : 'CREATE',
      target: { definition, namespace: object.metadata.namespace ?? '', name: object.metadata.name ?? '' },
      object,
      oldObject: old,
      options: undefined,
      context: userContext({ user }),
    };
    expect(plugin.handles(attributes)).toBe(true);
    try {
      await plugin.validate(attributes);
      return 'allowed';
    } catch (error) {
      return (error as Error).message;
    }
  };
}

const REFUSED_SECRETS =
  'user "ann" (groups=["staff" "system:authenticated"]) is attempting to grant RBAC permissions not currently held:\n' +
  '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}';

describe('writing a role', () => {
  it('takes holding what it allows, where it counts', async () => {
    const write = await setup(
      clusterRole('secret-reader', secrets),
      roleBinding('ns', 'b', ['ClusterRole', 'secret-reader'], 'User:ann'),
    );
    expect(await write(role('ns', 'r', secrets))).toBe('allowed');
    expect(await write(role('other', 'r', secrets))).toBe(`roles.${RBAC} "r" is forbidden: ${REFUSED_SECRETS}`);
    expect(await write(clusterRole('r', secrets))).toBe(`clusterroles.${RBAC} "r" is forbidden: ${REFUSED_SECRETS}`);
    expect(await write(role('ns', 'r', secrets), role('ns', 'r', []))).toBe('allowed');
    expect(await write(role('other', 'r', secrets), role('other', 'r', []))).toContain('is forbidden');
  });

  it('lists all that is missing, joined and sorted', async () => {
    const write = await setup();
    expect(await write(role('ns', 'r', [...secrets, ...pods, { verbs: ['get'], nonResourceURLs: ['/metrics'] }]))).toBe(
      `roles.${RBAC} "r" is forbidden: user "ann" (groups=["staff" "system:authenticated"]) is attempting to grant ` +
        'RBAC permissions not currently held:\n' +
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}\n' +
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}\n' +
        '{NonResourceURLs:["/metrics"], Verbs:["get"]}',
    );
  });

  it('is free to those who may escalate, by name only when the name is there', async () => {
    const escalate = (resourceNames?: string[]) => [
      { verbs: ['escalate'], apiGroups: [RBAC], resources: ['roles'], ...(resourceNames ? { resourceNames } : {}) },
    ];
    const any = await setup(clusterRole('e', escalate()), clusterBinding('b', 'e', 'Group:staff'));
    expect(await any(role('ns', 'r', secrets))).toBe('allowed');
    expect(await any(clusterRole('r', secrets))).toContain('is forbidden');
    const named = await setup(clusterRole('e', escalate(['r'])), clusterBinding('b', 'e', 'User:ann'));
    expect(await named(role('ns', 'r', secrets))).toContain('is forbidden');
    expect(await named(role('ns', 'r', secrets), role('ns', 'r', []))).toBe('allowed');
    expect(await named(role('ns', 's', secrets), role('ns', 's', []))).toContain('is forbidden');
  });

  it('is free to system:masters', async () => {
    const write = await setup();
    expect(await write(clusterRole('r', everything), undefined, { username: 'x', groups: ['system:masters'] })).toBe(
      'allowed',
    );
  });

  it('takes everything to gather what nobody knows yet', async () => {
    const gatherer = (rules: typeof secrets): KubeObject => ({
      ...clusterRole('g', rules),
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: { a: 'b' } }] },
    });
    const some = await setup(clusterRole('s', secrets), clusterBinding('b', 's', 'User:ann'));
    const message = `clusterroles.${RBAC} "g" is forbidden: must have cluster-admin privileges to use the aggregationRule`;
    expect(await some(gatherer([]))).toBe(message);
    expect(await some(clusterRole('g', secrets), gatherer([]))).toBe(message);
    const all = await setup(clusterRole('all', everything), clusterBinding('b', 'all', 'User:ann'));
    expect(await all(gatherer(secrets))).toBe('allowed');
  });

  it('lets the garbage collector release it', async () => {
    const write = await setup();
    const old = clusterRole('r', everything);
    const owned: KubeObject = {
      ...old,
      metadata: {
        ...old.metadata,
        finalizers: ['x'],
        ownerReferences: [{ apiVersion: 'v1', kind: 'P', name: 'p', uid: 'u' }],
      },
    };
    expect(await write(owned, old)).toBe('allowed');
    expect(await write({ ...owned, metadata: { ...owned.metadata, labels: { to: 'admin' } } }, old)).toContain(
      'is forbidden',
    );
  });
});

describe('writing a binding', () => {
  it('takes holding what its role allows', async () => {
    const write = await setup(
      clusterRole('secret-reader', secrets),
      clusterRole('pod-reader', pods),
      role('ns', 'local', pods),
      clusterBinding('b', 'pod-reader', 'User:ann'),
    );
    expect(await write(clusterBinding('x', 'pod-reader', 'User:bob'))).toBe('allowed');
    expect(await write(roleBinding('ns', 'x', ['ClusterRole', 'pod-reader'], 'User:bob'))).toBe('allowed');
    expect(await write(roleBinding('ns', 'x', ['Role', 'local'], 'User:bob'))).toBe('allowed');
    expect(await write(clusterBinding('x', 'secret-reader', 'User:bob'))).toBe(
      `clusterrolebindings.${RBAC} "x" is forbidden: ${REFUSED_SECRETS}`,
    );
    expect(
      await write(
        roleBinding('ns', 'x', ['ClusterRole', 'secret-reader'], 'User:bob'),
        roleBinding('ns', 'x', ['ClusterRole', 'secret-reader']),
      ),
    ).toContain(`rolebindings.${RBAC} "x" is forbidden`);
  });

  it('to a role that does not exist takes the right to bind it', async () => {
    const write = await setup();
    expect(await write(clusterBinding('x', 'nope', 'User:bob'))).toBe(`clusterrolebindings.${RBAC} "nope" not found`);
    expect(await write(roleBinding('ns', 'x', ['Role', 'nope'], 'User:bob'))).toBe(
      `rolebindings.${RBAC} "nope" not found`,
    );
  });

  it('is free to those who may bind the role, there', async () => {
    const bind = [
      { verbs: ['bind'], apiGroups: [RBAC], resources: ['clusterroles'], resourceNames: ['secret-reader'] },
    ];
    const write = await setup(
      clusterRole('secret-reader', secrets),
      clusterRole('binder', bind),
      roleBinding('ns', 'b', ['ClusterRole', 'binder'], 'User:ann'),
    );
    expect(await write(roleBinding('ns', 'x', ['ClusterRole', 'secret-reader'], 'User:bob'))).toBe('allowed');
    expect(await write(roleBinding('other', 'x', ['ClusterRole', 'secret-reader'], 'User:bob'))).toContain(
      'is forbidden',
    );
    expect(await write(clusterBinding('x', 'secret-reader', 'User:bob'))).toContain('is forbidden');
    expect(await write(roleBinding('ns', 'x', ['ClusterRole', 'binder'], 'User:ann'))).toBe('allowed');
  });

  it('to a gathering role counts what it gathers', async () => {
    const write = await setup(
      { ...clusterRole('g', []), aggregationRule: { clusterRoleSelectors: [{ matchLabels: { to: 'g' } }] } },
      clusterRole('secret-reader', secrets, { to: 'g' }),
    );
    expect(await write(clusterBinding('x', 'g', 'User:ann'))).toContain('Resources:["secrets"]');
  });
});

it('looks at nothing else', async () => {
  const registry = await TestRegistry.open();
  const plugin = new EscalationAdmission(new RbacAuthorizer(registry));
  const definition = registry.definition('', 'v1', 'pods');
  const roles = registry.definition(RBAC, 'v1', 'roles');
  if (!definition || !roles) throw new Error('no definition');
  const base = { object: undefined, oldObject: undefined, options: undefined, context: userContext({ user: ann }) };
  const target = { namespace: 'ns', name: 'x' };
  expect(plugin.handles({ ...base, operation: 'CREATE', target: { ...target, definition } })).toBe(false);
  expect(plugin.handles({ ...base, operation: 'DELETE', target: { ...target, definition: roles } })).toBe(false);
});
