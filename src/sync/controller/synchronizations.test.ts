import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import { SYNCHRONIZATION_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { ManualClock } from '../../env/test.ts';
import { kubeVirts, virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { FakeNetwork } from './fake-network.fixture.ts';
import { PEER_ANNOTATION } from './side.ts';
import { FakeCluster, pass, settle } from './two-clusters.fixture.ts';

const runner = (name: string) => ({ node: 'node-1', nodeUID: `node-of-${name}`, podUID: `pod-of-${name}` });

const network = new FakeNetwork();
const clock = new ManualClock();
let east: FakeCluster;
let west: FakeCluster;
let north: FakeCluster;

/** Each test has a guest and a key of its own. */
let count = 0;
let name = '';
let key = '';

beforeAll(async () => {
  const start = (id: string): Promise<FakeCluster> =>
    FakeCluster.start(id, network, clock, { limits: { halvesMax: 3, bytesMax: 100_000 } });
  [east, west, north] = [await start('east'), await start('west'), await start('north')];
});
afterAll(() => Promise.all([east.stop(), west.stop(), north.stop()]));
beforeEach(() => {
  network.heal('east', 'west');
  count++;
  name = `web-${count}`;
  key = `key-${count}`;
  for (const cluster of [east, west, north]) cluster.writes.length = 0;
  network.messages.length = 0;
});

const source = (): Promise<void> => east.half('source', { connectURL: west.address, name, key });
const target = (): Promise<void> => west.half('target', { name, key });
const pair = async (): Promise<void> => {
  await source();
  await target();
  await settle(clock);
};

type State = NonNullable<VirtualMachineInstanceStatus['migrationState']>;
const stateOf = async (cluster: FakeCluster, namespace?: string): Promise<State> =>
  (await cluster.getGuest(name, namespace)).status?.migrationState ?? {};
const uidOf = async (cluster: FakeCluster, namespace?: string): Promise<string> =>
  (await cluster.getMigration(name, namespace)).metadata.uid ?? '';
const finalizersOf = async (cluster: FakeCluster): Promise<readonly string[]> =>
  (await cluster.findMigration(name))?.metadata.finalizers ?? [];
const blockedOf = async (cluster: FakeCluster): Promise<{ reason?: string; message?: string } | undefined> => {
  const { status } = await cluster.getMigration(name);
  const guest = await cluster.getGuest(name);
  const found = status?.conditions?.find(({ type }) => type === 'decentralizedMigrationBlocked');
  const same = guest.status?.conditions?.find(({ type }) => type === 'DecentralizedLiveMigrationFailure');
  expect(same?.message).toBe(found?.message);
  return (
    found && { ...(found.reason ? { reason: found.reason } : {}), ...(found.message ? { message: found.message } : {}) }
  );
};

/** Both sides as they are once their agents have begun. */
async function underWay(): Promise<void> {
  await pair();
  for (const phase of ['Pending', 'Scheduling'] as const) {
    await east.phase(phase, name);
    await west.phase(phase, name);
  }
  await east.patchGuest(
    { migrationState: { sourceNode: 'node-1', sourcePod: 'pod-s', sourceState: { runner: runner('s'), epoch: 3 } } },
    name,
  );
  await west.patchGuest(
    { migrationState: { targetNode: 'node-1', targetPod: 'pod-t', targetRunner: runner('t') } },
    name,
  );
  for (const phase of ['PreparingTarget', 'Running'] as const) {
    await east.phase(phase, name);
    await west.phase(phase, name);
  }
}

/** The source's agent has promised the guest to its target. */
async function reserve(): Promise<void> {
  const right = { epoch: 1, holder: runner('s') };
  await east.patchGuest({ rightToRun: right }, name);
  await east.patchGuest({ rightToRun: { ...right, successor: runner('t'), across: true } }, name);
}

describe('two halves in two clusters', () => {
  it.each([
    { first: 'the source', order: [source, target] },
    { first: 'the target', order: [target, source] },
  ])('hear each other, $first first', async ({ order }) => {
    for (const make of order) await make();
    await settle(clock);
    const [s, t] = [await east.getGuest(name), await west.getGuest(name)];
    const [sm, tm] = [await east.getMigration(name), await west.getMigration(name)];
    expect(t.status?.migrationState).toMatchObject({
      migrationUid: sm.metadata.uid,
      sourceState: { migrationUID: sm.metadata.uid, virtualMachineInstanceUID: s.metadata.uid, domainName: name },
    });
    expect(s.status?.migrationState?.targetState).toMatchObject({
      migrationUID: tm.metadata.uid,
      virtualMachineInstanceUID: t.metadata.uid,
    });
    // Both names of what has two.
    expect(t.status?.sourceMigrationState?.migrationUid).toBe(sm.metadata.uid);
    expect(s.status?.targetMigrationState?.vmiUID).toBe(t.metadata.uid);
    for (const [{ metadata, status }, peer, own] of [
      [sm, 'west', east],
      [tm, 'east', west],
    ] as const) {
      expect(metadata.finalizers).toContain(SYNCHRONIZATION_FINALIZER);
      expect(metadata.annotations?.[PEER_ANNOTATION]).toBe(peer);
      expect(status).toMatchObject({ syncEndpoint: own.address, synchronizationAddresses: [own.address] });
    }
  });

  it('hear each other before the migration controller has begun, and wait for it', async () => {
    await source();
    await west.guest(name);
    await west.migration('target', { name, key });
    await west.phase('WaitingForSync', name);
    expect(await finalizersOf(west)).toContain(SYNCHRONIZATION_FINALIZER);
    expect(await stateOf(west)).toEqual({});
    await west.begin('target', name);
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east) });
  });

  it('hear an answer that comes before what was written to be answered has been heard of', async () => {
    await target();
    let hear = (): void => undefined;
    const until = new Promise<void>((resolve) => (hear = resolve));
    east.late = { text: `"${PEER_ANNOTATION}"`, until };
    try {
      await source();
      await settle(clock);
      expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east) });
    } finally {
      east.late = undefined;
      hear();
    }
    await pass(clock, 5000);
    expect(await stateOf(west)).not.toHaveProperty('abortRequested');
    expect(await stateOf(east)).toMatchObject({ targetState: { migrationUID: await uidOf(west) } });
  });

  it('tell each other what changes, in one write each, and write nothing where nothing does', async () => {
    await underWay();
    expect(await stateOf(east)).toMatchObject({ targetNode: 'node-1', targetPod: 'pod-t', targetRunner: runner('t') });
    expect(await stateOf(west)).toMatchObject({ sourceNode: 'node-1', sourceState: { runner: runner('s'), epoch: 3 } });
    for (const cluster of [east, west]) cluster.writes.length = 0;
    network.messages.length = 0;
    await west.patchGuest({ migrationState: { targetNodeAddress: '10.0.0.7' } }, name);
    expect(await stateOf(east)).toMatchObject({ targetNodeAddress: '10.0.0.7' });
    await east.patchGuest({ interfaces: [{ name: 'default', ipAddress: '10.0.0.9' }] }, name);
    expect(east.writes).toEqual([`PATCH /apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances/${name}/status`]);
    expect(west.writes).toEqual([]);
    expect(network.messages).toEqual([`west east target ${key}`]);
  });

  it('end alike, and are kept until the other side knows', async () => {
    await underWay();
    network.cut('east', 'west');
    await reserve();
    await west.patchGuest({ migrationState: { completed: true, targetNodeDomainDetected: true } }, name);
    await west.finish('Succeeded', name);
    await pass(clock, 5000);
    expect(await finalizersOf(west)).toEqual([SYNCHRONIZATION_FINALIZER]);
    expect(await stateOf(east)).not.toHaveProperty('completed');
    network.heal('east', 'west');
    await settle(clock);
    expect(await stateOf(east)).toMatchObject({ completed: true, targetState: { verdict: { phase: 'Succeeded' } } });
    expect(await finalizersOf(west)).toEqual([]);
    await east.finish('Succeeded', name);
    expect(await finalizersOf(east)).toEqual([]);
  });

  it('end alike also where the source hangs up before its target has said how it ended', async () => {
    await underWay();
    await east.patchGuest({ migrationState: { completed: true } }, name);
    await east.finish('Succeeded', name);
    expect(await finalizersOf(east)).toEqual([]);
    await pass(clock, 5000);
    expect(await stateOf(west)).toMatchObject({ sourceState: { verdict: { phase: 'Succeeded' } } });
    expect(await finalizersOf(west)).toContain(SYNCHRONIZATION_FINALIZER);
    await west.patchGuest({ migrationState: { completed: true, targetNodeDomainDetected: true } }, name);
    await west.finish('Succeeded', name);
    expect(await finalizersOf(west)).toEqual([]);
  });

  it('cost so many writes and messages', async () => {
    await underWay();
    await west.patchGuest({ migrationState: { completed: true, targetNodeDomainDetected: true } }, name);
    await west.finish('Succeeded', name);
    await east.finish('Succeeded', name);
    const writesOf = ({ writes }: FakeCluster): string[] =>
      writes.map((each) => each.replace(/.*\/(virtualmachineinstance[a-z]*)\/[^/]*/, '$1'));
    const migration = 'virtualmachineinstancemigrations';
    expect(writesOf(east)).toEqual([
      // Finalizer and peer; where we are reached; the target's half, its pod, its end; the finalizer.
      migration,
      `${migration}/status`,
      'virtualmachineinstances/status',
      'virtualmachineinstances/status',
      'virtualmachineinstances/status',
      'virtualmachineinstances/status',
      migration,
    ]);
    expect(writesOf(west)).toEqual([
      migration,
      'virtualmachineinstances/status',
      `${migration}/status`,
      'virtualmachineinstances/status',
      migration,
    ]);
    expect(network.messages.filter((each) => each.startsWith('east'))).toHaveLength(4);
    expect(network.messages.filter((each) => each.startsWith('west'))).toHaveLength(4);
  });
});

describe('who may be heard', () => {
  it('nobody under another key', async () => {
    await east.half('source', { connectURL: west.address, name, key: `${key}-x` });
    await target();
    await pass(clock, 5000);
    expect(await stateOf(west)).not.toHaveProperty('migrationUid');
    expect(await blockedOf(west)).toMatchObject({ reason: 'WaitingForOtherHalf' });
    expect(await blockedOf(east)).toEqual({
      reason: 'WaitingForOtherHalf',
      message: 'nobody in the cluster west receives under this key',
    });
    // Nobody has to hear how it ended, since nobody has heard that it began.
    await east.finish('Failed', name);
    expect(await finalizersOf(east)).toEqual([]);
    await west.finish('Failed', name);
    expect(await finalizersOf(west)).toEqual([]);
  });

  it('no second cluster under the same key, and the first goes on', async () => {
    await pair();
    await north.half('source', { connectURL: west.address, name, key });
    await pass(clock, 5000);
    expect(await blockedOf(north)).toMatchObject({ reason: 'KeyTaken' });
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east) });
    await north.finish('Failed', name);
    expect(await finalizersOf(north)).toEqual([]);
    expect(await stateOf(west)).not.toHaveProperty('abortRequested');
  });

  it('no second cluster before anybody receives, either', async () => {
    await source();
    await north.half('source', { connectURL: west.address, name, key });
    await target();
    await pass(clock, 5000);
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east) });
    expect(await blockedOf(north)).toMatchObject({ reason: 'KeyTaken' });
    await north.finish('Failed', name);
  });

  it('no target that was not spoken to', async () => {
    await north.half('target', { name, key });
    await pair();
    expect(await stateOf(north)).not.toHaveProperty('migrationUid');
    expect(await stateOf(east)).toMatchObject({ targetState: { migrationUID: await uidOf(west) } });
  });

  it('not more early ones than there is room for; they are sent again', async () => {
    const early = [1, 2, 3, 4].map((each) => `${name}-${each}`);
    for (const each of early) await north.half('source', { connectURL: west.address, name: each, key: each });
    await pass(clock, 4000);
    name = early[3] ?? '';
    expect(await blockedOf(north)).toMatchObject({ reason: 'TooManyEarly' });
    for (const each of early.slice(0, 3)) await west.half('target', { name: each, key: each });
    await pass(clock, 11_000);
    await west.half('target', { name, key: name });
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(north) });
    await settle(clock);
    expect(await blockedOf(north)).toBeUndefined();
  });

  it('an early source that is not heard again for ten minutes and no longer', async () => {
    await source();
    await pass(clock, 5000);
    expect(await blockedOf(east)).toMatchObject({ reason: 'WaitingForOtherHalf' });
    network.cut('east', 'west');
    await pass(clock, 11 * 60_000, 30_000);
    await target();
    expect(await stateOf(west)).not.toHaveProperty('migrationUid');
    // The migration controllers end both: neither has heard the other within its time.
    await east.finish('Failed', name);
    await west.finish('Failed', name);
    expect([...(await finalizersOf(east)), ...(await finalizersOf(west))]).toEqual([]);
  });

  it('an early source for as long as it waits itself, though we would not for so long: it says it again', async () => {
    await source();
    await pass(clock, 12 * 60_000, 30_000);
    expect(network.messages.filter((each) => each.endsWith(` source ${key}`)).length).toBeLessThanOrEqual(13);
    await target();
    await pass(clock, 60_000, 10_000);
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east) });
    expect(await stateOf(east)).toMatchObject({ targetState: { migrationUID: await uidOf(west) } });
    network.messages.length = 0;
    await pass(clock, 3 * 60_000, 30_000);
    expect(network.messages).toEqual([]);
  });

  it('an early source for as long as the configuration says', async () => {
    const configuration = { migrations: { syncTimeoutSeconds: 1200 } };
    const kubeVirt = { metadata: { name: 'kubevirt', namespace: 'kubevirt' }, spec: { configuration } };
    await west.client.create(kubeVirts, kubeVirt as KubeVirt, west.signal);
    await settle(clock);
    await source();
    await pass(clock, 11 * 60_000, 30_000);
    await target();
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east) });
    await west.client.delete(kubeVirts, 'kubevirt', 'kubevirt', west.signal);
  });
});

describe('what is wrong is told as it is now', () => {
  it('nobody answers, then somebody does', async () => {
    await west.stopController();
    await source();
    await pass(clock, 5000);
    expect(await blockedOf(east)).toEqual({
      reason: 'Unreachable',
      message: `no connection to ${west.address}: nobody answers`,
    });
    await west.startController();
    await settle(clock);
    expect(await blockedOf(east)).toMatchObject({ reason: 'WaitingForOtherHalf' });
    await target();
    expect(await blockedOf(east)).toBeUndefined();
  });

  it('of an address at which nobody was seen, the same after the same time, whatever is there', async () => {
    const connectURL = 'metadata.internal:80';
    await east.half('source', { connectURL, name, key });
    await pass(clock, 11_000);
    expect(await blockedOf(east)).toBeUndefined();
    await pass(clock, 2000);
    expect(await blockedOf(east)).toEqual({
      reason: 'Unreachable',
      message: `no cluster that is trusted here has answered at ${connectURL}: either nobody is there, or it is not in 'godwit trust list'; the log of the synchronization controller says more`,
    });
  });

  it('of one half, where there are several of one guest: they do not take it back from each other', async () => {
    await source();
    await pass(clock, 5000);
    const other = `${name}-other`;
    await east.migration('target', { name: other, key: `${key}-other`, guest: name });
    await east.phase('WaitingForSync', other);
    expect(await blockedOf(east)).toMatchObject({ reason: 'WaitingForOtherHalf' });
    east.writes.length = 0;
    await pass(clock, 2000);
    expect(east.writes).toEqual([]);
    await east.finish('Failed', name);
    await pass(clock, 2000);
    expect((await east.getGuest(name)).status?.conditions ?? []).toEqual([]);
  });

  it('not of a half that is over, though it was never bound to anybody', async () => {
    await west.stopController();
    await source();
    await pass(clock, 5000);
    expect(await blockedOf(east)).toMatchObject({ reason: 'Unreachable' });
    await east.finish('Failed', name);
    await west.startController();
    expect((await east.getGuest(name)).status?.conditions ?? []).toEqual([]);
  });

  it('a link that is cut for a moment is not worth a word', async () => {
    await pair();
    network.cut('east', 'west');
    await pass(clock, 2000);
    expect(await blockedOf(west)).toBeUndefined();
    await pass(clock, 2000);
    expect(await blockedOf(west)).toMatchObject({ reason: 'Silent' });
    expect(await blockedOf(east)).toEqual({
      reason: 'Unreachable',
      message: `no connection to ${west.address}: nobody answers`,
    });
    network.heal('east', 'west');
    await settle(clock);
    expect(await blockedOf(west)).toBeUndefined();
    expect(await blockedOf(east)).toBeUndefined();
  });
});

describe('a controller that starts anew', () => {
  const restart = async (cluster: FakeCluster): Promise<void> => {
    await cluster.stopController();
    await cluster.startController();
    await settle(clock);
  };

  it.each([
    { which: 'of the source', whom: () => east },
    { which: 'of the target', whom: () => west },
  ])('$which, in each phase, changes nothing', async ({ whom }) => {
    await source();
    await restart(whom());
    await target();
    await restart(whom());
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east) });
    expect(await stateOf(east)).toMatchObject({ targetState: { migrationUID: await uidOf(west) } });
    await east.phase('Pending', name);
    await west.phase('Pending', name);
    await west.patchGuest({ migrationState: { targetNode: 'node-1', targetRunner: runner('t') } }, name);
    await restart(whom());
    expect(await stateOf(east)).toMatchObject({ targetRunner: runner('t') });
    await reserve();
    await whom().stopController();
    await east.phase('Running', name);
    await west.phase('Running', name);
    await west.patchGuest({ migrationState: { completed: true } }, name);
    await west.finish('Succeeded', name);
    await whom().startController();
    await settle(clock);
    expect(await stateOf(east)).toMatchObject({ completed: true });
    await east.finish('Succeeded', name);
    expect(await finalizersOf(east)).toEqual([]);
    expect(await finalizersOf(west)).toEqual([]);
  });

  it('is told again what its former self knew of, and could not write down', async () => {
    await source();
    await west.guest(name);
    await west.migration('target', { name, key });
    await west.phase('WaitingForSync', name);
    await restart(west);
    expect(await stateOf(west)).toEqual({});
    await west.begin('target', name);
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east) });
  });

  it('is bound to the cluster that it was bound to before', async () => {
    await pair();
    await west.stopController();
    network.cut('east', 'west');
    await north.half('source', { connectURL: west.address, name, key });
    await west.startController();
    await pass(clock, 5000);
    expect(await blockedOf(north)).toMatchObject({ reason: 'KeyTaken' });
    network.heal('east', 'west');
    await east.patchGuest({ migrationState: { abortRequested: true } }, name);
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east), abortRequested: true });
  });
});

describe('the end of either half', () => {
  it.each([
    { which: 'of the source', one: () => east, other: () => west },
    { which: 'of the target', one: () => west, other: () => east },
  ])('$which is heard by the other', async ({ one, other }) => {
    await underWay();
    await one().deleteMigration(name);
    await one().patchGuest({ migrationState: { abortRequested: true } }, name);
    expect(await stateOf(other())).toMatchObject({ abortRequested: true });
    await one().finish('Failed', name);
    const role = one() === east ? 'sourceState' : 'targetState';
    expect((await stateOf(other()))[role]).toMatchObject({ verdict: { phase: 'Failed' } });
    expect(await one().findMigration(name)).toBeUndefined();
    await other().finish('Failed', name);
    expect(await finalizersOf(other())).toEqual([]);
  });

  it('is heard also where its guest is gone', async () => {
    await underWay();
    await east.client.delete(virtualMachineInstances, 'shop', name, east.signal);
    await east.finish('Failed', name);
    expect(await stateOf(west)).toMatchObject({ sourceState: { verdict: { phase: 'Failed' } } });
    await west.finish('Failed', name);
    expect(await finalizersOf(west)).toEqual([]);
  });

  it('asks the other to stop where somebody took a half away by force', async () => {
    await pair();
    await east.deleteMigration(name);
    const body = { metadata: { finalizers: null } };
    await east.client.patch(virtualMachineInstanceMigrations, 'shop', name, { type: 'merge', body }, east.signal);
    expect(await east.findMigration(name)).toBeUndefined();
    await settle(clock);
    expect(await stateOf(west)).toMatchObject({ abortRequested: true });
  });

  it('waits for nobody whom the other side cannot have relied on', async () => {
    await pair();
    await east.phase('Pending', name);
    network.cut('east', 'west');
    await east.finish('Failed', name);
    expect(await finalizersOf(east)).toEqual([]);
    // Whoever comes back within a while is told nevertheless.
    await east.deleteMigration(name);
    network.heal('east', 'west');
    await settle(clock);
    expect(await stateOf(west)).toMatchObject({ sourceState: { verdict: { phase: 'Failed' } } });
  });

  it('of a source that had slots waits for its target, whose agents may have begun, however long they are cut off', async () => {
    // Nobody else dials for it.
    const far = await FakeCluster.start('far', network, clock);
    try {
      await far.half('source', { connectURL: west.address, name, key });
      await target();
      await settle(clock);
      for (const cluster of [far, west]) await cluster.phase('Pending', name);
      await far.patchGuest({ migrationState: { sourceState: { slots: 'reserved' } } }, name);
      for (const phase of ['Scheduling', 'PreparingTarget'] as const) await west.phase(phase, name);
      network.cut('far', 'west');
      await far.deleteMigration(name);
      await far.finish('Failed', name);
      await pass(clock, 15 * 60_000, 30_000);
      await west.finish('Failed', name);
      expect(await finalizersOf(west)).toContain(SYNCHRONIZATION_FINALIZER);
      network.heal('far', 'west');
      await pass(clock, 5000);
      expect(await finalizersOf(west)).toEqual([]);
      expect(await far.findMigration(name)).toBeUndefined();
    } finally {
      await far.stop();
    }
  });

  it('of a target waits for no source that has ended before, and went with the stream', async () => {
    await underWay();
    await east.deleteMigration(name);
    await east.finish('Failed', name);
    expect(await east.findMigration(name)).toBeUndefined();
    network.cut('east', 'west');
    await west.finish('Failed', name);
    expect(await finalizersOf(west)).toEqual([]);
  });

  it('of a source waits until it can ask whether its target, which has ended, has heard of it', async () => {
    await underWay();
    await west.deleteMigration(name);
    await west.finish('Failed', name);
    network.cut('east', 'west');
    await east.finish('Failed', name);
    expect(await finalizersOf(east)).toContain(SYNCHRONIZATION_FINALIZER);
    network.heal('east', 'west');
    await pass(clock, 60_000);
    expect(await finalizersOf(east)).toEqual([]);
  });

  it('of a target is heard by its source also where the target is gone, and whoever could tell of it', async () => {
    await pair();
    await east.phase('Pending', name);
    await west.phase('Pending', name);
    network.cut('east', 'west');
    await west.finish('Failed', name);
    await west.deleteMigration(name);
    expect(await west.findMigration(name)).toBeUndefined();
    await west.stopController();
    await west.startController();
    network.heal('east', 'west');
    await settle(clock);
    expect(await stateOf(east)).toMatchObject({ abortRequested: true });
  });

  it('has to be heard before the key means another half, which says for whom it waits', async () => {
    await pair();
    await east.patchGuest({ migrationState: { sourceState: { slots: 'reserved' } } }, name);
    await east.phase('Pending', name);
    network.cut('east', 'west');
    await east.finish('Failed', name);
    expect(await finalizersOf(east)).toContain(SYNCHRONIZATION_FINALIZER);
    const old = name;
    name = `${name}-again`;
    await east.half('source', { connectURL: west.address, name, key });
    await pass(clock, 2000);
    expect(await blockedOf(east)).toBeUndefined();
    await pass(clock, 2000);
    expect(await blockedOf(east)).toEqual({
      reason: 'KeyInUse',
      message: `shop/${old} had this key, and is kept until the cluster west has heard how it ended: until then it is not this half's; see what keeps it, or choose another key`,
    });
    expect((await east.getMigration(name)).status).toMatchObject({ syncEndpoint: east.address });
    east.writes.length = 0;
    await pass(clock, 2000);
    expect(east.writes.filter((each) => each.includes(`/${name}`))).toEqual([]);
    network.heal('east', 'west');
    await settle(clock);
    expect((await blockedOf(east))?.reason).not.toBe('KeyInUse');
    expect(await finalizersOf(east)).toContain(SYNCHRONIZATION_FINALIZER);
  });

  it('leaves a source that was made anew under its key to the next target', async () => {
    await pair();
    await east.finish('Failed', name);
    await east.deleteMigration(name);
    const old = (await stateOf(west)).migrationUid;
    await east.migration('source', { connectURL: west.address, name, key });
    await east.patchGuest({ migrationState: null }, name);
    await east.begin('source', name);
    await settle(clock);
    expect(await stateOf(west)).toMatchObject({ migrationUid: old, abortRequested: true });
    await west.finish('Failed', name);
    await west.deleteMigration(name);
    await west.migration('target', { name, key });
    await west.patchGuest({ migrationState: null }, name);
    await west.begin('target', name);
    await settle(clock);
    expect(await stateOf(west)).toMatchObject({ migrationUid: await uidOf(east) });
    expect(await stateOf(east)).toMatchObject({ targetState: { migrationUID: await uidOf(west) } });
  });
});

describe('a cluster in which trust was revoked', () => {
  it('begins nothing new, and is trusted until what has begun is settled', async () => {
    const third = await FakeCluster.start('south', network, clock);
    try {
      const half = (each: string): Promise<void> =>
        third.half('source', { connectURL: west.address, name: each, key: each });
      await half(name);
      await west.half('target', { name, key: name });
      for (const phase of ['Pending', 'Running'] as const) {
        await third.phase(phase, name);
        await west.phase(phase, name);
      }
      await half(`${name}-b`);
      await west.half('target', { name: `${name}-b`, key: `${name}-b` });
      await settle(clock);
      west.revoke('south');
      await half(`${name}-c`);
      await west.half('target', { name: `${name}-c`, key: `${name}-c` });
      await settle(clock);
      const states = [name, `${name}-b`, `${name}-c`].map(
        async (each) => (await west.getGuest(each)).status?.migrationState,
      );
      expect(await Promise.all(states)).toMatchObject([
        { migrationUid: await uidOf(third) },
        { abortRequested: true },
        { targetState: {} },
      ]);
      expect((await stateOf(west)).abortRequested).toBeUndefined();
      expect((await west.getGuest(`${name}-c`)).status?.migrationState).not.toHaveProperty('migrationUid');
      expect(west.released).toEqual([]);
      for (const each of [name, `${name}-b`]) await west.finish('Failed', each);
      await settle(clock);
      expect(await finalizersOf(west)).toEqual([]);
      expect(new Set(west.released)).toEqual(new Set(['south']));
    } finally {
      await third.stop();
    }
  });

  it('lets its half go where it is let in no more, and has heard how the other one ended', async () => {
    const third = await FakeCluster.start('coast', network, clock);
    try {
      await third.half('source', { connectURL: west.address, name, key });
      await target();
      for (const phase of ['Pending', 'Running'] as const) {
        await third.phase(phase, name);
        await west.phase(phase, name);
      }
      await settle(clock);
      west.revoke('coast');
      await west.finish('Failed', name);
      await settle(clock);
      expect(west.released).toContain('coast');
      network.distrust('west', 'coast');
      await third.finish('Failed', name);
      await settle(clock);
      expect(await finalizersOf(third)).toEqual([]);
    } finally {
      await third.stop();
    }
  });

  it('is trusted while a half is bound to it, though the controller has not heard of that yet', async () => {
    const third = await FakeCluster.start('island', network, clock);
    let hear = (): void => undefined;
    const until = new Promise<void>((resolve) => (hear = resolve));
    west.late = { text: `"${PEER_ANNOTATION}":"island"`, until };
    try {
      await third.half('source', { connectURL: west.address, name, key });
      await target();
      expect(await finalizersOf(west)).toContain(SYNCHRONIZATION_FINALIZER);
      west.revoke('island');
      await settle(clock);
      expect(west.released).not.toContain('island');
      west.late = undefined;
      hear();
      await settle(clock);
      await west.finish('Failed', name);
      await pass(clock, 1000);
      expect(west.released).toContain('island');
    } finally {
      west.late = undefined;
      hear();
      await third.stop();
    }
  });
});

describe('two halves in one cluster', () => {
  it('hear each other without a word on any wire', async () => {
    await east.half('source', { connectURL: `https://${east.address}`, name, key });
    await pass(clock, 5000);
    expect(await blockedOf(east)).toEqual({
      reason: 'WaitingForOtherHalf',
      message: 'nobody in this cluster receives under this key',
    });
    await east.half('target', { name, key, namespace: 'stock' });
    await settle(clock);
    expect(await stateOf(east, 'stock')).toMatchObject({ migrationUid: await uidOf(east) });
    expect(await stateOf(east)).toMatchObject({ targetState: { migrationUID: await uidOf(east, 'stock') } });
    expect(await blockedOf(east)).toBeUndefined();
    expect(network.messages.filter((each) => each.endsWith(key))).toEqual([]);
    for (const namespace of ['shop', 'stock'])
      for (const phase of ['Pending', 'Running'] as const) await east.phase(phase, name, namespace);
    await east.finish('Failed', name, 'stock');
    expect(await stateOf(east)).toMatchObject({ targetState: { verdict: { phase: 'Failed' } } });
    await east.finish('Failed', name);
    expect(await finalizersOf(east)).toEqual([]);
  });

  it('hear each other also where the address is another name, which only a dial tells', async () => {
    const connectURL = `service-${count}.example`;
    network.lead(connectURL, 'east');
    await east.half('source', { connectURL, name, key });
    await pass(clock, 5000);
    expect(await blockedOf(east)).toEqual({
      reason: 'WaitingForOtherHalf',
      message: 'nobody in this cluster receives under this key',
    });
    await east.half('target', { name, key, namespace: 'stock' });
    await settle(clock);
    expect(await stateOf(east, 'stock')).toMatchObject({ migrationUid: await uidOf(east) });
    expect(await stateOf(east)).toMatchObject({ targetState: { migrationUID: await uidOf(east, 'stock') } });
    expect((await east.getMigration(name)).metadata.annotations?.[PEER_ANNOTATION]).toBe('east');
    expect(await blockedOf(east)).toBeUndefined();
    expect(network.messages.filter((each) => each.endsWith(key))).toEqual([]);
    // Whoever knows the way need not ask for it again.
    expect(network.wanted('east')).not.toContain(connectURL);
    await east.stopController();
    await east.startController();
    for (const namespace of ['shop', 'stock'])
      for (const phase of ['Pending', 'Running'] as const) await east.phase(phase, name, namespace);
    await east.finish('Failed', name, 'stock');
    expect(await stateOf(east)).toMatchObject({ targetState: { verdict: { phase: 'Failed' } } });
    await east.finish('Failed', name);
    expect(await finalizersOf(east)).toEqual([]);
  });

  it('are not taken for such where the name leads elsewhere by the time somebody receives', async () => {
    const connectURL = `service-${count}.example`;
    network.lead(connectURL, 'east');
    await east.half('source', { connectURL, name, key });
    await settle(clock);
    network.lead(connectURL, 'west');
    await settle(clock);
    await target();
    await settle(clock);
    expect(await stateOf(east)).toMatchObject({ targetState: { migrationUID: await uidOf(west) } });
  });

  it('of one guest need nobody', async () => {
    await east.guest(name);
    await east.migration('source', { connectURL: east.address, name, key });
    const receive = { key, migrationID: key };
    await east.client.create(
      virtualMachineInstanceMigrations,
      {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachineInstanceMigration',
        metadata: { name: `${name}-target`, namespace: 'shop' },
        spec: { vmName: name, vmiName: name, receive },
      },
      east.signal,
    );
    const body = { status: { phase: 'Pending' } };
    for (const each of [name, `${name}-target`])
      await east.client.patch(virtualMachineInstanceMigrations, 'shop', each, { type: 'merge', body }, east.signal, {
        subresource: 'status',
      });
    await pass(clock, 5000);
    expect(east.writes.filter((each) => each.includes(`${name}-target`))).toEqual([]);
    expect(await finalizersOf(east)).not.toContain(SYNCHRONIZATION_FINALIZER);
  });
});
