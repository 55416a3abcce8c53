import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { InProcessApi } from '../../../test/support/in-process.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { DiskFiles, UserIdentity } from '../../env/ports.ts';
import { realDiskFiles } from '../../env/real-disk-files.ts';
import { ManualClock, seededRandom } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import { InProcessTransport } from '../../kube/in-process-transport.ts';
import type { Resource } from '../../kube/resource.ts';
import { labelOf, readIso } from '../cloud-init/iso-reader.fixture.ts';
import { ImageStore } from '../images/image-store.ts';
import type { KnownDisks, PreparedDisk, PreparedVolumes } from './guest-volumes.ts';
import { ImageStampFiles } from './image-stamp-files.ts';
import { NodeVolumes } from './node-volumes.ts';
import { imageFacts } from './qcow2.ts';
import { claims, configMaps, persistentVolumes, secrets } from './resources.ts';

const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
const { signal } = new AbortController();
const NAMESPACE = 'shop';

let api: InProcessApi;
let client: Client;
let directory: string;
let images: ImageStore;
let volumes: NodeVolumes;

beforeAll(async () => {
  api = await InProcessApi.start({ env: { clock: new ManualClock() } });
  const admin = { user: 'admin', groups: ['system:masters'] };
  client = new Client(new InProcessTransport((request) => api.core.handle(request), admin), 'test');
  await client.create(namespaces, { metadata: { name: NAMESPACE } } as KubeObject, signal);
});
afterAll(() => api.stop());

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'volumes-'));
  images = new ImageStore({
    directory: at('images'),
    files: realDiskFiles,
    clock: new ManualClock(),
    random: seededRandom(1),
  });
  volumes = new NodeVolumes({
    client,
    files: realDiskFiles,
    images,
    reservedDirectories: [at('images'), at('missing')],
    stamps: stamps(),
  });
});
afterEach(() => rmSync(directory, { recursive: true }));

function at(name: string): string {
  return join(directory, name);
}

function stamps(): ImageStampFiles {
  return new ImageStampFiles({ files: realDiskFiles, directory: at('stamps') });
}

function guestOf(text: string, more: Partial<VirtualMachineInstance['spec']['domain']> = {}): VirtualMachineInstance {
  const list = parse(text) as VirtualMachineInstance['spec']['volumes'];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'web.one', namespace: NAMESPACE, creationTimestamp: '2026-01-02T03:04:05Z' },
    spec: {
      domain: { ...more, devices: { disks: (list ?? []).map(({ name }) => ({ name, disk: { bus: 'virtio' } })) } },
      ...(list ? { volumes: list } : {}),
    },
  };
}

function prepare(guest: VirtualMachineInstance, user?: UserIdentity): Promise<PreparedVolumes> {
  return volumes.prepare({ guest, podUID: '1', directory: at('pod'), user }, signal);
}

/** The one disk that comes of one volume. */
async function diskOf(text: string, user?: UserIdentity): Promise<PreparedDisk> {
  const { disks } = await prepare(guestOf(text), user);
  const [disk] = disks.values();
  if (!disk || disks.size !== 1) throw new Error('there is no disk, or more than one');
  return disk;
}

async function create<T extends KubeObject>(resource: Resource<T>, object: Partial<T>): Promise<T> {
  const metadata = { ...(resource.namespaced ? { namespace: NAMESPACE } : {}), ...object.metadata };
  return client.create(resource, { ...object, metadata } as T, signal);
}

/** A claim and its volume, as their controllers leave them. */
async function claimOn(
  name: string,
  source: object,
  change: { claim?: object; annotations?: object; uid?: string } = {},
): Promise<void> {
  const resources = { requests: { storage: '3Mi' } };
  const claim = await create(claims, {
    metadata: { name },
    spec: { accessModes: ['ReadWriteOnce'], storageClassName: '', volumeName: name, resources, ...change.claim },
  });
  await client.update(claims, { ...claim, status: { phase: 'Bound' } }, signal, { subresource: 'status' });
  await create(persistentVolumes, {
    metadata: { name, annotations: change.annotations as Record<string, string> },
    spec: {
      capacity: { storage: '4Mi' },
      accessModes: ['ReadWriteOnce'],
      ...change.claim,
      ...source,
      claimRef: { namespace: NAMESPACE, name, uid: change.uid ?? claim.metadata.uid ?? '' },
    },
  });
}

describe('disks of images', () => {
  it('lie upon the image, and keep what a guest wrote', async () => {
    await images.importFile('quay.io/shop/web:1', tempFile('image', 'x'.repeat(5000)));
    const text = '[{name: root, containerDisk: {image: "quay.io/shop/web:1"}}]';
    const disk = await diskOf(text);
    expect(disk).toEqual({ path: at('pod/root.qcow2'), format: 'qcow2', cache: 'writeback' });
    const head = readFileSync(disk.path);
    expect(head.includes(at('pod/root.base'))).toBe(true);
    expect(() => imageFacts(head, head.length)).toThrow('backing file');
    expect(head.readBigUInt64BE(24)).toBe(5120n);
    writeFileSync(disk.path, 'the guest was here');
    // Whatever becomes of the image.
    await images.remove('quay.io/shop/web:1');
    expect(await diskOf(text)).toEqual(disk);
    expect(readFileSync(disk.path, 'utf8')).toBe('the guest was here');
    expect(readFileSync(at('pod/root.base'), 'utf8')).toBe('x'.repeat(5000));
  });

  it('name the image that is missing, and how to get it', async () => {
    const text = '[{name: root, containerDisk: {image: web}}]';
    await expect(diskOf(text)).rejects.toMatchObject({
      volume: 'root',
      reason: 'ErrImagePull',
      message: 'volume root: image web is not in the store of this host; import it with: godwit image import web FILE',
    });
    await expect(diskOf('[{name: root, containerDisk: {image: WEB}}]')).rejects.toMatchObject({
      reason: 'ErrImagePull',
    });
    await images.importFile('web', tempFile('image', 'x'));
    await expect(diskOf('[{name: root, containerDisk: {image: web, path: /disk/b}}]')).rejects.toMatchObject({
      reason: 'ImageUnusable',
    });
    await diskOf(text);
  });

  it('may be a kernel', async () => {
    const firmware = { kernelBoot: { kernelArgs: 'console=ttyS0', container: { image: 'linux', kernelPath: '/k' } } };
    await expect(prepare(guestOf('[]', { firmware }))).rejects.toMatchObject({
      volume: 'kernelBoot',
      reason: 'ErrImagePull',
    });
    await images.importKernel('linux', tempFile('k', 'kernel'), tempFile('i', 'initrd'));
    const { kernel } = await prepare(guestOf('[]', { firmware }));
    expect(kernel).toEqual({ path: at('pod/kernel'), initrdPath: at('pod/initrd'), commandLine: 'console=ttyS0' });
    expect(readFileSync(at('pod/kernel'), 'utf8')).toBe('kernel');
    expect((await prepare(guestOf('[]', { firmware }))).kernel).toEqual(kernel);
  });

  it('are not begun while another volume is missing', async () => {
    const text = '[{name: empty, emptyDisk: {capacity: 1Gi}}, {name: root, containerDisk: {image: web}}]';
    await expect(prepare(guestOf(text))).rejects.toMatchObject({ volume: 'root' });
    expect(readdirSync(at('pod'))).toEqual([]);
  });
});

function tempFile(name: string, contents: string): string {
  writeFileSync(at(name), contents);
  return at(name);
}

describe('preparing', () => {
  /** Files that work until the agent dies, at its `calls`-th use of them. */
  function mortal(calls: number): DiskFiles {
    let left = calls;
    return new Proxy(realDiskFiles, {
      get: (target, name: keyof DiskFiles) => {
        if (left-- <= 0) throw new Error('the agent died');
        return target[name];
      },
    });
  }

  it('goes on wherever an agent died, and resets nothing', async () => {
    await images.importFile('web', tempFile('image', 'x'.repeat(5000)));
    await images.importKernel('linux', tempFile('k', 'kernel'), undefined);
    const text = `[{name: root, containerDisk: {image: web}}, {name: empty, emptyDisk: {capacity: 1Mi}},
      {name: host, hostDisk: {path: ${at('host.img')}, type: DiskOrCreate, capacity: 1Mi}},
      {name: seed, cloudInitNoCloud: {userData: a}}]`;
    const guest = guestOf(text, { firmware: { kernelBoot: { container: { image: 'linux' } } } });
    const expected = await prepare(guest);
    const paths = [...expected.disks.values()].map(({ path }) => path);
    const contents = paths.map((path) => readFileSync(path));
    let deaths = 0;
    for (let calls = 0; ; calls++, deaths++) {
      rmSync(at('pod'), { recursive: true, force: true });
      rmSync(at('host.img'), { force: true });
      volumes = new NodeVolumes({ client, files: mortal(calls), images, reservedDirectories: [], stamps: stamps() });
      const first = await prepare(guest).catch(() => undefined);
      const written = paths.filter((path) => existsSync(path));
      for (const path of written) appendFileSync(path, 'the guest was here');
      volumes = new NodeVolumes({ client, files: realDiskFiles, images, reservedDirectories: [], stamps: stamps() });
      expect(await prepare(guest)).toEqual(expected);
      for (const [index, path] of paths.entries()) {
        const more = written.includes(path) ? 'the guest was here' : '';
        expect(readFileSync(path).equals(Buffer.concat([contents[index] ?? Buffer.of(), Buffer.from(more)]))).toBe(
          true,
        );
      }
      if (first) break;
    }
    expect(deaths).toBeGreaterThan(10);
  });
});

describe('disks of their own', () => {
  it('are empty, and stay what they are', async () => {
    const text = '[{name: scratch, emptyDisk: {capacity: 1Gi}}]';
    const disk = await diskOf(text);
    const bytes = readFileSync(disk.path);
    expect(imageFacts(bytes, bytes.length)).toEqual({ format: 'qcow2', diskBytes: 2 ** 30 });
    expect(statSync(disk.path).mode & 0o777).toBe(0o600);
    writeFileSync(disk.path, 'written');
    await diskOf(text);
    expect(readFileSync(disk.path, 'utf8')).toBe('written');
  });

  it.each([
    ['[{name: a, emptyDisk: {capacity: "0"}}]', 'NotSupported'],
    ['[{name: a, emptyDisk: {capacity: 1Ei}}]', 'InvalidVolume'],
    ['[{name: a, sysprep: {}}]', 'NotSupported'],
  ])('cannot be %s', async (text, reason) => {
    await expect(diskOf(text)).rejects.toMatchObject({ volume: 'a', reason });
  });

  it('are left out where no disk shows them', async () => {
    const guest = guestOf('[{name: a, serviceAccount: {serviceAccountName: x}}]');
    guest.spec.domain.devices.disks = [];
    expect((await prepare(guest)).disks.size).toBe(0);
  });
});

describe('files of objects', () => {
  const text = async (disk: PreparedDisk): Promise<Record<string, string>> =>
    Object.fromEntries(
      [...readIso(readFileSync(disk.path), 'rock-ridge')].map(([path, bytes]) => [path, Buffer.from(bytes).toString()]),
    );

  it('are those of a ConfigMap', async () => {
    await create(configMaps, { metadata: { name: 'settings' }, data: { 'a.conf': 'one' }, binaryData: { b: 'dHdv' } });
    const disk = await diskOf('[{name: config, configMap: {name: settings}}]');
    expect(disk).toEqual({ path: at('pod/config.iso'), format: 'raw', cache: 'writeback' });
    expect(labelOf(readFileSync(disk.path))).toBe('cfgdata');
    expect(await text(disk)).toEqual({ 'a.conf': 'one', b: 'two' });
  });

  it('are those of a Secret, which may be optional', async () => {
    const missing = '[{name: keys, secret: {secretName: keys, volumeLabel: KEYS}}]';
    await expect(diskOf(missing)).rejects.toMatchObject({
      reason: 'SecretNotFound',
      message: 'volume keys: there is no Secret keys',
    });
    expect(await text(await diskOf('[{name: none, secret: {secretName: keys, optional: true}}]'))).toEqual({});
    await create(secrets, { metadata: { name: 'keys' }, data: { key: Buffer.from('hush').toString('base64') } });
    const disk = await diskOf(missing);
    expect(labelOf(readFileSync(disk.path))).toBe('KEYS');
    expect(await text(disk)).toEqual({ key: 'hush' });
  });

  it('refuse labels that cannot be', async () => {
    const disk = diskOf(`[{name: a, configMap: {name: none, optional: true, volumeLabel: ${'x'.repeat(40)}}}]`);
    await expect(disk).rejects.toMatchObject({ volume: 'a', reason: 'InvalidVolume' });
  });

  it('are for cloud-init', async () => {
    const disk = await diskOf(
      '[{name: seed, cloudInitNoCloud: {userData: "#cloud-config", networkDataBase64: dmVyc2lvbjogMg==}}]',
    );
    expect(labelOf(readFileSync(disk.path))).toBe('cidata');
    expect(await text(disk)).toEqual({
      'meta-data': '{"instance-id":"web.one.shop","local-hostname":"web"}\n',
      'user-data': '#cloud-config',
      'network-config': 'version: 2',
    });
  });

  it('are for cloud-init, from Secrets', async () => {
    const data = { userdata: Buffer.from('#!/bin/sh').toString('base64') };
    await create(secrets, { metadata: { name: 'seed' }, data });
    const drive = await diskOf('[{name: drive, cloudInitConfigDrive: {secretRef: {name: seed}}}]');
    expect(labelOf(readFileSync(drive.path))).toBe('config-2');
    expect(await text(drive)).toMatchObject({ 'openstack/latest/user_data': '#!/bin/sh' });
    await expect(
      diskOf('[{name: seed, cloudInitNoCloud: {networkDataSecretRef: {name: seed}}}]'),
    ).rejects.toMatchObject({
      reason: 'SecretIncomplete',
      message: 'volume seed: Secret seed has no key networkdata or networkData',
    });
  });

  it('are the same on the node that a guest moves to', async () => {
    const seed = '[{name: seed, cloudInitNoCloud: {userData: "#cloud-config"}}]';
    const here = readFileSync((await diskOf(seed)).path);
    rmSync(at('pod'), { recursive: true });
    expect(readFileSync((await diskOf(seed)).path).equals(here)).toBe(true);
  });
});

describe('disks of claims', () => {
  it('are made once, where the volume is ours', async () => {
    const annotations = { 'pv.kubernetes.io/provisioned-by': 'godwit.dev/directories' };
    await claimOn('made', { hostPath: { path: at('shared/made') } }, { annotations });
    const text = '[{name: data, persistentVolumeClaim: {claimName: made}}]';
    const disk = await diskOf(text);
    expect(disk).toMatchObject({ path: at('shared/made/disk.img'), format: 'raw' });
    expect(['none', 'writethrough']).toContain(disk.cache);
    expect(statSync(disk.path).size).toBe(3 * 1024 * 1024);
    expect(statSync(disk.path).blocks).toBe(0);
    // Whoever QEMU is on the next node passes to an image that is nobody else's.
    expect(statSync(at('shared/made')).mode & 0o777).toBe(0o711);
    expect(statSync(disk.path).mode & 0o777).toBe(0o600);
    writeFileSync(disk.path, 'written');
    rmSync(at('pod'), { recursive: true });
    await diskOf(text);
    expect(readFileSync(disk.path, 'utf8')).toBe('written');
    expect(await diskOf('[{name: data, dataVolume: {name: made}}]')).toEqual(disk);
    expect(await diskOf('[{name: data, persistentVolumeClaim: {claimName: made, readOnly: true}}]')).toEqual({
      ...disk,
      isReadOnly: true,
    });
  });

  describe('bear stamps', () => {
    const text = '[{name: data, persistentVolumeClaim: {claimName: moved}}]';
    const uidOf = async (): Promise<string> =>
      (await client.get(claims, NAMESPACE, 'moved', signal)).metadata.uid ?? '';
    const place = async () => ({ path: at('moved/disk.img'), claim: { name: 'moved', uid: await uidOf() } });
    const prepared = (yaml = text, more: Partial<KnownDisks> = {}): Promise<PreparedVolumes> => {
      const disks = { vm: 'the-machine', records: [], filled: new Set<string>(), ...more };
      return volumes.prepare(
        { guest: guestOf(yaml), podUID: '1', directory: at('pod'), user: undefined, disks },
        signal,
      );
    };
    const stale = { state: 'stale', epoch: 7, vm: 'a-machine', guest: 'shop/old', wentTo: 'claim new' } as const;

    beforeEach(async () => {
      const annotations = { 'pv.kubernetes.io/provisioned-by': 'godwit.dev/directories' };
      await claimOn('moved', { hostPath: { path: at('moved') } }, { annotations });
    });
    afterEach(async () => {
      await client.delete(claims, NAMESPACE, 'moved', signal);
      await client.delete(persistentVolumes, '', 'moved', signal);
    });

    it('for which room is made', async () => {
      await prepared();
      expect(await stamps().look(await place())).toEqual({ stamp: 'blank', isBeside: true });
      expect(await prepared()).toMatchObject({ notices: [] });
    });

    it('and are refused where they were left behind, in words that say what to do', async () => {
      await prepared();
      await stamps().write(await place(), stale);
      const refusal = {
        volume: 'data',
        reason: 'StaleImage',
        message:
          'volume data: no guest is started on the image of claim moved: it is an old copy, which shop/old left for ' +
          'claim new (stale@7-a-machin); to use it all the same: ' +
          'kubectl annotate pvc moved -n shop --overwrite godwit.dev/use-image=stale@7-a-machin',
      };
      await expect(prepared()).rejects.toMatchObject(refusal);
      for (const yaml of [
        '[{name: data, persistentVolumeClaim: {claimName: moved, readOnly: true}}]',
        '[{name: data, ephemeral: {persistentVolumeClaim: {claimName: moved}}}]',
        '[{name: data, dataVolume: {name: moved}}]',
      ])
        await expect(prepared(yaml)).rejects.toMatchObject({ reason: 'StaleImage' });
      // What a migration brings with it takes their place.
      await prepared(text, { filled: new Set(['data']) });
      const annotate = (value: string): Promise<unknown> => {
        const body = { metadata: { annotations: { 'godwit.dev/use-image': value } } };
        return client.patch(claims, NAMESPACE, 'moved', { type: 'merge', body }, signal);
      };
      await annotate('stale@6-a-machin');
      await expect(prepared()).rejects.toMatchObject({ reason: 'StaleImage' });
      await annotate('stale@7-a-machin');
      const { accepted, notices } = await prepared();
      expect([...(accepted ?? [])]).toEqual([[await uidOf(), 'stale@7-a-machin']]);
      expect(notices).toEqual([
        'volume data: the image of claim moved is used though it is an old copy, which shop/old left for claim new',
      ]);
    });

    it('and are not made anew where they should be', async () => {
      const records = [[{ name: 'data', claimUID: await uidOf(), imageEpoch: 4 }]];
      await expect(prepared(text, { records })).rejects.toMatchObject({
        reason: 'StaleImage',
        message: expect.stringMatching(
          /not the image that the guest had: maybe its storage is not mounted \(none@4\)/,
        ) as string,
      });
      expect(existsSync(at('moved'))).toBe(false);
    });
  });

  it('may be laid upon', async () => {
    mkdirSync(at('golden'));
    writeFileSync(at('golden/disk.img'), 'x'.repeat(1024));
    await claimOn('golden', { local: { path: at('golden') }, nodeAffinity: AFFINITY });
    const disk = await diskOf('[{name: copy, ephemeral: {persistentVolumeClaim: {claimName: golden}}}]');
    expect(disk).toEqual({ path: at('pod/copy.qcow2'), format: 'qcow2', cache: 'writeback' });
    expect(readFileSync(disk.path).includes(at('golden/disk.img'))).toBe(true);
  });

  it('may be devices, and nothing else where devices are asked for', async () => {
    const path = at('some-disk');
    symlinkSync('/dev/null', path);
    await claimOn('device', { local: { path }, nodeAffinity: AFFINITY }, { claim: { volumeMode: 'Block' } });
    const text = '[{name: data, persistentVolumeClaim: {claimName: device}}]';
    await expect(diskOf(text)).rejects.toMatchObject({
      volume: 'data',
      reason: 'DiskRefused',
      message: /no block device/,
    });
    const given: string[] = [];
    const describe = async (described: string) => {
      const found = await realDiskFiles.describe(described);
      return found && described === '/dev/null' ? { ...found, kind: 'block-device' as const } : found;
    };
    const files = { ...realDiskFiles, describe, giveTo: async (path: string) => void given.push(path) };
    const options = { client, files, images, reservedDirectories: [], stamps: stamps() };
    const request = { guest: guestOf(text), podUID: '1', directory: at('pod'), user: { uid: 7, gid: 7 } };
    const { disks } = await new NodeVolumes(options).prepare(request, signal);
    expect(disks.get('data')).toEqual({
      path: '/dev/null',
      claim: { name: 'device', uid: expect.any(String) as string },
      format: 'raw',
      isDevice: true,
      cache: 'none',
    });
    expect(given).toEqual(['/dev/null']);
  });

  it('are none of what guests in containers do not see, and nothing is made of it', async () => {
    await claimOn('unseen', { hostPath: { path: at('unseen'), type: 'DirectoryOrCreate' } });
    await claimOn('seen', { hostPath: { path: at('data/seen'), type: 'DirectoryOrCreate' } });
    const seenDirectory = at('data');
    const seeing = new NodeVolumes({
      client,
      files: realDiskFiles,
      images,
      reservedDirectories: [seenDirectory],
      stamps: stamps(),
      seenDirectory,
    });
    const tried = (text: string) =>
      seeing.prepare({ guest: guestOf(text), podUID: '1', directory: at('data/pod'), user: undefined }, signal);
    const refusal = {
      volume: 'data',
      reason: 'NotSupported',
      message: expect.stringContaining(seenDirectory) as string,
    };
    for (const text of [
      'persistentVolumeClaim: {claimName: unseen}',
      'ephemeral: {persistentVolumeClaim: {claimName: unseen}}',
      `hostDisk: {path: ${at('host.img')}, type: DiskOrCreate, capacity: 1Mi}`,
    ])
      await expect(tried(`[{name: data, ${text}}]`)).rejects.toMatchObject(refusal);
    expect(existsSync(at('unseen'))).toBe(false);
    const { disks } = await tried('[{name: data, persistentVolumeClaim: {claimName: seen}}]');
    expect(disks.get('data')?.path).toBe(at('data/seen/disk.img'));
  });

  it('make no directory that an administrator has to make', async () => {
    await claimOn('elsewhere', { hostPath: { path: at('elsewhere') } });
    await expect(diskOf('[{name: data, persistentVolumeClaim: {claimName: elsewhere}}]')).rejects.toMatchObject({
      reason: 'DiskFailed',
    });
    mkdirSync(at('elsewhere'));
    await diskOf('[{name: data, persistentVolumeClaim: {claimName: elsewhere}}]');
  });

  it('lead nowhere else', async () => {
    mkdirSync(at('linked'));
    writeFileSync(at('secret'), 'hush');
    symlinkSync(at('secret'), at('linked/disk.img'));
    await claimOn('linked', { hostPath: { path: at('linked') } });
    for (const readOnly of [true, false])
      await expect(
        diskOf(`[{name: data, persistentVolumeClaim: {claimName: linked, readOnly: ${readOnly}}}]`),
      ).rejects.toMatchObject({ reason: 'DiskRefused' });
  });

  it.each<[string, () => Promise<unknown>, string]>([
    ['not there', async () => undefined, 'PersistentVolumeClaimNotFound'],
    [
      'not bound',
      () =>
        create(claims, {
          metadata: { name: 'claim' },
          spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } },
        }),
      'ClaimNotBound',
    ],
    ["somebody else's", () => claimOn('claim', { hostPath: { path: '/x' } }, { uid: 'another' }), 'ClaimUnusable'],
    ['of another kind', () => claimOn('claim', { nfs: { server: 'a', path: '/x' } }), 'ClaimUnusable'],
  ])('are refused where the claim is %s', async (_, arrange, reason) => {
    await arrange();
    try {
      await expect(diskOf('[{name: data, persistentVolumeClaim: {claimName: claim}}]')).rejects.toMatchObject({
        volume: 'data',
        reason,
      });
    } finally {
      await client.delete(claims, NAMESPACE, 'claim', signal).catch(() => undefined);
      await client.delete(persistentVolumes, '', 'claim', signal).catch(() => undefined);
    }
  });
});

const AFFINITY = {
  required: { nodeSelectorTerms: [{ matchExpressions: [{ key: 'a', operator: 'Exists' as const }] }] },
};

describe('files of the node', () => {
  const OTHER: UserIdentity = { uid: 12_345, gid: 12_345 };
  const hostDisk = (path: string, rest = 'type: DiskOrCreate, capacity: 2Mi') =>
    `[{name: host, hostDisk: {path: ${at(path)}, ${rest}}}]`;

  it('are made where they may be', async () => {
    const disk = await diskOf(hostDisk('a.img'));
    expect(disk).toMatchObject({ path: at('a.img'), format: 'raw' });
    expect(statSync(disk.path).size).toBe(2 * 1024 * 1024);
    writeFileSync(disk.path, 'written');
    expect(await diskOf(hostDisk('a.img', 'type: Disk'))).toEqual(disk);
    expect(readFileSync(disk.path, 'utf8')).toBe('written');
  });

  it('are not what the user that guests run as could not open', async () => {
    writeFileSync(at('a.img'), 'private');
    chmodSync(at('a.img'), 0o600);
    const refusal = { volume: 'host', reason: 'DiskRefused' };
    // The pod's directory cannot be given away by just anybody, and is not looked at here.
    const files = { ...realDiskFiles, makeDirectory: async () => undefined };
    volumes = new NodeVolumes({ client, files, images, reservedDirectories: [], stamps: stamps() });
    await expect(diskOf(hostDisk('a.img'), OTHER)).rejects.toMatchObject(refusal);
    await expect(diskOf(hostDisk('new.img'), OTHER)).rejects.toMatchObject(refusal);
    chmodSync(at('a.img'), 0o666);
    expect((await diskOf(hostDisk('a.img'), OTHER)).path).toBe(at('a.img'));
  });

  it.each([
    ['no file', 'DiskNotFound', hostDisk.bind(undefined, 'none.img', 'type: Disk')],
    ['no directory', 'DiskNotFound', hostDisk.bind(undefined, 'none/a.img')],
    ['no size', 'DiskNotFound', hostDisk.bind(undefined, 'none.img', 'type: DiskOrCreate')],
    ['a directory', 'DiskRefused', hostDisk.bind(undefined, 'images')],
    ['a link', 'DiskRefused', hostDisk.bind(undefined, 'link')],
    ["the node's own", 'DiskRefused', hostDisk.bind(undefined, 'images/names/a')],
    ["the node's own by a detour", 'DiskRefused', hostDisk.bind(undefined, 'detour/a')],
    ['above', 'DiskRefused', hostDisk.bind(undefined, '../a')],
  ])('are refused: %s', async (_, reason, text) => {
    mkdirSync(at('images/names'), { recursive: true });
    symlinkSync(at('images/names'), at('link'));
    symlinkSync(at('images'), at('detour'));
    const yaml = text().replace(at('../a'), `${directory}/../a`);
    await expect(diskOf(yaml)).rejects.toMatchObject({ volume: 'host', reason });
  });
});

describe('volumes of a guest that comes from elsewhere', () => {
  const coming = async (text: string, sizeBytes: number): Promise<PreparedDisk> => {
    const sizesBytes = new Map([['data', sizeBytes]]);
    const disks: KnownDisks = { vm: 'vm', records: [], filled: new Set(['data']), sizesBytes };
    const request = { guest: guestOf(text), podUID: '1', directory: at('pod'), user: undefined, disks };
    const made = (await volumes.prepare(request, signal)).disks.get('data');
    if (!made) throw new Error('there is no disk');
    return made;
  };
  const kindOf = (path: string) => imageFacts(readFileSync(path), statSync(path).size);

  it.each([
    ['containerDisk: {image: nowhere/to-be-found}'],
    ['emptyDisk: {capacity: 1Gi}'],
    ['ephemeral: {persistentVolumeClaim: {claimName: none}}'],
  ])('get room to be written over what is not needed: %s', async (source) => {
    const { path, format } = await coming(`[{name: data, ${source}}]`, 3 * 2 ** 20);
    expect([format, kindOf(path)]).toEqual(['qcow2', { format: 'qcow2', diskBytes: 3 * 2 ** 20 }]);
  });

  it.each([
    ['configMap: {name: none}'],
    ['secret: {secretName: none}'],
    ['cloudInitNoCloud: {secretRef: {name: none}}'],
    ['cloudInitConfigDrive: {userData: "#cloud-config"}'],
  ])('get room for the very bytes that the guest has read: %s', async (source) => {
    const { path, format } = await coming(`[{name: data, ${source}}]`, 77_824);
    expect([format, statSync(path).size]).toEqual(['raw', 77_824]);
  });

  it('are as large as they were, on claims that are larger', async () => {
    const local = { local: { path: at('pv') }, nodeAffinity: AFFINITY };
    mkdirSync(at('pv'));
    writeFileSync(join(at('pv'), 'disk.img'), Buffer.alloc(8192));
    await claimOn('larger', local, {});
    const text = '[{name: data, persistentVolumeClaim: {claimName: larger}}]';
    expect(await coming(text, 4096)).toMatchObject({ sizeBytes: 4096, format: 'raw' });
    expect((await coming(text, 8192)).sizeBytes).toBeUndefined();
    await expect(coming(text, 8193)).rejects.toMatchObject({
      volume: 'data',
      reason: 'DiskTooSmall',
      message: 'volume data: it has 8192 bytes, and the disk of the guest that comes 8193',
    });
    await expect(coming(text, 4097)).rejects.toMatchObject({ volume: 'data', reason: 'NotSupported' });
  });

  it('are made on claims that can only be read', async () => {
    await claimOn('read', { hostPath: { path: at('read'), type: 'DirectoryOrCreate' } }, {});
    const text = '[{name: data, persistentVolumeClaim: {claimName: read, readOnly: true}}]';
    await expect(diskOf(text)).rejects.toMatchObject({ reason: 'DiskNotFound' });
    const { path, isReadOnly } = await coming(text, 4096);
    expect([isReadOnly, existsSync(path)]).toEqual([true, true]);
  });
});
