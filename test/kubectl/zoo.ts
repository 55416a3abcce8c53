import { expect } from 'vitest';
import { formatMicroTime } from '../../src/api/meta.ts';
import type { Anything } from '../support/api.ts';
import type { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { pods } from './zoo-pods.ts';

/**
 * One of every kind, with the statuses that kubelets and controllers would give them: those come in later work, and
 * the tests play their parts.
 */

const template = (labels: object, ...images: string[]): Anything => ({
  metadata: { labels },
  spec: { containers: images.map((image, index) => ({ name: index === 0 ? 'main' : `side-${index}`, image })) },
});

const node: Anything = {
  apiVersion: 'v1',
  kind: 'Node',
  metadata: {
    name: 'zoo-node',
    labels: { 'node-role.kubernetes.io/worker': '', 'kubernetes.io/hostname': 'zoo-node' },
  },
  spec: {
    unschedulable: true,
    podCIDR: '10.1.0.0/24',
    taints: [{ key: 'dedicated', value: 'zoo', effect: 'NoSchedule' }],
  },
};

const nodeStatus = {
  capacity: { cpu: '4', memory: '8Gi', pods: '110' },
  allocatable: { cpu: '4', memory: '7Gi', pods: '110' },
  conditions: [
    {
      type: 'Ready',
      status: 'True',
      reason: 'KubeletReady',
      message: 'kubelet is posting ready status',
      lastHeartbeatTime: '2024-01-01T00:00:00Z',
      lastTransitionTime: '2024-01-01T00:00:00Z',
    },
  ],
  addresses: [
    { type: 'InternalIP', address: '192.168.0.5' },
    { type: 'Hostname', address: 'zoo-node' },
  ],
  nodeInfo: {
    machineID: 'm',
    systemUUID: 's',
    bootID: 'b',
    kernelVersion: '6.1.0',
    osImage: 'Debian 12',
    containerRuntimeVersion: 'containerd://1.7',
    kubeletVersion: 'v1.34.0',
    kubeProxyVersion: '',
    operatingSystem: 'linux',
    architecture: 'amd64',
  },
};

/** All but nodes and pods, in the namespace that kubectl is in. */
function others(): Anything[] {
  const labels = { app: 'web' };
  return [
    // Before its claim, which would else take any volume.
    {
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'zoo-slow', annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } },
      provisioner: 'example.com/slow',
      volumeBindingMode: 'WaitForFirstConsumer',
      allowVolumeExpansion: true,
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name: 'zoo-volume' },
      spec: {
        capacity: { storage: '10Gi' },
        accessModes: ['ReadWriteOnce', 'ReadOnlyMany'],
        persistentVolumeReclaimPolicy: 'Retain',
        storageClassName: 'zoo-slow',
        hostPath: { path: '/tmp/zoo' },
      },
    },
    {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'claim' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        storageClassName: 'zoo-slow',
        resources: { requests: { storage: '5Gi' } },
      },
    },
    {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'lease' },
      spec: { holderIdentity: 'me', leaseDurationSeconds: 15 },
    },
    {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'budget' },
      spec: { minAvailable: '50%', selector: { matchLabels: labels } },
    },
    {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'settings' },
      data: { plain: 'text', lines: 'one\ntwo\n' },
      binaryData: { bytes: 'AAEC' },
    },
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'secret' }, stringData: { key: 'value' } },
    {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: 'robot' },
      secrets: [{ name: 'secret' }],
      imagePullSecrets: [{ name: 'pull' }],
    },
    {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'quota' },
      spec: { hard: { pods: '10', 'requests.cpu': '2', 'limits.memory': '1Gi' }, scopes: ['Terminating'] },
    },
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'web' },
      spec: {
        clusterIP: 'None',
        selector: labels,
        ports: [
          { port: 80, targetPort: 'http', name: 'http' },
          { port: 53, protocol: 'UDP', name: 'dns' },
        ],
      },
    },
    {
      apiVersion: 'v1',
      kind: 'Endpoints',
      metadata: { name: 'web' },
      subsets: [{ addresses: [{ ip: '10.1.0.7' }], ports: [{ port: 80, name: 'http' }] }],
    },
    {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', labels },
      spec: { replicas: 2, selector: { matchLabels: labels }, template: template(labels, 'nginx:1.25', 'busybox:1') },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: { name: 'web-1', labels },
      spec: { replicas: 2, selector: { matchLabels: labels }, template: template(labels, 'nginx:1.25') },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'StatefulSet',
      metadata: { name: 'db' },
      spec: {
        serviceName: 'db',
        selector: { matchLabels: { app: 'db' } },
        template: template({ app: 'db' }, 'postgres:16'),
      },
    },
    {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'agent' },
      spec: {
        selector: { matchLabels: { app: 'agent' } },
        template: {
          ...template({ app: 'agent' }, 'agent:1'),
          spec: { nodeSelector: { a: 'b' }, containers: [{ name: 'main', image: 'agent:1' }] },
        },
      },
    },
    {
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'once' },
      spec: {
        completions: 3,
        parallelism: 2,
        manualSelector: true,
        selector: { matchLabels: { job: 'once' } },
        template: {
          metadata: { labels: { job: 'once' } },
          spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox:1' }] },
        },
      },
    },
    {
      apiVersion: 'batch/v1',
      kind: 'CronJob',
      metadata: { name: 'nightly' },
      spec: {
        schedule: '0 3 * * *',
        jobTemplate: {
          spec: { template: { spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'busybox:1' }] } } },
        },
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name: 'front' },
      spec: {
        ingressClassName: 'nginx',
        tls: [{ hosts: ['a.example.com'] }],
        rules: [
          {
            host: 'a.example.com',
            http: {
              paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } }],
            },
          },
        ],
      },
    },
    {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'NetworkPolicy',
      metadata: { name: 'deny' },
      spec: { podSelector: { matchLabels: labels } },
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'reader' },
      rules: [
        { apiGroups: [''], resources: ['pods', 'pods/log'], verbs: ['get', 'list'] },
        { apiGroups: ['apps'], resources: ['deployments'], resourceNames: ['web'], verbs: ['get'] },
      ],
    },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'RoleBinding',
      metadata: { name: 'readers' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'reader' },
      subjects: [
        { kind: 'User', name: 'jane', apiGroup: 'rbac.authorization.k8s.io' },
        { kind: 'Group', name: 'devs', apiGroup: 'rbac.authorization.k8s.io' },
        { kind: 'ServiceAccount', name: 'robot', namespace: 'default' },
      ],
    },
    {
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'zoo-high' },
      value: 1000,
      description: 'matters',
    },
    { apiVersion: 'node.k8s.io/v1', kind: 'RuntimeClass', metadata: { name: 'zoo-kata' }, handler: 'kata' },
    {
      apiVersion: 'v1',
      kind: 'ReplicationController',
      metadata: { name: 'old' },
      spec: { selector: { app: 'old' }, template: template({ app: 'old' }, 'old:1') },
    },
    {
      apiVersion: 'v1',
      kind: 'PodTemplate',
      metadata: { name: 'template' },
      template: template({ app: 'old' }, 'old:1'),
    },
    {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: { name: 'web-x' },
      addressType: 'IPv4',
      ports: [{ port: 80, name: 'http', protocol: 'TCP' }],
      endpoints: [{ addresses: ['10.1.0.7'] }],
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name: 'zoo-validating' },
      webhooks: [
        {
          name: 'a.example.com',
          clientConfig: { url: 'https://127.0.0.1:1/x' },
          sideEffects: 'None',
          admissionReviewVersions: ['v1'],
          failurePolicy: 'Ignore',
          rules: [
            { apiGroups: ['zoo.example.com'], apiVersions: ['*'], operations: ['CREATE'], resources: ['things'] },
          ],
        },
      ],
    },
    {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'MutatingWebhookConfiguration',
      metadata: { name: 'zoo-mutating' },
    },
  ];
}

/** What happened to pods; events are found by the UID of what they are about. */
function events(podUids: Readonly<Record<string, string>>): Anything[] {
  return [
    event(
      'running.1',
      { kind: 'Pod', name: 'running', uid: podUids['running'], apiVersion: 'v1', fieldPath: 'spec.containers{main}' },
      {
        type: 'Normal',
        reason: 'Pulled',
        message: 'Container image pulled',
        count: 3,
        source: { component: 'kubelet', host: 'zoo-node' },
        lastTimestamp: '2024-01-01T00:10:00Z',
      },
    ),
    event(
      'crashing.1',
      { kind: 'Pod', name: 'crashing', uid: podUids['crashing'], apiVersion: 'v1' },
      {
        type: 'Warning',
        reason: 'BackOff',
        message: 'Back-off restarting failed container',
        count: 1,
        source: { component: 'kubelet' },
        lastTimestamp: '2024-01-01T00:05:00Z',
      },
    ),
  ];
}

/** An event about an object of the same namespace, first seen at the beginning of 2024. */
export function event(name: string, involvedObject: object, fields: object): Anything {
  return {
    apiVersion: 'v1',
    kind: 'Event',
    metadata: { name },
    involvedObject,
    firstTimestamp: '2024-01-01T00:00:00Z',
    ...fields,
  };
}

const revisionOf = (owner: Anything): Anything => ({
  apiVersion: 'apps/v1',
  kind: 'ControllerRevision',
  metadata: { name: 'revision', ownerReferences: [{ ...owner, controller: true }] },
  revision: 3,
  data: { a: 'b' },
});

/** Fills a namespace; cluster-wide kinds are named `zoo-...`. */
export async function fillZoo(cluster: Cluster, namespace: string): Promise<void> {
  await cluster.create('/api/v1/nodes', node);
  await cluster.merge('/api/v1/nodes/zoo-node/status', { status: nodeStatus });
  await keepAlive(cluster);
  const create = (items: Anything[]): Promise<string> =>
    cluster.kubectl.ok(['create', '-n', namespace, '-f', '-'], {
      stdin: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
    });
  await create(others());
  await eventually(async () => {
    const { status } = await cluster.get('/api/v1/persistentvolumes/zoo-volume');
    expect(status.phase).toBe('Available');
  });
  const { metadata } = await cluster.get(`/apis/apps/v1/namespaces/${namespace}/daemonsets/agent`);
  await create([revisionOf({ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'agent', uid: metadata.uid })]);
  const path = `/api/v1/namespaces/${namespace}/pods`;
  const uids: Record<string, string> = {};
  for (const [name, { pod, status }] of Object.entries(pods)) {
    const created = await cluster.create(path, {
      apiVersion: 'v1',
      kind: 'Pod',
      ...pod,
      metadata: { ...pod.metadata, name },
      // Those without a node stay without one, and nobody says why: the cages are labelled by hand.
      spec: { schedulerName: 'zoo-keeper', ...pod.spec },
    });
    uids[name] = created.metadata.uid;
    if (status) await cluster.merge(`${path}/${name}/status`, { status });
  }
  await create(events(uids).map((each) => ({ ...each, involvedObject: { ...each.involvedObject, namespace } })));
}

/** How often a kubelet says that it is there. */
const HEARTBEAT_INTERVAL_MS = 10_000;

/** Plays the kubelet that goes on to renew its lease: without it the node would be taken for lost after a while. */
async function keepAlive(cluster: Cluster): Promise<void> {
  const path = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
  const renewal = (): Anything => ({
    spec: { holderIdentity: 'zoo-node', leaseDurationSeconds: 40, renewTime: formatMicroTime(Date.now()) },
  });
  const metadata = { name: 'zoo-node' };
  await cluster.create(path, { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, ...renewal() });
  const timer = setInterval(() => {
    // The cluster goes when the suite is over.
    cluster.merge(`${path}/zoo-node`, renewal()).catch(() => clearInterval(timer));
  }, HEARTBEAT_INTERVAL_MS);
  timer.unref();
}
