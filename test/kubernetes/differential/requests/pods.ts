import type { Anything } from '../../../support/api.ts';
import {
  get,
  type Group,
  onNode,
  jsonPatch,
  mergePatch,
  post,
  refused,
  remove,
  silently,
  strategicPatch,
} from '../request.ts';

const PODS = '/api/v1/namespaces/$ns/pods';
const CONTAINER = { name: 'main', image: 'example.org/main:1' };
const SPEC = { schedulerName: 'nobody', automountServiceAccountToken: false };
const pod = (name: string, spec: object = {}, metadata: object = {}): object => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, ...metadata },
  spec: { ...SPEC, containers: [CONTAINER], ...spec },
});
const bind = (name: string, to: string, target: object = { kind: 'Node', name: 'node-1' }): ReturnType<typeof post> =>
  post(name, `${PODS}/${to}/binding`, { metadata: { name: to }, target });
const TABLE = { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } };
const container = (more: object): object => ({ containers: [{ ...CONTAINER, ...more }] });

/** What is wrong with a pod, one thing each, and with which status it is refused. */
const WRONG: readonly (readonly [what: string, spec: object, status?: number])[] = [
  ['no containers', { containers: [] }],
  ['a container without a name', { containers: [{ image: 'x' }] }],
  ['a container without an image', { containers: [{ name: 'x' }] }],
  ['a container with a bad name', { containers: [{ name: 'X_', image: 'x' }] }],
  ['two containers of one name', { containers: [CONTAINER, CONTAINER] }],
  ['an image with spaces', container({ image: ' x ' })],
  ['a bad restart policy', { restartPolicy: 'Sometimes' }],
  ['a bad DNS policy', { dnsPolicy: 'Odd' }],
  ['a bad pull policy', container({ imagePullPolicy: 'Odd' })],
  ['a bad port', container({ ports: [{ containerPort: 0 }, { containerPort: 70000, protocol: 'X' }] })],
  [
    'two ports of one name',
    container({
      ports: [
        { name: 'a', containerPort: 1 },
        { name: 'a', containerPort: 2 },
      ],
    }),
  ],
  [
    'two host ports',
    container({
      ports: [
        { containerPort: 1, hostPort: 5 },
        { containerPort: 2, hostPort: 5 },
      ],
    }),
  ],
  ['a bad quantity', container({ resources: { requests: { cpu: 'much' } } }), 400],
  ['a negative quantity', container({ resources: { requests: { cpu: '-1' } } })],
  ['more requested than allowed', container({ resources: { requests: { memory: '2Gi' }, limits: { memory: '1Gi' } } })],
  ['an unknown resource', container({ resources: { requests: { unknown: '1' } } })],
  ['an extended resource without a limit', container({ resources: { requests: { 'example.org/gpu': '1' } } })],
  ['a part of an extended resource', container({ resources: { limits: { 'example.org/gpu': '1500m' } } })],
  [
    'a bad variable',
    container({
      env: [
        { name: '=', value: 'x' },
        { name: '', value: 'y' },
      ],
    }),
  ],
  [
    'a variable with two sources',
    container({ env: [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }),
  ],
  [
    'a variable of an unknown field',
    container({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.unknown' } } }] }),
  ],
  ['a mount of nothing', container({ volumeMounts: [{ name: 'nothing', mountPath: '/x' }] })],
  [
    'two mounts at one place',
    {
      volumes: [{ name: 'a', emptyDir: {} }],
      ...container({
        volumeMounts: [
          { name: 'a', mountPath: '/x' },
          { name: 'a', mountPath: '/x' },
        ],
      }),
    },
  ],
  [
    'two volumes of one name',
    {
      volumes: [
        { name: 'a', emptyDir: {} },
        { name: 'a', emptyDir: {} },
      ],
    },
  ],
  ['a volume with two sources', { volumes: [{ name: 'a', emptyDir: {}, hostPath: { path: '/' } }] }],
  ['a claim without a name', { volumes: [{ name: 'a', persistentVolumeClaim: { claimName: '' } }] }],
  ['a bad probe', container({ livenessProbe: { periodSeconds: -1 } })],
  ['a probe in two ways', container({ livenessProbe: { exec: { command: ['x'] }, tcpSocket: { port: 1 } } })],
  ['a bad deadline', { activeDeadlineSeconds: 0 }],
  ['a bad node selector', { nodeSelector: { 'a b': 'c' } }],
  [
    'a bad toleration',
    {
      tolerations: [
        { operator: 'Equal', value: 'x' },
        { key: 'a', operator: 'Exists', value: 'y' },
      ],
    },
  ],
  [
    'a toleration with a time',
    { tolerations: [{ key: 'a', operator: 'Exists', effect: 'NoSchedule', tolerationSeconds: 5 }] },
  ],
  ['a bad effect', { tolerations: [{ key: 'a', operator: 'Exists', effect: 'Odd' }] }],
  [
    'a bad node affinity',
    { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
  ],
  [
    'a bad operator in an affinity',
    {
      affinity: {
        nodeAffinity: {
          requiredDuringSchedulingIgnoredDuringExecution: {
            nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Odd' }] }],
          },
        },
      },
    },
  ],
  [
    'a bad weight',
    {
      affinity: {
        podAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 200, podAffinityTerm: { topologyKey: '', labelSelector: {} } },
          ],
        },
      },
    },
  ],
  ['a bad spread', { topologySpreadConstraints: [{ maxSkew: 0, topologyKey: '', whenUnsatisfiable: 'Odd' }] }],
  ['a bad host name', { hostname: 'A_B' }],
  ['a bad node name', { nodeName: 'A_B' }],
  ['a bad account', { serviceAccountName: 'A_B' }, 403],
  ['an account that is not there', { serviceAccountName: 'nobody' }, 403],
  ['a priority class that is not there', { priorityClassName: 'nothing' }, 403],
  ['a priority of its own', { priority: 7 }, 403],
  ['a bad gate', { schedulingGates: [{ name: 'A B' }] }],
  ['a bad security context', { securityContext: { runAsUser: -1, fsGroup: -1, supplementalGroups: [-1] } }],
  ['privileges that contradict', container({ securityContext: { privileged: true, allowPrivilegeEscalation: false } })],
  ['a bad lifecycle', container({ lifecycle: { preStop: {} } })],
  [
    'an init container with a probe',
    { initContainers: [{ name: 'init', image: 'x', readinessProbe: { exec: { command: ['x'] } } }] },
  ],
  ['an init container of the same name', { initContainers: [CONTAINER] }],
  ['a bad overhead', { overhead: { cpu: '1' } }],
  ['ephemeral containers', { ephemeralContainers: [{ name: 'debug', image: 'x' }] }],
  ['a text for a number', { terminationGracePeriodSeconds: 'x' }, 400],
  ['a number for a text', { restartPolicy: 1 }, 400],
  ['a fraction for a number', { terminationGracePeriodSeconds: 1.5 }, 400],
];

export const PODS_GROUP: Group = {
  name: 'pods',
  requests: onNode([
    post('creates', PODS, pod('plain')),
    post(
      'creates with much',
      PODS,
      pod(
        'rich',
        {
          initContainers: [{ name: 'init', image: 'example.org/init', restartPolicy: 'Always' }],
          containers: [
            {
              ...CONTAINER,
              env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }],
              ports: [{ containerPort: 80 }],
              livenessProbe: { httpGet: { port: 80 } },
              resources: { limits: { cpu: '100m', memory: '1024Ki' } },
              volumeMounts: [{ name: 'a', mountPath: '/a' }],
              lifecycle: { preStop: { sleep: { seconds: 1 } } },
            },
          ],
          volumes: [
            { name: 'a', emptyDir: {} },
            { name: 'b', hostPath: { path: '/b' } },
            { name: 'c', configMap: { name: 'c' } },
            { name: 'd', secret: { secretName: 'd' } },
            { name: 'e', persistentVolumeClaim: { claimName: 'e' } },
            {
              name: 'f',
              projected: {
                sources: [{ downwardAPI: { items: [{ path: 'x', fieldRef: { fieldPath: 'metadata.labels' } }] } }],
              },
            },
          ],
          affinity: {
            podAntiAffinity: {
              preferredDuringSchedulingIgnoredDuringExecution: [
                {
                  weight: 1,
                  podAffinityTerm: {
                    topologyKey: 'kubernetes.io/hostname',
                    labelSelector: { matchLabels: { a: 'b' } },
                  },
                },
              ],
            },
          },
          topologySpreadConstraints: [
            { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway', labelSelector: {} },
          ],
          priorityClassName: 'system-node-critical',
          tolerations: [{ key: 'a', operator: 'Exists' }],
        },
        { labels: { app: 'rich' } },
      ),
    ),
    post('creates with a status', PODS, { ...pod('with-status'), status: { phase: 'Running' } }),
    post('creates with a gate', PODS, pod('gated', { schedulingGates: [{ name: 'example.org/wait' }] })),
    post(
      'creates with equal requests and limits',
      PODS,
      pod('guaranteed', container({ resources: { limits: { cpu: '1', memory: '1Gi' } } })),
    ),
    refused(422).post('creates with a bad name', PODS, pod('Bad_Name')),
    post('creates on a node', PODS, pod('placed', { nodeName: '$ns' })),
    refused(422).post('creates without a spec', PODS, { metadata: { name: 'empty' } }),
    refused(400).post(
      'creates with unknown fields, strictly',
      `${PODS}?fieldValidation=Strict`,
      pod('strict', { unknown: 1, containers: [{ ...CONTAINER, unknown: { a: 1 } }] }),
    ),
    post(
      'creates with unknown fields',
      PODS,
      pod('warned', { unknown: 1, containers: [{ ...CONTAINER, unknown: { a: 1 } }] }),
    ),
    post(
      'warns of what is deprecated',
      PODS,
      pod(
        'deprecated',
        { nodeSelector: { 'beta.kubernetes.io/os': 'linux' }, volumes: [{ name: 'x', gitRepo: { repository: 'x' } }] },
        { annotations: { 'scheduler.alpha.kubernetes.io/critical-pod': '' } },
      ),
    ),
    post(
      'warns of a variable twice',
      PODS,
      pod(
        'doubled',
        container({
          env: [
            { name: 'A', value: '1' },
            { name: 'A', value: '2' },
          ],
        }),
      ),
    ),
    post(
      'warns of a fraction of a byte',
      PODS,
      pod('fraction', container({ resources: { requests: { memory: '100m' } } })),
    ),
    post('creates with a negative grace', PODS, pod('hasty', { terminationGracePeriodSeconds: -5 })),
    ...WRONG.map(([name, spec, status = 422]) =>
      refused(status).post(`creates with ${name}`, PODS, pod('wrong', spec)),
    ),
    get('gets', `${PODS}/plain`),
    get('lists as a table', `${PODS}?fieldSelector=metadata.name%3Dplain`, TABLE),
    get('lists by node', `${PODS}?fieldSelector=spec.nodeName%3D$ns`, { view: ({ items }) => items.length }),
    get(
      'lists by phase',
      `${PODS}?fieldSelector=status.phase%3DPending,spec.schedulerName%3Dnobody,spec.restartPolicy%3DAlways`,
      { view: ({ items }) => items.map(({ metadata }: Anything) => metadata.name) },
    ),
    refused(400).get('lists by an unknown field', `${PODS}?fieldSelector=spec.priority%3D0`),
    mergePatch('changes the image', `${PODS}/plain`, {
      spec: { containers: [{ name: 'main', image: 'example.org/main:2' }] },
    }),
    strategicPatch('changes the image alone', `${PODS}/plain`, {
      spec: { containers: [{ name: 'main', image: 'example.org/main:3' }] },
    }),
    refused(422).strategicPatch('changes what is immutable', `${PODS}/plain`, { spec: { restartPolicy: 'Never' } }),
    refused(422).strategicPatch('changes the node', `${PODS}/plain`, { spec: { nodeName: 'other' } }),
    refused(422).strategicPatch('adds a container', `${PODS}/plain`, {
      spec: { containers: [{ name: 'second', image: 'x' }] },
    }),
    strategicPatch('adds a toleration', `${PODS}/plain`, {
      spec: { tolerations: [{ key: 'more', operator: 'Exists' }] },
    }),
    refused(422).strategicPatch('removes tolerations', `${PODS}/plain`, { spec: { tolerations: null } }),
    strategicPatch('sets a deadline', `${PODS}/plain`, { spec: { activeDeadlineSeconds: 100 } }),
    refused(422).strategicPatch('raises the deadline', `${PODS}/plain`, { spec: { activeDeadlineSeconds: 1000 } }),
    refused(422).strategicPatch('raises resources', `${PODS}/plain`, {
      spec: { containers: [{ name: 'main', resources: { requests: { cpu: '1' } } }] },
    }),
    strategicPatch('labels', `${PODS}/plain`, { metadata: { labels: { a: 'b' } } }),
    strategicPatch('opens the gate', `${PODS}/gated`, { spec: { schedulingGates: null } }),
    refused(422).strategicPatch('closes the gate', `${PODS}/plain`, {
      spec: { schedulingGates: [{ name: 'example.org/wait' }] },
    }),
    strategicPatch('writes the status in the spec', `${PODS}/plain`, { status: { phase: 'Running' } }),
    strategicPatch('writes the status', `${PODS}/plain/status`, {
      status: {
        phase: 'Running',
        podIP: '10.1.2.3',
        podIPs: [{ ip: '10.1.2.3' }],
        conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: '2001-01-01T00:00:00Z' }],
        containerStatuses: [
          {
            name: 'main',
            ready: true,
            restartCount: 0,
            image: 'x',
            imageID: 'y',
            state: { running: { startedAt: '2001-01-01T00:00:00Z' } },
          },
        ],
      },
    }),
    strategicPatch('writes a bad status', `${PODS}/plain/status`, {
      status: { conditions: [{ type: 'Ready' }], podIPs: [{ ip: 'x' }] },
    }),
    strategicPatch('writes the spec in the status', `${PODS}/plain/status`, {
      spec: { activeDeadlineSeconds: 5 },
      metadata: { labels: { c: 'd' }, annotations: { e: 'f' } },
    }),
    get('gets the status', `${PODS}/plain/status`),
    get('lists one that runs as a table', `${PODS}/plain`, TABLE),
    jsonPatch(
      'changes the status with JSON',
      `${PODS}/plain/status`,
      [{ op: 'replace', path: '/status/phase', value: 'Failed' }],
      { view: ({ status }) => status },
    ),
    refused(422).put('replaces with another spec', `${PODS}/plain`, pod('plain')),
    silently(post('makes one to bind', PODS, pod('to-bind'))),
    post('binds', `${PODS}/to-bind/binding`, {
      target: { kind: 'Node', name: 'node-1' },
      metadata: { name: 'to-bind', annotations: { a: 'b' } },
    }),
    { ...bind('binds again', 'to-bind', { kind: 'Node', name: 'node-2' }), refused: 409 },
    { ...bind('binds to the same', 'to-bind'), refused: 409 },
    { ...bind('binds to nothing', 'to-bind', {}), refused: 422 },
    { ...bind('binds to a pod', 'to-bind', { kind: 'Pod', name: 'x' }), refused: 422 },
    { ...bind('binds what is not there', 'nothing'), refused: 404 },
    refused(400).post('binds another', `${PODS}/to-bind/binding`, {
      metadata: { name: 'other' },
      target: { kind: 'Node', name: 'node-1' },
    }),
    refused(400).post('binds nobody', `${PODS}/to-bind/binding`, { target: { kind: 'Node', name: 'node-1' } }),
    get('gets what was bound', `${PODS}/to-bind`, {
      view: ({ spec, metadata, status }) => [spec.nodeName, metadata.annotations, status.conditions],
    }),
    refused(405).get('gets a binding', `${PODS}/to-bind/binding`),
    silently(
      post(
        'makes one with a gate to bind',
        PODS,
        pod('gated-bind', { schedulingGates: [{ name: 'example.org/wait' }] }),
      ),
    ),
    { ...bind('binds what has a gate', 'gated-bind'), refused: 409 },
    get('gets ephemeral containers', `${PODS}/placed/ephemeralcontainers`, { view: ({ kind }) => kind }),
    strategicPatch(
      'adds an ephemeral container',
      `${PODS}/placed/ephemeralcontainers`,
      { spec: { ephemeralContainers: [{ name: 'debug', image: 'x' }] } },
      { view: ({ spec }) => spec.ephemeralContainers },
    ),
    get('gets logs of what is nowhere', `${PODS}/gated/log`),
    refused(400).get('gets logs of an unknown container', `${PODS}/placed/log?container=unknown`),
    refused(404).get('gets logs of what is not there', `${PODS}/nothing/log`),
    refused(422).get('gets logs with a bad parameter', `${PODS}/placed/log?tailLines=-1`),
    remove('deletes all', `${PODS}?gracePeriodSeconds=0`, undefined, { view: ({ kind }) => kind }),
  ]),
};
