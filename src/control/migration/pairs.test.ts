import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import {
  kubeVirts,
  migrationPolicies,
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../../kube/kubevirt-resources.ts';
import { leaseResource } from '../../kube/leader-lease.ts';
import { ControlScene } from '../control.fixture.ts';
import { pods, resourceQuotas } from '../resources.ts';
import { MigrationLeftovers } from './migration-leftovers.ts';
import { makeMigrations, PlayedAgents } from './played-agents.fixture.ts';
import { PlayedPair } from './played-pair.fixture.ts';

/** Pairs of migrations between two guests: on two servers, as on one. */

const ROOT = { name: 'root', sizeBytes: 2 ** 30, isBlock: false };
const volumes = [{ name: 'root', containerDisk: { image: 'disk:1' } }];
const spec = {
  domain: {
    devices: { interfaces: [{ name: 'default', masquerade: {}, macAddress: '02:00:00:00:00:0b' }] },
    memory: { guest: '64Mi' },
    firmware: { uuid: 'bbbbbbbb-0000-4000-8000-000000000000' },
  },
  volumes,
};
const IDENTITY = { uuid: 'aaaaaaaa-0000-4000-8000-000000000000', serial: 'A-1' };
const sentSpec = {
  ...spec,
  domain: {
    ...spec.domain,
    devices: { interfaces: [{ name: 'default', masquerade: {}, macAddress: '02:00:00:00:00:0a' }] },
    firmware: IDENTITY,
  },
};

function sceneOf(): ControlScene {
  return new ControlScene(makeMigrations, (context) => new MigrationLeftovers(context));
}

describe.each([['two clusters'], ['one cluster']])('between two guests of %s', (where) => {
  const here = sceneOf();
  const there = where === 'two clusters' ? sceneOf() : here;
  let pair: PlayedPair;
  let count = 0;

  beforeAll(async () => {
    for (const scene of new Set([here, there])) {
      await scene.start();
      await new PlayedAgents(scene).addNodes('node-a', 'node-b');
    }
  });
  afterAll(async () => {
    for (const scene of new Set([here, there])) await scene.stop();
  });

  beforeEach(async () => {
    count++;
    pair = new PlayedPair(
      `key-${count}`,
      { agents: new PlayedAgents(here), guest: `web-${count}`, move: `send-${count}` },
      { agents: new PlayedAgents(there), guest: `new-${count}`, move: `receive-${count}` },
    );
    await pair.source.agents.addGuest(`web-${count}`, 'node-a', { spec: sentSpec });
    await pair.addReceiver({ spec });
  });

  afterEach(async () => {
    await pair.pass(2000, 1000);
    for (const scene of new Set([here, there])) {
      await scene.until(async () => expect(await new PlayedAgents(scene).slotHolders()).toEqual([]));
      const leases = await scene.client.list(leaseResource, { namespace: 'kubevirt' }, scene.signal);
      expect(leases.items).toEqual([]);
    }
  });

  const reasonOf = async (side: 'source' | 'target'): Promise<string | undefined> =>
    (await pair.find(pair[side]))?.status?.conditions?.find(({ type }) => type === 'migrationFailed')?.reason;

  const stateOf = (side: 'source' | 'target') => pair[side].agents.state(pair[side].guest);

  /** The source runs as if nothing had happened, and the receiver waits without a pod. */
  async function isAsBefore(): Promise<void> {
    await pair.until(async () => {
      const [source, target] = [await here.get(guests, pair.source.guest), await there.get(guests, pair.target.guest)];
      expect(source.status).toMatchObject({ phase: 'Running', rightToRun: { epoch: 1, holder: { node: 'node-a' } } });
      expect(source.status?.rightToRun?.successor).toBeUndefined();
      expect(target.status?.phase).toBe('WaitingForSync');
      for (const { status } of [source, target])
        if (status?.migrationState) expect(status.migrationState).toMatchObject({ completed: true, failed: true });
    });
  }

  it('a guest moves, whichever half comes first, and both say so', async () => {
    await (count % 2 === 0 ? pair.receive() : pair.send());
    await pair.pass(3000, 1000);
    await (count % 2 === 0 ? pair.send() : pair.receive());
    await pair.meet();
    await pair.runTarget([ROOT]);
    await pair.copy();
    await pair.take();
    await pair.give();
    await pair.reach('Succeeded', 'Succeeded');
    const [one, other] = [await pair.find(pair.source), await pair.find(pair.target)];
    const began = (each: typeof one) => each?.status?.phaseTransitionTimestamps?.map(({ phase }) => phase);
    const way = ['Pending', 'Scheduling', 'Scheduled', 'PreparingTarget', 'TargetReady', 'Running', 'Succeeded'];
    expect(began(one)).toEqual(['Synchronizing', ...way]);
    expect(began(other)).toEqual(['WaitingForSync', ...way]);
    for (const each of [one, other]) {
      expect(each?.status?.migrationState).toMatchObject({
        migrationUid: one?.metadata.uid,
        sourceNode: 'node-a',
        targetNode: 'node-b',
        completed: true,
        sourceState: { domainName: pair.source.guest, migrationUID: one?.metadata.uid },
        targetState: { domainName: pair.target.guest, migrationUID: other?.metadata.uid },
      });
      expect(each?.status?.migrationState?.failed).toBeUndefined();
    }
  });

  it('the guest is who it was, and goes where it can run; and both names of a field say the same', async () => {
    await pair.send();
    await pair.receive();
    await pair.runTarget([ROOT]);
    await pair.reach('PreparingTarget', 'PreparingTarget');
    const target = await there.get(guests, pair.target.guest);
    expect(target.spec.domain).toMatchObject({
      firmware: IDENTITY,
      devices: { interfaces: [{ name: 'default', masquerade: {}, macAddress: '02:00:00:00:00:0a' }] },
    });
    const pod = await pair.target.agents.targetPod(pair.target.move);
    expect(pod.metadata.labels?.['kubevirt.io/migrationJobUID']).toBe((await pair.find(pair.target))?.metadata.uid);
    expect(pod.metadata.ownerReferences).toEqual([expect.objectContaining({ uid: target.metadata.uid })]);
    expect(target.metadata.labels?.['kubevirt.io/migrationTargetNodeName']).toBe('node-b');
    const source = await here.get(guests, pair.source.guest);
    expect(source.metadata.labels?.['kubevirt.io/migrationTargetNodeName']).toBeUndefined();
    for (const { status } of [source, target]) {
      const { sourceState, targetState } = status?.migrationState ?? {};
      expect(status?.sourceMigrationState).toMatchObject({
        vmiUID: sourceState?.virtualMachineInstanceUID,
        migrationUid: sourceState?.migrationUID,
        pod: sourceState?.pod,
      });
      expect(status?.targetMigrationState).toMatchObject({
        vmiUID: targetState?.virtualMachineInstanceUID,
        node: 'node-b',
      });
    }
    await here.delete(migrations, pair.source.move);
    await pair.refuse();
    await pair.until(async () => expect(await pair.find(pair.source)).toBeUndefined());
  });

  it("the target's policy holds, as it was when the target was prepared", async () => {
    const policy = {
      metadata: { name: 'gentle' },
      spec: { selectors: { virtualMachineInstanceSelector: { fate: pair.target.guest } }, maxDowntimeMs: 77 },
    };
    await there.create(migrationPolicies, policy);
    await there.patch(guests, pair.target.guest, { metadata: { labels: { fate: pair.target.guest } } });
    await pair.run();
    await there.client.delete(migrationPolicies, '', 'gentle', there.signal);
    expect(await stateOf('source')).toMatchObject({
      migrationPolicyName: 'gentle',
      migrationConfiguration: { maxDowntimeMs: 77 },
    });
    await pair.giveUp();
    await pair.reach('Failed', 'Failed');
    await isAsBefore();
  });

  /** Both halves are kept for the test to look at. */
  async function keep(): Promise<void> {
    for (const side of [pair.source, pair.target]) {
      const { finalizers = [] } = (await side.agents.scene.get(migrations, side.move)).metadata;
      await side.agents.scene.patch(migrations, side.move, { metadata: { finalizers: [...finalizers, 'test/keep'] } });
    }
  }

  async function letGo(): Promise<void> {
    for (const side of [pair.source, pair.target])
      await side.agents.scene.patch(migrations, side.move, { metadata: { finalizers: null } });
  }

  it.each(['source', 'target'] as const)('is cancelled at the %s while the halves wait', async (side) => {
    await pair.send();
    await pair.receive();
    await pair.meet();
    await keep();
    await pair[side].agents.scene.delete(migrations, pair[side].move);
    await pair.reach('Failed', 'Failed');
    await isAsBefore();
    await letGo();
  });

  it.each(['source', 'target'] as const)('is cancelled at the %s during the copy: agents end it', async (side) => {
    await pair.run();
    await keep();
    await pair[side].agents.scene.delete(migrations, pair[side].move);
    await pair.until(async () => {
      expect((await stateOf('source')).abortRequested).toBe(true);
      expect((await stateOf('target')).abortRequested).toBe(true);
    });
    await pair.pass(5000, 1000);
    await pair.reach('Running', 'Running');
    if (side === 'target') await pair.refuse();
    await pair.giveUp();
    await pair.reach('Failed', 'Failed');
    await isAsBefore();
    await letGo();
  });

  it('has succeeded where it was cancelled too late', async () => {
    await pair.run();
    await keep();
    await pair.take();
    await here.delete(migrations, pair.source.move);
    await pair.give();
    await pair.reach('Succeeded', 'Succeeded');
    await letGo();
  });

  it('the guest is reclaimed where it was, while the target takes it: what an admin has to know is said there', async () => {
    await pair.run();
    const { agents, guest } = pair.source;
    await agents.says(guest, { rightToRun: { epoch: 2, successor: null, across: null } });
    await pair.take();
    await pair.reach('Failed', 'Succeeded');
    const { conditions } = (await pair.find(pair.source))?.status ?? {};
    expect(conditions?.find(({ type }) => type === 'migrationFailed')).toMatchObject({
      reason: 'PeerContradicted',
      message: expect.stringMatching(/says that the guest is there, .* it is here: .* was reclaimed$/) as string,
    });
  });

  it('the receiver is another machine', async () => {
    await there.delete(guests, pair.target.guest);
    await pair.until(async () => expect(await there.find(guests, pair.target.guest)).toBeUndefined());
    await pair.addReceiver({ spec: { ...spec, domain: { ...spec.domain, memory: { guest: '32Mi' } } } });
    await pair.send();
    await pair.receive();
    await pair.reach('Failed', 'Failed');
    expect([await reasonOf('source'), await reasonOf('target')]).toEqual(['PeerFailed', 'ReceiverUnfit']);
    await isAsBefore();
  });

  it('a quota leaves no room for the target, until it does', async () => {
    const hard = { 'count/pods': '0' };
    await there.create(resourceQuotas, { metadata: { name: 'few' }, spec: { hard } });
    await pair.receive();
    await pair.send();
    await pair.meet();
    await pair.measure([ROOT]);
    await pair.until(async () => {
      const types = (await pair.find(pair.target))?.status?.conditions?.map(({ type }) => type) ?? [];
      expect(types).toContain('migrationRejectedByResourceQuota');
    });
    // Others need not wait for it.
    await pair.until(async () => expect(await pair.target.agents.slotHolders()).toEqual([]));
    await there.delete(resourceQuotas, 'few');
    await pair.runTarget([ROOT]);
    await pair.copy();
    await pair.take();
    await pair.give();
    await pair.reach('Succeeded', 'Succeeded');
  });

  it('the receiver lacks a disk', async () => {
    await pair.send();
    await pair.receive();
    await pair.measure([ROOT, { ...ROOT, name: 'data' }]);
    await pair.reach('Failed', 'Failed');
    expect(await reasonOf('target')).toBe('ReceiverUnfit');
    expect((await pair.find(pair.source))?.status?.conditions?.[0]?.message).toMatch(/no volume data/);
    await isAsBefore();
  });

  it('the other half never comes', async () => {
    await pair.send();
    await pair.pass(11 * 60_000, 30_000);
    expect(await reasonOf('source')).toBe('SyncTimeout');
    await pair.receive('another key');
    await pair.pass(11 * 60_000, 30_000);
    expect(await reasonOf('target')).toBe('SyncTimeout');
    await isAsBefore();
  });

  it('the other half does not come in the time that the configuration gives it', async () => {
    const configure = async (syncTimeoutSeconds: number | null): Promise<void> => {
      const body = { spec: { configuration: { migrations: { syncTimeoutSeconds } } } };
      await here.client.patch(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', { type: 'merge', body }, here.signal);
    };
    await pair.send();
    await pair.pass(2 * 60_000, 30_000);
    expect((await pair.find(pair.source))?.status?.phase).toBe('Synchronizing');
    await configure(60);
    await pair.until(async () => expect(await reasonOf('source')).toBe('SyncTimeout'));
    await configure(null);
  });

  it('the guest that is to wait never comes', async () => {
    await there.delete(guests, pair.target.guest);
    await pair.until(async () => expect(await there.find(guests, pair.target.guest)).toBeUndefined());
    await pair.receive();
    await pair.pass(5 * 60_000, 30_000);
    expect((await pair.find(pair.target))?.status?.phase).toBe('WaitingForSync');
    await pair.pass(6 * 60_000, 30_000);
    await pair.until(async () => expect(await pair.find(pair.target)).toBeUndefined());
  });

  it('another migration has the key', async () => {
    await pair.send();
    await pair.until(async () => expect((await pair.find(pair.source))?.status?.phase).toBe('Synchronizing'));
    const second = new PlayedPair(
      pair.key,
      { ...pair.source, guest: `${pair.source.guest}-b`, move: `${pair.source.move}-b` },
      pair.target,
    );
    await second.source.agents.addGuest(second.source.guest, 'node-a', { spec: sentSpec });
    await second.send();
    await pair.until(async () => {
      const conditions = (await second.find(second.source))?.status?.conditions ?? [];
      expect(conditions).toContainEqual(expect.objectContaining({ type: 'migrationFailed', reason: 'KeyTaken' }));
    });
    expect((await pair.find(pair.source))?.status?.phase).toBe('Synchronizing');
    await here.delete(migrations, pair.source.move);
    await pair.until(async () => expect(await pair.find(pair.source)).toBeUndefined());
    const third = new PlayedPair(pair.key, { ...second.source, move: `${pair.source.move}-c` }, pair.target);
    await third.send();
    await third.receive();
    await third.meet();
    await here.delete(migrations, third.source.move);
    await third.until(async () => expect((await third.find(third.target))?.status?.phase).toBe('Failed'));
    await third.until(async () => expect(await third.find(third.source)).toBeUndefined());
  });

  it('the target pod ends before it was handed over', async () => {
    await pair.send();
    await pair.receive();
    await pair.measure([ROOT]);
    await pair.until(() => pair.target.agents.targetPod(pair.target.move));
    const pod = await pair.target.agents.targetPod(pair.target.move);
    await there.patch(pods, pod.metadata.name ?? '', { status: { phase: 'Failed' } }, 'status');
    await pair.reach('Failed', 'Failed');
    expect(await reasonOf('target')).toBe('TargetPodDown');
    await isAsBefore();
  });

  it('the controllers start anew at any point', async () => {
    const again = async (): Promise<void> => {
      for (const scene of new Set([here, there])) {
        await scene.stopControllers();
        await scene.startControllers();
      }
    };
    await pair.send();
    await again();
    await pair.receive();
    await pair.meet();
    await again();
    await pair.runTarget([ROOT]);
    await again();
    await pair.reach('PreparingTarget', 'PreparingTarget');
    await again();
    await pair.prepare();
    await pair.begin().catch(() => undefined);
    await pair.reach('TargetReady', 'TargetReady');
    await again();
    await pair.begin();
    await pair.reach('Running', 'Running');
    await again();
    await pair.take();
    await pair.give();
    await pair.reach('Succeeded', 'Succeeded');
  });

  it('a failed pair is followed by another, with the same key', async () => {
    await pair.run();
    await pair.giveUp('the link broke');
    await pair.reach('Failed', 'Failed');
    await isAsBefore();
    const next = new PlayedPair(
      pair.key,
      { ...pair.source, move: `${pair.source.move}-again` },
      { ...pair.target, move: `${pair.target.move}-again` },
    );
    await next.run();
    await next.take();
    await next.give();
    await next.reach('Succeeded', 'Succeeded');
  });
});

describe('two halves of one guest', () => {
  const scene = sceneOf();
  const agents = new PlayedAgents(scene);
  let count = 0;
  let guest = '';
  const sendTo = () => ({ key: guest, migrationID: guest, connectURL: 'here:9185' });
  const receive = () => ({ key: guest, migrationID: guest });

  beforeAll(async () => {
    await scene.start();
    await agents.addNodes('node-a', 'node-b');
  });
  afterAll(() => scene.stop());
  beforeEach(async () => {
    guest = `web-${++count}`;
    await agents.addGuest(guest);
  });
  afterEach(async () => {
    await scene.until(async () => expect(await agents.slotHolders()).toEqual([]));
    const leases = await scene.client.list(leaseResource, { namespace: 'kubevirt' }, scene.signal);
    expect(leases.items).toEqual([]);
  });

  const both = async (phase: 'PreparingTarget' | 'TargetReady' | 'Running' | 'Succeeded' | 'Failed') => {
    for (const name of [`send-${count}`, `receive-${count}`]) await agents.reaches(name, phase);
  };

  it.each(['send', 'receive'] as const)('move it as one does, whichever comes first: %s', async (first) => {
    const halves = {
      send: () => agents.move(`send-${count}`, guest, { sendTo: sendTo() }),
      receive: () => agents.move(`receive-${count}`, guest, { receive: receive() }),
    };
    const made = await halves[first]();
    await agents.reaches(made.metadata.name ?? '', first === 'send' ? 'Synchronizing' : 'WaitingForSync');
    await scene.pass(5000);
    const other = await halves[first === 'send' ? 'receive' : 'send']();
    const pod = await agents.runTarget(`receive-${count}`);
    expect(pod.metadata.labels?.['kubevirt.io/migrationJobUID']).toBe((first === 'send' ? other : made).metadata.uid);
    await both('PreparingTarget');
    expect(await agents.slotHolders()).toEqual([`send-${count}`, `receive-${count}`]);
    await agents.prepare(guest);
    await both('TargetReady');
    await agents.begin(guest);
    await both('Running');
    await agents.take(guest);
    await both('Succeeded');
    const state = await agents.state(guest);
    const uid = (await scene.get(migrations, `send-${count}`)).metadata.uid;
    expect(state).toMatchObject({ migrationUid: uid, sourceState: { migrationUID: uid } });
    expect(state.targetState?.virtualMachineInstanceUID).toBe(state.sourceState?.virtualMachineInstanceUID);
  });

  it.each(['send', 'receive'] as const)('are cancelled together, by either: %s', async (which) => {
    await agents.move(`send-${count}`, guest, { sendTo: sendTo() });
    await agents.move(`receive-${count}`, guest, { receive: receive() });
    await agents.runTarget(`receive-${count}`);
    await both('PreparingTarget');
    await agents.prepare(guest);
    await agents.begin(guest);
    await both('Running');
    await scene.delete(migrations, `${which}-${count}`);
    await scene.until(async () => expect(await agents.state(guest)).toMatchObject({ abortRequested: true }));
    await agents.giveUp(guest, 'was asked to');
    await agents.reaches(which === 'send' ? `receive-${count}` : `send-${count}`, 'Failed');
    await scene.until(async () => expect(await scene.find(migrations, `${which}-${count}`)).toBeUndefined());
  });

  it('are over where the other one never comes', async () => {
    await agents.move(`send-${count}`, guest, { sendTo: sendTo() });
    await scene.pass(11 * 60_000, 30_000);
    await agents.reaches(`send-${count}`, 'Failed');
    await agents.move(`receive-${count}`, guest, { receive: receive() });
    await scene.pass(11 * 60_000, 30_000);
    await agents.reaches(`receive-${count}`, 'Failed');
    expect(await agents.state(guest)).toMatchObject({ completed: true, failed: true });
  });

  it('do not keep it from moving later, alone', async () => {
    await agents.move(`send-${count}`, guest, { sendTo: sendTo() });
    await agents.reaches(`send-${count}`, 'Synchronizing');
    await scene.delete(migrations, `send-${count}`);
    await scene.until(async () => expect(await scene.find(migrations, `send-${count}`)).toBeUndefined());
    await agents.move(`alone-${count}`, guest);
    await agents.carryOut(`alone-${count}`, guest);
    const { status } = await scene.get(guests, guest);
    expect([status?.sourceMigrationState, status?.targetMigrationState]).toEqual([undefined, undefined]);
  });
});
