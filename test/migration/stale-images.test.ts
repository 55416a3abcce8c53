import { readdirSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe, virtualMachine } from '../support/guest-manifests.ts';
import { ELSEWHERE, MovingGuests } from '../support/moving-guests.ts';
import { HOME } from '../support/paired-moves.ts';
import { IS_PAIRED } from '../support/sample.ts';

/**
 * What a guest leaves behind that goes to another claim is started by nobody, unless its owner says so. By pairs it goes to the
 * claim of the same name in another namespace.
 */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

const KUBEVIRT = '/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt';
const MERGE = { 'content-type': 'application/merge-patch+json' };
/** How long anything may take that is under way, on a machine under load. */
const PATIENCE_MS = 90_000;
const VOLUME = 'data';

interface Claim {
  readonly namespace: string;
  readonly name: string;
}
const FIRST: Claim = { namespace: HOME, name: 'first' };
const THIRD: Claim = { namespace: HOME, name: 'third' };
/** Where a guest goes from a claim; one that is elsewhere is made with the machine that waits there. */
const nextTo = (one: Claim, name: string): Claim =>
  IS_PAIRED ? { ...one, namespace: ELSEWHERE } : { namespace: HOME, name };
const [SECOND, FOURTH] = [nextTo(FIRST, 'second'), nextTo(THIRD, 'fourth')];

let guests: MovingGuests;
beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: 2 });
  await patch(KUBEVIRT, { spec: { workloadUpdateStrategy: { workloadUpdateMethods: ['LiveMigrate'] } } });
  await create(FIRST, SECOND);
});
afterAll(() => guests.stop());

async function create(...claims: readonly Claim[]): Promise<void> {
  for (const { namespace, name } of claims) if (namespace === HOME) await guests.host.create(claim(name, 'local'));
}

async function patch(path: string, body: object): Promise<Anything> {
  return (await guests.host.api.request('PATCH', path, { body, headers: MERGE })).expect(200).json;
}

const onClaim = ({ name }: Claim): object => ({ name: VOLUME, persistentVolumeClaim: { claimName: name } });
const diskOn = (one: Claim): object => probe({ volumes: [{ name: VOLUME, source: onClaim(one) }] });
const pathOf = ({ namespace, name }: Claim): string => `/api/v1/namespaces/${namespace}/persistentvolumeclaims/${name}`;
const found = async (one: Claim): Promise<Anything> =>
  (await guests.host.api.request('GET', pathOf(one))).expect(200).json;

/** Has the machine's volume be another claim, to which its contents go where that is asked for. */
const put = (name: string, one: Claim, updateVolumesStrategy: 'Migration' | 'Replacement'): Promise<Anything> =>
  patch(`/apis/kubevirt.io/v1/namespaces/${one.namespace}/virtualmachines/${name}`, {
    spec: { updateVolumesStrategy, template: { spec: { volumes: [onClaim(one)] } } },
  });

/** Waits until the record says that the guest is on a claim. */
const isOn = async (name: string, one: Claim): Promise<void> => {
  const { uid: claimUID } = (await found(one)).metadata;
  await eventually(async () => {
    const { rightToRun } = (await guests.host.guest(name)).status;
    expect(rightToRun.volumes).toEqual([{ name: VOLUME, claimUID, imageEpoch: rightToRun.epoch }]);
  }, PATIENCE_MS);
};

/** The contents of a volume that go from one claim to another. */
interface Going {
  /** Waits until they are there. */
  readonly arrive: () => Promise<void>;
  readonly callOff: () => Promise<unknown>;
}

async function go(name: string, from: Claim, to: Claim): Promise<Going> {
  if (!IS_PAIRED) {
    await put(name, to, 'Migration');
    return { arrive: () => isOn(name, to), callOff: () => put(name, from, 'Migration') };
  }
  const migration = await guests.ask(name);
  return {
    arrive: async () => {
      await guests.succeeds(migration);
      await isOn(name, to);
    },
    callOff: async () => {
      await guests.cancel(migration);
      await guests.isGone(migration);
    },
  };
}

/** Goes there, whole. */
async function arrive(name: string, from: Claim, to: Claim): Promise<void> {
  await (await go(name, from, to)).arrive();
  await isSound(name);
}

/** The guest finds everything on its disk that it wrote there. */
async function isSound(name: string): Promise<void> {
  await guests.isWhole(name);
  expect(await guests.host.ask(name, 'disk')).toMatch(/ bad=0\b/);
}

/** Waits until nothing is left to be done about the machine's volumes. */
const isSettled = (name: string): Promise<void> =>
  eventually(async () => expect((await guests.host.machine(name)).status.volumeUpdateState).toBeUndefined());

async function startAnew(name: string): Promise<void> {
  const before = await guests.host.guest(name);
  await guests.host.delete('VirtualMachineInstance', name);
  await guests.host.livesAnew(name, before);
  await guests.knows(name);
}

/** The files of a claim, wherever they are. */
async function filesOf(one: Claim): Promise<Readonly<Record<string, string>>> {
  const { volumeName } = (await found(one)).spec;
  const { nodesDirectory } = guests.host;
  const paths = readdirSync(nodesDirectory, { recursive: true, encoding: 'utf8' });
  const files = paths.filter((path) => basename(dirname(path)) === volumeName);
  return Object.fromEntries(files.map((path) => [basename(path), join(nodesDirectory, path)]));
}

/** Waits until the image of a claim bears a stamp. */
const bears = (one: Claim, state: string): Promise<void> =>
  eventually(async () => {
    const { ['disk.img.stamp']: path } = await filesOf(one);
    expect(path).toBeDefined();
    expect(JSON.parse(readFileSync(path ?? '', 'utf8'))).toMatchObject({ state });
  }, PATIENCE_MS);

/** Waits until a guest is not started for what its volume is on, and answers what is said of it. */
const isRefused = (name: string): Promise<string> =>
  eventually(async () => {
    const { conditions = [] } = (await guests.host.guest(name))?.status ?? {};
    const refusal = conditions.find(({ type, reason }: Anything) => type === 'Synchronized' && reason === 'StaleImage');
    expect(refusal, JSON.stringify(conditions)).toBeDefined();
    return refusal.message;
  }, PATIENCE_MS);

const TOLD = new RegExp(
  `^volume data: .* claim ${FIRST.name}: it is an old copy, which default/disk left for claim ${SECOND.name} on node `,
);

describe('the image that a guest left behind', () => {
  it('is started by no machine that is made anew', async () => {
    await guests.create('disk', diskOn(FIRST));
    await isOn('disk', FIRST);
    await arrive('disk', FIRST, SECOND);
    await guests.host.create(virtualMachine('anew', diskOn(FIRST)));
    expect(await isRefused('anew')).toMatch(TOLD);
    await guests.host.told('anew', /StaleImage: volume data: /);
    // Its own machine starts again where its contents are.
    await startAnew('disk');
    await isOn('disk', SECOND);
    await isSettled('disk');
  });

  // The machine of a guest that is elsewhere by now is not started at all (test/decentralized/there-and-back.test.ts).
  if (!IS_PAIRED)
    it('nor by its own', async () => {
      await put('disk', FIRST, 'Replacement');
      await guests.host.delete('VirtualMachineInstance', 'disk');
      expect(await isRefused('disk')).toMatch(TOLD);
      await put('disk', SECOND, 'Replacement');
      await startAnew('disk');
    });

  it('is started once its owner says so, by the name of its stamp', async () => {
    const [, stamp] = /godwit\.dev\/use-image=(stale@\S+)$/.exec(await isRefused('anew')) ?? [];
    await patch(pathOf(FIRST), { metadata: { annotations: { 'godwit.dev/use-image': stamp } } });
    await guests.knows('anew');
    await guests.host.told(
      'anew',
      /OldImageUsed: volume data: the image of claim first is used though it is an old copy/,
    );
    await isOn('anew', FIRST);
    await guests.remove('anew');
  });

  it('is filled when the guest goes there again, and true from then on', async () => {
    await arrive('disk', SECOND, FIRST);
    await isSettled('disk');
    await startAnew('disk');
    await isOn('disk', FIRST);
    expect(await guests.host.ask('disk', 'disk')).toMatch(/ bad=0\b/);
  });

  it('is removed where it was filled in vain, and filled anew by the next try', async () => {
    await guests.configure({ bandwidthPerMigration: '64Ki' });
    const going = await go('disk', FIRST, SECOND);
    await bears(SECOND, 'receiving');
    await going.callOff();
    await eventually(async () => expect(Object.keys(await filesOf(SECOND))).toEqual([]), PATIENCE_MS);
    await guests.isWhole('disk');
    await isOn('disk', FIRST);
    await guests.configure({ bandwidthPerMigration: '0' });
    await arrive('disk', FIRST, SECOND);
    await guests.remove('disk');
  });

  it('is known for that, and the other for what it is, though both agents are killed as it is left', async () => {
    await create(THIRD, FOURTH);
    await guests.create('killed', diskOn(THIRD));
    const going = await go('killed', THIRD, FOURTH);
    const { source, target } = await guests.sides('killed');
    await guests.noted(source, ({ kind }) => kind === 'granted');
    await Promise.all([source, target].map(({ node }) => guests.host.killAgent(node)));
    await going.arrive();
    // Agents that were started again a moment ago may not serve consoles yet.
    await eventually(() => isSound('killed'));
    await bears(THIRD, 'stale');
    await bears(FOURTH, 'current');
    await guests.remove('killed');
  });
});
