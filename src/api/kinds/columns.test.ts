import { describe, expect, it } from 'vitest';
import { builtinDefinitions } from './builtins.ts';
import { selectorText, shortList } from './columns.ts';

const NOW_MS = Date.parse('2026-01-02T03:04:05Z');

/** The cells of an object, `-o wide`, under the headings that kubectl prints. */
function rowOf(group: string, kind: string, object: object): Record<string, unknown> {
  const definition = builtinDefinitions.find((each) => each.group === group && each.kind === kind);
  const whole = {
    apiVersion: '',
    kind,
    ...object,
    metadata: { name: 'x', creationTimestamp: '2026-01-02T03:00:05Z', ...(object as { metadata?: object }).metadata },
  };
  const cells = definition?.columns.map((column) => [column.name, column.cell?.(whole, NOW_MS)] as const);
  return Object.fromEntries(cells ?? []);
}

const template = {
  metadata: { labels: { app: 'a' } },
  spec: {
    containers: [
      { name: 'one', image: 'i1' },
      { name: 'two', image: 'i2' },
    ],
    nodeSelector: { b: '2', a: '1' },
  },
};
const selector = { matchLabels: { app: 'a' }, matchExpressions: [{ key: 'z', operator: 'In', values: ['2', '1'] }] };
const CONTAINERS = { Containers: 'one,two', Images: 'i1,i2' };
const WORKLOAD = { Age: '4m', ...CONTAINERS, Selector: 'app=a,z in (1,2)' };

const rows: [group: string, kind: string, object: object, row: Record<string, unknown>][] = [
  [
    'apps',
    'Deployment',
    {
      spec: { replicas: 3, selector, template },
      status: { readyReplicas: 1, updatedReplicas: 2, availableReplicas: 1 },
    },
    { Name: 'x', Ready: '1/3', 'Up-to-date': 2, Available: 1, ...WORKLOAD },
  ],
  [
    'apps',
    'ReplicaSet',
    { spec: { replicas: 3, selector, template }, status: { replicas: 2, readyReplicas: 1 } },
    { Name: 'x', Desired: 3, Current: 2, Ready: 1, ...WORKLOAD },
  ],
  [
    'apps',
    'StatefulSet',
    { spec: { replicas: 3, selector, template }, status: { readyReplicas: 2 } },
    { Name: 'x', Ready: '2/3', Age: '4m', ...CONTAINERS },
  ],
  [
    'apps',
    'DaemonSet',
    {
      spec: { selector, template },
      status: { desiredNumberScheduled: 5, currentNumberScheduled: 4, numberReady: 3, updatedNumberScheduled: 2 },
    },
    {
      Name: 'x',
      Desired: 5,
      Current: 4,
      Ready: 3,
      'Up-to-date': 2,
      Available: 0,
      'Node Selector': 'a=1,b=2',
      ...WORKLOAD,
    },
  ],
  [
    'apps',
    'ControllerRevision',
    {
      revision: 7,
      metadata: {
        ownerReferences: [{ apiVersion: 'apps/v1', kind: 'DaemonSet', name: 'd', uid: 'u', controller: true }],
      },
    },
    { Name: 'x', Controller: 'daemonset.apps/d', Revision: 7, Age: '4m' },
  ],
  [
    'batch',
    'Job',
    {
      spec: { completions: 3, selector, template },
      status: { succeeded: 1, startTime: '2026-01-02T03:01:05Z', conditions: [{ type: 'Suspended', status: 'True' }] },
    },
    { Name: 'x', Status: 'Suspended', Completions: '1/3', Duration: '3m', ...WORKLOAD },
  ],
  [
    'batch',
    'Job',
    {
      spec: { parallelism: 2, template },
      status: {
        startTime: '2026-01-02T03:01:05Z',
        completionTime: '2026-01-02T03:01:15Z',
        conditions: [{ type: 'Complete', status: 'True' }],
      },
    },
    { Status: 'Complete', Completions: '0/1 of 2', Duration: '10s', Selector: '<none>' },
  ],
  [
    'batch',
    'Job',
    { metadata: { deletionTimestamp: 'x' } },
    { Status: 'Terminating', Completions: '0/1', Duration: '' },
  ],
  [
    'batch',
    'CronJob',
    { spec: { schedule: '* * * * *', suspend: false, jobTemplate: { spec: { template } } }, status: { active: [{}] } },
    {
      Schedule: '* * * * *',
      Timezone: '<none>',
      Suspend: 'False',
      Active: 1,
      'Last Schedule': '<none>',
      ...CONTAINERS,
    },
  ],
  [
    'policy',
    'PodDisruptionBudget',
    { spec: { minAvailable: '50%' }, status: { disruptionsAllowed: 2 } },
    { Name: 'x', 'Min Available': '50%', 'Max Unavailable': 'N/A', 'Allowed Disruptions': 2, Age: '4m' },
  ],
  ['coordination.k8s.io', 'Lease', { spec: { holderIdentity: 'me' } }, { Name: 'x', Holder: 'me', Age: '4m' }],
  [
    'scheduling.k8s.io',
    'PriorityClass',
    { value: 100, preemptionPolicy: 'Never' },
    { Name: 'x', Value: 100, 'Global-Default': false, Age: '4m', PreemptionPolicy: 'Never' },
  ],
  [
    'storage.k8s.io',
    'StorageClass',
    { provisioner: 'p', metadata: { annotations: { 'storageclass.kubernetes.io/is-default-class': 'true' } } },
    {
      Name: 'x (default)',
      Provisioner: 'p',
      ReclaimPolicy: 'Delete',
      VolumeBindingMode: 'Immediate',
      AllowVolumeExpansion: false,
      Age: '4m',
    },
  ],
  [
    'rbac.authorization.k8s.io',
    'RoleBinding',
    {
      roleRef: { kind: 'Role', name: 'r' },
      subjects: [
        { kind: 'User', name: 'u1' },
        { kind: 'User', name: 'u2' },
        { kind: 'Group', name: 'g' },
        { kind: 'ServiceAccount', namespace: 'n', name: 's' },
      ],
    },
    { Name: 'x', Role: 'Role/r', Age: '4m', Users: 'u1, u2', Groups: 'g', ServiceAccounts: 'n/s' },
  ],
  [
    'certificates.k8s.io',
    'CertificateSigningRequest',
    {
      spec: { signerName: 'a.b/c', username: 'me', expirationSeconds: 3600 },
      status: { certificate: 'x', conditions: [{ type: 'Approved' }] },
    },
    {
      Name: 'x',
      Age: '4m',
      SignerName: 'a.b/c',
      Requestor: 'me',
      RequestedDuration: '60m',
      Condition: 'Approved,Issued',
    },
  ],
  [
    'certificates.k8s.io',
    'CertificateSigningRequest',
    { status: { conditions: [{ type: 'Denied' }, { type: 'Failed' }] } },
    { SignerName: '<none>', RequestedDuration: '<none>', Condition: 'Denied,Failed' },
  ],
  [
    'admissionregistration.k8s.io',
    'ValidatingWebhookConfiguration',
    { webhooks: [{}, {}] },
    { Name: 'x', Webhooks: 2, Age: '4m' },
  ],
  [
    'apiregistration.k8s.io',
    'APIService',
    {
      spec: { service: { namespace: 'n', name: 's' } },
      status: { conditions: [{ type: 'Available', status: 'False', reason: 'Gone' }] },
    },
    { Name: 'x', Service: 'n/s', Available: 'False (Gone)', Age: '4m' },
  ],
  ['apiregistration.k8s.io', 'APIService', {}, { Service: 'Local', Available: 'Unknown' }],
  ['node.k8s.io', 'RuntimeClass', { handler: 'h' }, { Name: 'x', Handler: 'h', Age: '4m' }],
  [
    'networking.k8s.io',
    'NetworkPolicy',
    { spec: { podSelector: {} } },
    { Name: 'x', 'Pod-Selector': '<none>', Age: '4m' },
  ],
  [
    'networking.k8s.io',
    'Ingress',
    {
      spec: { rules: ['a', 'b', 'c', 'd', 'e'].map((host) => ({ host })), tls: [{}] },
      status: { loadBalancer: { ingress: [{ ip: '2.2.2.2' }, { hostname: 'h' }, { ip: '1.1.1.1' }] } },
    },
    { Class: '<none>', Hosts: 'a,b,c + 2 more...', Address: '1.1.1.1,2.2.2.2,h', Ports: '80, 443' },
  ],
  [
    'networking.k8s.io',
    'Ingress',
    { spec: { ingressClassName: 'c' } },
    { Class: 'c', Hosts: '*', Address: '', Ports: '80' },
  ],
  [
    'discovery.k8s.io',
    'EndpointSlice',
    {
      addressType: 'IPv4',
      ports: [{ port: 80 }, { name: 'n' }, {}],
      endpoints: [{ addresses: ['1.1.1.1', '1.1.1.2'] }, { addresses: ['1.1.1.3', '1.1.1.4'] }],
    },
    { AddressType: 'IPv4', Ports: '80,n,*', Endpoints: '1.1.1.1,1.1.1.2,1.1.1.3 + 1 more...' },
  ],
  [
    'events.k8s.io',
    'Event',
    {
      type: 'Warning',
      reason: 'Late',
      note: ' too late\n',
      regarding: { kind: 'Pod', name: 'p' },
      deprecatedLastTimestamp: '2026-01-02T03:04:00Z',
      reportingController: 'c',
      reportingInstance: 'i',
    },
    { 'Last Seen': '5s', Type: 'Warning', Reason: 'Late', Object: 'pod/p', Message: 'too late', Source: 'c, i' },
  ],
];

describe('columns', () => {
  it.each(rows)('of %s %s', (group, kind, object, row) => {
    expect(rowOf(group, kind, object)).toMatchObject(row);
  });

  it('stand in the order of kubectl', () => {
    const headings = (group: string, kind: string): string[] => Object.keys(rowOf(group, kind, {}));
    const order = ['Name', 'Ready', 'Up-to-date', 'Available', 'Age', 'Containers', 'Images', 'Selector'];
    expect(headings('apps', 'Deployment')).toEqual(order);
    expect(headings('rbac.authorization.k8s.io', 'ClusterRole')).toEqual([]);
  });
});

describe('texts in cells', () => {
  it('show selectors by key', () => {
    expect(selectorText(undefined)).toBe('<none>');
    expect(selectorText({ matchLabels: { b: '2', a: '1' } })).toBe('a=1,b=2');
    const expressions = [
      { key: 'c', operator: 'NotIn', values: ['y', 'x'] },
      { key: 'b', operator: 'Exists' },
      { key: 'a', operator: 'DoesNotExist' },
    ];
    expect(selectorText({ matchExpressions: expressions })).toBe('!a,b,c notin (x,y)');
    expect(selectorText({ matchExpressions: [{ key: 'a', operator: 'Like' }] })).toBe('<error>');
  });

  it('cut long lists', () => {
    expect(shortList([])).toBe('<unset>');
    expect(shortList(['a', 'b', 'c'])).toBe('a,b,c');
    expect(shortList(['a', 'b', 'c', 'd'])).toBe('a,b,c + 1 more...');
  });
});
