import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { type Kubectl, kubectlHas } from '../support/kubectl.ts';
import { gadgetDefinition } from './gadgets.ts';
import { tableOf } from './table.ts';
import { event, fillZoo } from './zoo.ts';

/** `kubectl describe` and `kubectl events`: what kubectl puts together from several requests. */

const GROUP = 'describe.example.com';

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace('describe'));
  await fillZoo(cluster, namespace);
  await kubectl.apply(gadgetDefinition(GROUP));
  await kubectl.ok(`wait --for=condition=Established crd/gadgets.${GROUP}`);
  await kubectl.apply({
    apiVersion: `${GROUP}/v1`,
    kind: 'Gadget',
    metadata: { name: 'gadget', labels: { a: 'b' } },
    spec: { size: 3, parts: [{ name: 'wheel', weight: 1.5 }] },
  });
});
afterAll(() => cluster.close());

/** A description as sections of trimmed lines: how far kubectl indents depends on the longest name. */
const squeezed = (text: string): string => text.replaceAll(/[ \t]+/g, ' ').replaceAll(/ *\n */g, '\n');

async function described(...args: string[]): Promise<string> {
  return squeezed(await kubectl.ok(['describe', ...args]));
}

describe('describe', () => {
  it('pod: containers, probes, environment, volumes, conditions and events', async () => {
    const text = await described('pod', 'running');
    for (const part of [
      `Name: running\nNamespace: ${namespace}\nPriority: 0\nService Account: robot\nNode: zoo-node/192.168.0.5\nStart Time: Mon, 01 Jan 2024 00:00:00 +0000\n`,
      'Labels: app=web\ntier=front\nAnnotations: note: hello\nStatus: Running\nIP: 10.1.0.7\nIPs:\nIP: 10.1.0.7\n',
      'Containers:\nmain:\nContainer ID: containerd://1\nImage: nginx:1.25\nImage ID: sha256:1\nPort: 80/TCP\n',
      'State: Running\nStarted: Mon, 01 Jan 2024 00:00:00 +0000\nReady: True\nRestart Count: 2\nLimits:\nmemory: 128Mi\nRequests:\ncpu: 100m\nmemory: 64Mi\n',
      'Liveness: http-get http://:http/ delay=0s timeout=1s period=10s #success=1 #failure=3\n',
      "Environment:\nPLAIN: text\nNAME: running (v1:metadata.name)\nKEY: <set to the key 'key' in secret 'secret'> Optional: false\n",
      'Mounts:\n/etc/settings from settings (rw)\n',
      'side:\nContainer ID:\nImage: busybox:1\n',
      'Command:\nsleep\n1000\n',
      'Conditions:\nType Status\nReady True\nPodScheduled True\n',
      'Volumes:\nsettings:\nType: ConfigMap (a volume populated by a ConfigMap)\nName: settings\nOptional: false\n',
      'QoS Class: Burstable\nNode-Selectors: <none>\nTolerations: node.kubernetes.io/not-ready:NoExecute op=Exists for 300s\nnode.kubernetes.io/unreachable:NoExecute op=Exists for 300s\n',
      'Events:\nType Reason Age From Message\n---- ------ ---- ---- -------\nNormal Pulled ',
    ])
      expect(text).toContain(part);
    expect(text).toMatch(/Normal Pulled \S+ \(x3 over \S+\) kubelet Container image pulled\n/);
    expect(await described('pod', 'crashing')).toMatch(
      /State: Waiting\nReason: CrashLoopBackOff\nReady: False\nRestart Count: 7\n[^]*Warning BackOff \S+ kubelet Back-off restarting failed container\n/,
    );
    expect(await described('pod', 'pending', '--show-events=false')).not.toContain('Events:');
  });

  it('node: its pods and what is left', async () => {
    const text = await described('node', 'zoo-node');
    for (const part of [
      'Name: zoo-node\nRoles: worker\nLabels: kubernetes.io/hostname=zoo-node\nnode-role.kubernetes.io/worker=\n',
      'Taints: dedicated=zoo:NoSchedule\nnode.kubernetes.io/unschedulable:NoSchedule\nUnschedulable: true\nLease:\nHolderIdentity: zoo-node\nAcquireTime: <unset>\nRenewTime: ',
      'Ready True Mon, 01 Jan 2024 00:00:00 +0000 Mon, 01 Jan 2024 00:00:00 +0000 KubeletReady kubelet is posting ready status\n',
      'Addresses:\nInternalIP: 192.168.0.5\nHostname: zoo-node\nCapacity:\ncpu: 4\nmemory: 8Gi\npods: 110\nAllocatable:\ncpu: 4\nmemory: 7Gi\npods: 110\n',
      'Kernel Version: 6.1.0\nOS Image: Debian 12\nOperating System: linux\nArchitecture: amd64\nContainer Runtime Version: containerd://1.7\nKubelet Version: v1.34.0\n',
      'PodCIDR: 10.1.0.0/24\nPodCIDRs: 10.1.0.0/24\nNon-terminated Pods: (3 in total)\n',
      `${namespace} running 100m (2%) 0 (0%) 64Mi (0%) 128Mi (1%)`,
      'Allocated resources:\n(Total limits may be over 100 percent, i.e., overcommitted.)\nResource Requests Limits\n-------- -------- ------\ncpu 100m (2%) 0 (0%)\nmemory 64Mi (0%) 128Mi (1%)\n',
    ])
      expect(text).toContain(part);
    expect(text).toMatch(
      /Normal RegisteredNode \S+ node-controller Node zoo-node event: Registered Node zoo-node in Controller\n/,
    );
  });

  it('namespace: with its quotas', async () => {
    const text = await described('namespace', namespace);
    expect(text).toContain(
      `Name: ${namespace}\nLabels: kubernetes.io/metadata.name=${namespace}\nAnnotations: <none>\nStatus: Active\n`,
    );
    expect(text).toContain(
      'Resource Quotas\nName: quota\nScopes: Terminating\n* Matches all pods that have an active deadline.',
    );
    expect(text).toContain('No LimitRange resource.\n');
  });

  it('configmap and secret: one in the open, one by size alone', async () => {
    const settings = await kubectl.ok('describe configmap settings');
    expect(settings).toContain('\nplain:\n----\ntext\n');
    expect(settings).toContain('\nlines:\n----\none\ntwo\n');
    expect(settings).toContain('\nBinaryData\n====\nbytes: 3 bytes\n');
    expect(await kubectl.ok('describe secret secret')).toBe(
      `Name:         secret\nNamespace:    ${namespace}\nLabels:       <none>\nAnnotations:  <none>\n\nType:  Opaque\n\nData\n====\nkey:  5 bytes\n`,
    );
  });

  it('poddisruptionbudget, as its controller has left it', async () => {
    // Half of nothing is nothing: no controller says how many there should be of pods that were made by hand.
    const status = 'Allowed disruptions: 0\nCurrent: 1\nDesired: 0\nTotal: 0\n';
    await eventually(async () =>
      expect(await described('pdb', 'budget')).toContain(
        `Name: budget\nNamespace: ${namespace}\nMin available: 50%\nSelector: app=web\nStatus:\n${status}Events:\n`,
      ),
    );
    expect(await described('pdb', 'budget')).toMatch(/^Normal NoPods \S+ controllermanager No matching pods found$/m);
  });

  it('resourcequota', async () => {
    await eventually(async () =>
      expect(await described('quota', 'quota')).toBe(
        `Name: quota\nNamespace: ${namespace}\nScopes: Terminating\n* Matches all pods that have an active deadline. These pods have a limited lifespan on a node before being actively terminated by the system.\nResource Used Hard\n-------- ---- ----\nlimits.memory 0 1Gi\npods 0 10\nrequests.cpu 0 2\n`,
      ),
    );
  });

  it('serviceaccount, role and bindings', async () => {
    expect(await described('sa', 'robot')).toContain(
      `Name: robot\nNamespace: ${namespace}\nLabels: <none>\nAnnotations: <none>\nImage pull secrets: pull (not found)\nMountable secrets: secret\nTokens: <none>\n`,
    );
    expect(await described('role', 'reader')).toContain(
      'PolicyRule:\nResources Non-Resource URLs Resource Names Verbs\n--------- ----------------- -------------- -----\npods/log [] [] [get list]\npods [] [] [get list]\ndeployments.apps [] [web] [get]\n',
    );
    expect(await described('rolebinding', 'readers')).toContain(
      'Role:\nKind: Role\nName: reader\nSubjects:\nKind Name Namespace\n---- ---- ---------\nUser jane\nGroup devs\nServiceAccount robot default\n',
    );
    expect(await described('clusterrole', 'system:basic-user')).toContain(
      'selfsubjectaccessreviews.authorization.k8s.io [] [] [create]\n',
    );
  });

  it('persistentvolumeclaim, persistentvolume and storageclass', async () => {
    expect(await described('pvc', 'claim')).toMatch(
      new RegExp(
        `^Name: claim\nNamespace: ${namespace}\nStorageClass: zoo-slow\nStatus: Pending\nVolume:\nLabels: <none>\nAnnotations: <none>\n[^]*VolumeMode: Filesystem\nUsed By: <none>\n`,
      ),
    );
    expect(await described('pv', 'zoo-volume')).toMatch(
      /StorageClass: zoo-slow\nStatus: Available\nClaim:\nReclaim Policy: Retain\nAccess Modes: RWO,ROX\nVolumeMode: Filesystem\nCapacity: 10Gi\nNode Affinity: <none>\nMessage:\nSource:\nType: HostPath \(bare host directory volume\)\nPath: \/tmp\/zoo\n/,
    );
    expect(await described('sc', 'zoo-slow')).toContain('IsDefaultClass: Yes\n');
  });

  it('deployment, with replica sets and pods of its own', async () => {
    const text = await described('deployment', 'web');
    for (const part of [
      'Selector: app=web\nReplicas: 2 desired | 0 updated | 0 total | 0 available | 0 unavailable\nStrategyType: RollingUpdate\nMinReadySeconds: 0\nRollingUpdateStrategy: 25% max unavailable, 25% max surge\n',
      'Pod Template:\nLabels: app=web\nContainers:\nmain:\nImage: nginx:1.25\n',
    ])
      expect(text).toContain(part);
    const { metadata } = await kubectl.json('get deployment web');
    await kubectl.ok([
      'patch',
      'replicaset',
      'web-1',
      '-p',
      JSON.stringify({
        metadata: {
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: metadata.uid, controller: true },
          ],
        },
      }),
    ]);
    expect(await described('deployment', 'web')).toContain(
      'OldReplicaSets: web-1 (0/2 replicas created)\nNewReplicaSet: <none>\n',
    );
    expect(await described('statefulset', 'db')).toContain(
      'Update Strategy: RollingUpdate\nPartition: 0\nPods Status: 0 Running / 0 Waiting / 0 Succeeded / 0 Failed\n',
    );
    expect(await described('daemonset', 'agent')).toContain('Node-Selector: a=b\n');
    expect(await described('job', 'once')).toContain('Parallelism: 2\nCompletions: 3\n');
    expect(await described('cronjob', 'nightly')).toContain(
      'Schedule: 0 3 * * *\nConcurrency Policy: Allow\nSuspend: False\n',
    );
  });

  it('service, ingress, lease, priorityclass and limitrange', async () => {
    expect(await described('service', 'web')).toContain('Port: http 80/TCP\nTargetPort: http/TCP\n');
    expect(await described('ingress', 'front')).toContain(
      'Rules:\nHost Path Backends\n---- ---- --------\na.example.com\n/ web:80 ',
    );
    expect(await described('lease', 'lease')).toContain('Spec:\nHolder Identity: me\nLease Duration Seconds: 15\n');
    expect(await described('priorityclass', 'zoo-high')).toContain(
      'Value: 1000\nGlobalDefault: false\nPreemptionPolicy: PreemptLowerPriority\nDescription: matters\n',
    );
    await kubectl.apply({
      apiVersion: 'v1',
      kind: 'LimitRange',
      metadata: { name: 'limits' },
      spec: { limits: [{ type: 'Container', max: { cpu: '2' }, defaultRequest: { cpu: '100m' } }] },
    });
    expect(await described('limits', 'limits')).toContain('Container cpu - 2 100m 2 -\n');
  });

  it('custom resources and their definitions, field by field', async () => {
    const text = await described('gadget', 'gadget');
    expect(text).toContain(`Name: gadget\nNamespace: ${namespace}\nLabels: a=b\n`);
    expect(text).toContain(`API Version: ${GROUP}/v1\nKind: Gadget\nMetadata:\nCreation Timestamp: `);
    expect(text).toContain('Spec:\nColour: red\nParts:\nName: wheel\nWeight: 1.5\nSize: 3\nEvents: <none>\n');
    const crd = await described('crd', `gadgets.${GROUP}`);
    expect(crd).toContain(
      `Group: ${GROUP}\nNames:\nCategories:\nall\ntools\nKind: Gadget\nList Kind: GadgetList\nPlural: gadgets\n`,
    );
    expect(crd).toContain(
      'Message: the initial names have been accepted\nReason: InitialNamesAccepted\nStatus: True\nType: Established\n',
    );
  });

  it('several by prefix or label', async () => {
    const both = await described('pods', '-l', 'app=web');
    expect([...both.matchAll(/^Name: (\S+)\nNamespace:/gm)].map(([, name]) => name)).toEqual(['crashing', 'running']);
    expect(await described('pod', 'runn')).toContain('Name: running\n');
    expect(await kubectl.fails('describe pod nobody')).toBe('Error from server (NotFound): pods "nobody" not found\n');
  });
});

describe('events', () => {
  const rows = async (...args: string[]): Promise<(string | undefined)[][]> =>
    tableOf(await kubectl.ok(['events', ...args]))
      // Controllers have something to say about other objects.
      .filter((row) => row['OBJECT']?.startsWith('Pod/'))
      .map((row) => [row['TYPE'], row['REASON'], row['OBJECT'], row['MESSAGE']]);
  const PULLED = ['Normal', 'Pulled', 'Pod/running', 'Container image pulled'];
  const BACK_OFF = ['Warning', 'BackOff', 'Pod/crashing', 'Back-off restarting failed container'];

  it('lists them by time', async () => {
    if (!kubectlHas(27, 'kubectl events')) return;
    expect(await rows()).toEqual([BACK_OFF, PULLED]);
    const [first] = tableOf(await kubectl.ok('events --types=Normal'));
    expect(first?.['LAST SEEN']).toMatch(/^\S+ \(x3 over \S+\)$/);
  });

  it('selects by type and by what they are about', async () => {
    expect(await rows('--types=Warning')).toEqual([BACK_OFF]);
    expect(await rows('--for', 'pod/running')).toEqual([PULLED]);
    expect(await kubectl.fails('events --for nonsense/x')).toContain(
      `the server doesn't have a resource type "nonsense"`,
    );
    const { stdout, stderr } = await kubectl.run(['events', '--for', 'pod/pending']);
    expect({ stdout, stderr }).toEqual({ stdout: '', stderr: `No events found in ${namespace} namespace.\n` });
  });

  it('shows all namespaces, and other forms', async () => {
    expect(tableOf(await kubectl.ok('events -A'))).toContainEqual(
      expect.objectContaining({ NAMESPACE: namespace, REASON: 'Pulled' }),
    );
    expect((await kubectl.json('events --for pod/running')).items).toHaveLength(1);
  });

  it('follows them', async () => {
    const watch = kubectl.start(['events', '--for', 'pod/running', '-w']);
    try {
      await eventually(() => expect(watch.output()).toContain('Pulled'));
      const about = (name: string, reason: string): object =>
        event(
          name,
          { kind: 'Pod', name: reason === 'Started' ? 'running' : 'crashing', namespace, apiVersion: 'v1' },
          { type: 'Normal', reason, message: 'now', lastTimestamp: '2024-01-01T01:00:00Z' },
        );
      const path = `/api/v1/namespaces/${namespace}/events`;
      await cluster.create(path, about('other.1', 'Other'));
      await cluster.create(path, about('running.2', 'Started'));
      await eventually(() => expect(watch.output()).toContain('Started'));
      expect(watch.output()).not.toContain('Other');
    } finally {
      watch.stop();
      await watch.ended;
    }
  });

  it('are the same ones in events.k8s.io', async () => {
    const newer = await kubectl.json('get events.events.k8s.io running.1');
    expect(newer).toMatchObject({
      apiVersion: 'events.k8s.io/v1',
      regarding: { kind: 'Pod', name: 'running', fieldPath: 'spec.containers{main}' },
      note: 'Container image pulled',
      reason: 'Pulled',
      deprecatedCount: 3,
      deprecatedSource: { component: 'kubelet', host: 'zoo-node' },
    });
    const older = await kubectl.json('get events running.1');
    expect(newer.metadata.uid).toBe(older.metadata.uid);
  });
});
