import { afterEach, describe, expect, it } from 'vitest';
import type { CopyState } from '../api/copy-state.ts';
import { SOURCE, TARGET, TwoNodes, type TwoNodesOptions } from './two-nodes.fixture.ts';

/**
 * Real agents hold guests whose pods are preempted, on models of hosts. What schedulers and controllers would do, the
 * test does.
 */

let nodes: TwoNodes;
afterEach(() => {
  nodes.stop();
  expect(nodes.violations).toEqual([]);
});

/** A guest that writes faster than can be sent. */
const BUSY: TwoNodesOptions = {
  bytesPerSecond: 10_000_000,
  traits: { workingSetShare: 0.8, dirtyBytesPerSecond: 100_000_000 },
};
/** Nothing but the deadline ends a copy. */
const PATIENT = { completionTimeoutPerGiB: 0, progressTimeout: 0 };
const HOLD_MS = 300_000;
const MIGRATABLE = [{ type: 'LiveMigratable', status: 'True' }];

/** A guest that runs, and wants to move rather than to stop. */
async function scene(options: TwoNodesOptions = {}, evictionStrategy = 'LiveMigrate'): Promise<void> {
  nodes = new TwoNodes({ podGraceSeconds: 345, ...options });
  await nodes.start();
  await nodes.runGuest({ evictionStrategy: evictionStrategy as 'LiveMigrate' });
  await nodes.patchGuest({ status: { conditions: MIGRATABLE } }, 'status');
}

const boot = (): string | undefined => nodes.model('web-1')?.guest.bootId;
const isSource = (state: CopyState) => () => nodes.model('web-1')?.migration.state === state;

/** Waits until the guest runs on the target, the same as ever, and its old pod is gone. */
async function hasMoved(bootId: string | undefined): Promise<void> {
  await nodes.guestIs('moved', ({ status }) => status?.rightToRun?.holder?.node === TARGET, 200_000);
  await nodes.pass(10_000);
  expect(nodes.model('web-2')?.isExecuting).toBe(true);
  expect(nodes.model('web-2')?.guest.bootId).toBe(bootId);
  expect(await nodes.isPodGone('web-1')).toBe(true);
  expect((await nodes.guest()).status?.phase).toBe('Running');
}

/** Waits until the last of a guest that has gone over has followed it. */
const sourceIsOver = (): Promise<void> => nodes.until('over', () => nodes.model('web-1')?.end !== undefined, 100_000);

/** Waits until the guest has turned itself off: nobody had to. Answers how many milliseconds after this moment that was. */
async function hasShutDown(sinceMs: number): Promise<number> {
  await nodes.until('ended', () => nodes.model('web-1')?.end !== undefined, 400_000);
  const tookMs = nodes.clock.elapsedMs - sinceMs;
  await nodes.pass(10_000);
  expect(await nodes.isPodGone('web-1')).toBe(true);
  expect((await nodes.guest()).status?.phase).toBe('Succeeded');
  return tookMs;
}

async function preempted(): Promise<number> {
  await nodes.preempt('web-1');
  return nodes.clock.elapsedMs;
}

describe('a guest whose pod is preempted', () => {
  it('runs on, moves, and its pod is gone then', async () => {
    await scene();
    const bootId = boot();
    await preempted();
    await nodes.pass(60_000);
    expect(nodes.model('web-1')?.isExecuting).toBe(true);
    await nodes.handOff();
    await hasMoved(bootId);
  });

  it('goes on with the move that it was in', async () => {
    await scene({ bytesPerSecond: 10_000_000 });
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('copied', isSource('active'));
    await preempted();
    await hasMoved(bootId);
  });

  it.each(['while it is held', 'while it is copied'])('moves though its agent is killed %s', async (moment) => {
    await scene({ bytesPerSecond: 10_000_000 });
    const bootId = boot();
    await preempted();
    if (moment === 'while it is copied') {
      await nodes.handOff();
      await nodes.until('copied', isSource('active'));
    }
    await nodes.pass(3000);
    nodes.kill(SOURCE);
    await nodes.pass(5000);
    nodes.restart(SOURCE);
    if (moment === 'while it is held') await nodes.handOff();
    await hasMoved(bootId);
  });

  it('runs on, and moves, though its agent is started anew and does not hear how the cluster is configured', async () => {
    let isDeaf = false;
    await scene({ isUnanswered: (agent, path) => isDeaf && agent === SOURCE && path.includes('/kubevirts') });
    const bootId = boot();
    await preempted();
    await nodes.pass(3000);
    nodes.kill(SOURCE);
    isDeaf = true;
    nodes.restart(SOURCE);
    await nodes.pass(20_000);
    expect(nodes.model('web-1')?.isExecuting).toBe(true);
    isDeaf = false;
    await nodes.handOff();
    await hasMoved(bootId);
  });

  it('is shut down once its agent hears that the cluster has nobody held', async () => {
    let isDeaf = false;
    await scene({ isUnanswered: (agent, path) => isDeaf && agent === SOURCE && path.includes('/kubevirts') });
    await nodes.configure(null);
    nodes.kill(SOURCE);
    isDeaf = true;
    nodes.restart(SOURCE);
    await preempted();
    await nodes.pass(20_000);
    expect(nodes.model('web-1')?.isExecuting).toBe(true);
    const sinceMs = nodes.clock.elapsedMs;
    isDeaf = false;
    expect(await hasShutDown(sinceMs)).toBeLessThan(90_000);
  });

  it('runs on, and moves, though its pod is evicted besides, with nobody there to say no', async () => {
    await scene();
    const bootId = boot();
    await preempted();
    await nodes.pass(3000);
    await nodes.evict('web-1');
    await nodes.pass(60_000);
    expect(nodes.model('web-1')?.isExecuting).toBe(true);
    await nodes.handOff();
    await hasMoved(bootId);
  });

  it('is shut down when its time is over, though it is being copied, and goes nowhere any more', async () => {
    await scene({ ...BUSY, bytesPerSecond: 300_000 });
    const sinceMs = await preempted();
    await nodes.handOff(PATIENT);
    const tookMs = await hasShutDown(sinceMs);
    expect(tookMs).toBeGreaterThanOrEqual(HOLD_MS - 1000);
    expect(tookMs).toBeLessThan(HOLD_MS + 30_000);
    const { migrationState, rightToRun } = (await nodes.guest()).status ?? {};
    expect(migrationState).toMatchObject({ failed: true, failureReason: 'the guest had to be gone by now' });
    expect(migrationState?.decisions?.at(-1)).toMatchObject({ decision: 'give-up', reason: 'DeadlinePassed' });
    expect(rightToRun?.holder).toBeUndefined();
    expect(nodes.model('web-2')?.isExecuting ?? false).toBe(false);
  });

  it('is stopped for the rest of its copy where that is allowed, and so saved', async () => {
    await scene({ ...BUSY, podGraceSeconds: 75 });
    const bootId = boot();
    const sinceMs = await preempted();
    await nodes.handOff({ ...PATIENT, allowWorkloadDisruption: true });
    await nodes.guestIs('moved', ({ status }) => status?.rightToRun?.holder?.node === TARGET);
    expect(nodes.clock.elapsedMs - sinceMs).toBeLessThan(30_000);
    expect((await nodes.migrationState()).decisions?.map(({ decision }) => decision)).toContain('pause');
    await hasMoved(bootId);
  });

  it('goes over first, and its memory follows, where that is allowed and there is time', async () => {
    await scene({ ...BUSY, podGraceSeconds: 75 });
    const bootId = boot();
    const sinceMs = await preempted();
    await nodes.handOff({ ...PATIENT, allowPostCopy: true });
    await nodes.guestIs('moved', ({ status }) => status?.rightToRun?.holder?.node === TARGET);
    expect(nodes.clock.elapsedMs - sinceMs).toBeLessThan(40_000);
    expect((await nodes.migrationState()).decisions).toContainEqual(
      expect.objectContaining({ decision: 'post-copy', reason: 'DeadlineNear' }),
    );
    await sourceIsOver();
    await hasMoved(bootId);
  });

  it.each(['its agent lives', 'its agent is killed'])(
    'is not ended where the rest of its memory is when its time is over: the link is broken, and %s',
    async (fate) => {
      await scene({ ...BUSY, podGraceSeconds: 75 });
      const bootId = boot();
      await preempted();
      await nodes.handOff({ ...PATIENT, allowPostCopy: true });
      await nodes.until('in post-copy', isSource('postcopy-active'));
      await nodes.until('taken', () => nodes.model('web-2')?.isExecuting === true);
      nodes.network.link(TARGET).become('cut');
      if (fate === 'its agent is killed') nodes.kill(SOURCE);
      await nodes.pass(100_000);
      expect(nodes.model('web-1')?.end).toBeUndefined();
      if (fate === 'its agent is killed') nodes.restart(SOURCE);
      await nodes.pass(10_000);
      expect(nodes.model('web-1')?.end).toBeUndefined();
      nodes.network.link(TARGET).become('up');
      await sourceIsOver();
      await hasMoved(bootId);
    },
  );

  it('is shut down in time by an agent that was not there when its time was over', async () => {
    await scene();
    const sinceMs = await preempted();
    await nodes.pass(10_000);
    nodes.kill(SOURCE);
    await nodes.pass(HOLD_MS);
    expect(nodes.model('web-1')?.isExecuting).toBe(true);
    nodes.restart(SOURCE);
    expect(await hasShutDown(sinceMs)).toBeLessThan(345_000);
  });

  it('is shut down as any other, though it stood still for its copy when its time was over', async () => {
    await scene({ ...BUSY, podGraceSeconds: 75 });
    const sinceMs = await preempted();
    await nodes.handOff({ ...PATIENT, allowWorkloadDisruption: true });
    await nodes.until('paused', () => nodes.model('web-1')?.status === 'paused');
    nodes.network.link(TARGET).become('silent');
    expect(await hasShutDown(sinceMs)).toBeLessThan(75_000);
  });

  it.each([0.1, 0.5, 1, 2, 4, 7, 10, 13, 15])('moves though every agent is killed after %s s', async (seconds) => {
    await scene({ bytesPerSecond: 10_000_000 });
    const bootId = boot();
    await preempted();
    await nodes.handOff();
    await nodes.pass(seconds * 1000);
    for (const node of [SOURCE, TARGET]) nodes.kill(node);
    await nodes.pass(2000);
    for (const node of [SOURCE, TARGET]) nodes.restart(node);
    await nodes.guestIs('over', ({ status }) => status?.migrationState?.completed === true, 200_000);
    // A copy that had not begun when its agent died is not taken up again; the next one is.
    if ((await nodes.migrationState()).failed === true) {
      expect(nodes.model('web-1')?.isExecuting).toBe(true);
      await nodes.handOff({}, 'migration-2', 'web-3');
      await nodes.guestIs('moved', ({ status }) => status?.rightToRun?.holder?.node === TARGET, 200_000);
      expect(nodes.model('web-3')?.guest.bootId).toBe(bootId);
    } else await hasMoved(bootId);
  });

  it.each([-8, -4, -1, 0.2, 1, 3, 5, 8])(
    'is shut down in time by agents, one of which dies %s s after the hold',
    async (seconds) => {
      await scene({ ...BUSY, bytesPerSecond: 300_000 });
      const sinceMs = await preempted();
      await nodes.handOff(PATIENT);
      await nodes.pass(sinceMs + HOLD_MS + seconds * 1000 - nodes.clock.elapsedMs);
      if (nodes.model('web-1')?.end === undefined) expect(nodes.model('web-1')?.isExecuting).toBe(true);
      nodes.kill(SOURCE);
      await nodes.pass(3000);
      nodes.restart(SOURCE);
      expect(await hasShutDown(sinceMs)).toBeLessThan(345_000);
    },
  );

  it('is held to the end where somebody else moves it', async () => {
    await scene({}, 'External');
    const sinceMs = await preempted();
    expect(await hasShutDown(sinceMs)).toBeGreaterThanOrEqual(HOLD_MS - 1000);
  });

  it.each([
    ['cannot move', 'LiveMigrate', [{ type: 'LiveMigratable', status: 'False' }]],
    ['does not ask for it', 'None', MIGRATABLE],
  ] as const)('is shut down at once where it %s', async (_, strategy, conditions) => {
    await scene({}, strategy);
    await nodes.patchGuest({ status: { conditions: conditions.map((each) => ({ ...each })) } }, 'status');
    expect(await hasShutDown(await preempted())).toBeLessThan(30_000);
  });

  it('is shut down when somebody deletes the pod while it is held, in the time that there is', async () => {
    await scene();
    await preempted();
    await nodes.pass(100_000);
    const sinceMs = nodes.clock.elapsedMs;
    await nodes.deletePod('web-1', 200);
    expect(await hasShutDown(sinceMs)).toBeLessThan(30_000);
  });

  it('is shut down when its owner deletes it while it is held', async () => {
    await scene();
    await preempted();
    await nodes.pass(100_000);
    const sinceMs = nodes.clock.elapsedMs;
    await nodes.patchGuest({ metadata: { finalizers: ['test/kept'] } });
    await nodes.deleteGuest();
    await nodes.until('ended', () => nodes.model('web-1')?.end !== undefined, 60_000);
    expect(nodes.clock.elapsedMs - sinceMs).toBeLessThan(30_000);
  });
});

describe('a guest whose pod is driven away by a taint', () => {
  const TAINTED = 'DeletionByTaintManager';
  const taint = (key: string): Promise<void> =>
    nodes.patchNode(SOURCE, { spec: { taints: [{ key, effect: 'NoExecute' }] } });
  const untaint = (): Promise<void> => nodes.patchNode(SOURCE, { spec: { taints: null } });

  it('is held, also when the taint is gone', async () => {
    await scene();
    const bootId = boot();
    await taint('maintenance');
    await nodes.preempt('web-1', TAINTED);
    await nodes.pass(20_000);
    await untaint();
    await nodes.pass(20_000);
    await nodes.handOff();
    await hasMoved(bootId);
  });

  it('is shut down where the node was not heard of', async () => {
    await scene();
    await taint('node.kubernetes.io/unreachable');
    const sinceMs = nodes.clock.elapsedMs;
    await nodes.preempt('web-1', TAINTED);
    expect(await hasShutDown(sinceMs)).toBeLessThan(30_000);
  });

  it('is shut down once it turns out that its node was not heard of', async () => {
    await scene();
    await nodes.preempt('web-1', TAINTED);
    await nodes.pass(20_000);
    expect(nodes.model('web-1')?.isExecuting).toBe(true);
    const sinceMs = nodes.clock.elapsedMs;
    const lastTransitionTime = new Date(nodes.clock.now()).toISOString();
    const ready = { type: 'Ready', status: 'True', lastTransitionTime };
    await nodes.patchNode(SOURCE, { status: { conditions: [ready] } }, 'status');
    expect(await hasShutDown(sinceMs)).toBeLessThan(30_000);
  });
});

describe('a guest whose pod is deleted', () => {
  it('is shut down, though its pod is evicted besides', async () => {
    await scene();
    const sinceMs = nodes.clock.elapsedMs;
    await nodes.deletePod('web-1');
    await nodes.evict('web-1');
    expect(await hasShutDown(sinceMs)).toBeLessThan(30_000);
  });

  it('is shut down in its own time, however long its pod may take', async () => {
    await scene();
    const sinceMs = nodes.clock.elapsedMs;
    await nodes.deletePod('web-1');
    expect(await hasShutDown(sinceMs)).toBeLessThan(30_000);
  });

  it('is shut down in the middle of a move', async () => {
    await scene({ bytesPerSecond: 10_000_000 });
    await nodes.handOff();
    await nodes.until('copied', isSource('active'));
    const sinceMs = nodes.clock.elapsedMs;
    await nodes.deletePod('web-1');
    expect(await hasShutDown(sinceMs)).toBeLessThan(30_000);
  });
});
