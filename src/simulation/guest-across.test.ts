import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MachineEnd } from '../hypervisor/hypervisor.ts';
import { SOURCE, TARGET, type TwoNodesOptions } from './two-nodes.fixture.ts';
import { TwoGuests } from './two-guests.fixture.ts';

/** A guest that goes from one object to another, by two agents that know each other by their keys alone. */

let scene: TwoGuests;
const open = async (options: TwoNodesOptions = {}): Promise<void> => {
  scene = new TwoGuests(options);
  await scene.open();
};
afterEach(() => {
  scene.stop();
  expect(scene.violations).toEqual([]);
});

const KILLED: MachineEnd = { reason: 'Killed', message: 'by the test', log: [] };

const isExecuted = (): readonly (boolean | undefined)[] =>
  ['web-1', 'web-2'].map((pod) => scene.model(pod)?.isExecuting === true);

async function expectThere(): Promise<void> {
  await scene.carry(() => scene.hasGone());
  const [here, there] = [(await scene.guest()).status ?? {}, (await scene.receiver()).status ?? {}];
  expect(isExecuted()).toEqual([false, true]);
  expect(there.rightToRun).toMatchObject({ holder: { node: TARGET } });
  expect(here.rightToRun).toMatchObject({ across: true, holder: there.rightToRun?.holder });
  expect(there.rightToRun?.epoch).toBeGreaterThanOrEqual(here.rightToRun?.epoch ?? 0);
  expect(there.migrationState).toMatchObject({ completed: true, targetLetter: { kind: 'taken' } });
  expect(there.migrationState?.failed).toBeUndefined();
}

async function expectStayed(): Promise<void> {
  await scene.carry(async () => {
    const [here, there] = await scene.states();
    return here.completed === true && there.completed === true;
  });
  const [here, there] = [(await scene.guest()).status ?? {}, (await scene.receiver()).status ?? {}];
  expect(isExecuted()).toEqual([true, false]);
  expect(here.rightToRun?.holder?.node).toBe(SOURCE);
  expect(here.rightToRun?.successor).toBeUndefined();
  expect(there.rightToRun).toBeUndefined();
  expect([here.migrationState?.failed, there.migrationState?.failed]).toEqual([true, true]);
  expect(there.migrationState?.targetLetter?.kind).toBe('refused');
}

/** Carries until the source has begun to copy. */
const begun = (): Promise<void> => scene.carry(async () => (await scene.states())[0].startTimestamp !== undefined);
const cancel = (): Promise<void> =>
  scene.patchGuest({ status: { migrationState: { abortRequested: true } } }, 'status');

describe('a guest that goes to another object', () => {
  beforeEach(() => open());

  it('is executed there, and its old object says where it went', async () => {
    await scene.handOffAcross();
    await expectThere();
    const { phase } = (await scene.receiver()).status ?? {};
    expect(phase).toBe('Running');
  });

  it('has its disks told before anything else is known', async () => {
    const [, there] = await scene.states();
    expect(there.sourceState).toMatchObject({ volumes: [], runner: { node: SOURCE } });
  });

  it('is told of through both objects where the agents do not hear each other after the copy', async () => {
    await scene.handOffAcross({ bandwidthPerMigration: '20Mi' });
    await begun();
    scene.peers.losesLetters = true;
    await expectThere();
  });

  it('stands still while neither is heard, and is nowhere twice', async () => {
    await scene.handOffAcross({ bandwidthPerMigration: '20Mi' });
    await begun();
    [scene.peers.losesLetters, scene.isCut] = [true, true];
    await scene.carry(async () => scene.model('web-1')?.isExecuting === false);
    await scene.pass(30_000);
    expect(isExecuted()).toEqual([false, false]);
    scene.isCut = false;
    await expectThere();
  });

  it('stays where it is when it is cancelled, and whoever waited waits no more', async () => {
    await scene.handOffAcross({ bandwidthPerMigration: '1Mi' });
    await begun();
    await cancel();
    await expectStayed();
  });

  it('stays when its target is cancelled', async () => {
    await scene.handOffAcross({ bandwidthPerMigration: '1Mi' });
    await begun();
    await scene.patchReceiver({ status: { migrationState: { abortRequested: true } } }, 'status');
    await expectStayed();
  });

  it('stays when its target does not live, and is told so', async () => {
    await scene.handOffAcross({ bandwidthPerMigration: '1Mi' });
    await begun();
    scene.model('web-2')?.over(KILLED);
    await expectStayed();
  });

  it.each([
    ['of the source', SOURCE],
    ['of the target', TARGET],
  ])('goes on though the agent %s was started anew in the midst of it', async (_, node) => {
    await scene.handOffAcross({ bandwidthPerMigration: '20Mi' });
    await begun();
    scene.kill(node);
    await scene.pass(500);
    scene.restart(node);
    await expectThere();
  });

  it.each([
    ['of the source', SOURCE],
    ['of the target', TARGET],
  ])('is where its journals say, though the agent %s was killed when it went over', async (_, node) => {
    await scene.handOffAcross({ bandwidthPerMigration: '20Mi' });
    await begun();
    scene.peers.losesLetters = true;
    await scene.carry(async () => scene.model('web-1')?.isExecuting === false);
    await scene.pass(2000);
    expect(isExecuted()).toEqual([false, false]);
    scene.kill(node);
    await scene.pass(500);
    scene.peers.losesLetters = false;
    scene.restart(node);
    await expectThere();
  });

  it('goes on within seconds where the agents cannot reach each other any more once it stands still', async () => {
    await scene.handOffAcross({ bandwidthPerMigration: '20Mi' });
    await begun();
    scene.peers.unreachable.add(TARGET);
    await scene.until('still', () => scene.model('web-1')?.isExecuting === false);
    const stoppedMs = scene.clock.elapsedMs;
    await scene.until('going on', () => scene.model('web-1')?.isExecuting === true);
    expect(scene.clock.elapsedMs - stoppedMs).toBeLessThan(5000);
    scene.peers.unreachable.clear();
    await expectStayed();
  });

  it('does not go where nobody answers', async () => {
    scene.peers.unreachable.add(TARGET);
    await scene.handOffAcross();
    await scene.carry(async () => (await scene.states())[0].completed === true);
    const [here] = await scene.states();
    expect(here.failureReason).toMatch(/the target could not be made ready/);
    expect(isExecuted()).toEqual([true, false]);
  });
});

describe('a guest that goes to another object ahead of its memory', () => {
  beforeEach(async () => {
    const traits = { dirtyBytesPerSecond: 500_000_000, workingSetShare: 0.9 };
    await open({ bytesPerSecond: 20_000_000, traits });
    scene.carriesEveryMs = 1000;
    await scene.handOffAcross({ allowPostCopy: true, completionTimeoutPerGiB: 40 });
    await scene.carry(async () => scene.model('web-2')?.isExecuting === true, 120_000);
  });

  it('is followed by it', async () => {
    expect((await scene.states())[1].completed).toBeUndefined();
    await expectThere();
    expect((await scene.states())[1]).toMatchObject({ mode: 'PostCopy' });
  });

  it('waits for it however long the way is closed: nobody here sees whether its source is there', async () => {
    const link = scene.network.link(TARGET);
    link.become('cut');
    const endMs = scene.clock.elapsedMs + 40_000;
    await scene.carry(async () => scene.clock.elapsedMs >= endMs);
    expect(scene.model('web-2')?.end).toBeUndefined();
    link.become('up');
    await expectThere();
  });

  it('is lost where its source has ended before all of it was over, by the word of its side', async () => {
    scene.model('web-1')?.over(KILLED);
    const hasFailed = async () => (await scene.receiver()).status?.phase === 'Failed';
    scene.isCut = true;
    const endMs = scene.clock.elapsedMs + 30_000;
    await scene.carry(async () => scene.clock.elapsedMs >= endMs);
    expect(await hasFailed()).toBe(false);
    scene.isCut = false;
    await scene.carry(hasFailed);
    expect(scene.model('web-2')?.end).toBeDefined();
  });
});

describe('a guest whose machine ends as it goes to another object ahead of its memory', () => {
  it.each([1.6, 5, 20])('is lost, and nobody says that all of it came: %d ms after it was granted', async (afterMs) => {
    await open({ bytesPerSecond: 20_000_000, traits: { dirtyBytesPerSecond: 500_000_000, workingSetShare: 0.9 } });
    scene.carriesEveryMs = 1000;
    const target = scene.peers.services.get(TARGET);
    let isGranted = false;
    scene.peers.services.set(TARGET, {
      answer: async (caller, request, signal) => {
        const isGrant = request.kind === 'letter' && request.message.kind === 'grant';
        if (isGrant && !isGranted) scene.clock.setTimer(() => scene.model('web-2')?.over(KILLED), afterMs);
        isGranted ||= isGrant;
        return target?.answer(caller, request, signal) ?? expect.unreachable();
      },
    });
    await scene.handOffAcross({ allowPostCopy: true, completionTimeoutPerGiB: 40 });
    await scene.carry(async () => (await scene.receiver()).status?.phase === 'Failed', 120_000);
    const [, there] = await scene.states();
    expect(there).toMatchObject({ mode: 'PostCopy', targetLetter: { kind: 'taken' } });
    expect(there.completed).toBeUndefined();
    // As its controller says it of a guest that has ended.
    await scene.patchGuest({ status: { migrationState: { targetState: { verdict: { phase: 'Failed' } } } } }, 'status');
    await scene.carry(async () => (await scene.guest()).status?.rightToRun?.holder?.node === TARGET);
    expect(isExecuted()).toEqual([false, false]);
    expect(scene.model('web-1')?.end).toBeDefined();
  });
});
