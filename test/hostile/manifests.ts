import type { Json } from '../../src/api/meta.ts';

/** One good object of every built-in kind, and of a custom one: what is bent in tests that bend. */

type Fields = { readonly [field: string]: Json };

const labels = { app: 'web' };
const selector = { matchLabels: labels };
const podSpec: Json = {
  containers: [
    {
      name: 'main',
      image: 'nginx:1.29',
      command: ['sleep', '1'],
      env: [
        { name: 'A', value: 'b' },
        { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
      ],
      ports: [{ name: 'http', containerPort: 80 }],
      resources: { requests: { cpu: '100m', memory: '64Mi' }, limits: { memory: '1Gi' } },
      volumeMounts: [{ name: 'data', mountPath: '/data' }],
      readinessProbe: { httpGet: { path: '/', port: 'http' } },
      securityContext: { runAsUser: 1000, capabilities: { drop: ['ALL'] } },
    },
  ],
  initContainers: [{ name: 'first', image: 'busybox', restartPolicy: 'Always' }],
  volumes: [{ name: 'data', emptyDir: { sizeLimit: '1Gi' } }],
  tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 5 }],
  affinity: {
    podAntiAffinity: {
      requiredDuringSchedulingIgnoredDuringExecution: [
        { labelSelector: selector, topologyKey: 'kubernetes.io/hostname' },
      ],
    },
  },
  topologySpreadConstraints: [
    { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector: selector },
  ],
};
const template: Json = { metadata: { labels }, spec: podSpec };
const subjects: Json = [
  { kind: 'User', name: 'ann', apiGroup: 'rbac.authorization.k8s.io' },
  { kind: 'ServiceAccount', name: 'robot', namespace: 'wild' },
];
const rules: Json = [
  { apiGroups: ['', 'apps'], resources: ['pods', 'pods/status'], verbs: ['get', 'list'], resourceNames: ['a'] },
];
const roleRef: Json = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' };
const attributes: Json = { verb: 'get', resource: 'pods', namespace: 'wild', name: 'one' };

/** For CN=a; whoever has its key cannot do anything with it. */
const request = [
  'LS0tLS1CRUdJTiBDRVJUSUZJQ0FURSBSRVFVRVNULS0tLS0KTUlIRk1HNENBUUF3RERFS01BZ0dBMVVFQXd3QllUQlpNQk1HQnlxR1NNNDlBZ0',
  'VHQ0NxR1NNNDlBd0VIQTBJQQpCSVRxaDhuclMyVU80TlBxOXFzSzFMWmFvN0pRTmtlOXBZaTIxRnBOL0Y1eExIRlFXUU5KZnlJNjl1K2NDckVt',
  'CmxUY1lEcHZNZWJtaHBLeFdVak5FZmNTZ0FEQUtCZ2dxaGtqT1BRUURBZ05IQURCRUFpQjJSL215clQwcVBGdVcKMmlrZitpMWpMbmJ2Zy9keW',
  'JxVm5BTHd4dldFWC9nSWdKek1ZNFB0aVVFVVE0ekJIUXFDK1AzU3VtZEtvQ2YvbQpWdHNVeGNONVpNdz0KLS0tLS1FTkQgQ0VSVElGSUNBVEUg',
  'UkVRVUVTVC0tLS0tCg==',
].join('');

/** By `group/plural`, without metadata. */
export const manifests: ReadonlyMap<string, Fields> = new Map<string, Fields>([
  ['/configmaps', { data: { key: 'value' }, binaryData: { bytes: 'YQ==' } }],
  ['/endpoints', { subsets: [{ addresses: [{ ip: '10.0.0.1' }], ports: [{ name: 'http', port: 80 }] }] }],
  [
    '/events',
    {
      involvedObject: { kind: 'Pod', namespace: 'wild', name: 'one' },
      reason: 'Started',
      message: 'it started',
      type: 'Normal',
      count: 1,
      source: { component: 'kubelet' },
    },
  ],
  ['/limitranges', { spec: { limits: [{ type: 'Container', default: { cpu: '1' }, max: { cpu: '2' } }] } }],
  ['/namespaces', { spec: { finalizers: ['kubernetes'] } }],
  [
    '/nodes',
    {
      spec: { podCIDR: '10.1.0.0/24', taints: [{ key: 'a', value: 'b', effect: 'NoSchedule' }] },
      status: {
        capacity: { cpu: '4' },
        addresses: [{ type: 'InternalIP', address: '10.0.0.2' }],
        conditions: [{ type: 'Ready', status: 'True' }],
      },
    },
  ],
  [
    '/persistentvolumeclaims',
    { spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName: 'fast' } },
  ],
  [
    '/persistentvolumes',
    { spec: { capacity: { storage: '1Gi' }, accessModes: ['ReadWriteOnce'], hostPath: { path: '/data' } } },
  ],
  ['/pods', { spec: podSpec }],
  ['/podtemplates', { template }],
  ['/replicationcontrollers', { spec: { replicas: 1, selector: labels, template } }],
  ['/resourcequotas', { spec: { hard: { 'requests.nvidia.com/gpu': '4' } } }],
  ['/secrets', { type: 'Opaque', data: { password: 'aHVudGVyMg==' } }],
  ['/serviceaccounts', { secrets: [{ name: 'x' }], automountServiceAccountToken: false }],
  ['/services', { spec: { selector: labels, ports: [{ name: 'http', port: 80, targetPort: 'http' }] } }],
  [
    'events.k8s.io/events',
    {
      eventTime: '2026-01-01T00:00:00.000000Z',
      action: 'Starting',
      reason: 'Started',
      type: 'Normal',
      reportingController: 'example.com/kubelet',
      reportingInstance: 'node-1',
      regarding: { kind: 'Pod', namespace: 'wild', name: 'one' },
      note: 'it started',
    },
  ],
  ['apps/deployments', { spec: { replicas: 2, selector, template, strategy: { rollingUpdate: { maxSurge: '25%' } } } }],
  ['apps/replicasets', { spec: { replicas: 2, selector, template } }],
  ['apps/statefulsets', { spec: { serviceName: 'web', selector, template, volumeClaimTemplates: [] } }],
  ['apps/daemonsets', { spec: { selector, template } }],
  ['apps/controllerrevisions', { data: { any: ['thing'] }, revision: 1 }],
  ['batch/jobs', { spec: { template: { spec: { ...podSpec, restartPolicy: 'Never' } } } }],
  [
    'batch/cronjobs',
    {
      spec: {
        schedule: '*/5 * * * *',
        jobTemplate: { spec: { template: { spec: { ...podSpec, restartPolicy: 'OnFailure' } } } },
      },
    },
  ],
  ['policy/poddisruptionbudgets', { spec: { minAvailable: '50%', selector } }],
  ['coordination.k8s.io/leases', { spec: { holderIdentity: 'a', leaseDurationSeconds: 15 } }],
  ['scheduling.k8s.io/priorityclasses', { value: 1000, description: 'x' }],
  ['storage.k8s.io/storageclasses', { provisioner: 'example.com/disk', parameters: { a: 'b' } }],
  ['rbac.authorization.k8s.io/roles', { rules }],
  ['rbac.authorization.k8s.io/clusterroles', { rules, aggregationRule: { clusterRoleSelectors: [selector] } }],
  ['rbac.authorization.k8s.io/rolebindings', { subjects, roleRef }],
  ['rbac.authorization.k8s.io/clusterrolebindings', { subjects, roleRef }],
  ['authentication.k8s.io/tokenreviews', { spec: { token: 'x.y.z', audiences: ['a'] } }],
  ['authentication.k8s.io/selfsubjectreviews', {}],
  [
    'authorization.k8s.io/subjectaccessreviews',
    { spec: { user: 'ann', groups: ['g'], resourceAttributes: attributes } },
  ],
  ['authorization.k8s.io/localsubjectaccessreviews', { spec: { user: 'ann', resourceAttributes: attributes } }],
  ['authorization.k8s.io/selfsubjectaccessreviews', { spec: { nonResourceAttributes: { path: '/x', verb: 'get' } } }],
  ['authorization.k8s.io/selfsubjectrulesreviews', { spec: { namespace: 'wild' } }],
  [
    'certificates.k8s.io/certificatesigningrequests',
    { spec: { request, signerName: 'example.com/signer', usages: ['client auth'] } },
  ],
  [
    'admissionregistration.k8s.io/validatingwebhookconfigurations',
    {
      webhooks: [
        {
          name: 'a.example.com',
          clientConfig: { url: 'https://127.0.0.1:1/' },
          rules: [{ apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: ['*'] }],
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          failurePolicy: 'Ignore',
          timeoutSeconds: 1,
        },
      ],
    },
  ],
  [
    'apiextensions.k8s.io/customresourcedefinitions',
    {
      spec: {
        group: 'wild.example.com',
        scope: 'Namespaced',
        names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', listKind: 'GadgetList', shortNames: ['gd'] },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: {
              status: {},
              scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
            },
            additionalPrinterColumns: [
              { name: 'Size', type: 'integer', jsonPath: '.spec.size' },
              { name: 'Odd', type: 'string', jsonPath: ".spec.list[?(@.key=='a')].value" },
            ],
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: {
                  spec: {
                    type: 'object',
                    properties: {
                      size: { type: 'integer', minimum: 0, default: 1 },
                      replicas: { type: 'integer' },
                      word: { type: 'string', pattern: '^[a-z]*$', maxLength: 10 },
                      either: { 'x-kubernetes-int-or-string': true },
                      list: {
                        type: 'array',
                        'x-kubernetes-list-type': 'map',
                        'x-kubernetes-list-map-keys': ['key'],
                        items: {
                          type: 'object',
                          required: ['key'],
                          properties: { key: { type: 'string' }, value: { type: 'string' } },
                        },
                      },
                      any: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                    },
                    'x-kubernetes-validations': [
                      { rule: '!has(self.word) || self.word != "bad"', message: 'not that' },
                    ],
                  },
                  status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
                },
              },
            },
          },
        ],
      },
    },
  ],
  ['wild.example.com/gadgets', { spec: { size: 3, word: 'abc', list: [{ key: 'a', value: 'b' }], any: { x: [1] } } }],
  ['node.k8s.io/runtimeclasses', { handler: 'runc' }],
  ['networking.k8s.io/networkpolicies', { spec: { podSelector: selector, ingress: [{ ports: [{ port: 80 }] }] } }],
  [
    'networking.k8s.io/ingresses',
    {
      spec: { defaultBackend: { service: { name: 'web', port: { number: 80 } } }, rules: [{ host: 'a.example.com' }] },
    },
  ],
  [
    'discovery.k8s.io/endpointslices',
    { addressType: 'IPv4', endpoints: [{ addresses: ['10.0.0.1'] }], ports: [{ name: 'http', port: 80 }] },
  ],
]);

/** What a subresource is sent, by its name. */
export const subresourceManifests: ReadonlyMap<string, Fields> = new Map<string, Fields>([
  ['binding', { apiVersion: 'v1', kind: 'Binding', target: { apiVersion: 'v1', kind: 'Node', name: 'one' } }],
  ['eviction', { apiVersion: 'policy/v1', kind: 'Eviction', deleteOptions: { gracePeriodSeconds: 5 } }],
  ['token', { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { expirationSeconds: 3600 } }],
  ['scale', { apiVersion: 'autoscaling/v1', kind: 'Scale', spec: { replicas: 3 } }],
]);
