import { mkdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../src/api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../src/api/kubevirt/virtual-machine-instance-migration.ts';
import { NODE_NAME_LABEL, TARGET_NODE_LABEL } from '../../src/api/kubevirt/well-known.ts';
import type { JsonObject, KubeObject } from '../../src/api/meta.ts';
import { install, installation } from '../../src/control/installation/install.ts';
import { pods } from '../../src/control/resources.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import { realClock } from '../../src/env/real.ts';
import type { Client } from '../../src/kube/client.ts';
import { virtualMachineInstances as guests } from '../../src/kube/kubevirt-resources.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { statusPatch } from '../../src/kube/status-patch.ts';
import { applySource, applyTarget } from '../../src/migration/halves/apply.ts';
import { sourceHalf, targetHalf } from '../../src/migration/halves/project.ts';
import { claims, persistentVolumes, secrets } from '../../src/node/volumes/resources.ts';
import { eventually } from '../support/eventually.ts';
import { credible, signsOfLife } from '../support/guests.ts';
import { InProcessApi } from '../support/in-process.ts';
import { oneLife } from '../support/one-life.ts';
import { Workbench } from '../support/qemu.ts';
import { AcrossAgent, adminOf } from './agent-across.ts';
import { nodes } from './agent-scene.ts';

/**
 * A guest that goes from one object to another, in another namespace: real QEMUs, real disks, agents whose certificates no
 * common authority has signed. The parts of the controllers, and of what carries the halves, are the test's.
 */

const { signal } = new AbortController();
const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
const MIB = 2 ** 20;
const [HERE, THERE] = ['here', 'there'];

let api: InProcessApi;
let bench: Workbench;
let client: Client;
let [source, target]: AcrossAgent[] = [];
const instances: string[] = [];

beforeAll(async () => {
  bench = await Workbench.open();
  api = await InProcessApi.start();
  client = adminOf(api);
  await install(client, realClock, installation({ ours: [], initial: [] }), signal);
  for (const name of [HERE, THERE])
    await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, signal);
  source = await AcrossAgent.start(api, bench, 'n1');
  target = await AcrossAgent.start(api, bench, 'n2');
}, 120_000);
afterAll(async () => {
  await Promise.all([source?.stop(), target?.stop()]);
  for (const instance of instances) {
    const left = await realProcesses.findByArgument(`null,id=instance-${instance}`);
    if (left) await realProcesses.kill(left, 'SIGKILL');
  }
  await api.stop();
  bench.close();
});

/** A claim that is bound to a directory of this host. */
async function claim(namespace: string, size: string): Promise<string> {
  const path = join(bench.directory, `claim-${namespace}`);
  mkdirSync(path, { mode: 0o711 });
  const volumeName = `pv-${namespace}`;
  const resources = { requests: { storage: size } };
  const accessModes = ['ReadWriteOnce'];
  const made = await client.create(
    claims,
    { metadata: { name: 'root', namespace }, spec: { volumeName, resources, accessModes } } as never,
    signal,
  );
  const claimRef = { namespace, name: 'root', uid: made.metadata.uid };
  const hostPath = { path, type: 'DirectoryOrCreate' };
  const spec = { claimRef, hostPath, accessModes, capacity: { storage: size } };
  await client.create(persistentVolumes, { metadata: { name: volumeName }, spec } as never, signal);
  const bound = { type: 'merge', body: { status: { phase: 'Bound', capacity: { storage: size } } } } as const;
  await client.patch(claims, namespace, 'root', bound, signal, { subresource: 'status' });
  return path;
}

function guestIn(namespace: string, uuid: string): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { namespace, name: `web-${namespace}` },
    spec: {
      domain: {
        machine: { type: 'q35' },
        memory: { guest: '32Mi' },
        firmware: { uuid, serial: 'S-1' },
        devices: {
          disks: [
            { name: 'root', disk: { bus: 'virtio' } },
            { name: 'init', cdrom: { bus: 'sata' } },
            { name: 'keys', disk: { bus: 'virtio', readonly: true } },
          ],
        },
      },
      volumes: [
        { name: 'root', persistentVolumeClaim: { claimName: 'root' } },
        {
          name: 'init',
          cloudInitNoCloud: { userData: `#cloud-config of ${namespace}${'!'.repeat(namespace.length * 999)}` },
        },
        { name: 'keys', secret: { secretName: 'keys' } },
      ],
    },
  };
}

const patch = (guest: KubeObject, body: JsonObject, subresource?: string): Promise<unknown> => {
  const { namespace = '', name = '' } = guest.metadata;
  const options = subresource === undefined ? {} : { subresource };
  return client.patch(guests, namespace, name, { type: 'merge', body }, signal, options);
};
const again = ({ metadata }: KubeObject): Promise<VirtualMachineInstance> =>
  client.get(guests, metadata.namespace ?? '', metadata.name ?? '', signal);

async function podOf(guest: VirtualMachineInstance, nodeName: string): Promise<string> {
  const { namespace = '', name = '', uid = '' } = guest.metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name, uid, controller: true };
  const volumes = [
    { name: 'root', persistentVolumeClaim: { claimName: 'root' } },
    { name: 'keys', secret: { secretName: 'keys' } },
  ];
  const pod = await client.create(
    pods,
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { namespace, name: 'launcher', ownerReferences: [owner] },
      spec: { nodeName, containers: [{ name: 'compute', image: 'launcher:1' }], volumes },
    } as never,
    signal,
  );
  instances.push(pod.metadata.uid ?? '');
  return pod.metadata.uid ?? '';
}

const migration = (uid: string, { metadata }: KubeObject): VirtualMachineInstanceMigration => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceMigration',
  metadata: { name: uid, namespace: metadata.namespace ?? '', uid },
  spec: { vmName: metadata.name ?? '' },
});

/** Carries what each side has to tell to the other, once. */
async function carry(leaving: VirtualMachineInstance, waiting: VirtualMachineInstance): Promise<void> {
  const [here, there] = [await again(leaving), await again(waiting)];
  const [left, right] = [migration('source-half', here), migration('target-half', there)];
  const node = (name: string) => client.get(nodes, '', name, signal);
  const told = sourceHalf({ migration: left, guest: here, node: await node('n1') });
  const answered = targetHalf({ migration: right, guest: there, node: await node('n2') });
  const write = async (guest: VirtualMachineInstance, fields: object | undefined): Promise<void> => {
    const body = fields && statusPatch(guest, fields);
    // Who writes at the same time is heard first.
    if (body) await patch(guest, body, 'status').catch(() => undefined);
  };
  await write(there, applySource({ migration: right, guest: there }, told));
  await write(here, applyTarget({ migration: left, guest: here }, answered));
}

it('goes over with its memory, its disk, its drives and its identity, and is in one place all the time', async () => {
  const directories = [await claim(HERE, '4Mi'), await claim(THERE, '6Mi')];
  const uuid = '6f1c2d3e-0000-4000-8000-000000000007';
  const data = { key: Buffer.from('only here').toString('base64') };
  await client.create(secrets, { metadata: { namespace: HERE, name: 'keys' }, data } as never, signal);
  const leaving = await client.create(guests, guestIn(HERE, uuid), signal);
  const from = await podOf(leaving, 'n1');
  await patch(leaving, { metadata: { labels: { [NODE_NAME_LABEL]: 'n1' } } });
  await patch(leaving, { status: { phase: 'Scheduled', nodeName: 'n1', activePods: { [from]: 'n1' } } }, 'status');
  const signs = (agent: AcrossAgent | undefined, pod: string) => credible(signsOfLife(agent?.serialLog(pod) ?? ''));
  await eventually(() => expect(signs(source, from).length).toBeGreaterThan(10));

  const waiting = await client.create(guests, guestIn(THERE, uuid), signal);
  const { holder: runner, epoch } = (await again(leaving)).status?.rightToRun ?? {};
  const side = (uid: string, { metadata }: KubeObject) => ({
    migrationUID: uid,
    virtualMachineInstanceUID: metadata.uid,
  });
  const sourceState = { ...side('source-half', leaving), runner, epoch };
  const opened = { migrationUid: 'source-half', sourceState } as unknown as JsonObject;
  await patch(leaving, { status: { migrationState: opened } }, 'status');
  const { machine } = (await again(leaving)).status ?? {};
  const receiving = { phase: 'WaitingForSync', machine, migrationState: { targetState: side('target-half', waiting) } };
  await patch(waiting, { status: receiving as unknown as JsonObject }, 'status');
  await eventually(async () => {
    await carry(leaving, waiting);
    const { volumes, agentKeys } = (await again(waiting)).status?.migrationState?.sourceState ?? {};
    expect(volumes?.map(({ name, isBlock }) => [name, isBlock])).toEqual([
      ['root', false],
      ['keys', false],
      ['init', false],
    ]);
    expect(agentKeys).toHaveLength(2);
  });

  const to = await podOf(waiting, 'n2');
  await patch(waiting, { metadata: { labels: { [TARGET_NODE_LABEL]: 'n2' } } });
  const route = { targetNode: 'n2', targetPod: 'launcher', migrationConfiguration: { maxDowntimeMs: 300 } };
  await patch(waiting, { status: { activePods: { [to]: 'n2' }, migrationState: route } }, 'status');
  await patch(leaving, { status: { migrationState: { sourceNode: 'n1', sourcePod: 'launcher' } } }, 'status');
  await eventually(async () => {
    await carry(leaving, waiting);
    const [here, there] = [await again(leaving), await again(waiting)];
    expect(here.status?.migrationState?.failureReason).toBeUndefined();
    expect(there.status).toMatchObject({ phase: 'Running', migrationState: { completed: true } });
    expect(here.status?.rightToRun).toMatchObject({ across: true, holder: there.status?.rightToRun?.holder });
  });

  await eventually(() => expect(signs(target, to).length).toBeGreaterThan(20));
  const boot = signs(source, from)[0]?.boot ?? '';
  const logs = new Map([
    ['n1', source?.serialLog(from) ?? ''],
    ['n2', target?.serialLog(to) ?? ''],
  ]);
  expect(oneLife(boot, logs).map(({ place }) => place)).toEqual(['n1', 'n2']);
  expect(signs(target, to).at(-1)?.disk).toBe('ok');
  expect(await realProcesses.findByArgument(`null,id=instance-${from}`)).toBeUndefined();
  // The bytes that the guest has read, though the object at the target has other user data, and its namespace no secret.
  for (const file of ['init.iso', 'keys.iso']) expect(target?.image(to, file)).toEqual(source?.image(from, file));
  expect(directories.map((each) => statSync(join(each, 'disk.img')).size)).toEqual([4 * MIB, 6 * MIB]);
  const [left, right] = directories.map((each) => readFileSync(join(each, 'disk.img')));
  expect(right?.subarray(4 * MIB).every((byte) => byte === 0)).toBe(true);
  expect(left?.length).toBe(4 * MIB);
  expect((await again(waiting)).status?.rightToRun?.volumes).toMatchObject([{ name: 'root' }]);
  expect([source?.refused, target?.refused]).toEqual([[], []]);
  expect([source, target].every((agent) => (agent?.judged.length ?? 0) > 0)).toBe(true);
}, 240_000);
