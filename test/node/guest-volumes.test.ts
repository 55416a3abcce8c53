import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { parse } from 'yaml';
import type { VirtualMachineInstance } from '../../src/api/kubevirt/virtual-machine-instance.ts';
import { realDiskFiles } from '../../src/env/real-disk-files.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { Client } from '../../src/kube/client.ts';
import { ImageStore } from '../../src/node/images/image-store.ts';
import { dockerArchive, tarOf } from '../../src/node/images/archives.fixture.ts';
import { machineSpec } from '../../src/node/machine/machine-spec.ts';
import { ImageStampFiles } from '../../src/node/volumes/image-stamp-files.ts';
import { NodeVolumes } from '../../src/node/volumes/node-volumes.ts';
import { newQcow2 } from '../../src/node/volumes/qcow2.ts';
import { Console } from '../support/console.ts';
import { eventually } from '../support/eventually.ts';
import { LINUX_ARGUMENTS, linuxGuest } from '../support/guests.ts';
import { UNPRIVILEGED, Workbench } from '../support/qemu.ts';

/** From a manifest to a guest that uses its disks: images, volumes, machine and QEMU together, without a cluster. */

vi.setConfig({ testTimeout: 240_000 });

const MIB = 1024 * 1024;
let bench: Workbench;
let images: ImageStore;
let volumes: NodeVolumes;

beforeAll(async () => {
  bench = await Workbench.open();
  const env = { files: realDiskFiles, clock: realClock, random: realRandom };
  images = new ImageStore({ directory: join(bench.directory, 'images'), ...env });
  // Whatever a guest needs is in its own object here.
  const send = () => Promise.reject(new Error('there is no server'));
  const nobody = new Client({ send, close: () => undefined }, 'test');
  const stamps = new ImageStampFiles({ files: realDiskFiles, directory: join(bench.directory, 'stamps') });
  volumes = new NodeVolumes({ client: nobody, files: realDiskFiles, images, reservedDirectories: [], stamps });
});
afterAll(() => bench.close());

/** A disk of zeros, which the guest takes for one that it may use. */
function diskFile(name: string, bytes: Uint8Array): string {
  const path = join(bench.directory, name);
  writeFileSync(path, bytes);
  return path;
}

function guest(hostDisks: string): VirtualMachineInstance {
  return parse(`
metadata: {name: every, namespace: shop, uid: 6f1c2d3e-0000-4000-8000-000000000001}
spec:
  hostname: tern
  domain:
    memory: {guest: 96Mi}
    firmware:
      kernelBoot:
        kernelArgs: ${LINUX_ARGUMENTS} tick=50 write=1
        container: {image: shop/linux, kernelPath: /boot/vmlinuz, initrdPath: /boot/initrd}
    devices:
      disks:
      - {name: raw, serial: raw, disk: {bus: virtio}}
      - {name: packed, serial: packed, disk: {bus: virtio}}
      - {name: archived, serial: archived, disk: {bus: virtio}}
      - {name: empty, serial: empty, disk: {bus: virtio}}
      - {name: host, serial: host, disk: {bus: virtio}}
      - {name: seed, disk: {bus: virtio}}
  volumes:
  - {name: raw, containerDisk: {image: shop/raw}}
  - {name: packed, containerDisk: {image: shop/packed}}
  - {name: archived, containerDisk: {image: shop/archived}}
  - {name: empty, emptyDisk: {capacity: 7Mi}}
  - {name: host, hostDisk: {path: ${hostDisks}/host.img, type: DiskOrCreate, capacity: 8Mi}}
  - {name: seed, cloudInitNoCloud: {userData: "#cloud-config"}}
`) as VirtualMachineInstance;
}

it('gives a guest its disks, which are its own', async () => {
  const { kernel, initrd } = linuxGuest(bench.directory);
  await images.importKernel('shop/linux', kernel, initrd);
  const raw = Buffer.alloc(4 * MIB);
  const rawImage = await images.importFile('shop/raw', diskFile('raw.img', raw));
  const { bytes, sizeBytes } = newQcow2(5 * MIB);
  const packed = Buffer.concat([bytes, Buffer.alloc(sizeBytes - bytes.length)]);
  await images.importFile('shop/packed', diskFile('packed.qcow2', packed));
  const layer = tarOf({ path: 'disk/disk.img', body: Buffer.alloc(6 * MIB) });
  await images.importFile('shop/archived', diskFile('archive.tar', dockerArchive([layer])));
  const hostDisks = join(bench.directory, 'host');
  mkdirSync(hostDisks);
  chmodSync(hostDisks, 0o777);

  const every = guest(hostDisks);
  const request = { guest: every, podUID: '1', directory: join(bench.directory, 'pod'), user: UNPRIVILEGED };
  const { signal } = new AbortController();
  const prepared = await volumes.prepare(request, signal);
  const host = { version: bench.version, accelerator: 'tcg' as const };
  const machine = await bench.hypervisor.start(machineSpec(every, prepared, new Map(), host), bench.newRun());
  try {
    const console = await Console.open(machine);
    await machine.continue();
    expect((await console.next('cloud-init')).fields.get('hostname')).toBe('tern');
    await console.next('guest');
    const from = console.lines.length;
    await console.ask('disks');
    const disks = console.lines.slice(from).filter(({ kind }) => kind === 'disk');
    const told = disks.map(({ fields }) => [
      fields.get('serial'),
      fields.get('use'),
      Number(fields.get('bytes')) / MIB,
    ]);
    expect(told.slice(0, 5)).toEqual([
      ['raw', 'checked', 4],
      ['packed', 'checked', 5],
      ['archived', 'checked', 6],
      ['empty', 'checked', 7],
      ['host', 'checked', 8],
    ]);
    expect(disks[5]?.fields.get('label')).toBe('cidata');
    await eventually(async () => expect(Number((await console.ask('disk')).get('written'))).toBeGreaterThan(50));
    expect((await console.ask('disk')).get('disk')).toBe('ok');
    // Once more, as an agent would that has just been started anew: nothing is reset.
    expect(await volumes.prepare(request, signal)).toEqual(prepared);
    expect((await console.ask('disk')).get('disk')).toBe('ok');
    await machine.powerDown();
    expect(await machine.ended).toMatchObject({ reason: 'GuestShutDown' });
  } finally {
    await machine.kill();
  }
  const [file] = rawImage.files;
  expect(file && readFileSync(images.pathOf(file)).equals(raw)).toBe(true);
});
