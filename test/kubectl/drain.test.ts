import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Anything } from '../support/api.ts';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { type Kubectl, kubectlMinor } from '../support/kubectl.ts';
import { TestKubelet } from '../support/kubelet.ts';

/**
 * `kubectl drain` against budgets. Nodes, kubelets and the controller of replica sets come in later work: the test plays
 * their parts through the API.
 */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;
let kubelet: TestKubelet;
let node: string;
let nodes = 0;

beforeAll(async () => {
  cluster = await Cluster.start();
});
afterAll(() => cluster.close());

beforeEach(async () => {
  ({ kubectl, namespace } = await cluster.namespace('drain'));
  kubelet = new TestKubelet(cluster, namespace);
  node = `node-${++nodes}`;
  await cluster.create('/api/v1/nodes', { apiVersion: 'v1', kind: 'Node', metadata: { name: node } });
});
afterEach(() => kubelet.stop());

const WEB = { app: 'web' };

interface PodOptions {
  /** The object that made the pod; none: somebody by hand. */
  readonly owner?: Anything;
  readonly emptyDir?: boolean;
  readonly ready?: boolean;
}

/** A pod that runs on the node. */
async function pod(name: string, { owner, emptyDir = false, ready = true }: PodOptions = {}): Promise<void> {
  await cluster.create(`/api/v1/namespaces/${namespace}/pods`, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name,
      labels: WEB,
      ...(owner ? { ownerReferences: [{ ...owner, controller: true, blockOwnerDeletion: true }] } : {}),
    },
    spec: {
      nodeName: node,
      containers: [{ name: 'main', image: 'main' }],
      ...(emptyDir ? { volumes: [{ name: 'scratch', emptyDir: {} }] } : {}),
    },
  });
  await kubelet.report(name, { ready });
}

/** Makes a replica set or daemon set, and answers a reference to it. */
async function workload(kind: 'ReplicaSet' | 'DaemonSet'): Promise<Anything> {
  const template = { metadata: { labels: WEB }, spec: { containers: [{ name: 'main', image: 'main' }] } };
  const { metadata } = await cluster.create(`/apis/apps/v1/namespaces/${namespace}/${kind.toLowerCase()}s`, {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name: 'web' },
    spec: { selector: { matchLabels: WEB }, template },
  });
  return { apiVersion: 'apps/v1', kind, name: 'web', uid: metadata.uid };
}

async function budget(name: string, spec: object = {}): Promise<void> {
  await cluster.create(`/apis/policy/v1/namespaces/${namespace}/poddisruptionbudgets`, {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: { name },
    spec: { minAvailable: 1, selector: { matchLabels: WEB }, ...spec },
  });
  await eventually(async () => expect((await kubectl.json(`get pdb ${name}`)).status.observedGeneration).toBe(1));
}

const refusal = (name: string): string =>
  `error when evicting pods/"${name}" -n "${namespace}" (will retry after 5s): Cannot evict pod as it would violate the pod's disruption budget.\n`;

/** What kubectl calls the node in the end: older ones say what has become of its pods. */
const drained = (older: string): string => (kubectlMinor() >= 28 ? 'drained' : older);

describe('drain', () => {
  it('waits for a budget, evicts when it allows, and ends when the kubelet has let go', async () => {
    await budget('web');
    await pod('web-1', { owner: await workload('ReplicaSet') });
    const drain = kubectl.start(['drain', node]);
    await expect.poll(drain.output, { timeout: 20_000 }).toContain(refusal('web-1'));
    expect(drain.output()).toBe(`node/${node} cordoned\nevicting pod ${namespace}/web-1\n${refusal('web-1')}`);
    expect((await kubectl.json(`get node ${node}`)).spec.unschedulable).toBe(true);
    expect((await kubectl.json('get pod web-1')).metadata.deletionTimestamp).toBeUndefined();

    await kubectl.ok(['patch', 'pdb', 'web', '-p', '{"spec":{"minAvailable":0}}']);
    await expect
      .poll(async () => (await kubectl.json('get pod web-1')).metadata.deletionTimestamp, { timeout: 20_000 })
      .toBeDefined();
    const evicted = await kubectl.json('get pod web-1');
    expect(evicted.metadata.deletionGracePeriodSeconds).toBe(30);
    expect(evicted.status.conditions).toContainEqual(
      expect.objectContaining({
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'EvictionByEvictionAPI',
        message: 'Eviction API: evicting',
      }),
    );
    await kubelet.start();
    expect(await drain.ended).toBe(0);
    expect(drain.output()).toContain(`evicting pod ${namespace}/web-1\n`);
    expect(drain.output()).toContain(`pod/web-1 evicted\nnode/${node} ${drained('evicted')}\n`);
    expect(await kubectl.fails('get pod web-1')).toBe('Error from server (NotFound): pods "web-1" not found\n');
  });

  it('refuses pods that would be lost, until told otherwise', async () => {
    const daemonSet = await workload('DaemonSet');
    await pod('alone');
    await pod('daemon', { owner: daemonSet });
    await pod('scratch', { owner: await workload('ReplicaSet'), emptyDir: true });
    const refused = await kubectl.run(['drain', node]);
    expect(refused.code).toBe(1);
    expect(refused.stdout).toBe(`node/${node} cordoned\n`);
    // kubectl lists the reasons in no particular order, and older ones in a sentence.
    expect(refused.stderr).toMatch(new RegExp(`There are pending nodes to be drained:\n ${node}\n`));
    expect(refused.stderr).toContain(`(use --force to override): ${namespace}/alone`);
    expect(refused.stderr).toContain(
      `cannot delete DaemonSet-managed Pods (use --ignore-daemonsets to ignore): ${namespace}/daemon`,
    );
    expect(refused.stderr).toContain(`(use --delete-emptydir-data to override): ${namespace}/scratch`);

    await kubelet.start();
    const args = ['drain', node, '--force', '--ignore-daemonsets', '--delete-emptydir-data'];
    const rehearsed = await kubectl.run([...args, '--dry-run=server']);
    expect(rehearsed.code).toBe(0);
    expect(rehearsed.stdout).toContain(`evicting pod ${namespace}/alone (server dry run)\n`);
    expect(rehearsed.stdout).toContain(`node/${node} drained (server dry run)\n`);
    expect(await kubectl.ok('get pods -o name')).toBe('pod/alone\npod/daemon\npod/scratch\n');

    const forced = await kubectl.run(args);
    expect(forced.code).toBe(0);
    expect(forced.stderr).toMatch(/^Warning: /i);
    expect(forced.stderr).toContain(`ignoring DaemonSet-managed Pods: ${namespace}/daemon`);
    expect(forced.stderr).toMatch(new RegExp(`deleting Pods .*: ${namespace}/alone`));
    expect(forced.stdout).toContain(`node/${node} ${drained('evicted')}\n`);
    expect(await kubectl.ok('get pods -o name')).toBe('pod/daemon\n');
  });

  it('goes past budgets when it may delete', async () => {
    await budget('web');
    await pod('web-1', { owner: await workload('ReplicaSet') });
    await kubelet.start();
    expect(await kubectl.ok(['drain', node, '--disable-eviction'])).toBe(
      `node/${node} cordoned\npod/web-1 deleted\nnode/${node} ${drained('deleted')}\n`,
    );
    expect((await kubectl.json('get pdb web')).status.disruptedPods).toBeUndefined();
  });

  it('gives up after its time', async () => {
    await budget('web');
    await pod('web-1', { owner: await workload('ReplicaSet') });
    const result = await kubectl.run(['drain', node, '--timeout=1s']);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(refusal('web-1'));
    expect(result.stderr).toContain(`error: unable to drain node "${node}"`);
    expect(result.stderr).toContain(`error when evicting pods/"web-1" -n "${namespace}": global timeout reached: 1s`);
    expect(await kubectl.ok('get pods -o name')).toBe('pod/web-1\n');
  });

  it('takes pods that were not healthy, if the budget says so', async () => {
    await budget('web', { unhealthyPodEvictionPolicy: 'AlwaysAllow' });
    await pod('sick-1', { owner: await workload('ReplicaSet'), ready: false });
    await kubelet.start();
    expect(await kubectl.ok(['drain', node])).toContain(`pod/sick-1 evicted\nnode/${node} ${drained('evicted')}\n`);
  });

  it('keeps pods that were not healthy while the budget is not met otherwise', async () => {
    await budget('web');
    await pod('sick-1', { owner: await workload('ReplicaSet'), ready: false });
    const result = await kubectl.run(['drain', node, '--timeout=1s']);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(refusal('sick-1'));
  });

  it('fails where two budgets speak of one pod', async () => {
    await budget('web');
    await budget('other');
    await pod('web-1', { owner: await workload('ReplicaSet') });
    const result = await kubectl.run(['drain', node]);
    expect(result.code).toBe(1);
    expect(result.stderr).toContain(
      `error when evicting pods/"web-1" -n "${namespace}": This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.`,
    );
  });

  it('drains by selectors of nodes and of pods, with a grace period of its own', async () => {
    await kubectl.ok(`label node ${node} pool=${namespace}`);
    await pod('keep', { owner: await workload('ReplicaSet') });
    await pod('go');
    await kubectl.ok('label pod go --overwrite app=other');
    const drain = kubectl.start([
      'drain',
      '-l',
      `pool=${namespace}`,
      '--pod-selector=app=other',
      '--force',
      '--grace-period=7',
    ]);
    await expect
      .poll(async () => (await kubectl.json('get pod go')).metadata.deletionGracePeriodSeconds, { timeout: 20_000 })
      .toBe(7);
    await kubelet.start();
    expect(await drain.ended).toBe(0);
    expect(await kubectl.ok('get pods -o name')).toBe('pod/keep\n');
  });
});
