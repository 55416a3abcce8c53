import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  migrationPolicies,
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { nodes, pods, resourceQuotas } from '../resources.ts';
import { MigrationLeftovers } from './migration-leftovers.ts';
import { makeMigrations, PlayedAgents } from './played-agents.fixture.ts';

/** One migration at a time, from its beginning to each of its ends. */

const scene = new ControlScene(makeMigrations, (context) => new MigrationLeftovers(context));
const agents = new PlayedAgents(scene);
let guest = '';
let move = '';
let count = 0;

beforeAll(async () => {
  await scene.start();
  await agents.addNodes('node-a', 'node-b', 'node-c');
});
afterAll(() => scene.stop());

beforeEach(async () => {
  count++;
  guest = `web-${count}`;
  move = `move-${count}`;
  await agents.addGuest(guest);
  scene.writes.length = 0;
});

/** Nobody keeps slots for the next one. */
afterEach(async () => {
  if (await scene.find(guests, guest)) await agents.says(guest, { phase: 'Failed' });
  await scene.until(async () => expect(await agents.slotHolders()).toEqual([]));
});

/** What people were told of this migration, or of its guest. */
const told = async (name = move): Promise<readonly string[]> =>
  (await scene.events()).filter((event) => event.startsWith(`${name} `)).map((event) => event.slice(name.length + 1));

const conditionsOf = async (name = move) =>
  ((await scene.get(migrations, name)).status?.conditions ?? []).map(({ type, reason }) => `${type} ${reason}`);

/** Waits until a migration has failed and may go. */
async function fails(reason: string, name = move): Promise<void> {
  await scene.until(async () => {
    const { status, metadata } = await scene.get(migrations, name);
    expect(status?.phase).toBe('Failed');
    expect(status?.conditions).toContainEqual(expect.objectContaining({ type: 'migrationFailed', reason }));
    expect(metadata.finalizers).toBeUndefined();
  });
}

const isGone = (name = move): Promise<void> =>
  scene.until(async () => expect(await scene.find(migrations, name)).toBeUndefined());

const hasNoPod = (pod: string): Promise<void> =>
  scene.until(async () => expect(await scene.find(pods, pod)).toBeUndefined());

describe('a migration that goes well', () => {
  it('goes through all phases, and tells of each', async () => {
    await agents.move(move, guest);
    await agents.carryOut(move, guest);
    const { status, metadata } = await scene.until(async () => {
      const found = await scene.get(migrations, move);
      expect(found.metadata.finalizers).toBeUndefined();
      return found;
    });
    expect(status?.phaseTransitionTimestamps?.map(({ phase }) => phase)).toEqual([
      'Pending',
      'Scheduling',
      'Scheduled',
      'PreparingTarget',
      'TargetReady',
      'Running',
      'Succeeded',
    ]);
    expect(status).toMatchObject({
      effectivePriority: 0,
      causes: [{ cause: 'User', priority: 0 }],
      migrationState: {
        migrationUid: metadata.uid,
        sourceNode: 'node-a',
        sourcePod: `virt-launcher-${guest}-first`,
        targetNode: 'node-b',
        completed: true,
        downtimeMs: 42,
        migrationConfiguration: { completionTimeoutPerGiB: 150 },
      },
    });
    expect((await scene.get(guests, guest)).metadata.labels).toMatchObject({
      'kubevirt.io/migrationTargetNodeName': 'node-b',
    });
    await scene.until(async () => {
      const pod = status?.migrationState?.targetPod;
      expect((await told()).toSorted()).toEqual([
        `Normal SuccessfulCreate: Created migration target pod ${pod}`,
        'Normal SuccessfulHandOver: Migration target pod is ready for preparation by virt-handler.',
        'Normal SuccessfulMigration: Source node reported migration succeeded',
      ]);
    });
  });

  it('costs few writes', async () => {
    await agents.move(move, guest);
    const pod = await agents.targetPod(move);
    await agents.bind(pod.metadata.name ?? '', 'node-b');
    await scene.settle();
    await agents.start(pod.metadata.name ?? '');
    await agents.reaches(move, 'PreparingTarget');
    await agents.finish(move, guest);
    await scene.until(async () => expect((await scene.get(migrations, move)).metadata.finalizers).toBeUndefined());
    await scene.settle();
    const written = scene.writes.map((write) => write.split('/').slice(-2).join('/'));
    const counts = Object.fromEntries(written.map((what) => [what, written.filter((each) => each === what).length]));
    expect(counts).toEqual({
      'shop/pods': 1,
      // The slots are reserved, committed and released: for many migrations at once where there are many.
      'configmaps/godwit-migration-slots': 3,
      // One for each phase; Scheduled is over before it began.
      [`${move}/status`]: 6,
      // The finalizer.
      [`virtualmachineinstancemigrations/${move}`]: 1,
      // The hand-off.
      [`virtualmachineinstances/${guest}`]: 1,
      [`${guest}/status`]: 1,
    });
  });

  it('passes progress on', async () => {
    await agents.move(move, guest);
    await agents.runTarget(move);
    await agents.reaches(move, 'PreparingTarget');
    await agents.prepare(guest);
    await agents.begin(guest);
    await agents.reaches(move, 'Running');
    const progress = { percent: 40, summary: '40%, 12s left', time: '2026-01-01T00:00:30Z' };
    await agents.says(guest, { migrationState: { progress } });
    await scene.until(async () =>
      expect((await scene.get(migrations, move)).status).toMatchObject({ progress, migrationState: { progress } }),
    );
  });

  it('has taken place where the record says so, whatever else is said', async () => {
    await agents.move(move, guest);
    await agents.runTarget(move);
    await agents.reaches(move, 'PreparingTarget');
    await agents.prepare(guest);
    await agents.begin(guest);
    const { epoch = 0, successor } = (await scene.get(guests, guest)).status?.rightToRun ?? {};
    const rightToRun = { epoch: epoch + 1, holder: { ...successor }, successor: null };
    await agents.says(guest, { rightToRun, migrationState: { failed: true, completed: true } });
    await agents.reaches(move, 'Succeeded');
  });
});

describe('a migration that is deleted', () => {
  it('goes at once while it waits for its pod, and its pod with it', async () => {
    await agents.move(move, guest);
    const { metadata } = await agents.targetPod(move);
    await agents.reaches(move, 'Scheduling');
    await scene.delete(migrations, move);
    await isGone();
    await hasNoPod(metadata.name ?? '');
    await scene.until(async () =>
      expect(await told()).toContain('Warning FailedMigration: Migration failed due to being canceled'),
    );
  });

  it.each(['PreparingTarget', 'TargetReady'] as const)(
    'is withdrawn in %s, so that nobody begins it',
    async (phase) => {
      await agents.move(move, guest);
      await agents.runTarget(move);
      await agents.reaches(move, 'PreparingTarget');
      if (phase === 'TargetReady') await agents.prepare(guest);
      await agents.reaches(move, phase);
      await scene.delete(migrations, move);
      await isGone();
      expect(await agents.state(guest)).toMatchObject({
        abortRequested: true,
        abortStatus: 'Succeeded',
        failed: true,
        completed: true,
        failureReason: 'Migration failed due to being canceled',
      });
    },
  );

  it('is asked to stop while it is copied, and goes when the source says so', async () => {
    await agents.run(move, guest);
    await scene.delete(migrations, move);
    await scene.until(async () => expect(await agents.state(guest)).toMatchObject({ abortRequested: true }));
    expect(await agents.state(guest)).not.toHaveProperty('completed');
    expect(await conditionsOf()).toEqual(['migrationAbortRequested Canceled']);
    await scene.until(async () =>
      expect(await told()).toContain(
        'Normal SuccessfulAbortMigration: Migration is ready to be canceled by virt-handler.',
      ),
    );
    const { targetPod = '' } = await agents.state(guest);
    await agents.giveUp(guest, 'Live migration has been aborted', { abortStatus: 'Succeeded' });
    await isGone();
    // Nobody is left who would keep the pod for its logs.
    await scene.patch(pods, targetPod, { status: { phase: 'Failed' } }, 'status');
    await hasNoPod(targetPod);
  });

  it('leaves no pod where it is deleted when all is over', async () => {
    await agents.run(move, guest);
    const { sourcePod = '', targetPod } = await agents.state(guest);
    await agents.take(guest);
    await agents.reaches(move, 'Succeeded');
    await scene.patch(pods, sourcePod, { status: { phase: 'Succeeded' } }, 'status');
    await scene.pass(3000);
    expect(await scene.find(pods, sourcePod)).toBeDefined();
    await scene.delete(migrations, move);
    await hasNoPod(sourcePod);
    expect(await scene.find(pods, targetPod ?? '')).toBeDefined();
  });

  it('says in post-copy why it goes on, and ends well', async () => {
    await agents.run(move, guest);
    await agents.says(guest, { migrationState: { mode: 'PostCopy' } });
    await scene.delete(migrations, move);
    await scene.until(async () => expect(await conditionsOf()).toEqual(['migrationAbortRequested PostCopy']));
    expect(await agents.state(guest)).not.toHaveProperty('abortRequested');
    await agents.take(guest);
    await isGone();
    await scene.until(async () => expect((await told()).join()).toContain('SuccessfulMigration'));
  });

  it('is not withdrawn on the word of a late cache, once the source has begun', async () => {
    await agents.move(move, guest);
    await agents.runTarget(move);
    await agents.reaches(move, 'PreparingTarget');
    await agents.prepare(guest);
    await agents.reaches(move, 'TargetReady');
    scene.hold('virtualmachineinstances');
    await agents.begin(guest);
    await scene.delete(migrations, move);
    await scene.pass(5000);
    expect(await agents.state(guest)).not.toHaveProperty('completed');
    scene.release('virtualmachineinstances');
    await scene.until(async () => expect(await agents.state(guest)).toMatchObject({ abortRequested: true }));
    await agents.giveUp(guest, 'Live migration has been aborted');
    await isGone();
  });

  it('leaves nothing behind where somebody took its finalizer away', async () => {
    await agents.run(move, guest);
    await scene.patch(migrations, move, { metadata: { finalizers: null } });
    await scene.delete(migrations, move);
    await scene.until(async () => expect(await agents.state(guest)).toMatchObject({ abortRequested: true }));
    await agents.giveUp(guest, 'Live migration has been aborted');

    await agents.move(`${move}-again`, guest);
    const { metadata } = await agents.targetPod(`${move}-again`);
    await scene.patch(migrations, `${move}-again`, { metadata: { finalizers: null } });
    await scene.delete(migrations, `${move}-again`);
    await hasNoPod(metadata.name ?? '');
  });
});

describe('a migration that fails', () => {
  it('tells what the source says', async () => {
    await agents.run(move, guest);
    await agents.giveUp(guest, 'no progress for 150 s');
    await fails('ReportedByNode');
    expect((await scene.get(migrations, move)).status?.migrationState?.failureReason).toBe('no progress for 150 s');
    await scene.until(async () =>
      expect(await told()).toContain(
        'Warning FailedMigration: source node reported migration failed: no progress for 150 s',
      ),
    );
  });

  it('fails when the target pod ends, with its cause', async () => {
    await agents.move(move, guest);
    const { metadata } = await agents.runTarget(move);
    await agents.reaches(move, 'PreparingTarget');
    await scene.patch(pods, metadata.name ?? '', { status: { phase: 'Failed', message: 'no room' } }, 'status');
    await fails('TargetPodDown');
    expect(await agents.state(guest)).toMatchObject({
      failed: true,
      completed: true,
      failureReason: 'Migration failed because target pod shutdown during migration: no room',
    });
    await scene.until(async () => expect((await told(guest)).join()).toContain('FailedMigration'));
  });

  it('fails when the target pod is removed', async () => {
    await agents.move(move, guest);
    const { metadata } = await agents.targetPod(move);
    await agents.reaches(move, 'Scheduling');
    await scene.delete(pods, metadata.name ?? '', 0);
    await fails('TargetPodRemoved');
  });

  it('asks the source to stop when the target pod is removed during the copy', async () => {
    await agents.run(move, guest);
    const { metadata } = await agents.targetPod(move);
    await scene.delete(pods, metadata.name ?? '', 0);
    await scene.until(async () => expect(await agents.state(guest)).toMatchObject({ abortRequested: true }));
    expect(await conditionsOf()).toEqual(['migrationAbortRequested TargetPodDown']);
    await agents.giveUp(guest, 'the target is gone');
    await fails('ReportedByNode');
  });

  it('fails when the guest ends', async () => {
    await agents.move(move, guest);
    await agents.targetPod(move);
    await agents.says(guest, { phase: 'Succeeded' });
    await fails('GuestEnded');
  });

  it('fails when the guest is gone, and goes itself', async () => {
    await agents.move(move, guest);
    await agents.targetPod(move);
    await scene.delete(guests, guest);
    await isGone();
    await scene.until(async () =>
      expect((await told()).join()).toContain('Migration failed because vmi does not exist.'),
    );
  });

  it('fails when the guest cannot move any more', async () => {
    const conditions = [{ type: 'LiveMigratable', status: 'False', reason: 'HostDevice', message: 'a card' }];
    await agents.says(guest, { conditions });
    await agents.move(move, guest);
    await fails('NotMigratable');
    expect((await scene.get(migrations, move)).status?.migrationState?.failureReason).toBe(
      'Cannot migrate VMI, Reason: HostDevice, Message: a card',
    );
  });

  it.each([
    [{ migrationState: null }, 'StateCleared'],
    [{ migrationState: { migrationUid: 'somebody' } }, 'TakenOver'],
  ])('fails when its state is lost: %o', async (status, reason) => {
    await agents.move(move, guest);
    await agents.runTarget(move);
    await agents.reaches(move, 'PreparingTarget');
    await agents.says(guest, status);
    await fails(reason);
  });

  it.each([
    ['Scheduling', 15 * 60_000, 'TargetPodPending'],
    ['PreparingTarget', 5 * 60_000, 'PreparationTimeout'],
    ['TargetReady', 2 * 60_000, 'StartTimeout'],
  ] as const)('fails in %s when that takes too long', async (phase, timeoutMs, reason) => {
    await agents.move(move, guest);
    await agents.targetPod(move);
    if (phase !== 'Scheduling') await agents.runTarget(move);
    if (phase === 'TargetReady') {
      await agents.reaches(move, 'PreparingTarget');
      await agents.prepare(guest);
    }
    await agents.reaches(move, phase);
    await scene.pass(timeoutMs - 60_000, 60_000);
    await agents.reaches(move, phase);
    await scene.pass(62_000, 10_000);
    await fails(reason);
  });

  it('asks a source to stop that tells nothing', async () => {
    await agents.run(move, guest);
    await scene.pass(11 * 60_000, 60_000);
    await scene.until(async () => expect(await agents.state(guest)).toMatchObject({ abortRequested: true }));
    expect(await conditionsOf()).toEqual(['migrationAbortRequested NoNews']);
    await agents.giveUp(guest, 'was asked to');
    await fails('ReportedByNode');
  });
});

describe('two migrations of one guest at once', () => {
  it('one of them goes on, the other one fails', async () => {
    await Promise.all([agents.move(move, guest), agents.move(`${move}-too`, guest)]);
    const phases = await scene.until(async () => {
      const both = [await scene.get(migrations, move), await scene.get(migrations, `${move}-too`)];
      const found = both.map(({ status }) => status?.phase ?? '');
      expect(found.toSorted()).toEqual(['Failed', 'Scheduling']);
      return found;
    });
    const [winner, loser] = phases[0] === 'Failed' ? [`${move}-too`, move] : [move, `${move}-too`];
    await fails('AnotherMigration', loser);
    await scene.until(async () =>
      expect(await told(loser)).toContain(
        'Warning FailedMigration: VMI is not eligible for migration because another migration job is in progress.',
      ),
    );
    expect(await agents.findTargetPod(loser)).toBeUndefined();
    await agents.carryOut(winner, guest);
  });
});

describe('a guest whose source is still at an older migration, which is gone', () => {
  it('is waited for without slots and without a pod, and goes once it is free', async () => {
    await agents.run(move, guest);
    await scene.patch(migrations, move, { metadata: { finalizers: null } });
    await scene.delete(migrations, move);
    await isGone();
    const next = `${move}-next`;
    await agents.move(next, guest);
    await agents.reaches(next, 'Pending');
    await scene.pass(120_000, 10_000);
    await agents.reaches(next, 'Pending');
    expect(await agents.slotHolders()).toEqual([]);
    expect(await agents.findTargetPod(next)).toBeUndefined();
    await agents.giveUp(guest, 'nobody asks for it any more');
    await agents.carryOut(next, guest);
  });
});

describe('where a guest can go', () => {
  it('is said at once, node by node, if it is nowhere', async () => {
    await scene.patch(nodes, 'node-c', { spec: { unschedulable: true } });
    await agents.move(move, guest, { addedNodeSelector: { disk: 'fast' } });
    await agents.reaches(move, 'Scheduling');
    const { status } = await scene.get(migrations, move);
    expect(status?.conditions).toMatchObject([
      {
        type: 'migrationTargetPodUnschedulable',
        reason: 'NoNodeFits',
        message:
          "node-a: the guest runs there; node-b: node(s) didn't match Pod's node affinity/selector; node-c: node(s) were unschedulable",
      },
    ]);
    await scene.until(async () =>
      expect((await told()).join()).toContain(
        `migrationTargetPodUnschedulable: Migration target pod for VMI [shop/${guest}] is currently unschedulable.`,
      ),
    );
    await scene.patch(nodes, 'node-c', { spec: { unschedulable: null } });
    await agents.runTarget(move);
    await agents.reaches(move, 'PreparingTarget');
    expect(await conditionsOf()).toEqual([]);
  });

  it('is given up after five minutes, or as the migration says', async () => {
    const annotations = { 'kubevirt.io/migrationUnschedulablePodTimeoutSeconds': '20' };
    await agents.move(move, guest, {}, { annotations });
    const { metadata } = await agents.targetPod(move);
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
    await scene.patch(pods, metadata.name ?? '', { status: { conditions } }, 'status');
    await scene.pass(15_000);
    await agents.reaches(move, 'Scheduling');
    await scene.pass(10_000);
    await fails('TargetPodUnschedulable');
    await hasNoPod(metadata.name ?? '');
  });
});

describe('a quota', () => {
  const quota = (limit: string) => ({ spec: { hard: { 'count/pods': limit } } });

  it('is a condition, and no failure: it is tried again when there is room', async () => {
    await scene.create(resourceQuotas, { metadata: { name: 'few' }, ...quota('0') });
    await agents.move(move, guest);
    await scene.until(async () =>
      expect(await conditionsOf()).toEqual(['migrationRejectedByResourceQuota ExceededQuota']),
    );
    await agents.reaches(move, 'Pending');
    // Others need not wait for it: it has given its slot back.
    await scene.until(async () => expect(await agents.slotHolders()).not.toContain(move));
    const writes = scene.writes.length;
    await scene.pass(120_000, 10_000);
    expect(scene.writes.length).toBe(writes);
    await scene.patch(resourceQuotas, 'few', quota('1000'));
    await agents.targetPod(move);
    await agents.reaches(move, 'Scheduling');
    expect(await conditionsOf()).toEqual([]);
    await scene.delete(resourceQuotas, 'few');
  });
});

describe('a pod that is refused', () => {
  it('fails the migration with the reason', async () => {
    await scene.create(resourceQuotas, { metadata: { name: 'strict' }, spec: { hard: { 'limits.cpu': '100' } } });
    await agents.move(move, guest);
    await fails('TargetPodRefused');
    expect((await scene.get(migrations, move)).status?.migrationState?.failureReason).toContain(
      'must specify limits.cpu',
    );
    await scene.until(async () => expect((await told()).join()).toContain('Warning FailedCreate'));
    await scene.delete(resourceQuotas, 'strict');
  });
});

describe('the policy', () => {
  it('that holds at the hand-off is frozen with its options', async () => {
    const selectors = { virtualMachineInstanceSelector: { size: 'large' } };
    const spec = { selectors, allowPostCopy: true, bandwidthPerMigration: '64Mi' };
    await scene.create(migrationPolicies, { metadata: { name: 'large' }, spec });
    await scene.patch(guests, guest, { metadata: { labels: { size: 'large' } } });
    await agents.move(move, guest);
    await agents.runTarget(move);
    await agents.reaches(move, 'PreparingTarget');
    await scene.client.delete(migrationPolicies, '', 'large', scene.signal);
    await agents.prepare(guest);
    await agents.reaches(move, 'TargetReady');
    expect(await agents.state(guest)).toMatchObject({
      migrationPolicyName: 'large',
      migrationConfiguration: { allowPostCopy: true, bandwidthPerMigration: '64Mi', allowWorkloadDisruption: true },
    });
  });
});
