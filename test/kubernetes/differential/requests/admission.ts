import { get, type Group, inNamespace, mergePatch, post, refused, silently } from '../request.ts';

const QUOTAS = '/api/v1/namespaces/$ns/resourcequotas';
const MAPS = '/api/v1/namespaces/$ns/configmaps';
const PODS = '/api/v1/namespaces/$ns/pods';
const HOOKS = '/apis/admissionregistration.k8s.io/v1';
const pod = (name: string, resources: object = {}): object => ({
  metadata: { name },
  spec: {
    schedulerName: 'nobody',
    automountServiceAccountToken: false,
    containers: [{ name: 'main', image: 'example.org/main:1', resources }],
  },
});
const hook = (more: object = {}): object => ({
  name: 'hook.example.org',
  clientConfig: { url: 'https://127.0.0.1:1/hook' },
  rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['secrets'] }],
  namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': '$ns' } },
  sideEffects: 'None',
  admissionReviewVersions: ['v1'],
  timeoutSeconds: 2,
  ...more,
});
const hooks = (name: string, more: object = {}): object => ({ metadata: { name }, webhooks: [hook(more)] });
const quota = (name: string, hard: object, more: object = {}): object => ({
  metadata: { name },
  spec: { hard, ...more },
});

export const ADMISSION: Group = {
  name: 'admission',
  requests: inNamespace([
    post('makes a quota', QUOTAS, quota('few', { 'count/secrets': '1', pods: '1', 'requests.cpu': '1' }), {
      view: ({ spec }) => spec,
    }),
    // Where nobody counts, this is what is counted.
    silently(
      mergePatch('counts', `${QUOTAS}/few/status`, {
        status: {
          hard: { 'count/secrets': '1', pods: '1', 'requests.cpu': '1' },
          used: { 'count/secrets': '0', pods: '0', 'requests.cpu': '0' },
        },
      }),
    ),
    silently(
      get('waits until it is counted', `${QUOTAS}/few`, { until: ({ body }) => body.status?.used?.pods === '0' }),
    ),
    refused(403).post('makes a pod without requests', PODS, pod('none'), { until: ({ status }) => status === 403 }),
    refused(403).post('makes a pod that asks for too much', PODS, pod('much', { requests: { cpu: '2' } })),
    post('makes a pod within the quota', PODS, pod('fits', { requests: { cpu: '600m' } }), {
      view: ({ kind }) => kind,
    }),
    refused(403).post('makes one pod too many', PODS, pod('more', { requests: { cpu: '600m' } })),
    refused(403).post('rehearses one pod too many', `${PODS}?dryRun=All`, pod('more', { requests: { cpu: '100m' } })),
    post(
      'makes a secret within the quota',
      '/api/v1/namespaces/$ns/secrets',
      { metadata: { name: 'one' } },
      { view: ({ kind }) => kind },
    ),
    refused(403).post('makes one secret too many', '/api/v1/namespaces/$ns/secrets', { metadata: { name: 'two' } }),
    get('what is used', `${QUOTAS}/few`, {
      view: ({ status }) => status,
      until: ({ body }) => body.status?.used?.pods === '1' && body.status?.used?.['count/secrets'] === '1',
    }),
    refused(400).post('makes a bad quota', QUOTAS, quota('bad', { pods: '-1', unknown: '1', 'requests.cpu': 'x' })),
    refused(422).post(
      'makes a quota of bad amounts',
      QUOTAS,
      quota('bad', { pods: '-1', 'odd!': '1', 'requests.cpu': '1.5' }),
    ),
    refused(422).post('makes a quota of a bad scope', QUOTAS, quota('bad', { pods: '1' }, { scopes: ['Odd'] })),
    refused(422).post(
      'makes a quota of scopes that exclude each other',
      QUOTAS,
      quota('bad', { pods: '1' }, { scopes: ['BestEffort', 'NotBestEffort'] }),
    ),
    get('a quota as a table', `${QUOTAS}/few`, { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } }),
    post('registers a hook', `${HOOKS}/validatingwebhookconfigurations`, hooks('$ns')),
    refused(500).post(
      'makes what the hook cannot see',
      '/api/v1/namespaces/$ns/secrets',
      { metadata: { name: 'hooked' } },
      { until: ({ body }) => /webhook/.test(body.message ?? '') },
    ),
    post('makes what it does not look at', MAPS, { metadata: { name: 'unhooked' } }, { view: ({ kind }) => kind }),
    mergePatch(
      'lets it fail',
      `${HOOKS}/validatingwebhookconfigurations/$ns`,
      { webhooks: [hook({ failurePolicy: 'Ignore' })] },
      { view: ({ webhooks }) => webhooks },
    ),
    post(
      'registers a mutating hook',
      `${HOOKS}/mutatingwebhookconfigurations`,
      hooks('$ns', {
        rules: [
          {
            apiGroups: [''],
            apiVersions: ['v1'],
            operations: ['CREATE', 'UPDATE'],
            resources: ['endpoints', 'configmaps'],
            scope: 'Namespaced',
          },
        ],
      }),
    ),
    refused(500).post(
      'makes what the mutating hook cannot see',
      MAPS,
      { metadata: { name: 'mutated' } },
      { until: ({ status }) => status >= 400 },
    ),
    refused(500).post('rehearses what the mutating hook cannot see', `${MAPS}?dryRun=All`, {
      metadata: { name: 'mutated' },
    }),
    mergePatch(
      'has side effects',
      `${HOOKS}/mutatingwebhookconfigurations/$ns`,
      {
        webhooks: [
          hook({
            rules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
            matchConditions: [{ name: 'none', expression: "request.name == 'matched'" }],
          }),
        ],
      },
      { view: ({ webhooks }) => webhooks },
    ),
    post(
      'makes what does not match',
      MAPS,
      { metadata: { name: 'unmatched' } },
      { until: ({ status }) => status === 201, view: ({ kind }) => kind },
    ),
    refused(422).post('registers without much', `${HOOKS}/validatingwebhookconfigurations`, {
      metadata: { name: 'bad' },
      webhooks: [{}],
    }),
    refused(422).post(
      'registers with a bad name',
      `${HOOKS}/validatingwebhookconfigurations`,
      hooks('bad', { name: 'short' }),
    ),
    refused(422).post(
      'registers with a bad URL',
      `${HOOKS}/validatingwebhookconfigurations`,
      hooks('bad', { clientConfig: { url: 'http://example.org/?a#b' } }),
    ),
    refused(422).post(
      'registers with two ways',
      `${HOOKS}/validatingwebhookconfigurations`,
      hooks('bad', { clientConfig: { url: 'https://example.org', service: { name: 'a', namespace: 'b' } } }),
    ),
    refused(422).post(
      'registers with side effects',
      `${HOOKS}/validatingwebhookconfigurations`,
      hooks('bad', { sideEffects: 'Some' }),
    ),
    refused(422).post(
      'registers with a bad policy',
      `${HOOKS}/validatingwebhookconfigurations`,
      hooks('bad', { failurePolicy: 'Odd', matchPolicy: 'Odd', timeoutSeconds: 60 }),
    ),
    refused(422).post(
      'registers for a bad rule',
      `${HOOKS}/validatingwebhookconfigurations`,
      hooks('bad', {
        rules: [
          { apiGroups: [], apiVersions: ['*', 'v1'], operations: ['ODD'], resources: ['*/*', 'pods'], scope: 'Odd' },
        ],
      }),
    ),
    refused(422).post(
      'registers a bad condition',
      `${HOOKS}/validatingwebhookconfigurations`,
      hooks('bad', { matchConditions: [{ name: 'a b', expression: 'x +' }] }),
    ),
    refused(422).post(
      'registers an unknown version',
      `${HOOKS}/validatingwebhookconfigurations`,
      hooks('bad', { admissionReviewVersions: ['v9'] }),
    ),
    refused(422).post('asks for a certificate', '/apis/certificates.k8s.io/v1/certificatesigningrequests', {
      metadata: { name: 'bad' },
      spec: { request: 'eA==', signerName: 'odd', usages: [] },
    }),
    refused(422).post('registers an API', '/apis/apiregistration.k8s.io/v1/apiservices', {
      metadata: { name: 'v1.other' },
      spec: { group: 'x.example.org', version: 'v1', groupPriorityMinimum: 0, versionPriority: 0 },
    }),
    get('a built-in API', '/apis/apiregistration.k8s.io/v1/apiservices/v1.apps', {
      view: ({ spec, status }) => [
        spec.group,
        spec.version,
        status.conditions[0].type,
        status.conditions[0].status,
        status.conditions[0].reason,
      ],
    }),
  ]),
};
