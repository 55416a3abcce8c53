import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { BridgedNode } from '../support/bridged-node.ts';
import { type Finished, runCli, type Running, startCli } from '../support/cli.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe, virtualMachine } from '../support/guest-manifests.ts';
import type { MovingGuests } from '../support/moving-guests.ts';
import { TwoClusters } from '../support/two-clusters.ts';

/** `godwit move` to another cluster, as docs/decentralized.md shows it, of a guest with all that a machine can refer to. */

vi.setConfig({ testTimeout: 500_000, hookTimeout: 300_000 });

const PATIENCE_MS = 120_000;
const SIZING = { apiVersion: 'instancetype.kubevirt.io/v1beta1' };
const SIZINGS = '/apis/instancetype.kubevirt.io/v1beta1/namespaces/default';
const CD = { cdrom: { bus: 'sata' } };
const VOLUMES = [
  { name: 'data', source: { persistentVolumeClaim: { claimName: 'web' } } },
  { name: 'settings', source: { configMap: { name: 'settings' } }, disk: CD },
  { name: 'seed', source: { cloudInitNoCloud: { secretRef: { name: 'seed' } } }, disk: CD },
];

let clusters: TwoClusters;
let environment: Readonly<Record<string, string>>;

const godwit = (...args: readonly string[]): Promise<Finished> => runCli(args, environment);
const start = (...args: readonly string[]): Running => startCli(args, environment);

/** The command does what it is told. */
async function done(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await godwit(...args);
  expect(code, `godwit ${args.join(' ')}: ${stdout}${stderr}`).toBe(0);
  return stdout;
}

/** Kills the command as soon as it has said one of these, unless it is faster than that. */
async function killedAfter(...texts: readonly string[]): Promise<void> {
  const running = start(...MOVE);
  await Promise.any([...texts.map((text) => running.printed(text)), running.finished]);
  running.child.kill('SIGKILL');
  await running.finished;
}

/** A machine that is sized by an instance type and a preference, with a disk, a config map, and a secret for cloud-init. */
async function createMachine(cluster: MovingGuests): Promise<void> {
  const { host } = cluster;
  const post = async (path: string, body: object): Promise<void> =>
    void (await host.api.request('POST', path, { body })).expect(201);
  const size = { cpu: { guest: 1 }, memory: { guest: '48Mi' } };
  const devices = { preferredDiskBus: 'virtio' };
  const kinds = ['VirtualMachineInstancetype', 'VirtualMachinePreference'] as const;
  await post(`${SIZINGS}/virtualmachineinstancetypes`, {
    ...SIZING,
    kind: kinds[0],
    metadata: { name: 'tiny' },
    spec: size,
  });
  await post(`${SIZINGS}/virtualmachinepreferences`, {
    ...SIZING,
    kind: kinds[1],
    metadata: { name: 'plain' },
    spec: { devices },
  });
  await host.create(
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'seed' }, stringData: { userdata: '#cloud-config' } },
    { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { colour: 'green' } },
    claim('web', 'local'),
  );
  const spec = probe({ arguments: 'mib=24 hz=200 rate=4 write=20', volumes: VOLUMES, ports: [80] }) as Anything;
  delete spec.domain.memory;
  const machine = virtualMachine('web', spec) as Anything;
  machine.spec.instancetype = { kind: kinds[0], name: 'tiny' };
  machine.spec.preference = { kind: kinds[1], name: 'plain' };
  await host.create(machine);
  await cluster.knows('web');
}

beforeAll(async () => {
  clusters = await TwoClusters.start();
  const { east } = clusters;
  const kubeconfig = join(east.host.godwit.directory, 'both.kubeconfig');
  clusters.writeKubeconfig(kubeconfig);
  environment = { KUBECONFIG: kubeconfig };
  await createMachine(east);
});
afterAll(() => clusters?.stop());

const MOVE = ['move', 'web', '--context', 'east', '--to-context', 'west'] as const;
const REFERRED = [
  '/api/v1/namespaces/default/secrets/seed',
  '/api/v1/namespaces/default/configmaps/settings',
  '/api/v1/namespaces/default/persistentvolumeclaims/web',
  `${SIZINGS}/virtualmachineinstancetypes/tiny`,
  `${SIZINGS}/virtualmachinepreferences/plain`,
  '/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web',
];

const statusesIn = ({ host }: MovingGuests): Promise<number[]> =>
  Promise.all(REFERRED.map(async (path) => (await host.api.request('GET', path)).status));

/** What a guest is known by to itself and to others. */
const identityOf = ({ spec, status }: Anything): object => ({
  uuid: spec.domain.firmware.uuid,
  macs: status.interfaces.map(({ mac }: Anything) => mac),
});

describe('godwit move to another cluster', () => {
  it('says beforehand what is in the way, and changes nothing', async () => {
    const { code, stdout, stderr } = await godwit(...MOVE, '--dry-run');
    expect([code, stdout, stderr]).toEqual([
      1,
      expect.stringContaining('west does not trust this cluster'),
      expect.any(String),
    ]);
    expect(stdout).toContain('this cluster does not trust west');
    expect(await statusesIn(clusters.west)).toEqual(REFERRED.map(() => 404));
    const nowhere = await godwit('move', 'web', '--context', 'east', '--to-context', 'north');
    expect([nowhere.code, nowhere.stderr]).toEqual([
      1,
      expect.stringMatching(/no context "north"; there are east, west/),
    ]);
  });

  it('is possible once both were told to trust each other', async () => {
    const { directory } = clusters.east.host.godwit;
    for (const [one, other] of [
      ['east', 'west'],
      ['west', 'east'],
    ] as const) {
      const file = join(directory, `${one}.yaml`);
      writeFileSync(file, await done('trust', 'export', '--context', one, '--name', one));
      expect(await done('trust', 'import', file, '--context', other)).toContain(`The cluster ${one}`);
    }
    const forecast = await done(...MOVE, '--dry-run');
    expect(forecast).toMatch(/^Secret +default\/seed +would be created +a copy$/m);
    expect(forecast).toMatch(/^web would move to default\/web of west/m);
  });

  it('is called off by deleting a half, and leaves nothing behind', async () => {
    const running = start(...MOVE, '--connect-url', '198.51.100.1:9185');
    await running.printed('from default/web: Synchronizing');
    const [half] = await clusters.east.migrations();
    await clusters.east.cancel(half.metadata.name);
    const { code, stderr } = await running.finished;
    expect([code, stderr]).toEqual([1, expect.stringContaining('what was made for the move is removed')]);
    expect(await statusesIn(clusters.west)).toEqual(REFERRED.map(() => 404));
    await clusters.isWhole(clusters.east, 'web');
  });

  it('takes a guest along with all that it needs, whenever the command is killed, and brings it back', async () => {
    const { east, west } = clusters;
    const identity = identityOf(await east.host.guest('web'));
    const half = 'virtualmachineinstancemigration/';
    await killedAfter('persistentvolumeclaim/web in default created');
    await killedAfter(half, 'is followed');
    await killedAfter(`${half}send-`, 'from default/web: ');
    const end = await done(...MOVE);
    expect(end).toContain('the guest of web runs in default/web of west');
    west.awaits('web', east.bootOf('web'));
    expect(await clusters.isWhole(west, 'web')).toHaveLength(2);
    expect(identityOf(await west.host.guest('web'))).toEqual(identity);
    expect(await statusesIn(west)).toEqual(REFERRED.map(() => 200));
    const [seed] = [(await west.host.api.request('GET', REFERRED[0] ?? '')).expect(200).json];
    expect(Buffer.from(seed.data.userdata, 'base64').toString()).toBe('#cloud-config');
    expect(await west.migrations()).toHaveLength(1);
    await eventually(async () => {
      expect((await east.host.machine('web')).spec.runStrategy).toBe('Halted');
      expect((await west.host.machine('web')).spec.runStrategy).toBe('Always');
      expect([east.host.qemus().length, west.host.qemus().length]).toEqual([0, 1]);
    }, PATIENCE_MS);

    const [, back = ''] = /to get the guest back: godwit (.*)/.exec(end) ?? [];
    expect(back).toBe('move web -n default --to-namespace default --context west --to-context east');
    expect(await done(...back.split(' '))).toContain('the guest of web runs in default/web of east');
    east.awaits('web', west.bootOf('web'));
    expect(await clusters.isWhole(east, 'web')).toHaveLength(3);
    expect(identityOf(await east.host.guest('web'))).toEqual(identity);
    clusters.assertNeverDoubled();
  });

  it('takes a guest to another storage class and another network, as it is told', async () => {
    const { east, west } = clusters;
    const nodes = await Promise.all([
      BridgedNode.join(east.host, 'bridged', 'blue'),
      BridgedNode.join(west.host, 'bridged', 'green'),
    ]);
    onTestFinished(async () => {
      for (const node of nodes) await node.leave();
    });
    await east.host.create(claim('shelf', 'local'));
    const nodeSelector = { 'kubernetes.io/hostname': 'bridged' };
    const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: 'shelf' } } }];
    const spec = probe({ arguments: 'write=20', volumes, nodeSelector }) as Anything;
    const { autoattachPodInterface: _, ...devices } = spec.domain.devices;
    spec.domain.devices = { ...devices, interfaces: [{ name: 'net', bridge: {} }] };
    await east.create('shelf', { ...spec, networks: [{ name: 'net', multus: { networkName: 'blue' } }] });
    const identity = identityOf(await east.host.guest('shelf'));
    expect(nodes.map(({ guestCount }) => guestCount)).toEqual([1, 0]);

    const mapping = ['--map-storage-class', 'local=shared', '--map-network', 'blue=green'];
    const end = await done('move', 'shelf', '--context', 'east', '--to-context', 'west', ...mapping);
    expect(end).toContain('the guest of shelf runs in default/shelf of west');
    west.awaits('shelf', east.bootOf('shelf'));
    expect(await clusters.isWhole(west, 'shelf')).toHaveLength(2);
    expect(await west.host.ask('shelf', 'disk')).toMatch(/ bad=0\b/);
    const guest = await west.host.guest('shelf');
    expect(identityOf(guest)).toEqual(identity);
    expect(guest.spec.networks).toEqual([{ name: 'net', multus: { networkName: 'green' } }]);
    const claims = '/api/v1/namespaces/default/persistentvolumeclaims';
    const { json: shelf } = (await west.host.api.request('GET', `${claims}/shelf`)).expect(200);
    expect([shelf.spec.storageClassName, shelf.status.phase]).toEqual(['shared', 'Bound']);
    await eventually(() => expect(nodes.map(({ guestCount }) => guestCount)).toEqual([0, 1]), PATIENCE_MS);
    clusters.assertNeverDoubled();
  });
});
