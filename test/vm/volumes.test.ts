import { createHash } from 'node:crypto';
import { chmodSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { claim, IMAGES, linux, probe, virtualMachine } from '../support/guest-manifests.ts';
import { conditionOf, VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
let files: string;
beforeAll(async () => {
  host = await VirtualMachines.start({ nodes: 2, linux: true });
  files = mkdtempSync('/tmp/gw-host-disks-');
  chmodSync(files, 0o755);
});
afterAll(async () => {
  await host.stop();
  rmSync(files, { recursive: true });
});

const USER_DATA = '#cloud-config\nhostname: tern\n';
const SETTINGS = { 'application.properties': 'a=b\n', greeting: 'hello' };

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** Every kind of volume that there is, in this order. */
function everyKind(): { name: string; source: object }[] {
  return [
    { name: 'shared', source: { persistentVolumeClaim: { claimName: 'shared' } } },
    { name: 'local', source: { persistentVolumeClaim: { claimName: 'local' } } },
    { name: 'empty', source: { emptyDisk: { capacity: '6Mi' } } },
    {
      name: 'host',
      source: { hostDisk: { path: join(files, 'disks', 'host.img'), type: 'DiskOrCreate', capacity: '7Mi' } },
    },
    { name: 'image', source: { containerDisk: { image: IMAGES.probeDisk } } },
    { name: 'settings', source: { configMap: { name: 'settings' } } },
    { name: 'secrets', source: { secret: { secretName: 'secrets', volumeLabel: 'secrets' } } },
    { name: 'cloud-init', source: { cloudInitNoCloud: { userData: USER_DATA } } },
  ];
}

function fieldsOf(line: string): Map<string, string> {
  return new Map(line.split(' ').map((word) => [word.split('=')[0] ?? '', word.split('=')[1] ?? '']));
}

/** The lines of a kind that the guest says to a command. */
async function list(name: string, command: string, kind: string): Promise<Map<string, string>[]> {
  const lines = await host.hear(name, command);
  return lines.filter((line) => line.startsWith(`${kind} `)).map(fieldsOf);
}

describe('volumes of every kind', () => {
  it('are what the guest sees', async () => {
    mkdirSync(join(files, 'disks'));
    // A guest gets of the node's files what QEMU's own user may have, and no more.
    chmodSync(join(files, 'disks'), 0o777);
    await host.create(
      claim('shared', 'shared', '8Mi'),
      claim('local', 'local', '5Mi'),
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: SETTINGS },
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'secrets' }, stringData: { password: 'swallow' } },
      virtualMachine('every', linux({ volumes: everyKind() })),
    );
    const { disk } = await host.lives('every');
    expect(disk).toBe('ok');
    const disks = await list('every', 'disks', 'disk');
    expect(disks.map((each) => `${each.get('use')} ${each.get('boots')} ${each.get('label')}`)).toEqual([
      'checked 1 ',
      'checked 1 ',
      'checked 1 ',
      'checked 1 ',
      'none 0 ',
      expect.stringMatching(/^iso9660 0 /),
      'iso9660 0 secrets',
      'iso9660 0 cidata',
    ]);
    const sizes = disks.slice(0, 5).map((each) => Number(each.get('bytes')) / 1024 / 1024);
    expect(sizes).toEqual([8, 5, 6, 7, 1]);
  });

  it('hold the files that they were made of', async () => {
    const found = await list('every', 'ls', 'file');
    const contents = new Map(found.map((each) => [each.get('path'), each.get('sha256')]));
    for (const [name, text] of Object.entries(SETTINGS)) expect(contents.get(name)).toBe(sha256(text));
    expect(contents.get('password')).toBe(sha256('swallow'));
    expect(contents.get('user-data')).toBe(sha256(USER_DATA));
  });

  it('give cloud-init what it looks for', async () => {
    const guest = await host.guest('every');
    const line = await host.says(guest, /^cloud-init .*$/m);
    const fields = fieldsOf(line.trim());
    expect(fields.get('hostname')).toBe('tern');
    expect(fields.get('instance-id')).not.toBe('');
    expect(fields.get('user-data-sha256')).toBe(sha256(USER_DATA));
  });

  it('stay or go with the guest, as their kind says', async () => {
    const before = await host.guest('every');
    await host.power('every', 'restart');
    expect((await host.livesAnew('every', before)).disk).toBe('ok');
    const boots = (await list('every', 'disks', 'disk')).slice(0, 4).map((each) => each.get('boots'));
    expect(boots).toEqual(['2', '2', '1', '2']);
  });
});

describe('whether a guest can move', () => {
  it.each([
    ['shared', 'True', undefined],
    ['local', 'False', 'DisksNotLiveMigratable'],
  ] as const)('depends on its storage: %s', async (storageClass, status, reason) => {
    const name = `on-${storageClass}`;
    const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: name } } }];
    await host.create(claim(name, storageClass), virtualMachine(name, probe({ volumes })));
    expect((await host.lives(name)).disk).toBe('ok');
    const condition = conditionOf(await host.guest(name), 'LiveMigratable');
    expect([condition.status, condition.reason]).toEqual([status, reason]);
  });
});

describe('a volume that cannot be had', () => {
  it.each([
    ['a claim', { persistentVolumeClaim: { claimName: 'no-such-claim' } }, /no-such-claim/],
    ['a ConfigMap', { configMap: { name: 'no-such-map' } }, /no-such-map/],
    ['a Secret', { secret: { secretName: 'no-such-secret' } }, /no-such-secret/],
    ['a file', { hostDisk: { path: '/tmp/gw-no-such/disk.img', type: 'Disk' } }, /no-such/],
    ['an image', { containerDisk: { image: 'no/such:image' } }, /no\/such:image/],
  ] as const)('is named in a condition: %s', async (what, source, pattern) => {
    const name = `without-${what.split(' ')[1]?.toLowerCase()}`;
    await host.create(virtualMachine(name, probe({ volumes: [{ name: 'wanted', source }] })));
    await expect
      .poll(async () => JSON.stringify((await host.guest(name))?.status?.conditions ?? []), { timeout: 60_000 })
      .toMatch(pattern);
    await host.delete('VirtualMachine', name);
    await host.isGone(name);
  });

  it('lets the guest start as soon as it is there', async () => {
    const volumes = [{ name: 'late', source: { configMap: { name: 'late' } } }];
    await host.create(virtualMachine('patient', probe({ volumes })));
    await expect
      .poll(async () => JSON.stringify((await host.guest('patient'))?.status?.conditions ?? []), { timeout: 60_000 })
      .toMatch(/late/);
    await host.create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'late' }, data: { a: 'b' } });
    await host.lives('patient');
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(host.assertNeverDoubled()).toBeGreaterThan(10));
});
