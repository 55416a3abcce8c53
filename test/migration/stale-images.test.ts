import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe, virtualMachine } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';

/** What a guest leaves behind that goes to another claim is started by nobody, unless its owner says so. */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

const API = '/apis/kubevirt.io/v1/namespaces/default';
const CLAIMS = '/api/v1/namespaces/default/persistentvolumeclaims';
const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const MERGE = { 'content-type': 'application/merge-patch+json' };
/** How long anything may take that is under way, on a machine under load. */
const PATIENCE_MS = 90_000;
const VOLUME = 'data';

let guests: MovingGuests;
beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: 2 });
  await patch(KUBEVIRT, { spec: { workloadUpdateStrategy: { workloadUpdateMethods: ['LiveMigrate'] } } });
  for (const name of ['first', 'second']) await guests.host.create(claim(name, 'local'));
});
afterAll(() => guests.stop());

async function patch(path: string, body: object): Promise<Anything> {
  return (await guests.host.api.request('PATCH', path, { body, headers: MERGE })).expect(200).json;
}

const onClaim = (claimName: string): object => ({ name: VOLUME, persistentVolumeClaim: { claimName } });
const diskOn = (claimName: string): object => probe({ volumes: [{ name: VOLUME, source: onClaim(claimName) }] });
const uidOf = async (name: string): Promise<string> =>
  (await guests.host.api.request('GET', `${CLAIMS}/${name}`)).expect(200).json.metadata.uid;
const machine = async (name: string): Promise<Anything> =>
  (await guests.host.api.request('GET', `${API}/virtualmachines/${name}`)).expect(200).json;

/** Has the contents of the machine's volume go to another claim, or only its name, and waits for no more than that. */
const put = (name: string, claimName: string, updateVolumesStrategy: 'Migration' | 'Replacement'): Promise<Anything> =>
  patch(`${API}/virtualmachines/${name}`, {
    spec: { updateVolumesStrategy, template: { spec: { volumes: [onClaim(claimName)] } } },
  });

/** Waits until the record says that the guest is on a claim. */
const isOn = async (name: string, claimName: string): Promise<void> => {
  const claimUID = await uidOf(claimName);
  await eventually(async () => {
    const { rightToRun } = (await guests.host.guest(name)).status;
    expect(rightToRun.volumes).toEqual([{ name: VOLUME, claimUID, imageEpoch: rightToRun.epoch }]);
  }, PATIENCE_MS);
};

async function startAnew(name: string): Promise<void> {
  const before = await guests.host.guest(name);
  await guests.host.delete('VirtualMachineInstance', name);
  await guests.host.livesAnew(name, before);
  await guests.knows(name);
}

/** The files of a claim, wherever they are. */
async function filesOf(claimName: string): Promise<Readonly<Record<string, string>>> {
  const { volumeName } = (await guests.host.api.request('GET', `${CLAIMS}/${claimName}`)).expect(200).json.spec;
  const { nodesDirectory } = guests.host;
  const paths = readdirSync(nodesDirectory, { recursive: true, encoding: 'utf8' });
  const files = paths.filter((path) => basename(dirname(path)) === volumeName);
  return Object.fromEntries(files.map((path) => [basename(path), join(nodesDirectory, path)]));
}

/** Waits until the image of a claim bears a stamp. */
const bears = (claimName: string, state: string): Promise<void> =>
  eventually(async () => {
    const { ['disk.img.stamp']: path } = await filesOf(claimName);
    expect(path).toBeDefined();
    expect(JSON.parse(readFileSync(path ?? '', 'utf8'))).toMatchObject({ state });
  }, PATIENCE_MS);

/** Waits until a guest is not started for what its volume is on, and answers what is said of it. */
const isRefused = (name: string): Promise<string> =>
  eventually(async () => {
    const { conditions = [] } = (await guests.host.guest(name))?.status ?? {};
    const found = conditions.find(({ type, reason }: Anything) => type === 'Synchronized' && reason === 'StaleImage');
    expect(found, JSON.stringify(conditions)).toBeDefined();
    return found.message;
  }, PATIENCE_MS);

describe('the image that a guest left behind', () => {
  it('is started by nobody: no machine made anew, nor its own', async () => {
    await guests.create('disk', diskOn('first'));
    await isOn('disk', 'first');
    await put('disk', 'second', 'Migration');
    await isOn('disk', 'second');
    await guests.isWhole('disk');
    expect(await guests.host.ask('disk', 'disk')).toMatch(/ bad=0\b/);
    await guests.host.create(virtualMachine('anew', diskOn('first')));
    const told = /^volume data: .* claim first: it is an old copy, which default\/disk left for claim second on node /;
    expect(await isRefused('anew')).toMatch(told);
    await guests.host.told('anew', /StaleImage: volume data: /);
    // Its own machine starts again where its contents are, and not where they were.
    await startAnew('disk');
    await isOn('disk', 'second');
    await eventually(async () => expect((await machine('disk')).status.volumeUpdateState).toBeUndefined());
    await put('disk', 'first', 'Replacement');
    await guests.host.delete('VirtualMachineInstance', 'disk');
    expect(await isRefused('disk')).toMatch(told);
    await put('disk', 'second', 'Replacement');
    await startAnew('disk');
  });

  it('is started once its owner says so, by the name of its stamp', async () => {
    const [, stamp] = /godwit\.dev\/use-image=(stale@\S+)$/.exec(await isRefused('anew')) ?? [];
    await patch(`${CLAIMS}/first`, { metadata: { annotations: { 'godwit.dev/use-image': stamp } } });
    await guests.knows('anew');
    await guests.host.told(
      'anew',
      /OldImageUsed: volume data: the image of claim first is used though it is an old copy/,
    );
    await isOn('anew', 'first');
    await guests.remove('anew');
  });

  it('is filled when the guest goes there again, and true from then on', async () => {
    await put('disk', 'first', 'Migration');
    await isOn('disk', 'first');
    await guests.isWhole('disk');
    expect(await guests.host.ask('disk', 'disk')).toMatch(/ bad=0\b/);
    await eventually(async () => expect((await machine('disk')).status.volumeUpdateState).toBeUndefined());
    await startAnew('disk');
    await isOn('disk', 'first');
    expect(await guests.host.ask('disk', 'disk')).toMatch(/ bad=0\b/);
  });

  it('is removed where it was filled in vain, and filled anew by the next try', async () => {
    await guests.configure({ bandwidthPerMigration: '64Ki' });
    await put('disk', 'second', 'Migration');
    await bears('second', 'receiving');
    await put('disk', 'first', 'Migration');
    await eventually(async () => expect(Object.keys(await filesOf('second'))).toEqual([]), PATIENCE_MS);
    await guests.isWhole('disk');
    await isOn('disk', 'first');
    await guests.configure({ bandwidthPerMigration: '0' });
    await put('disk', 'second', 'Migration');
    await isOn('disk', 'second');
    await guests.isWhole('disk');
    expect(await guests.host.ask('disk', 'disk')).toMatch(/ bad=0\b/);
    await guests.remove('disk');
  });

  it('is known for that, and the other for what it is, though both agents are killed as it is left', async () => {
    for (const name of ['third', 'fourth']) await guests.host.create(claim(name, 'local'));
    await guests.create('killed', diskOn('third'));
    await put('killed', 'fourth', 'Migration');
    const { source, target } = await guests.sides('killed');
    await guests.noted(source, ({ kind }) => kind === 'granted');
    await Promise.all([source, target].map(({ node }) => guests.host.killAgent(node)));
    await isOn('killed', 'fourth');
    await guests.isWhole('killed');
    expect(await guests.host.ask('killed', 'disk')).toMatch(/ bad=0\b/);
    await bears('third', 'stale');
    await bears('fourth', 'current');
    await guests.remove('killed');
  });
});
