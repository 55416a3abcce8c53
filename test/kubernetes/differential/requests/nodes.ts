import { get, type Group, inNamespace, mergePatch, post, put, refused, remove, strategicPatch } from '../request.ts';

const NODES = '/api/v1/nodes';
const NODE = `${NODES}/$ns`;
const LEASES = '/apis/coordination.k8s.io/v1/namespaces/$ns/leases';
const TABLE = { headers: { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' } };
/** Controllers of nodes write taints and labels soon. */
const plain = {
  view: ({
    metadata: { name, labels },
    spec,
    status,
  }: {
    metadata: { name: string; labels?: object };
    spec: { taints?: { key: string }[] };
    status: object;
  }) => ({
    name,
    labels,
    spec: {
      ...spec,
      taints: spec.taints?.filter(({ key }) => !key.startsWith('node.kubernetes.io/')).length || undefined,
    },
    status,
  }),
};

export const NODES_GROUP: Group = {
  name: 'nodes',
  requests: inNamespace([
    post(
      'makes a node',
      NODES,
      { metadata: { name: '$ns', labels: { 'kubernetes.io/hostname': '$ns' } }, spec: { podCIDR: '10.9.0.0/24' } },
      plain,
    ),
    refused(409).post('makes a node again', NODES, { metadata: { name: '$ns' } }),
    refused(422).post('makes a node with bad taints', NODES, {
      metadata: { name: 'bad' },
      spec: {
        taints: [
          { key: 'a b', effect: 'Odd' },
          { key: 'c', value: '!', effect: 'NoSchedule' },
        ],
      },
    }),
    refused(422).post('makes a node with a taint twice', NODES, {
      metadata: { name: 'bad' },
      spec: {
        taints: [
          { key: 'a', effect: 'NoSchedule' },
          { key: 'a', effect: 'NoSchedule' },
        ],
      },
    }),
    refused(422).post('makes a node with a bad network', NODES, {
      metadata: { name: 'bad' },
      spec: { podCIDRs: ['x'] },
    }),
    refused(422).post('makes a node with a bad name', NODES, { metadata: { name: 'Bad_Name' } }),
    strategicPatch(
      'writes its status',
      `${NODE}/status`,
      {
        status: {
          capacity: { cpu: '4', memory: '8Gi', pods: '110' },
          allocatable: { cpu: '3900m', memory: '7Gi', pods: '110' },
          conditions: [
            {
              type: 'Ready',
              status: 'True',
              reason: 'KubeletReady',
              message: 'ready',
              lastHeartbeatTime: '2001-01-01T00:00:00Z',
              lastTransitionTime: '2001-01-01T00:00:00Z',
            },
          ],
          addresses: [
            { type: 'InternalIP', address: '10.0.0.9' },
            { type: 'Hostname', address: 'nine' },
          ],
          nodeInfo: {
            kubeletVersion: 'v1.34.1',
            osImage: 'os',
            kernelVersion: 'k',
            containerRuntimeVersion: 'c://1',
            architecture: 'amd64',
            bootID: 'b',
            kubeProxyVersion: '',
            machineID: 'm',
            operatingSystem: 'linux',
            systemUUID: 's',
          },
        },
      },
      plain,
    ),
    strategicPatch(
      'merges its conditions',
      `${NODE}/status`,
      {
        status: {
          conditions: [
            { type: 'Ready', status: 'False' },
            { type: 'Other', status: 'True' },
          ],
          addresses: [{ type: 'InternalIP', address: '10.0.0.10' }],
        },
      },
      plain,
    ),
    strategicPatch('cordons', NODE, { spec: { unschedulable: true } }, plain),
    strategicPatch(
      'taints',
      NODE,
      { spec: { taints: [{ key: 'a', effect: 'NoExecute' }] } },
      { view: ({ spec: { taints } }) => taints.find(({ key }: { key: string }) => key === 'a') && 'there' },
    ),
    refused(422).mergePatch('changes its network', NODE, { spec: { podCIDR: '10.8.0.0/24' } }),
    mergePatch('names its provider', NODE, { spec: { providerID: 'p://1' } }, plain),
    refused(422).mergePatch('renames its provider', NODE, { spec: { providerID: 'p://2' } }),
    get('lists as a table', `${NODES}?fieldSelector=metadata.name%3D$ns`, {
      ...TABLE,
      view: ({ columnDefinitions, rows }) => ({
        columnDefinitions,
        cells: rows[0].cells.filter((_: unknown, index: number) => index !== 1),
      }),
    }),
    get('lists what cannot be scheduled', `${NODES}?fieldSelector=spec.unschedulable%3Dtrue,metadata.name%3D$ns`, {
      view: ({ items }) => items.length,
    }),
    refused(400).get('lists by an unknown field', `${NODES}?fieldSelector=spec.podCIDR%3Dx`),
    refused(404).get('a node in a namespace', '/api/v1/namespaces/$ns/nodes/$ns'),
    refused(404).get('a node that is not there', `${NODES}/nothing`),
    refused(400).put('replaces with bad quantities', `${NODE}/status`, {
      metadata: { name: '$ns' },
      status: { capacity: { cpu: 'x' } },
    }),
    refused(422).put('replaces with a bad negative', `${NODE}/status`, {
      metadata: { name: '$ns' },
      status: { capacity: { cpu: '-1' }, allocatable: { memory: '1.5' } },
    }),
    remove('deletes it', NODE),
    post(
      'makes a lease',
      LEASES,
      {
        metadata: { name: 'one' },
        spec: {
          holderIdentity: 'me',
          leaseDurationSeconds: 15,
          acquireTime: '2001-01-01T00:00:00.000000Z',
          renewTime: '2001-01-01T00:00:00.123456Z',
          leaseTransitions: 1,
        },
      },
      { save: 'lease' },
    ),
    refused(400).post('makes a lease with short times', LEASES, {
      metadata: { name: 'short' },
      spec: { renewTime: '2001-01-01T00:00:00Z' },
    }),
    refused(400).post('makes a lease with too exact times', LEASES, {
      metadata: { name: 'exact' },
      spec: { renewTime: '2001-01-01T00:00:00.123456789Z' },
    }),
    refused(400).post('makes a lease with a bad time', LEASES, {
      metadata: { name: 'bad' },
      spec: { renewTime: 'noon' },
    }),
    refused(422).post('makes a lease with a bad duration', LEASES, {
      metadata: { name: 'bad' },
      spec: { leaseDurationSeconds: 0, leaseTransitions: -1 },
    }),
    post('makes a lease of nobody', LEASES, { metadata: { name: 'bad' }, spec: { holderIdentity: '' } }),
    post('makes an empty lease', LEASES, { metadata: { name: 'empty' } }),
    put('renews a lease', `${LEASES}/one`, {
      metadata: { name: 'one', resourceVersion: '{{lease.metadata.resourceVersion}}' },
      spec: { holderIdentity: 'you', leaseDurationSeconds: 15 },
    }),
    refused(409).put('renews a lease that another has', `${LEASES}/one`, {
      metadata: { name: 'one', resourceVersion: '{{lease.metadata.resourceVersion}}' },
      spec: { holderIdentity: 'me', leaseDurationSeconds: 15 },
    }),
    refused(422).put('renews a lease of any version', `${LEASES}/one`, {
      metadata: { name: 'one' },
      spec: { holderIdentity: 'me', leaseDurationSeconds: 15 },
    }),
    get('a lease as a table', `${LEASES}/one`, TABLE),
    post('makes an event', '/api/v1/namespaces/$ns/events', {
      metadata: { name: 'one' },
      involvedObject: { kind: 'Pod', name: 'x', namespace: '$ns' },
      reason: 'Why',
      message: 'because',
      type: 'Normal',
      firstTimestamp: '2001-01-01T00:00:00Z',
      lastTimestamp: '2001-01-01T00:00:00Z',
      count: 1,
      source: { component: 'me' },
    }),
    refused(422).post('makes an event about elsewhere', '/api/v1/namespaces/$ns/events', {
      metadata: { name: 'bad' },
      involvedObject: { kind: 'Pod', name: 'x', namespace: 'default' },
    }),
    post('makes a new event', '/apis/events.k8s.io/v1/namespaces/$ns/events', {
      metadata: { name: 'new' },
      regarding: { kind: 'Pod', name: 'x', namespace: '$ns' },
      reason: 'Why',
      note: 'because',
      type: 'Normal',
      eventTime: '2001-01-01T00:00:00.000000Z',
      action: 'Do',
      reportingController: 'example.org/me',
      reportingInstance: 'me-1',
    }),
    refused(422).post('makes a bad new event', '/apis/events.k8s.io/v1/namespaces/$ns/events', {
      metadata: { name: 'bad' },
      regarding: { kind: 'Pod', name: 'x', namespace: '$ns' },
    }),
    get(
      'events by their object',
      '/api/v1/namespaces/$ns/events?fieldSelector=involvedObject.name%3Dx,reason%3DWhy,type%3DNormal',
      { view: ({ items }) => items.length },
    ),
    get('a new event as an old one', '/api/v1/namespaces/$ns/events/new'),
    get('an old event as a new one', '/apis/events.k8s.io/v1/namespaces/$ns/events/one'),
  ]),
};
