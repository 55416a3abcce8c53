import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import type { Kubectl } from '../support/kubectl.ts';
import { gadgetDefinition } from './gadgets.ts';
import { AGE, headersOf, type Row, tableOf } from './table.ts';
import { fillZoo } from './zoo.ts';

/** What `kubectl get` shows of each kind, plain and wide. */

const GROUP = 'columns.example.com';

let cluster: Cluster;
let kubectl: Kubectl;

beforeAll(async () => {
  cluster = await Cluster.start();
  const made = await cluster.namespace('columns');
  ({ kubectl } = made);
  await fillZoo(cluster, made.namespace);
  await kubectl.apply(gadgetDefinition(GROUP));
  await kubectl.ok(`wait --for=condition=Established crd/gadgets.${GROUP}`);
  await kubectl.apply({
    apiVersion: `${GROUP}/v1`,
    kind: 'Gadget',
    metadata: { name: 'gadget' },
    spec: { size: 3, parts: [{ name: 'wheel' }, { name: 'axle' }] },
  });
});
afterAll(() => cluster.close());

/** Ages and moments are not what these tests are about, only that they are there. */
function settled(row: Row): Row {
  return Object.fromEntries(
    Object.entries(row).map(([name, value]) => {
      const isAge = ['AGE', 'LAST SEEN', 'FIRST SEEN'].includes(name) && AGE.test(value);
      return [name, isAge ? 'age' : /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/.test(value) ? 'time' : value];
    }),
  );
}

const age = 'age';
const NONE = '<none>';
const UNPLACED = { IP: NONE, NODE: NONE, 'NOMINATED NODE': NONE, 'READINESS GATES': NONE };

/** Kind, the object's name, its plain columns, and those that come with `-o wide`. */
const KINDS: [string, string, Row, Row?][] = [
  [
    'nodes',
    'zoo-node',
    { NAME: 'zoo-node', STATUS: 'Ready,SchedulingDisabled', ROLES: 'worker', AGE: age, VERSION: 'v1.34.0' },
    {
      'INTERNAL-IP': '192.168.0.5',
      'EXTERNAL-IP': NONE,
      'OS-IMAGE': 'Debian 12',
      'KERNEL-VERSION': '6.1.0',
      'CONTAINER-RUNTIME': 'containerd://1.7',
    },
  ],
  [
    'pods',
    'running',
    { NAME: 'running', READY: '1/2', STATUS: 'Running', RESTARTS: '2', AGE: age },
    { IP: '10.1.0.7', NODE: 'zoo-node', 'NOMINATED NODE': NONE, 'READINESS GATES': NONE },
  ],
  ['pods', 'pending', { NAME: 'pending', READY: '0/1', STATUS: 'Pending', RESTARTS: '0', AGE: age }, UNPLACED],
  [
    'pods',
    'crashing',
    { NAME: 'crashing', READY: '0/1', STATUS: 'CrashLoopBackOff', RESTARTS: '7', AGE: age },
    { ...UNPLACED, NODE: 'zoo-node' },
  ],
  ['pods', 'completed', { NAME: 'completed', READY: '0/1', STATUS: 'Completed', RESTARTS: '0', AGE: age }, UNPLACED],
  ['pods', 'failed', { NAME: 'failed', READY: '0/1', STATUS: 'ExitCode:3', RESTARTS: '0', AGE: age }, UNPLACED],
  [
    'pods',
    'initializing',
    { NAME: 'initializing', READY: '0/1', STATUS: 'Init:1/2', RESTARTS: '0', AGE: age },
    { ...UNPLACED, NODE: 'zoo-node' },
  ],
  [
    'persistentvolumes',
    'zoo-volume',
    {
      NAME: 'zoo-volume',
      CAPACITY: '10Gi',
      'ACCESS MODES': 'RWO,ROX',
      'RECLAIM POLICY': 'Retain',
      STATUS: 'Available',
      CLAIM: '',
      STORAGECLASS: 'zoo-slow',
      VOLUMEATTRIBUTESCLASS: '<unset>',
      REASON: '',
      AGE: age,
    },
    { VOLUMEMODE: 'Filesystem' },
  ],
  [
    'persistentvolumeclaims',
    'claim',
    {
      NAME: 'claim',
      STATUS: 'Pending',
      VOLUME: '',
      CAPACITY: '',
      'ACCESS MODES': '',
      STORAGECLASS: 'zoo-slow',
      VOLUMEATTRIBUTESCLASS: '<unset>',
      AGE: age,
    },
    { VOLUMEMODE: 'Filesystem' },
  ],
  [
    'storageclasses',
    'zoo-slow',
    {
      NAME: 'zoo-slow (default)',
      PROVISIONER: 'example.com/slow',
      RECLAIMPOLICY: 'Delete',
      VOLUMEBINDINGMODE: 'WaitForFirstConsumer',
      ALLOWVOLUMEEXPANSION: 'true',
      AGE: age,
    },
  ],
  ['leases', 'lease', { NAME: 'lease', HOLDER: 'me', AGE: age }],
  [
    'poddisruptionbudgets',
    'budget',
    { NAME: 'budget', 'MIN AVAILABLE': '50%', 'MAX UNAVAILABLE': 'N/A', 'ALLOWED DISRUPTIONS': '0', AGE: age },
  ],
  ['configmaps', 'settings', { NAME: 'settings', DATA: '3', AGE: age }],
  ['secrets', 'secret', { NAME: 'secret', TYPE: 'Opaque', DATA: '1', AGE: age }],
  ['serviceaccounts', 'robot', { NAME: 'robot', SECRETS: '1', AGE: age }],
  [
    'services',
    'web',
    { NAME: 'web', TYPE: 'ClusterIP', 'CLUSTER-IP': 'None', 'EXTERNAL-IP': NONE, 'PORT(S)': '80/TCP,53/UDP', AGE: age },
    { SELECTOR: 'app=web' },
  ],
  ['endpoints', 'web', { NAME: 'web', ENDPOINTS: '10.1.0.7:80', AGE: age }],
  ['endpointslices', 'web-x', { NAME: 'web-x', ADDRESSTYPE: 'IPv4', PORTS: '80', ENDPOINTS: '10.1.0.7', AGE: age }],
  [
    'deployments',
    'web',
    { NAME: 'web', READY: '0/2', 'UP-TO-DATE': '0', AVAILABLE: '0', AGE: age },
    { CONTAINERS: 'main,side-1', IMAGES: 'nginx:1.25,busybox:1', SELECTOR: 'app=web' },
  ],
  [
    'replicasets',
    'web-1',
    { NAME: 'web-1', DESIRED: '2', CURRENT: '0', READY: '0', AGE: age },
    { CONTAINERS: 'main', IMAGES: 'nginx:1.25', SELECTOR: 'app=web' },
  ],
  ['statefulsets', 'db', { NAME: 'db', READY: '0/1', AGE: age }, { CONTAINERS: 'main', IMAGES: 'postgres:16' }],
  [
    'daemonsets',
    'agent',
    {
      NAME: 'agent',
      DESIRED: '0',
      CURRENT: '0',
      READY: '0',
      'UP-TO-DATE': '0',
      AVAILABLE: '0',
      'NODE SELECTOR': 'a=b',
      AGE: age,
    },
    { CONTAINERS: 'main', IMAGES: 'agent:1', SELECTOR: 'app=agent' },
  ],
  [
    'controllerrevisions',
    'revision',
    { NAME: 'revision', CONTROLLER: 'daemonset.apps/agent', REVISION: '3', AGE: age },
  ],
  [
    'replicationcontrollers',
    'old',
    { NAME: 'old', DESIRED: '1', CURRENT: '0', READY: '0', AGE: age },
    { CONTAINERS: 'main', IMAGES: 'old:1', SELECTOR: 'app=old' },
  ],
  ['podtemplates', 'template', { NAME: 'template', CONTAINERS: 'main', IMAGES: 'old:1', 'POD LABELS': 'app=old' }],
  [
    'jobs',
    'once',
    { NAME: 'once', STATUS: 'Running', COMPLETIONS: '0/3', DURATION: '', AGE: age },
    { CONTAINERS: 'main', IMAGES: 'busybox:1', SELECTOR: 'job=once' },
  ],
  [
    'cronjobs',
    'nightly',
    {
      NAME: 'nightly',
      SCHEDULE: '0 3 * * *',
      TIMEZONE: NONE,
      SUSPEND: 'False',
      ACTIVE: '0',
      'LAST SCHEDULE': NONE,
      AGE: age,
    },
    { CONTAINERS: 'main', IMAGES: 'busybox:1', SELECTOR: NONE },
  ],
  [
    'ingresses',
    'front',
    { NAME: 'front', CLASS: 'nginx', HOSTS: 'a.example.com', ADDRESS: '', PORTS: '80, 443', AGE: age },
  ],
  ['networkpolicies', 'deny', { NAME: 'deny', 'POD-SELECTOR': 'app=web', AGE: age }],
  ['roles', 'reader', { NAME: 'reader', 'CREATED AT': 'time' }],
  [
    'rolebindings',
    'readers',
    { NAME: 'readers', ROLE: 'Role/reader', AGE: age },
    { USERS: 'jane', GROUPS: 'devs', SERVICEACCOUNTS: 'default/robot' },
  ],
  ['clusterroles', 'cluster-admin', { NAME: 'cluster-admin', 'CREATED AT': 'time' }],
  [
    'clusterrolebindings',
    'cluster-admin',
    { NAME: 'cluster-admin', ROLE: 'ClusterRole/cluster-admin', AGE: age },
    { USERS: '', GROUPS: 'system:masters', SERVICEACCOUNTS: '' },
  ],
  [
    'priorityclasses',
    'zoo-high',
    { NAME: 'zoo-high', VALUE: '1000', 'GLOBAL-DEFAULT': 'false', AGE: age, PREEMPTIONPOLICY: 'PreemptLowerPriority' },
  ],
  ['runtimeclasses', 'zoo-kata', { NAME: 'zoo-kata', HANDLER: 'kata', AGE: age }],
  ['namespaces', 'default', { NAME: 'default', STATUS: 'Active', AGE: age }],
  ['validatingwebhookconfigurations', 'zoo-validating', { NAME: 'zoo-validating', WEBHOOKS: '1', AGE: age }],
  ['mutatingwebhookconfigurations', 'zoo-mutating', { NAME: 'zoo-mutating', WEBHOOKS: '0', AGE: age }],
  ['customresourcedefinitions', `gadgets.${GROUP}`, { NAME: `gadgets.${GROUP}`, 'CREATED AT': 'time' }],
  ['apiservices', 'v1.apps', { NAME: 'v1.apps', SERVICE: 'Local', AVAILABLE: 'True', AGE: age }],
  [`gadgets.${GROUP}`, 'gadget', { NAME: 'gadget', SIZE: '3', PARTS: 'wheel', AGE: age }, { COLOUR: 'red' }],
];

describe('columns', () => {
  it.each(KINDS)('%s %s', async (kind, name, plain, wide) => {
    const text = await kubectl.ok(['get', kind, name]);
    expect(headersOf(text)).toEqual(Object.keys(plain));
    expect(tableOf(text).map(settled)).toEqual([plain]);
    if (!wide) return;
    // Which column comes where differs by kind; wide ones may stand before the age.
    expect(tableOf(await kubectl.ok(['get', kind, name, '-o', 'wide'])).map(settled)).toEqual([{ ...plain, ...wide }]);
  });

  it('of events, oldest mention first', async () => {
    const rows = tableOf(
      await kubectl.ok('get events --sort-by=.lastTimestamp --field-selector=involvedObject.kind=Pod'),
    ).map(settled);
    expect(rows).toEqual([
      {
        'LAST SEEN': age,
        TYPE: 'Warning',
        REASON: 'BackOff',
        OBJECT: 'pod/crashing',
        MESSAGE: 'Back-off restarting failed container',
      },
      { 'LAST SEEN': age, TYPE: 'Normal', REASON: 'Pulled', OBJECT: 'pod/running', MESSAGE: 'Container image pulled' },
    ]);
    const wide = tableOf(await kubectl.ok('get events running.1 -o wide')).map(settled);
    expect(wide).toEqual([
      {
        'LAST SEEN': age,
        TYPE: 'Normal',
        REASON: 'Pulled',
        OBJECT: 'pod/running',
        SUBOBJECT: 'spec.containers{main}',
        SOURCE: 'kubelet, zoo-node',
        MESSAGE: 'Container image pulled',
        'FIRST SEEN': age,
        COUNT: '3',
        NAME: 'running.1',
      },
    ]);
  });

  it('of a quota, once its controller has counted', async () => {
    await eventually(async () =>
      expect(tableOf(await kubectl.ok('get quota')).map(settled)).toEqual([
        { NAME: 'quota', REQUEST: 'pods: 0/10, requests.cpu: 0/2', LIMIT: 'limits.memory: 0/1Gi', AGE: age },
      ]),
    );
  });

  it('of a node that has lost touch, and of a pod that is being deleted', async () => {
    const conditions = [{ type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: '' }];
    await cluster.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: 'columns-lost' } });
    expect(tableOf(await kubectl.ok('get node columns-lost'))).toMatchObject([
      { STATUS: 'Unknown', ROLES: NONE, VERSION: '' },
    ]);
    await cluster.merge('/api/v1/nodes/columns-lost/status', { status: { conditions } });
    expect(tableOf(await kubectl.ok('get node columns-lost'))).toMatchObject([{ STATUS: 'NotReady' }]);
    await kubectl.ok('delete pod crashing --wait=false');
    expect(tableOf(await kubectl.ok('get pod crashing'))).toMatchObject([{ STATUS: 'Terminating' }]);
  });
});
