import type { Anything } from '../../../support/api.ts';
import { get, type Group, inNamespace, mergePatch, post, refused, silently, without } from '../request.ts';

const NAMESPACES = '/api/v1/namespaces';
const SECRETS = '/api/v1/namespaces/$ns/secrets';
const SERVICES = '/api/v1/namespaces/$ns/services';
const ACCOUNTS = '/api/v1/namespaces/$ns/serviceaccounts';
const PRIORITIES = '/apis/scheduling.k8s.io/v1/priorityclasses';
const RUNTIMES = '/apis/node.k8s.io/v1/runtimeclasses';
const TABLE = { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } };
const service = (name: string, spec: object): object => ({
  metadata: { name },
  spec: { selector: { a: 'b' }, ports: [{ port: 80 }], ...spec },
});
/** Addresses are from ranges of their own. */
const withoutAddress = {
  view: ({ metadata, spec }: Anything): unknown => ({
    metadata: without(metadata, 'managedFields'),
    spec: without(spec, 'clusterIP', 'clusterIPs'),
    hasAddress: spec.clusterIP === 'None' ? spec.clusterIP : spec.clusterIP !== undefined,
    addresses: spec.clusterIPs?.length,
  }),
};

export const SMALL_KINDS: Group = {
  name: 'small kinds',
  requests: inNamespace([
    post('makes a namespace', NAMESPACES, { metadata: { name: '$ns-b' } }),
    refused(409).post('makes a namespace again', NAMESPACES, { metadata: { name: '$ns-b' } }),
    refused(422).post('makes a namespace with a bad name', NAMESPACES, { metadata: { name: 'a.b' } }),
    refused(422).post('makes a namespace with a bad finalizer', NAMESPACES, {
      metadata: { name: '$ns-c' },
      spec: { finalizers: ['odd'] },
    }),
    mergePatch('labels a namespace', `${NAMESPACES}/$ns-b`, {
      metadata: { labels: { a: 'b', 'kubernetes.io/metadata.name': 'other' } },
    }),
    mergePatch('changes its finalizers', `${NAMESPACES}/$ns-b`, { spec: { finalizers: [] } }),
    get('a namespace as a table', `${NAMESPACES}/$ns-b`, TABLE),
    get('namespaces that are active', `${NAMESPACES}?fieldSelector=status.phase%3DActive,metadata.name%3D$ns-b`, {
      view: ({ items }) => items.length,
    }),
    refused(404).get('a namespace below itself', `${NAMESPACES}/$ns-b/namespaces`),
    refused(405).remove('deletes all namespaces', NAMESPACES),
    refused(403).remove('deletes the default one', `${NAMESPACES}/default`),
    refused(403).remove('deletes the system', `${NAMESPACES}/kube-system`),
    post('makes a secret', SECRETS, { metadata: { name: 'one' }, data: { a: 'YQ==' }, stringData: { b: 'b' } }),
    refused(400).post('makes a secret with a bad value', SECRETS, { metadata: { name: 'bad' }, data: { a: '!' } }),
    refused(422).post('makes a secret with a bad key', SECRETS, { metadata: { name: 'bad' }, data: { 'a b': 'YQ==' } }),
    refused(422).post('makes a TLS secret', SECRETS, {
      metadata: { name: 'tls' },
      type: 'kubernetes.io/tls',
      data: {},
    }),
    refused(422).post('makes a docker secret', SECRETS, {
      metadata: { name: 'docker' },
      type: 'kubernetes.io/dockerconfigjson',
      data: { '.dockerconfigjson': 'YQ==' },
    }),
    refused(422).post('makes a basic secret', SECRETS, {
      metadata: { name: 'basic' },
      type: 'kubernetes.io/basic-auth',
      data: {},
    }),
    refused(422).post('makes a secret for no account', SECRETS, {
      metadata: { name: 'token' },
      type: 'kubernetes.io/service-account-token',
    }),
    refused(422).mergePatch('changes the type of a secret', `${SECRETS}/one`, { type: 'other' }),
    mergePatch('makes a secret immutable', `${SECRETS}/one`, { immutable: true }),
    refused(422).mergePatch('changes an immutable secret', `${SECRETS}/one`, { data: { a: 'Yg==' } }),
    get('secrets by type', `${SECRETS}?fieldSelector=type%3DOpaque`, { view: ({ items }) => items.length }),
    get('a secret as a table', `${SECRETS}/one`, TABLE),
    post('makes an account', ACCOUNTS, {
      metadata: { name: 'one' },
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: 'x' }],
    }),
    get('an account as a table', `${ACCOUNTS}/one`, TABLE),
    post('makes a service', SERVICES, service('one', {}), withoutAddress),
    post('makes a service without a head', SERVICES, service('headless', { clusterIP: 'None' }), withoutAddress),
    refused(422).post('makes a service without ports', SERVICES, service('bad', { ports: [] })),
    refused(422).post(
      'makes a service with a bad port',
      SERVICES,
      service('bad', { ports: [{ port: 0, targetPort: 'A_B', protocol: 'X' }] }),
    ),
    refused(422).post(
      'makes a service with two ports',
      SERVICES,
      service('bad', { ports: [{ port: 80 }, { port: 81 }] }),
    ),
    refused(422).post('makes a service of a bad type', SERVICES, service('bad', { type: 'Odd' })),
    post('makes a service of a name', SERVICES, {
      metadata: { name: 'external' },
      spec: { type: 'ExternalName', externalName: 'example.org' },
    }),
    refused(422).post('makes a service with a bad name', SERVICES, service('9bad', {})),
    refused(422).post('makes a service with a bad address', SERVICES, service('bad', { clusterIP: '1.2.3' })),
    mergePatch(
      'changes a service',
      `${SERVICES}/one`,
      { spec: { ports: [{ port: 81 }], sessionAffinity: 'ClientIP' } },
      withoutAddress,
    ),
    mergePatch(
      'changes the address of a service',
      `${SERVICES}/one`,
      { spec: { clusterIP: '10.0.0.99' } },
      { view: () => 'changed' },
    ),
    get('a service as a table', `${SERVICES}/headless`, TABLE),
    post('makes a priority', PRIORITIES, { metadata: { name: '$ns' }, value: 5, description: 'five' }),
    refused(422).post('makes a priority that is too high', PRIORITIES, {
      metadata: { name: 'bad' },
      value: 2000000000,
    }),
    refused(422).post('makes a priority of the system', PRIORITIES, { metadata: { name: 'system-bad' }, value: 5 }),
    refused(422).post('makes a priority with a bad policy', PRIORITIES, {
      metadata: { name: 'bad' },
      value: 5,
      preemptionPolicy: 'Odd',
    }),
    refused(422).mergePatch('changes a priority', `${PRIORITIES}/$ns`, { value: 6 }),
    mergePatch('describes a priority', `${PRIORITIES}/$ns`, { description: 'still five' }),
    get('a priority as a table', `${PRIORITIES}/$ns`, TABLE),
    silently(
      post('makes a pod of that priority', '/api/v1/namespaces/$ns/pods', {
        metadata: { name: 'prior' },
        spec: {
          schedulerName: 'nobody',
          automountServiceAccountToken: false,
          priorityClassName: '$ns',
          containers: [{ name: 'a', image: 'b' }],
        },
      }),
    ),
    get('the priority of the pod', '/api/v1/namespaces/$ns/pods/prior', {
      view: ({ spec: { priority, preemptionPolicy } }) => [priority, preemptionPolicy],
    }),
    post('makes a runtime', RUNTIMES, {
      metadata: { name: '$ns' },
      handler: 'kata',
      overhead: { podFixed: { memory: '64Mi' } },
    }),
    refused(422).post('makes a runtime without a handler', RUNTIMES, { metadata: { name: 'bad' } }),
    post(
      'makes a pod of a runtime',
      '/api/v1/namespaces/$ns/pods?dryRun=All',
      {
        metadata: { name: 'run' },
        spec: {
          schedulerName: 'nobody',
          automountServiceAccountToken: false,
          runtimeClassName: '$ns',
          containers: [{ name: 'a', image: 'b' }],
        },
      },
      { view: ({ spec: { overhead, runtimeClassName } }) => [overhead, runtimeClassName] },
    ),
    post('makes a pod of a runtime that is not there', '/api/v1/namespaces/$ns/pods?dryRun=All', {
      metadata: { name: 'run' },
      spec: { runtimeClassName: 'nothing', containers: [{ name: 'a', image: 'b' }] },
    }),
    post('makes endpoints', '/api/v1/namespaces/$ns/endpoints', {
      metadata: { name: 'one-more' },
      subsets: [{ addresses: [{ ip: '10.1.1.1' }], ports: [{ port: 1 }] }],
    }),
    refused(422).post('makes bad endpoints', '/api/v1/namespaces/$ns/endpoints', {
      metadata: { name: 'bad' },
      subsets: [{ addresses: [{ ip: '127.0.0.1' }], ports: [{ port: 0 }] }],
    }),
    post('makes a slice', '/apis/discovery.k8s.io/v1/namespaces/$ns/endpointslices', {
      metadata: { name: 'slice' },
      addressType: 'IPv4',
      endpoints: [{ addresses: ['10.1.1.1'] }],
      ports: [{ port: 1 }],
    }),
    refused(422).post('makes a bad slice', '/apis/discovery.k8s.io/v1/namespaces/$ns/endpointslices', {
      metadata: { name: 'bad' },
      addressType: 'Odd',
      endpoints: [{ addresses: [] }],
    }),
    post('makes a network policy', '/apis/networking.k8s.io/v1/namespaces/$ns/networkpolicies', {
      metadata: { name: 'one' },
      spec: { podSelector: {}, ingress: [{}] },
    }),
    refused(422).post('makes a bad network policy', '/apis/networking.k8s.io/v1/namespaces/$ns/networkpolicies', {
      metadata: { name: 'bad' },
      spec: { podSelector: {}, policyTypes: ['Odd'], egress: [{ to: [{ ipBlock: { cidr: 'x' } }] }] },
    }),
    post('makes an ingress', '/apis/networking.k8s.io/v1/namespaces/$ns/ingresses', {
      metadata: { name: 'one' },
      spec: {
        rules: [
          {
            host: 'example.org',
            http: {
              paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'one', port: { number: 80 } } } }],
            },
          },
        ],
      },
    }),
    refused(422).post('makes an empty ingress', '/apis/networking.k8s.io/v1/namespaces/$ns/ingresses', {
      metadata: { name: 'bad' },
      spec: {},
    }),
    refused(400).put('renames an account', `${ACCOUNTS}/one`, { metadata: { name: 'two' } }),
  ]),
};
