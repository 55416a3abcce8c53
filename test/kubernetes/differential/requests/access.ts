import { get, type Group, inNamespace, post, refused, remove, silently } from '../request.ts';

const RBAC = '/apis/rbac.authorization.k8s.io/v1';
const ROLES = `${RBAC}/namespaces/$ns/roles`;
const BINDINGS = `${RBAC}/namespaces/$ns/rolebindings`;
const REVIEWS = '/apis/authorization.k8s.io/v1';
const TABLE = { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } };
const MAPS = '/api/v1/namespaces/$ns/configmaps';
const as = (user: string, more: Record<string, string> = {}): { headers: Record<string, string> } => ({
  headers: { 'impersonate-user': user, ...more },
});
const ALICE = as('alice');
const asks = (user: string, attributes: object, more: object = {}): object => ({
  spec: { user, resourceAttributes: attributes, ...more },
});
const isAllowed = ({ body }: { body: { status?: { allowed?: boolean } } }): boolean => body.status?.allowed === true;

export const ACCESS: Group = {
  name: 'access',
  requests: inNamespace([
    post('makes a role', ROLES, {
      metadata: { name: 'reader' },
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list'] }],
    }),
    refused(422).post('makes a role without verbs', ROLES, {
      metadata: { name: 'bad' },
      rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: [] }],
    }),
    refused(422).post('makes a role without groups', ROLES, {
      metadata: { name: 'bad' },
      rules: [{ resources: ['configmaps'], verbs: ['get'] }],
    }),
    refused(422).post('makes a role of paths', ROLES, {
      metadata: { name: 'bad' },
      rules: [{ nonResourceURLs: ['/x'], verbs: ['get'] }],
    }),
    refused(422).post('makes a role of paths and resources', `${RBAC}/clusterroles`, {
      metadata: { name: 'bad' },
      rules: [{ nonResourceURLs: ['/x'], apiGroups: [''], resources: ['x'], verbs: ['get'] }],
    }),
    refused(422).post('makes a role with a bad name', ROLES, { metadata: { name: 'a/b' } }),
    post('makes a role of the cluster', `${RBAC}/clusterroles`, {
      metadata: { name: '$ns' },
      rules: [{ nonResourceURLs: ['/x*'], verbs: ['get'] }],
    }),
    post('binds a role', BINDINGS, {
      metadata: { name: 'alice' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
      subjects: [{ kind: 'User', name: 'alice' }],
    }),
    refused(422).post('binds nothing', BINDINGS, {
      metadata: { name: 'bad' },
      roleRef: {},
      subjects: [{ kind: 'Odd', name: '' }],
    }),
    post('binds an account without a namespace', BINDINGS, {
      metadata: { name: 'bad' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'x' },
      subjects: [{ kind: 'ServiceAccount', name: 'a' }],
    }),
    refused(422).put('binds another role', `${BINDINGS}/alice`, {
      metadata: { name: 'alice' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'other' },
    }),
    get('a role as a table', `${ROLES}/reader`, TABLE),
    get('a binding as a table', `${BINDINGS}/alice`, TABLE),
    post(
      'asks for alice',
      `${REVIEWS}/subjectaccessreviews`,
      asks('alice', { namespace: '$ns', verb: 'get', resource: 'configmaps' }),
      { until: isAllowed },
    ),
    post(
      'asks for alice about more',
      `${REVIEWS}/subjectaccessreviews`,
      asks('alice', { namespace: '$ns', verb: 'delete', resource: 'configmaps' }),
    ),
    post('asks for a group', `${REVIEWS}/subjectaccessreviews`, {
      spec: { groups: ['system:masters'], resourceAttributes: { verb: '*', resource: '*', group: '*' } },
    }),
    refused(422).post(
      'asks for nobody',
      `${REVIEWS}/subjectaccessreviews`,
      asks('', { verb: 'get', resource: 'configmaps' }),
    ),
    refused(422).post('asks about nothing', `${REVIEWS}/subjectaccessreviews`, { spec: { user: 'alice' } }),
    refused(422).post(
      'asks about both',
      `${REVIEWS}/subjectaccessreviews`,
      asks('alice', { verb: 'get', resource: 'x' }, { nonResourceAttributes: { path: '/x', verb: 'get' } }),
    ),
    post('asks about a path', `${REVIEWS}/subjectaccessreviews`, {
      spec: { user: 'alice', nonResourceAttributes: { path: '/healthz', verb: 'get' } },
    }),
    post('asks for itself', `${REVIEWS}/selfsubjectaccessreviews`, {
      spec: { resourceAttributes: { verb: 'get', resource: 'pods' } },
    }),
    post(
      'asks for itself as alice',
      `${REVIEWS}/selfsubjectaccessreviews`,
      { spec: { resourceAttributes: { namespace: '$ns', verb: 'list', resource: 'configmaps' } } },
      ALICE,
    ),
    post('asks in its namespace', `${REVIEWS}/namespaces/$ns/localsubjectaccessreviews`, {
      metadata: { namespace: '$ns' },
      ...asks('alice', { namespace: '$ns', verb: 'get', resource: 'configmaps' }),
    }),
    refused(422).post(
      'asks in another namespace',
      `${REVIEWS}/namespaces/$ns/localsubjectaccessreviews`,
      asks('alice', { namespace: 'default', verb: 'get', resource: 'configmaps' }),
    ),
    post(
      'asks for rules',
      `${REVIEWS}/selfsubjectrulesreviews`,
      { spec: { namespace: '$ns' } },
      {
        ...ALICE,
        view: ({ status }) => ({
          ...status,
          resourceRules: status.resourceRules.filter(({ resources }: { resources: string[] }) =>
            resources.includes('configmaps'),
          ),
          nonResourceRules: status.nonResourceRules?.length > 0,
        }),
      },
    ),
    refused(400).post('asks for rules of no namespace', `${REVIEWS}/selfsubjectrulesreviews`, { spec: {} }),
    post(
      'asks who it is',
      '/apis/authentication.k8s.io/v1/selfsubjectreviews',
      {},
      as('alice', { 'impersonate-group': 'people', 'impersonate-extra-scope': 'x' }),
    ),
    refused(405).get('gets reviews', `${REVIEWS}/subjectaccessreviews`),
    get('reads as alice', `${MAPS}?labelSelector=mine`, { ...ALICE, view: ({ items }) => items.length }),
    refused(403).post('writes as alice', MAPS, { metadata: { name: 'x' } }, ALICE),
    refused(404).get('reads one as alice', `${MAPS}/nothing`, ALICE),
    refused(403).remove('deletes as alice', `${MAPS}/nothing`, undefined, ALICE),
    refused(403).remove('deletes all as alice', MAPS, undefined, ALICE),
    refused(403).mergePatch(
      'patches as alice',
      `${MAPS}/nothing`,
      {},
      { headers: { 'impersonate-user': 'alice', 'content-type': 'application/merge-patch+json' } },
    ),
    refused(403).get('watches as alice', `${MAPS}?watch=true&timeoutSeconds=1`, ALICE),
    refused(403).get('reads elsewhere as alice', '/api/v1/namespaces/default/configmaps', ALICE),
    refused(403).get('reads everywhere as alice', '/api/v1/configmaps', ALICE),
    refused(403).get('reads a node as alice', '/api/v1/nodes/x', ALICE),
    refused(403).get('reads a subresource as alice', '/api/v1/namespaces/$ns/pods/x/log', ALICE),
    refused(403).get('reads a group as alice', '/apis/apps/v1/namespaces/$ns/deployments', ALICE),
    refused(403).get('reads an unknown resource as alice', '/api/v1/namespaces/$ns/nothings', ALICE),
    refused(403).get('reads a path as alice', '/metrics', ALICE),
    get('reads discovery as alice', '/api', { ...ALICE, view: ({ kind }) => kind }),
    get('reads as a group', `${MAPS}?labelSelector=mine`, {
      ...as('bob', { 'impersonate-group': 'system:masters' }),
      view: ({ items }) => items.length,
    }),
    get('reads as nobody', MAPS, { headers: { 'impersonate-group': 'people' } }),
    refused(403).get('reads as an account', MAPS, as('system:serviceaccount:$ns:default')),
    refused(403).get('reads as a bad account', MAPS, as('system:serviceaccount:x')),
    get('reads with extras alone', MAPS, { headers: { 'impersonate-extra-a': 'b' } }),
    get('reads as a uid alone', MAPS, { headers: { 'impersonate-uid': 'b' } }),
    get('reads with a bad token besides', `${MAPS}?labelSelector=mine`, {
      headers: { authorization: 'Bearer nonsense' },
    }),
    refused(403).post(
      'grants more than one has',
      ROLES,
      { metadata: { name: 'more' }, rules: [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }] },
      as('carol'),
    ),
    silently(
      post('lets carol write roles', ROLES, {
        metadata: { name: 'writer' },
        rules: [
          {
            apiGroups: ['rbac.authorization.k8s.io'],
            resources: ['roles', 'rolebindings'],
            verbs: ['create', 'update'],
          },
        ],
      }),
    ),
    silently(
      post('binds carol', BINDINGS, {
        metadata: { name: 'carol' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'writer' },
        subjects: [{ kind: 'User', name: 'carol' }],
      }),
    ),
    silently(
      post(
        'waits for carol',
        `${REVIEWS}/subjectaccessreviews`,
        asks('carol', { namespace: '$ns', verb: 'create', group: 'rbac.authorization.k8s.io', resource: 'roles' }),
        { until: isAllowed },
      ),
    ),
    refused(403).post(
      'escalates',
      ROLES,
      {
        metadata: { name: 'more' },
        rules: [
          { apiGroups: [''], resources: ['secrets', 'pods'], verbs: ['get', 'list'] },
          { apiGroups: ['apps'], resources: ['*'], verbs: ['*'] },
        ],
      },
      as('carol'),
    ),
    refused(403).post(
      'binds what it has not',
      BINDINGS,
      {
        metadata: { name: 'more' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
        subjects: [{ kind: 'User', name: 'carol' }],
      },
      as('carol'),
    ),
    refused(404).post(
      'binds what is not there',
      BINDINGS,
      {
        metadata: { name: 'more' },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'nothing' },
        subjects: [{ kind: 'User', name: 'carol' }],
      },
      as('carol'),
    ),
    post(
      'grants what it has',
      ROLES,
      {
        metadata: { name: 'same' },
        rules: [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['create'] }],
      },
      as('carol'),
    ),
    post(
      'asks for a token',
      '/api/v1/namespaces/$ns/serviceaccounts/default/token',
      { spec: { audiences: ['godwit'], expirationSeconds: 600 } },
      { view: ({ kind, apiVersion, spec, status }) => [kind, apiVersion, spec, Object.keys(status)] },
    ),
    refused(422).post('asks for a short token', '/api/v1/namespaces/$ns/serviceaccounts/default/token', {
      spec: { expirationSeconds: 60 },
    }),
    refused(422).post('asks for a long token', '/api/v1/namespaces/$ns/serviceaccounts/default/token', {
      spec: { expirationSeconds: 4294967297 },
    }),
    post('asks for a token of nobody', '/api/v1/namespaces/$ns/serviceaccounts/nothing/token', {}),
    refused(404).post('asks for a token bound to nothing', '/api/v1/namespaces/$ns/serviceaccounts/default/token', {
      spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'nothing' } },
    }),
    refused(400).post(
      'asks for a token bound to something odd',
      '/api/v1/namespaces/$ns/serviceaccounts/default/token',
      {
        spec: { boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'nothing' } },
      },
    ),
    post('reviews a bad token', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: 'nonsense' } }),
    refused(400).post('reviews no token', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: {} }),
    remove('deletes a role', `${ROLES}/reader`),
  ]),
};
