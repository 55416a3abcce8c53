import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { claim, linux, virtualMachine } from '../support/guest-manifests.ts';
import type { MovingGuests } from '../support/moving-guests.ts';
import { TwoClusters } from '../support/two-clusters.ts';

/**
 * A guest that refers to all that a machine can refer to goes to a cluster where its storage class and its network are
 * others, and what it refers to has other contents.
 */

vi.setConfig({ testTimeout: 400_000, hookTimeout: 300_000 });

const NAME = 'house';
const PATIENCE_MS = 120_000;
const INSTANCETYPES = '/apis/instancetype.kubevirt.io/v1beta1/namespaces/default';

let clusters: TwoClusters;
beforeAll(async () => {
  clusters = await TwoClusters.start({ linux: true });
  await clusters.exchangeTrust();
});
afterAll(() => clusters?.stop());

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/** What makes the two clusters differ. */
interface Place {
  readonly word: string;
  readonly storageClass: 'local' | 'shared';
  readonly size: string;
  /** How the interface is bound, and what is reached through it. */
  readonly network: object;
}

const HERE: Place = {
  word: 'here',
  storageClass: 'local',
  size: '8Mi',
  network: { masquerade: {}, ports: [{ port: 80 }] },
};
const THERE: Place = {
  word: 'there-and-longer',
  storageClass: 'shared',
  size: '16Mi',
  network: { bridge: {}, ports: [{ port: 7777 }, { port: 80, name: 'web' }] },
};

const userDataOf = ({ word }: Place): string => `#cloud-config\nhostname: ${word}\n`;

/** The machine, which leaves its size to an instance type and its devices to a preference. */
function specOf(place: Place): Anything {
  const volumes = [
    { name: 'data', source: { persistentVolumeClaim: { claimName: NAME } } },
    { name: 'settings', source: { configMap: { name: NAME } } },
    { name: 'secrets', source: { secret: { secretName: NAME } } },
    { name: 'seed', source: { cloudInitNoCloud: { userData: userDataOf(place) } } },
  ];
  const spec = linux({ volumes, arguments: 'write=20' }) as Anything;
  const { memory: _, devices, ...domain } = spec.domain;
  const { autoattachPodInterface: __, ...rest } = devices;
  // The first disk has its bus from the preference.
  const disks = volumes.map(({ name }, index) => ({ name, disk: index === 0 ? {} : { bus: 'virtio' } }));
  const interfaces = [{ name: 'default', ...place.network }];
  return {
    ...spec,
    domain: { ...domain, devices: { ...rest, disks, interfaces } },
    networks: [{ name: 'default', pod: {} }],
  };
}

const SIZED = {
  instancetype: { kind: 'VirtualMachineInstancetype', name: NAME },
  preference: { kind: 'VirtualMachinePreference', name: NAME },
};

/** Everything that the machine refers to. */
async function furnish({ host }: MovingGuests, place: Place): Promise<void> {
  const { word } = place;
  const metadata = { name: NAME };
  await host.create(
    claim(NAME, place.storageClass, place.size),
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { greeting: `hello ${word}` } },
    { apiVersion: 'v1', kind: 'Secret', metadata, stringData: { password: `swallow ${word}` } },
  );
  const apiVersion = 'instancetype.kubevirt.io/v1beta1';
  const size = { cpu: { guest: 1 }, memory: { guest: '96Mi' } };
  const wishes = { devices: { preferredDiskBus: 'virtio', preferredInterfaceModel: 'virtio' } };
  for (const [kind, spec] of [
    ['VirtualMachineInstancetype', size],
    ['VirtualMachinePreference', wishes],
  ] as const) {
    const body = { apiVersion, kind, metadata, spec };
    (await host.api.request('POST', `${INSTANCETYPES}/${kind.toLowerCase()}s`, { body })).expect(201);
  }
}

/** What the guest finds on its read-only disks: the hash of each file. */
async function filesOf({ host }: MovingGuests): Promise<Map<string, string>> {
  const lines = (await host.hear(NAME, 'ls')).filter((line) => line.startsWith('file '));
  const word = (line: string, key: string): string => new RegExp(`\\b${key}=(\\S*)`).exec(line)?.[1] ?? '';
  return new Map(lines.map((line) => [word(line, 'path'), word(line, 'sha256')]));
}

/** What the guest answers where its network lets others in. */
async function answerOf({ host }: MovingGuests): Promise<string> {
  const script = `fetch('http://${await host.forwardOf(NAME, 80)}/').then((answer) => answer.text()).then(console.log)`;
  return eventually(() => {
    const { status, stdout, stderr } = spawnSync(...host.godwit.place.wrap(process.execPath, ['-e', script]), {
      encoding: 'utf8',
    });
    expect(status, stderr).toBe(0);
    return stdout;
  }, PATIENCE_MS);
}

function expectFilesOf(place: Place, files: ReadonlyMap<string, string>): void {
  expect(files.get('greeting')).toBe(sha256(`hello ${place.word}`));
  expect(files.get('password')).toBe(sha256(`swallow ${place.word}`));
  expect(files.get('user-data')).toBe(sha256(userDataOf(place)));
}

describe('a guest with a Secret, a ConfigMap, an instance type, a preference and cloud-init', () => {
  it('goes to another storage class and another network, and has read what it has read', async () => {
    const { east, west } = clusters;
    await furnish(east, HERE);
    await furnish(west, THERE);
    await east.host.create(virtualMachine(NAME, specOf(HERE), { runStrategy: 'Always', ...SIZED }));
    await east.knows(NAME);
    const [network] = (await east.host.guest(NAME)).status.interfaces;
    expectFilesOf(HERE, await filesOf(east));
    expect(await answerOf(east)).toContain(east.bootOf(NAME));

    const trip = clusters.trip(NAME, east);
    await clusters.receiver(trip, specOf(THERE), { more: SIZED });
    expect(await clusters.arrives(trip, await clusters.begin(trip))).toHaveLength(2);
    expectFilesOf(HERE, await filesOf(west));
    expect(await west.host.ask(NAME, 'disk')).toMatch(/ bad=0\b/);
    expect(await answerOf(west)).toContain(west.bootOf(NAME));
    const guest = await west.host.guest(NAME);
    expect(guest.status.interfaces[0].mac).toBe(network.mac);
    expect(guest.spec.domain.memory.guest).toBe('96Mi');
    expect(guest.status.rightToRun.volumes).toHaveLength(1);
  });

  it('reads what there is where it is once it starts afresh, and is still known by the same', async () => {
    const { west } = clusters;
    const before = await west.host.guest(NAME);
    await west.host.power(NAME, 'restart');
    await west.host.livesAnew(NAME, before);
    expectFilesOf(THERE, await filesOf(west));
    const guest = await west.host.guest(NAME);
    expect(guest.spec.domain.firmware.uuid).toBe(before.spec.domain.firmware.uuid);
    expect(guest.status.interfaces[0].mac).toBe(before.status.interfaces[0].mac);
    const disks = await west.host.hear(NAME, 'disks');
    // The claim is as large as it is there, and what the guest wrote to it before is on it.
    expect(disks.find((line) => line.includes('use=checked'))).toMatch(
      /\bboots=2\b.*\bbytes=16777216\b|\bbytes=16777216\b.*\bboots=2\b/,
    );
    clusters.assertNeverDoubled();
  });
});
