import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { parseCertificateRequest } from '../../src/machinery/x509/certificate-request.ts';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { claim, IMAGES, probe, virtualMachine } from '../support/guest-manifests.ts';
import { probeGuest } from '../support/guests.ts';
import { buildImage, buildPauseImage } from '../support/kubernetes/kubelets/images.ts';
import { KubeletCluster } from '../support/kubernetes/kubelets/kubelet-cluster.ts';

/**
 * `godwit manifests --kubelets` on real kubelets with containerd, in the image that the script makes: launcher pods are containers, and
 * guests in them move, and outlive whatever looks after them. Each test goes on from where the one before it was. The guest writes to a disk
 * that all hosts share, and says whether it finds what it wrote.
 */

vi.setConfig({ testTimeout: 900_000, hookTimeout: 1_800_000 });

const IMAGE = 'godwit/godwit:test';
const [FIRST, SECOND] = ['worker-1', 'worker-2'];
const HOSTS = [FIRST, SECOND];
const PATIENCE_MS = 300_000;
/** For so long a guest of a lost host is seen not to start elsewhere. */
const NOT_BEFORE_SECONDS = 20;
const COMPONENTS = ['virt-controller', 'virt-api', 'virt-synchronization-controller'];
/** As whom agents ask that have not joined. */
const AGENT = 'system:serviceaccount:kubevirt:kubevirt-agent';
const UNPAUSED = 'kubevirt.io/virtual-machine-unpaused';

let files: string;
let cluster: KubeletCluster;

beforeAll(async () => {
  files = mkdtempSync(join(tmpdir(), 'godwit-kubelets-'));
  await buildImage(join(files, 'godwit.tar'), IMAGE);
  cluster = await KubeletCluster.start(HOSTS, [join(files, 'godwit.tar'), await buildPauseImage(files)]);
  const kernel = probeGuest(files);
  for (const host of HOSTS) {
    const directory = join(cluster.nodesDirectory, host);
    await cluster.cli('image', 'import', IMAGES.probe, '--kernel', kernel, '--data-dir', directory);
  }
});
afterAll(async () => {
  await cluster?.stop();
  rmSync(files, { recursive: true, force: true });
});

const kubectl = (...args: readonly string[]): Promise<string> =>
  cluster.kubectl.ok(args, { killAfterMs: PATIENCE_MS + 10_000 });

async function apply(...manifests: readonly string[]): Promise<void> {
  await applied(await cluster.cli('manifests', ...manifests));
}

async function applied(stdin: string): Promise<void> {
  await cluster.kubectl.ok('apply --server-side -f -', { stdin, killAfterMs: PATIENCE_MS });
}

/** Applies the components so that agents stay as they are until they are deleted; only these kinds, where some are named. */
async function applyWithoutRolling(options: readonly string[], kinds?: readonly string[]): Promise<void> {
  const printed = await cluster.cli('manifests', '--only', 'components', '--image', IMAGE, '-o', 'json', ...options);
  const list = JSON.parse(printed);
  const items = list.items.filter(({ kind }: Anything) => kinds?.includes(kind) ?? true);
  for (const { kind, spec } of items) if (kind === 'DaemonSet') spec.updateStrategy = { type: 'OnDelete' };
  await applied(JSON.stringify({ ...list, items }));
}

async function rolledOut(): Promise<void> {
  await kubectl('-n', 'kubevirt', 'rollout', 'status', 'deployment', ...COMPONENTS, `--timeout=${PATIENCE_MS}ms`);
}

/** As which node somebody asks to be known. */
async function nodeAskedFor({ spec }: Anything): Promise<string> {
  const { commonName } = await parseCertificateRequest(Buffer.from(spec.request, 'base64').toString());
  return commonName.replace(/^system:node:/, '');
}

/** Approves what agents ask for who have no certificates yet, as an admin does who has looked at the names: these, and no others. */
async function approved(nodes: readonly string[]): Promise<void> {
  await eventually(async () => {
    const { items } = await cluster.kubectl.json('get csr');
    const asked = items.filter(({ spec, status }: Anything) => spec.username === AGENT && !status.certificate);
    const names: string[] = await Promise.all(asked.map(nodeAskedFor));
    expect(names.toSorted()).toEqual(nodes);
    for (const { metadata } of asked) await kubectl('certificate', 'approve', metadata.name);
  }, PATIENCE_MS);
}

/** Waits until guests can be scheduled to these nodes, and to no others. */
async function schedulable(nodes: readonly string[]): Promise<void> {
  await eventually(async () => {
    const { items } = await cluster.kubectl.json('get nodes -l kubevirt.io/schedulable=true');
    expect(items.map(({ metadata }: Anything) => metadata.name)).toEqual(nodes);
  }, PATIENCE_MS);
}

/** The pod that has the guest. */
async function launcherOf(name: string): Promise<Anything> {
  const { status } = await cluster.kubectl.json(`get vmi ${name}`);
  const { items } = await cluster.kubectl.json(`get pods -l vm.kubevirt.io/name=${name}`);
  return items.find(({ metadata }: Anything) => metadata.uid === status.rightToRun.holder.podUID);
}

const otherThan = (host: string): string => HOSTS.find((each) => each !== host) ?? '';

/** Waits until a pod has ended well, as the kubelet says. */
async function endedWell(pod: Anything): Promise<void> {
  await eventually(async () => {
    const { status } = await cluster.kubectl.json(`get pod ${pod.metadata.name}`);
    expect(status, JSON.stringify(status)).toMatchObject({
      phase: 'Succeeded',
      containerStatuses: [{ state: { terminated: { exitCode: 0 } } }],
    });
  }, PATIENCE_MS);
}

it('is installed in containers, of which those of agents are nodes once they are approved', async () => {
  await apply('--only', 'crds');
  const established = ['wait', '--for', 'condition=Established', 'crd', '-l', 'app.kubernetes.io/part-of=godwit'];
  // It gives up on a kind that has no conditions yet.
  await eventually(() => kubectl(...established));
  await apply('--kubelets', '--image', IMAGE);
  await kubectl('label', 'node', ...HOSTS, 'node-restriction.kubernetes.io/godwit-agent=true');
  await rolledOut();
  await approved(HOSTS);
  await schedulable(HOSTS);
  for (const component of [...COMPONENTS, 'virt-handler'])
    for (const { metadata, status } of await cluster.podsOf(component))
      expect(status.containerStatuses[0].restartCount, metadata.name).toBe(0);
});

it('runs QEMU in a container of the kubelet, and has the guest move to that of another', async () => {
  await cluster.kubectl.apply({
    apiVersion: 'storage.k8s.io/v1',
    kind: 'StorageClass',
    metadata: { name: 'shared' },
    provisioner: 'godwit.dev/directories',
    parameters: { path: '/var/lib/godwit/shared' },
  });
  await cluster.kubectl.apply(claim('web', 'shared'));
  const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: 'web' } } }];
  const spec = probe({ tickMs: 100, evictionStrategy: 'LiveMigrate', arguments: 'write=20', volumes });
  await cluster.kubectl.apply(virtualMachine('web', spec));
  expect((await cluster.lives('web')).disk).toBe('ok');
  const source = await launcherOf('web');
  expect(await cluster.host(source.spec.nodeName).programsOf(source)).toEqual(['node', 'qemu-system-x86_64']);
  expect(await cluster.moves('web')).toHaveLength(2);
  const target = await launcherOf('web');
  expect(target.spec.nodeName).toBe(otherThan(source.spec.nodeName));
  expect(await cluster.host(target.spec.nodeName).programsOf(target)).toEqual(['node', 'qemu-system-x86_64']);
  await endedWell(source);
  expect(await kubectl('logs', source.metadata.name)).toContain('the launcher ends');
  await eventually(async () => {
    const { status } = await launcherOf('web');
    const isTrue = (type: string): boolean =>
      status.conditions.some((each: Anything) => each.type === type && each.status === 'True');
    expect([UNPAUSED, 'Ready'].map(isTrue)).toEqual([true, true]);
  }, PATIENCE_MS);
  expect(await cluster.cli('logs', 'web', '--tail', '1')).toContain('guest boot=');
});

const drain = (node: string): Promise<string> =>
  kubectl('drain', node, '--ignore-daemonsets', '--delete-emptydir-data', `--timeout=${PATIENCE_MS}ms`);

it('moves guests when kubectl drains a node, whose agent stays', async () => {
  const { boot } = await cluster.lives('web');
  const { spec } = await launcherOf('web');
  const agents = await agentsOf();
  await drain(spec.nodeName);
  expect((await launcherOf('web')).spec.nodeName).toBe(otherThan(spec.nodeName));
  expect(await cluster.isStill('web', boot)).toHaveLength(3);
  expect(await agentsOf()).toEqual(agents);
  await kubectl('uncordon', spec.nodeName);
});

/** The agents' pods by their nodes. */
async function agentsOf(): Promise<Record<string, string>> {
  const pods = await cluster.podsOf('virt-handler');
  const running = pods.filter(({ metadata, status }) => !metadata.deletionTimestamp && status.phase === 'Running');
  return Object.fromEntries(running.map(({ metadata, spec }) => [spec.nodeName, metadata.uid]));
}

/** Waits until each host has an agent that looks after it, and none of those that were there before. */
async function agentsAreOthersThan(before: Readonly<Record<string, string>>): Promise<void> {
  await eventually(async () => {
    const now = await agentsOf();
    for (const host of HOSTS) {
      expect(now[host], host).toBeDefined();
      expect(now[host], host).not.toBe(before[host]);
    }
  }, PATIENCE_MS);
}

it('keeps guests while agents are deleted and updated, and while kubelet and containerd are killed', async () => {
  const { boot } = await cluster.lives('web');
  const { spec, metadata } = await launcherOf('web');
  const host = cluster.host(spec.nodeName);
  const first = await agentsOf();
  await kubectl('delete', 'pod', '-n', 'kubevirt', '-l', 'kubevirt.io=virt-handler');
  await agentsAreOthersThan(first);
  await cluster.isStill('web', boot);
  for (const each of [host.kubelet, host.containerd]) {
    await each.kill();
    await cluster.isStill('web', boot);
    each.start();
  }
  const second = await agentsOf();
  await kubectl('-n', 'kubevirt', 'rollout', 'restart', 'daemonset', 'virt-handler');
  await kubectl('-n', 'kubevirt', 'rollout', 'status', 'daemonset', 'virt-handler', `--timeout=${PATIENCE_MS}ms`);
  await agentsAreOthersThan(second);
  await cluster.isStill('web', boot);
  const { metadata: now, status } = await launcherOf('web');
  expect(now.uid).toBe(metadata.uid);
  expect(status.containerStatuses[0].restartCount).toBe(0);
  expect(await cluster.moves('web')).toHaveLength(4);
});

it('leaves the agent where a taint drives all others off, and moves the guest', async () => {
  const { boot } = await cluster.lives('web');
  const { spec } = await launcherOf('web');
  const agents = await agentsOf();
  await kubectl('taint', 'node', spec.nodeName, 'maintenance:NoExecute');
  await eventually(async () => {
    expect((await launcherOf('web'))?.spec.nodeName).toBe(otherThan(spec.nodeName));
  }, PATIENCE_MS);
  expect(await cluster.isStill('web', boot)).toHaveLength(5);
  expect(await agentsOf()).toEqual(agents);
  await kubectl('taint', 'node', spec.nodeName, 'maintenance-');
});

it('has a pod fail whose QEMU is killed, says why, and starts the guest again', async () => {
  const { boot } = await cluster.lives('web');
  const pod = await launcherOf('web');
  const watch = cluster.kubectl.start(['get', 'pod', pod.metadata.name, '-w', '-o', 'json']);
  await cluster.host(pod.spec.nodeName).killQemu(pod);
  await eventually(async () => expect((await cluster.lives('web')).boot).not.toBe(boot), PATIENCE_MS);
  watch.stop();
  expect(watch.output()).toContain('SIGKILL');
  expect(watch.output()).toContain('"phase": "Failed"');
});

const apart = (host: string): string => `${host}-guests`;

/** Has the agent of a host be replaced by one of the DaemonSet as it is now, which is to be this node. */
async function replaceAgentOf(host: string, node: string): Promise<void> {
  await kubectl(
    'delete',
    'pod',
    '-n',
    'kubevirt',
    '-l',
    'kubevirt.io=virt-handler',
    `--field-selector=spec.nodeName=${host}`,
  );
  await approved([node]);
}

it('takes guests along to agents that are nodes of their own beside the kubelets, host by host', async () => {
  const { boot } = await cluster.lives('web');
  await applyWithoutRolling([], ['DaemonSet']);
  for (const host of HOSTS) {
    await drain(host);
    await replaceAgentOf(host, apart(host));
    await kubectl('label', 'node', host, 'kubevirt.io/schedulable=false', '--overwrite');
    await kubectl('uncordon', host);
    await schedulable(
      [...HOSTS.filter((each) => each > host), ...HOSTS.filter((each) => each <= host).map(apart)].toSorted(),
    );
  }
  await applyWithoutRolling([]);
  await rolledOut();
  await cluster.isStill('web', boot);
  await cluster.moves('web');
  const { spec } = await launcherOf('web');
  expect(HOSTS.map(apart)).toContain(spec.nodeName);
  expect((await cluster.lives('web')).disk).toBe('ok');
  expect(spec.containers[0].command).toBeUndefined();
});

it('takes them back into containers of the kubelets, host by host', async () => {
  const { boot } = await cluster.lives('web');
  await applyWithoutRolling(['--kubelets']);
  await rolledOut();
  for (const host of HOSTS) {
    await drain(apart(host));
    await replaceAgentOf(host, host);
    await kubectl('delete', 'node', apart(host));
    await schedulable(
      [...HOSTS.filter((each) => each <= host), ...HOSTS.filter((each) => each > host).map(apart)].toSorted(),
    );
  }
  await apply('--only', 'components', '--kubelets', '--image', IMAGE);
  await cluster.isStill('web', boot);
  await cluster.moves('web');
  const launcher = await launcherOf('web');
  expect(await cluster.host(launcher.spec.nodeName).programsOf(launcher)).toEqual(['node', 'qemu-system-x86_64']);
});

it('starts a guest anew on another host once its own is lost and said to be off, and not before', async () => {
  const { boot } = await cluster.lives('web');
  const { spec, metadata } = await launcherOf('web');
  const unfinished = async (): Promise<string[]> => {
    const { items } = await cluster.kubectl.json('get pods -l vm.kubevirt.io/name=web');
    const left = items.filter(({ status }: Anything) => !['Succeeded', 'Failed'].includes(status.phase));
    return left.map((pod: Anything) => pod.metadata.uid);
  };
  await cluster.lose(spec.nodeName);
  await kubectl('wait', 'node', spec.nodeName, '--for=condition=Ready=Unknown', `--timeout=${PATIENCE_MS}ms`);
  for (let seconds = 0; seconds < NOT_BEFORE_SECONDS; seconds++) {
    expect(await unfinished()).toEqual([metadata.uid]);
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  expect((await launcherOf('web')).metadata.uid).toBe(metadata.uid);
  await kubectl('taint', 'node', spec.nodeName, 'node.kubernetes.io/out-of-service=nodeshutdown:NoExecute');
  await eventually(async () => expect((await cluster.lives('web')).boot).not.toBe(boot), PATIENCE_MS);
  expect((await launcherOf('web')).spec.nodeName).toBe(otherThan(spec.nodeName));
});

it('ends the container of a machine that is deleted, and leaves nothing of it', async () => {
  const { spec } = await launcherOf('web');
  await kubectl('delete', 'vm', 'web', '--timeout=3m');
  await eventually(async () => {
    const { items } = await cluster.kubectl.json('get pods -l kubevirt.io=virt-launcher');
    expect(items.map(({ metadata }: Anything) => metadata.name)).toEqual([]);
  }, PATIENCE_MS);
  expect(await cluster.host(spec.nodeName).run('ps', '-eo', 'comm')).not.toContain('qemu-system');
});
