import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { type AskRules, rightsPage } from '../../../src/cli/manifests/rights-page.fixture.ts';
import type { Answer, Anything } from '../../support/api.ts';
import { eventually } from '../../support/eventually.ts';
import { probe, virtualMachine } from '../../support/guest-manifests.ts';
import { Kubectl } from '../../support/kubectl.ts';
import { AdminsCluster } from './cluster.ts';
import { CERTIFICATE_LIFE, MACHINES, MERGE, renewsExtension, renewsNodes, SUBRESOURCES } from './renewals.ts';

/** What holds for an installation, however it came onto the cluster. Each test goes on from where the one before it was. */

vi.setConfig({ testTimeout: 900_000, hookTimeout: 600_000 });

/** How an admin installs Godwit, and does what docs/kubernetes.md says from then on. */
export interface Way {
  readonly install: (cluster: AdminsCluster) => Promise<unknown>;
  /** Brings in another image. */
  readonly upgrade: (cluster: AdminsCluster, image: string) => Promise<unknown>;
  /** Removes all that runs, and keeps machines. */
  readonly uninstall: (cluster: AdminsCluster) => Promise<unknown>;
  /** Whether accounts and their rights stay after that. */
  readonly keepsRights: boolean;
  /** Installs it again, where machines were kept. */
  readonly reinstall: (cluster: AdminsCluster) => Promise<unknown>;
}

export const PART_OF = 'app.kubernetes.io/part-of=godwit';
export const IMAGE = 'registry.example.com/godwit:v1';
const NEWS = ' In the next version.';
const NEXT_IMAGE = 'registry.example.com/godwit:v2';
const COMPONENTS = ['virt-controller', 'virt-api', 'virt-synchronization-controller'];
const PATIENCE_MS = 180_000;
const PAGE = fileURLToPath(new URL('../../../docs/kubernetes-rights.md', import.meta.url));
const GUESTS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const PODS = '/api/v1/namespaces/default/pods';
/** What no component may read. */
const OTHERS_SECRETS = '/api/v1/namespaces/kube-system/secrets';
const REVIEWS = '/apis/authorization.k8s.io/v1/subjectaccessreviews';
/** As the kernel writes it of a socket, and of the addresses of the machine itself. */
const LISTENS = '0A';
const LOOPBACK = /^(?:0100007F|0{24}01000000)$/;
/** What the admin has set since: limits of migrations, and addresses that may be dialed. */
const LIMITS = { parallelMigrationsPerCluster: 7 };
const ADDRESSES = '192.0.2.0/24';

let cluster: AdminsCluster;

/** The kinds of a newer version, which says something else of each, brought in as docs/kubernetes.md says. */
export async function bringNewerKinds(admins: AdminsCluster): Promise<void> {
  const { items } = JSON.parse(await admins.cli('manifests', '--only', 'crds', '-o', 'json'));
  for (const { spec } of items) for (const { schema } of spec.versions) schema.openAPIV3Schema.description += NEWS;
  const stdin = JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  await admins.kubectl.ok('apply --server-side --force-conflicts -f -', { stdin });
  const { spec } = await admins.kubectl.json('get crd virtualmachines.kubevirt.io');
  expect(spec.versions[0].schema.openAPIV3Schema.description).toContain(NEWS);
}

/** Defines tests of an installation; answers what they leave. */
export function installation(way: Way): () => AdminsCluster {
  beforeAll(async () => {
    cluster = await AdminsCluster.start(way.keepsRights ? CERTIFICATE_LIFE : undefined);
    await way.install(cluster);
    await rolledOut();
  });
  afterAll(() => cluster?.stop());

  it('has two replicas of each component, on different hosts, which work', works);
  it('is reached at the ports that its pods listen at, and at no others', opensPorts);
  it('has machines join that run guests, and guests move', moves);
  it('lets components do what is written down, and nothing else', async () =>
    expect(await rightsPage(rulesOf)).toBe(readFileSync(PAGE, 'utf8')));
  it('lets a node write itself and the guests that it runs, and nothing else', restrictsNodes);
  it('lets users of a namespace have machines; who may move them is said apart', restrictsUsers);
  it('renews certificates while it runs', () => renewsExtension(cluster));
  // Nodes that may not renew for a while would be lost where certificates live for minutes.
  if (way.keepsRights) it('has nodes renew theirs by themselves', () => renewsNodes(cluster));
  it('goes on with the other replica when the one that leads dies', followsLeader);
  it('is reached by other clusters at the other replica when the one that synchronizes dies', followsSynchronization);
  it('keeps guests, and refuses evictions by budgets alone, while no extension runs', outlivesExtension);
  it('is upgraded while guests run, and keeps what the admin has set', () => upgrades(way));
  it('asks for nothing that it may not have', asksForNoMore);
  it('is removed, but for what is kept, and guests go on; installed again, it takes them over', () => returns(way));
  return () => cluster;
}

/** Waits until all replicas of this installation serve, and the API server has found that out. */
async function rolledOut(): Promise<void> {
  const args = ['-n', 'kubevirt', 'rollout', 'status', 'deployment', ...COMPONENTS, '--timeout', `${PATIENCE_MS}ms`];
  const { code, stdout, stderr } = await cluster.kubectl.run(args, { killAfterMs: PATIENCE_MS + 10_000 });
  expect(code, `${stdout}${stderr}\n${cluster.hosts.output.slice(-4000)}`).toBe(0);
  const services = `apiservice -l ${PART_OF}`;
  await cluster.kubectl.ok(`wait ${services} --for condition=Available --timeout ${PATIENCE_MS}ms`, {
    killAfterMs: PATIENCE_MS,
  });
}

async function works(): Promise<void> {
  for (const component of COMPONENTS) {
    const pods = await cluster.podsOf(component);
    expect(pods).toHaveLength(2);
    expect(new Set(pods.map(({ spec }) => spec.nodeName)), component).toEqual(new Set(['host-1', 'host-2']));
    for (const { spec, status } of pods) {
      expect(spec.priority).toBe(1_000_000_000);
      expect(status.containerStatuses[0].restartCount).toBe(0);
    }
  }
  await eventually(async () => {
    // The synchronization controller has made its keys, and says where it is.
    const { status } = await cluster.kubectl.json('get kubevirt kubevirt -n kubevirt');
    expect(status?.synchronizationAddresses).toHaveLength(1);
    const { data } = await cluster.kubectl.json('get configmap godwit-synchronization-bundle -n kubevirt');
    expect(data?.['ca.crt']).toContain('CERTIFICATE');
  }, PATIENCE_MS);
}

/** The ports at which a pod listens for others than itself. */
function listensAt(pod: Anything): number[] {
  const { pid } = cluster.hosts.podOf(pod).place.namespace;
  const sockets = ['tcp', 'tcp6'].flatMap((name) => readFileSync(`/proc/${pid}/net/${name}`, 'latin1').split('\n'));
  const listening = sockets.map((line) => line.trim().split(/\s+/)).filter(([, , , state]) => state === LISTENS);
  return listening.flatMap(([, local = '']) => {
    const [address = '', port = ''] = local.split(':');
    return LOOPBACK.test(address) ? [] : [Number.parseInt(port, 16)];
  });
}

async function opensPorts(): Promise<void> {
  for (const component of COMPONENTS) {
    const { spec } = await cluster.kubectl.json(`get networkpolicy ${component} -n kubevirt`);
    const open = spec.ingress[0].ports.map(({ port }: Anything) => port);
    const pods = await cluster.podsOf(component);
    for (const { metadata } of pods)
      for (const [key, value] of Object.entries(spec.podSelector.matchLabels)) expect(metadata.labels[key]).toBe(value);
    // Where only one of them works, the other does not listen for what it would do.
    expect(new Set(pods.flatMap(listensAt))).toEqual(new Set(open));
  }
}

async function moves(): Promise<void> {
  await cluster.join('node-1', 'node-2');
  // Launchers ask for nothing that Pod Security refuses to anybody.
  await cluster.kubectl.ok('label namespace default pod-security.kubernetes.io/enforce=restricted');
  await cluster.kubectl.apply(virtualMachine('web', probe({ tickMs: 100, evictionStrategy: 'LiveMigrate' })));
  expect(await cluster.moves('web')).toHaveLength(2);
  expect(await cluster.cli('logs', 'web', '--tail', '1')).toContain('guest boot=');
}

const rulesOf: AskRules = async ({ user, groups }, namespace) => {
  const review = { apiVersion: 'authorization.k8s.io/v1', kind: 'SelfSubjectRulesReview', spec: { namespace } };
  const as = ['--as', user, ...groups.flatMap((group) => ['--as-group', group])];
  const said = await cluster.kubectl.ok(['create', '-f', '-', '-o', 'json', '--validate=false', ...as], {
    stdin: JSON.stringify(review),
  });
  const { resourceRules, evaluationError } = JSON.parse(said).status;
  // It knows nodes by their names, and none of these is one.
  expect(evaluationError ?? '').toMatch(/^(node authorizer does not support user rule resolution)?$/);
  return resourceRules;
};

/** A machine whose size and preferences are those of the whole cluster. */
async function sizedMachine(name: string): Promise<object> {
  const kinds = [
    { kind: 'VirtualMachineClusterInstancetype', spec: { cpu: { guest: 1 }, memory: { guest: '32Mi' } } },
    { kind: 'VirtualMachineClusterPreference', spec: { devices: { preferredDiskBus: 'virtio' } } },
  ];
  for (const each of kinds)
    await cluster.kubectl.apply({
      apiVersion: 'instancetype.kubevirt.io/v1beta1',
      metadata: { name: 'tiny' },
      ...each,
    });
  const spec = probe({ tickMs: 100 }) as Anything;
  delete spec.domain.memory;
  return virtualMachine(name, spec, {
    runStrategy: 'Always',
    instancetype: { name: 'tiny' },
    preference: { name: 'tiny' },
  });
}

async function restrictsNodes(): Promise<void> {
  // Which was never anywhere else.
  await cluster.kubectl.apply(await sizedMachine('still'));
  await cluster.lives('still');
  const { nodeName } = (await cluster.kubectl.json('get vmi still')).status;
  const other = nodeName === 'node-1' ? 'node-2' : 'node-1';
  const as = (node: string): Kubectl => new Kubectl(join(cluster.nodesDirectory, node, 'kubeconfig'));
  const tells = async (node: string, phase: string): Promise<Answer> => {
    const client = cluster.clientOf(node);
    const body = { status: { phase } };
    const answer = await client.request('PATCH', `${GUESTS}/still/status`, { body, headers: MERGE });
    client.close();
    return answer;
  };
  (await tells(nodeName, 'Running')).expect(200);
  expect((await tells(other, 'Failed')).expect(403).json.message).toContain('has nothing to do with this guest');
  await as(other).ok(`label node ${other} example.com/color=blue`);
  expect(await as(other).fails(`label node ${nodeName} example.com/color=red`)).toContain('not allowed to modify node');
  for (const refused of [
    'get secrets -A',
    'delete vm still',
    'delete vmi still',
    'patch kubevirt kubevirt -n kubevirt --type merge -p {"spec":{}}',
    'delete vmim --all',
    'get configmaps -n kubevirt',
  ])
    expect(await as(nodeName).fails(refused), refused).toContain('forbidden');
  await cluster.kubectl.ok('delete vm still --timeout 2m', { killAfterMs: PATIENCE_MS });
}

async function restrictsUsers(): Promise<void> {
  const { kubectl, api } = cluster;
  await kubectl.ok('create namespace shop');
  for (const [user, ...roles] of [
    ['ada', 'admin'],
    ['ed', 'edit'],
    ['vi', 'view'],
    ['mo', 'edit', 'kubevirt.io:migrate'],
  ])
    for (const role of roles)
      await kubectl.ok(
        `-n shop create rolebinding ${user}-${role.replace(':', '-')} --clusterrole ${role} --user ${user}`,
      );
  const subresource = { group: 'subresources.kubevirt.io', resource: 'virtualmachines', subresource: 'migrate' };
  const asked = [
    { group: 'kubevirt.io', resource: 'virtualmachines', verb: 'list' },
    { group: 'kubevirt.io', resource: 'virtualmachines', verb: 'update' },
    { ...subresource, verb: 'update' },
    { group: 'kubevirt.io', resource: 'virtualmachineinstancemigrations', verb: 'create' },
  ];
  const mays = async (user: string): Promise<boolean[]> => {
    const reviews = asked.map((attributes) => ({ user, resourceAttributes: { ...attributes, namespace: 'shop' } }));
    const answers = await Promise.all(reviews.map((spec) => api.request('POST', REVIEWS, { body: { spec } })));
    return answers.map((answer) => answer.expect(201).json.status.allowed);
  };
  // Roles are aggregated a moment later.
  await eventually(async () => expect(await mays('ada')).toEqual([true, true, false, false]));
  expect(await mays('ed')).toEqual([true, true, false, false]);
  expect(await mays('vi')).toEqual([true, false, false, false]);
  expect(await mays('mo')).toEqual([true, true, true, true]);
  expect(await mays('nobody')).toEqual([false, false, false, false]);
}

/** Has the replica of a component crash that has its lease, and waits until the other one has it; answers both. */
async function leaderCrashes(component: string): Promise<{ readonly first: Anything; readonly other: Anything }> {
  const pods = await cluster.podsOf(component);
  const leader = async (): Promise<Anything> => {
    const { holderIdentity } = (await cluster.kubectl.json(`get lease ${component} -n kubevirt`)).spec;
    return pods.find(({ metadata }) => holderIdentity.startsWith(`${metadata.name}_`));
  };
  const first = await leader();
  const other = pods.find((each) => each !== first);
  await cluster.hosts.podOf(first).crash();
  await eventually(async () => {
    expect((await leader())?.metadata.name).toBe(other?.metadata.name);
  }, PATIENCE_MS);
  return { first, other };
}

/** Has another pod come in the place of one that has crashed. */
async function isReplaced({ metadata }: Anything): Promise<void> {
  await cluster.kubectl.ok(['delete', 'pod', '-n', 'kubevirt', metadata.name]);
  await rolledOut();
}

async function followsLeader(): Promise<void> {
  const { first } = await leaderCrashes('virt-controller');
  expect(await cluster.moves('web')).toHaveLength(3);
  await isReplaced(first);
}

async function followsSynchronization(): Promise<void> {
  const { first, other } = await leaderCrashes('virt-synchronization-controller');
  await eventually(async () => {
    const { status } = await cluster.kubectl.json('get kubevirt kubevirt -n kubevirt');
    expect(status?.synchronizationAddresses).toEqual([`${other.status.podIP}:9185`]);
  }, PATIENCE_MS);
  await isReplaced(first);
}

/** What docs/kubernetes.md says of the time while no extension runs; afterwards an eviction is a move again. */
async function outlivesExtension(): Promise<void> {
  const { api, kubectl } = cluster;
  const { boot } = await cluster.lives('web');
  const { status } = await kubectl.json('get vmi web');
  const { items } = await kubectl.json('get pods -l vm.kubevirt.io/name=web');
  const pod = items.find(({ metadata }: Anything) => metadata.uid === status.rightToRun.holder.podUID);
  const { name } = pod.metadata;
  const evict = (): Promise<Answer> => {
    const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name } };
    return api.request('POST', `${PODS}/${name}/eviction`, { body });
  };
  const scale = (replicas: number): Promise<string> =>
    kubectl.ok(`-n kubevirt scale deployment virt-api --replicas ${replicas}`);

  await scale(0);
  await eventually(async () => {
    expect(await cluster.podsOf('virt-api')).toEqual([]);
    const tried = await api.request('POST', `${MACHINES}?dryRun=All`, { body: virtualMachine('try', probe()) });
    expect(tried.expect(500).json.message).toContain('failed calling webhook');
    (await api.request('GET', SUBRESOURCES)).expect(503);
  }, PATIENCE_MS);
  expect((await evict()).expect(429).json.details.causes[0].reason).toBe('DisruptionBudget');
  await cluster.isStill('web', boot);

  await scale(2);
  await rolledOut();
  // Until the API server finds the extension again, its webhook is left out, and nobody marks the guest.
  await eventually(async () => {
    const now = (await kubectl.json('get vmi web')).status;
    if (now.nodeName !== status.nodeName || now.evacuationNodeName === status.nodeName) return;
    (await evict()).expect(429);
    throw new Error('nobody has marked the guest yet');
  }, PATIENCE_MS);
  await eventually(async () => {
    expect((await kubectl.json('get vmi web')).status.nodeName).not.toBe(status.nodeName);
  }, PATIENCE_MS);
  expect(await cluster.isStill('web', boot)).toHaveLength(4);
}

/** No refusal is in the audit log; one that a test has asked for is found there. */
async function asksForNoMore(): Promise<void> {
  expect(await cluster.forbidden()).toEqual([]);
  const token = (await cluster.kubectl.ok('create token godwit-controller -n kubevirt')).trim();
  const controller = cluster.clientWith(token);
  (await controller.request('GET', OTHERS_SECRETS)).expect(403);
  controller.close();
  await eventually(async () => {
    const refused = `system:serviceaccount:kubevirt:godwit-controller list ${OTHERS_SECRETS}`;
    expect(await cluster.forbidden()).toEqual([refused]);
  });
}

/** What the admin has set is still so. */
async function isSet(): Promise<void> {
  const { spec } = await cluster.kubectl.json('get kubevirt kubevirt -n kubevirt');
  expect(spec.configuration.migrations).toMatchObject(LIMITS);
  expect(spec.configuration.developerConfiguration.featureGates).toContain('DecentralizedLiveMigration');
  const { data } = await cluster.kubectl.json('get configmap godwit-trust -n kubevirt');
  expect(data).toMatchObject({ addresses: ADDRESSES });
}

async function upgrades(way: Way): Promise<void> {
  const { kubectl } = cluster;
  const { boot } = await cluster.lives('web');
  const set = (kind: string, name: string, change: object): Promise<string> =>
    kubectl.ok(['patch', kind, name, '-n', 'kubevirt', '--type', 'merge', '-p', JSON.stringify(change)]);
  await set('kubevirt', 'kubevirt', { spec: { configuration: { migrations: LIMITS } } });
  await set('configmap', 'godwit-trust', { data: { addresses: ADDRESSES } });
  const before = await irreplaceable();
  await way.upgrade(cluster, NEXT_IMAGE);
  await rolledOut();
  for (const component of COMPONENTS)
    await eventually(async () => {
      const images = (await cluster.podsOf(component)).map(({ spec }) => spec.containers[0].image);
      expect(images).toEqual([NEXT_IMAGE, NEXT_IMAGE]);
    }, PATIENCE_MS);
  await isSet();
  expect(await irreplaceable()).toEqual(before);
  await cluster.isStill('web', boot);
  expect(await cluster.moves('web')).toHaveLength(5);
}

/**
 * What nobody could make again: kinds, machines, the configuration, and whom the cluster trusts by which keys. With them what components
 * have made there, of which the leases and the ledger change all the time.
 */
async function irreplaceable(): Promise<string[]> {
  const { kubectl } = cluster;
  const trust = 'configmap/godwit-trust configmap/godwit-synchronization-bundle secret/godwit-synchronization-ca';
  const leases = 'lease/virt-controller lease/virt-synchronization-controller';
  const kept = await kubectl.json(`get -n kubevirt ${trust} secret/kubevirt-virt-api-certs`);
  const changing = await kubectl.json(
    `get -n kubevirt namespace/kubevirt kubevirt/kubevirt configmap/godwit-migration-slots ${leases}`,
  );
  const kinds = await kubectl.json(`get crd -l ${PART_OF}`);
  const machines = await kubectl.json('get vm,vmi -A');
  const called = ({ kind, metadata }: Anything): string => `${kind} ${metadata.name} ${metadata.uid}`;
  return [
    ...kept.items.map((each: Anything) => `${called(each)} ${JSON.stringify(each.data)}`),
    ...[...changing.items, ...kinds.items, ...machines.items].map(called),
  ];
}

/** Accounts and their rights, by name. */
async function rightsNow(): Promise<string> {
  const kinds = 'clusterroles,clusterrolebindings,roles,rolebindings,serviceaccounts';
  return cluster.kubectl.ok(`get ${kinds} -A -l ${PART_OF} -o name`);
}

async function returns(way: Way): Promise<void> {
  const { kubectl } = cluster;
  const { boot } = await cluster.lives('web');
  const before = await irreplaceable();
  const rights = await rightsNow();
  expect(rights).toContain('clusterrole.rbac.authorization.k8s.io/kubevirt.io:migrate');
  await way.uninstall(cluster);
  const labelled = `-l ${PART_OF}`;
  await eventually(async () => {
    const running = await kubectl.ok(
      `get deployments,daemonsets,pods,services,pdb,networkpolicies -n kubevirt ${labelled} -o name`,
    );
    const asking = await kubectl.ok(
      `get validatingwebhookconfigurations,mutatingwebhookconfigurations,apiservices,priorityclasses ${labelled} -o name`,
    );
    expect(`${running}${asking}`).toBe('');
  }, PATIENCE_MS);
  expect(await rightsNow()).toBe(way.keepsRights ? rights : '');
  await isSet();
  expect(await irreplaceable()).toEqual(before);
  await cluster.isStill('web', boot);
  await way.reinstall(cluster);
  await rolledOut();
  await isSet();
  expect(await irreplaceable()).toEqual(before);
  await cluster.isStill('web', boot);
  expect(await cluster.moves('web')).toHaveLength(6);
  await kubectl.ok('delete vm web --timeout 2m', { killAfterMs: PATIENCE_MS });
}
