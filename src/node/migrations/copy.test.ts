import { describe, expect, it } from 'vitest';
import type { MigrationConfiguration } from '../../api/kubevirt/migration-configuration.ts';
import { CopyScene, DISK, MIB } from './copy.fixture.ts';
import type { Copy } from './copy.ts';

/** It writes five times as fast as can be sent, all over its memory. */
const BUSY = { workingSetShare: 0.8, dirtyBytesPerSecond: 500 * MIB };
const IS_OVER = ({ state }: Copy): boolean => state === 'completed' || state === 'failed';

const decisionsOf = ({ decisions }: Copy): string[] => decisions.map(({ decision, reason }) => `${decision} ${reason}`);

describe('the copy of a guest', () => {
  it('that is idle goes over, and leaves it to others who runs it', async () => {
    const scene = await CopyScene.open();
    const copy = await scene.start();
    expect(copy).toMatchObject({ state: 'copying', mode: 'PreCopy', stoppedAtMs: undefined, failure: undefined });
    await scene.until(({ progress }) => (progress?.percent ?? 0) > 40);
    expect(scene.credentialsCount).toBe(0);
    expect(copy.progress).toMatchObject({ iteration: 1, totalBytes: 1024 * MIB });
    await scene.until(IS_OVER);
    await scene.soon(copy.settled);
    expect(scene.told).toEqual(['copying', 'still', 'switching', 'completed']);
    expect(copy.stoppedAtMs).toBeLessThanOrEqual(scene.clock.now());
    expect(copy.progress).toMatchObject({ percent: 100, summary: '100%' });
    expect(copy.channel).toEqual({ encrypted: true, multifdChannels: 0, compression: 'none' });
    expect(await scene.soon(scene.source.status())).toBe('finished-migrate');
    expect(await scene.soon(scene.target.status())).toBe('paused');
    expect(scene.executing).toEqual([0, 0]);
  });

  it('is given up at the last moment where the agent of its target does not answer, and its guest goes on', async () => {
    const scene = await CopyScene.open({ disks: [DISK], traits: { diskBytes: 8 * MIB } });
    scene.isTargetThere = false;
    const copy = await scene.start();
    await scene.until(IS_OVER);
    await scene.soon(copy.settled);
    expect(copy).toMatchObject({ state: 'failed', failure: { reason: 'TargetUnreachable' } });
    await scene.soon(scene.source.continue());
    expect(scene.executing).toEqual([1, 0]);
  });

  it('is news only when it takes its time, or when something is decided', async () => {
    const scene = await CopyScene.open({ disks: [DISK], traits: { diskBytes: 1000 * MIB } });
    await scene.start();
    await scene.pass(1500);
    expect(scene.copy.progress?.percent).toBeGreaterThan(0);
    expect(scene.told).toEqual([]);
    await scene.pass(1000);
    expect(scene.told).toEqual(['copying']);
  });

  it('is of a guest that stands still, where what it writes would be lost', async () => {
    const scene = await CopyScene.open();
    const memory = { plugged: async () => 1, pluggedBytes: async () => 0, plug: async () => undefined };
    Object.defineProperty(scene.source, 'memory', { value: { ...memory, isTracked: async () => false } });
    const { source } = scene;
    const copy = await scene.start();
    await scene.until(({ mode }) => mode === 'Paused');
    expect(await scene.soon(source.status())).toBe('paused');
    await scene.until(IS_OVER);
    await scene.soon(copy.settled);
    expect(copy.state).toBe('completed');
    expect(copy.decisions).toMatchObject([{ decision: 'pause', reason: 'MemoryNotTracked' }]);
    expect(scene.executing).toEqual([0, 0]);
  });

  it('asks nothing of its machine between its stop and the switchover', async () => {
    const scene = await CopyScene.open();
    await scene.start();
    const asked: string[] = [];
    const { migration } = scene.source;
    for (const command of ['progress', 'setLimits', 'mirrors', 'switchOver'] as const) {
      const original = migration[command].bind(migration) as (...args: never[]) => Promise<never>;
      migration[command] = (...args: never[]) => {
        if (scene.copy.stoppedAtMs !== undefined) asked.push(command);
        return original(...args);
      };
    }
    await scene.until(IS_OVER);
    expect(asked[0]).toBe('switchOver');
  });

  it('never says less percent than before, and not all too often', async () => {
    const scene = await CopyScene.open({ traits: { dirtyBytesPerSecond: 80 * MIB, workingSetShare: 0.8 } });
    const copy = await scene.start();
    const percents: number[] = [];
    await scene.until((seen) => {
      if (seen.progress) percents.push(seen.progress.percent);
      return IS_OVER(seen);
    });
    expect(percents.toSorted((one, other) => one - other)).toEqual(percents);
    expect(copy.state).toBe('completed');
  });

  it('goes over in steps of ever longer downtime', async () => {
    const downtimeTuning = { initialMs: 10, steps: 4, startAfterIteration: 2, cooldownSeconds: 5 };
    const scene = await CopyScene.open({
      traits: { workingSetShare: 0.06, dirtyBytesPerSecond: 500 * MIB },
      configuration: { experimental: { downtimeTuning } },
    });
    const copy = await scene.start();
    await scene.until(IS_OVER);
    await scene.soon(copy.settled);
    expect(copy.state).toBe('completed');
    expect(decisionsOf(copy).slice(0, 3)).toEqual([
      'set-downtime FirstDowntime',
      'set-downtime DowntimeStep',
      'set-downtime DowntimeStep',
    ]);
    expect(copy.decisions[1]).toMatchObject({
      message: expect.stringContaining('233 ms'),
      iteration: expect.any(Number),
    });
  });

  it('slows a busy guest down where that is allowed, and says so once', async () => {
    const configuration = { allowAutoConverge: true, completionTimeoutPerGiB: 0 };
    const scene = await CopyScene.open({ traits: BUSY, configuration });
    const copy = await scene.start();
    await scene.until(IS_OVER);
    expect(copy.state).toBe('completed');
    expect(decisionsOf(copy).filter((each) => each.startsWith('throttle'))).toEqual(['throttle GuestThrottled']);
  });

  it('slows a busy guest down that has to be gone soon, and says why', async () => {
    const scene = await CopyScene.open({ traits: BUSY, configuration: { completionTimeoutPerGiB: 0 } });
    scene.deadlineMs = scene.clock.now() + 280_000;
    const copy = await scene.start();
    await scene.until(IS_OVER);
    expect(copy.state).toBe('completed');
    expect(decisionsOf(copy)).toContain('allow-throttling DeadlineGiven');
    expect(decisionsOf(copy)).toContain('throttle GuestThrottled');
  });

  it('is given up in time when the guest has to be gone, though nobody knew that when it began', async () => {
    const scene = await CopyScene.open({ traits: BUSY, configuration: { completionTimeoutPerGiB: 0 } });
    const copy = await scene.start();
    await scene.pass(20_000);
    expect(copy.state).toBe('copying');
    const deadlineMs = scene.clock.now() + 30_000;
    scene.deadlineMs = deadlineMs;
    await scene.until(IS_OVER);
    expect(copy.failure?.reason).toBe('DeadlinePassed');
    expect(scene.clock.now() - deadlineMs).toBeLessThan(1000);
    expect(scene.executing).toEqual([1, 0]);
  });

  it('lets a busy guest go first when it has to be gone soon, where that is allowed', async () => {
    const configuration = { allowPostCopy: true, completionTimeoutPerGiB: 0 };
    const scene = await CopyScene.open({ traits: BUSY, configuration });
    const copy = await scene.start();
    scene.deadlineMs = scene.clock.now() + 60_000;
    await scene.until(({ state }) => state === 'post-copy');
    expect(decisionsOf(copy)).toContain('post-copy DeadlineNear');
  });

  it('lets a busy guest go first where that is allowed', async () => {
    const scene = await CopyScene.open({ traits: BUSY, configuration: { allowPostCopy: true, progressTimeout: 30 } });
    const copy = await scene.start();
    await scene.until(({ state }) => state === 'post-copy');
    expect(copy.mode).toBe('PostCopy');
    expect(decisionsOf(copy).at(-1)).toMatch(/^post-copy /);
    expect(scene.executing).toEqual([0, 0]);
    expect(await scene.soon(scene.source.status())).toBe('paused');
    expect((await scene.soon(scene.target.migration.progress())).state).toBe('postcopy-active');
    await scene.soon(scene.target.continue());
    await scene.until(IS_OVER);
    expect(scene.told).toEqual(['copying', 'still', 'switching', 'post-copy', 'completed']);
    expect(scene.executing).toEqual([0, 1]);
  });

  it.each<[what: string, isPostCopyPossible: boolean, configuration: MigrationConfiguration]>([
    ['where that is allowed', true, { allowWorkloadDisruption: true }],
    ['where the target cannot do better', false, { allowPostCopy: true }],
  ])('pauses a busy guest %s', async (_, isPostCopyPossible, allowed) => {
    const configuration = { ...allowed, progressTimeout: 30 };
    const scene = await CopyScene.open({ traits: BUSY, configuration, isPostCopyPossible });
    const copy = await scene.start();
    await scene.until(({ mode }) => mode === 'Paused');
    await scene.pass(20);
    expect(copy).toMatchObject({ state: 'copying', stoppedAtMs: expect.any(Number) });
    await scene.until(IS_OVER);
    expect(copy.state).toBe('completed');
    expect(decisionsOf(copy).at(-1)).toMatch(/^pause /);
    expect(scene.executing).toEqual([0, 0]);
  });

  it.each<[reason: string, configuration: MigrationConfiguration]>([
    ['NoProgress', { progressTimeout: 30 }],
    ['CompletionTimeout', { completionTimeoutPerGiB: 60 }],
    ['CannotConverge', { experimental: { stallDetector: { stallProgressTimeout: 15 } } }],
  ])('is given up where a guest writes too fast: %s', async (reason, configuration) => {
    const scene = await CopyScene.open({ traits: BUSY, configuration });
    const copy = await scene.start();
    await scene.until(IS_OVER);
    await scene.soon(copy.settled);
    expect(copy.failure).toMatchObject({ reason, message: expect.stringContaining('MiB are left') });
    expect(decisionsOf(copy).at(-1)).toBe(`give-up ${reason}`);
    expect(scene.executing).toEqual([1, 0]);
    expect((await scene.soon(scene.source.migration.progress())).state).toBe('cancelled');
  });

  it('is encrypted in any case, and says so', async () => {
    const scene = await CopyScene.open({ configuration: { disableTLS: true } });
    const copy = await scene.start();
    await scene.until(IS_OVER);
    expect(copy.channel).toMatchObject({ encrypted: true });
    expect(decisionsOf(copy)[0]).toBe('keep-encryption AuthenticationNeeded');
  });

  it('keeps to its bandwidth', async () => {
    const scene = await CopyScene.open({ configuration: { bandwidthPerMigration: '20Mi' } });
    const copy = await scene.start();
    await scene.pass(10_000);
    expect((copy.progress?.transferredBytes ?? 0) / MIB).toBeCloseTo(200, -1.5);
  });
});

describe('a link that', () => {
  it('breaks ends a copy, and the guest goes on', async () => {
    const scene = await CopyScene.open();
    const copy = await scene.start();
    await scene.pass(3000);
    scene.link.become('cut');
    await scene.until(IS_OVER, 1000);
    expect(copy.failure).toMatchObject({ reason: 'CopyFailed', message: expect.stringContaining('link') });
    expect(scene.executing).toEqual([1, 0]);
  });

  it('is silent ends a copy, though nobody says so', async () => {
    const scene = await CopyScene.open();
    const copy = await scene.start();
    await scene.pass(3000);
    scene.link.become('silent');
    await scene.until(IS_OVER, 40_000);
    expect(copy.failure?.reason).toBe('LinkSilent');
    expect(scene.executing).toEqual([1, 0]);
  });

  it('was never there ends a copy', async () => {
    const scene = await CopyScene.open();
    scene.link.become('silent');
    const copy = await scene.start();
    await scene.until(IS_OVER);
    expect(copy.failure?.reason).toBe('SetupTimeout');
    expect(scene.executing).toEqual([1, 0]);
  });

  it('falls silent at the very end does not hold the guest for ever', async () => {
    const scene = await CopyScene.open();
    const copy = await scene.start();
    await scene.until(({ stoppedAtMs }) => stoppedAtMs !== undefined);
    scene.link.become('silent');
    await scene.until(IS_OVER);
    expect(copy.failure?.reason).toBe('SwitchoverTimeout');
    expect(scene.executing).toEqual([1, 0]);
    expect(copy.stoppedAtMs).toBeUndefined();
  });

  it.each(['cut', 'silent'] as const)('is %s in post-copy is mended, once it can be', async (how) => {
    const scene = await CopyScene.open({ traits: BUSY, configuration: { allowPostCopy: true, progressTimeout: 30 } });
    const copy = await scene.start();
    await scene.until(({ state }) => state === 'post-copy');
    await scene.soon(scene.target.continue());
    scene.link.become(how);
    await scene.pass(70_000);
    expect(copy).toMatchObject({ state: 'post-copy', failure: undefined });
    expect(decisionsOf(copy).at(-1)).toMatch(/^recover Link/);
    await expect(scene.soon(copy.cancel())).rejects.toMatchObject({ code: 'Refused' });
    scene.link.become('up');
    await scene.until(IS_OVER);
    expect(copy.state).toBe('completed');
    expect(scene.executing).toEqual([0, 1]);
  });
});

describe('disks', () => {
  const disks = [DISK, { ...DISK, at: 5 }];
  const traits = { diskBytes: 500 * MIB };

  it('are whole before memory is sent, and end with the guest stopped', async () => {
    const scene = await CopyScene.open({ disks, traits });
    const copy = await scene.start();
    await scene.pass(5000);
    expect((await scene.soon(scene.source.migration.progress())).state).toBe('none');
    expect(copy.progress).toMatchObject({ totalBytes: 1000 * MIB, iteration: 0 });
    await scene.pass(8000);
    expect((await scene.soon(scene.source.migration.progress())).state).toBe('active');
    expect(await scene.soon(scene.source.migration.mirrors())).toHaveLength(2);
    await scene.until(IS_OVER);
    expect(copy.state).toBe('completed');
    expect(copy.progress?.totalBytes).toBe(2024 * MIB);
    expect(await scene.soon(scene.source.migration.mirrors())).toEqual([]);
  });

  it('keep to the bandwidth of their migration, together, and memory does after them', async () => {
    const scene = await CopyScene.open({ disks, traits, configuration: { bandwidthPerMigration: '20Mi' } });
    const copy = await scene.start();
    await scene.pass(49_000);
    expect(await scene.soon(scene.source.migration.mirrors())).toMatchObject([
      { state: 'copying' },
      { state: 'copying' },
    ]);
    await scene.pass(11_000);
    expect((await scene.soon(scene.source.migration.progress())).state).toBe('active');
    expect((copy.progress?.transferredBytes ?? 0) / MIB).toBeCloseTo(1200, -2);
  });

  it('end a copy where they cannot even begin', async () => {
    const scene = await CopyScene.open({ disks, traits });
    scene.link.become('cut');
    const copy = await scene.start();
    await scene.until(IS_OVER, 1000);
    expect(copy.failure).toMatchObject({ reason: 'MirrorFailed', message: expect.stringContaining('nobody serves') });
    expect(scene.executing).toEqual([1, 0]);
  });

  it.each<[when: string, afterMs: number]>([
    ['while it is copied', 3000],
    ['while memory follows', 13_000],
  ])('end a copy where one fails %s', async (_, afterMs) => {
    const scene = await CopyScene.open({ disks, traits });
    const copy = await scene.start();
    await scene.pass(afterMs);
    await scene.soon(scene.target.migration.closeDisks());
    await scene.until(IS_OVER, 5000);
    await scene.soon(copy.settled);
    expect(copy.failure).toMatchObject({ reason: 'MirrorFailed', message: expect.stringContaining('gone') });
    expect(await scene.soon(scene.source.migration.mirrors())).toEqual([]);
    expect(scene.executing).toEqual([1, 0]);
  });

  it('end a copy where one fails at the very end', async () => {
    const scene = await CopyScene.open({ disks, traits });
    const copy = await scene.start();
    scene.sourceModel.listeners.add({
      event: (event) => {
        if (event.kind !== 'stopped') return;
        for (const { migration } of scene.hosts[1].alive) migration.closeDisks();
      },
      ended: () => undefined,
    });
    await scene.until(IS_OVER);
    expect(copy.failure?.reason).toBe('MirrorFailed');
    expect(scene.told).toContain('switching');
    expect(scene.executing).toEqual([1, 0]);
  });

  it('are copied in full by the next attempt, whatever the last one left', async () => {
    const scene = await CopyScene.open({ disks, traits });
    const first = await scene.start();
    await scene.pass(13_000);
    await scene.soon(first.cancel());
    await scene.newTarget();
    const second = await scene.start();
    await scene.pass(3000);
    // What the machine says of memory is still of the first one.
    expect((await scene.soon(scene.source.migration.progress())).state).toBe('cancelled');
    expect(second).toMatchObject({ state: 'copying', progress: { remainingBytes: expect.any(Number) } });
    await scene.until(IS_OVER);
    expect(second).toMatchObject({ state: 'completed', failure: undefined });
  });
});

describe('a machine that', () => {
  it('is gone ends its copy', async () => {
    const scene = await CopyScene.open();
    const copy = await scene.start();
    await scene.pass(3000);
    await scene.soon(scene.source.kill());
    await scene.soon(copy.settled);
    expect(copy.failure?.reason).toBe('MachineGone');
  });

  it('cannot be met ends its copy', async () => {
    const scene = await CopyScene.open();
    await scene.soon(
      scene.target.migration.listen({
        host: 'node-b',
        firstPort: 300,
        lastPort: 300,
        tls: undefined,
        allowsPostCopy: true,
        channels: undefined,
        disks: [],
      }),
    );
    await scene.newTarget();
    const copy = await scene.start();
    await scene.soon(scene.target.kill());
    await scene.until(IS_OVER, 1000);
    expect(copy.failure?.reason).toBe('CopyFailed');
    expect(scene.executing).toEqual([1, 0]);
  });

  it('does not answer at first is asked again', async () => {
    const scene = await CopyScene.open({ disks: [DISK], traits: { diskBytes: 500 * MIB } });
    scene.sourceModel.isSilent = true;
    const copy = await scene.start();
    await scene.pass(5000);
    expect(copy.state).toBe('copying');
    scene.sourceModel.isSilent = false;
    await scene.until(IS_OVER);
    expect(copy.state).toBe('completed');
  });

  it('does not answer its next agent at first is asked again', async () => {
    const scene = await CopyScene.open();
    await scene.start();
    await scene.pass(3000);
    const restarted = scene.restart();
    await scene.pass(100);
    scene.sourceModel.isSilent = true;
    await restarted;
    await scene.pass(3000);
    scene.sourceModel.isSilent = false;
    await scene.until(IS_OVER);
    expect(scene.copy.state).toBe('completed');
  });

  it.each([
    ['while it copies', 5000],
    ['when its guest stands still', 12_000],
  ])('does not answer for a while is not given up for that, %s', async (_, silentMs) => {
    const scene = await CopyScene.open();
    const copy = await scene.start();
    await scene.pass(3000);
    scene.sourceModel.isSilent = true;
    await scene.pass(silentMs);
    expect(copy.state).toBe(silentMs < 8000 ? 'copying' : 'switching');
    scene.sourceModel.isSilent = false;
    await scene.until(IS_OVER);
    expect(copy.state).toBe('completed');
  });
});

describe('a cancel', () => {
  const disks = [DISK];
  const traits = { diskBytes: 500 * MIB };

  it.each<[when: string, reach: (scene: CopyScene) => Promise<void>]>([
    ['at once', async () => undefined],
    ['while disks are copied', (scene) => scene.pass(2000)],
    ['the moment disks are whole', (scene) => scene.pass(5010)],
    ['while memory is copied', (scene) => scene.pass(9000)],
    ['when the guest stands still', (scene) => scene.until(({ stoppedAtMs }) => stoppedAtMs !== undefined)],
    [
      'when the rest is on its way',
      async (scene) => {
        await scene.until(({ stoppedAtMs }) => stoppedAtMs !== undefined);
        scene.link.become('silent');
        await scene.pass(500);
      },
    ],
  ])('%s leaves the guest where it is', async (_, reach) => {
    const scene = await CopyScene.open({ disks, traits });
    const copy = await scene.start();
    await reach(scene);
    await scene.soon(copy.cancel());
    await scene.soon(copy.settled);
    expect(copy).toMatchObject({ state: 'failed', failure: { reason: 'Cancelled' } });
    expect(scene.credentialsCount).toBe(0);
    expect(scene.executing[0]).toBe(1);
    expect(await scene.soon(scene.source.migration.mirrors())).toEqual([]);
    expect(['none', 'cancelled']).toContain((await scene.soon(scene.source.migration.progress())).state);
    await scene.pass(5000);
    expect(scene.executing[0]).toBe(1);
  });

  it('of a paused guest leaves it to others to continue it', async () => {
    const configuration = { allowWorkloadDisruption: true, progressTimeout: 30 };
    const scene = await CopyScene.open({ traits: BUSY, configuration });
    const copy = await scene.start();
    await scene.until(({ mode }) => mode === 'Paused');
    await scene.soon(copy.cancel());
    expect(copy.state).toBe('failed');
    await scene.soon(scene.source.continue());
    expect(scene.executing).toEqual([1, 0]);
  });

  it('of what is over does nothing', async () => {
    const scene = await CopyScene.open();
    const copy = await scene.start();
    await scene.until(IS_OVER);
    await scene.soon(copy.cancel());
    expect(copy).toMatchObject({ state: 'completed', failure: undefined });
    expect(await scene.soon(scene.source.status())).toBe('finished-migrate');
  });

  it('of what has failed does nothing', async () => {
    const scene = await CopyScene.open();
    const copy = await scene.start();
    scene.link.become('cut');
    await scene.until(IS_OVER);
    await scene.soon(copy.cancel());
    expect(copy.failure?.reason).toBe('CopyFailed');
  });
});

describe('an agent that is started anew', () => {
  const traits = { diskBytes: 500 * MIB };

  it.each<[when: string, reach: (scene: CopyScene) => Promise<void>]>([
    ['while memory is copied', (scene) => scene.pass(9000)],
    ['when the guest stands still', (scene) => scene.until(({ stoppedAtMs }) => stoppedAtMs !== undefined)],
    ['when the rest is on its way', (scene) => scene.until(({ state }) => state === 'switching')],
    ['when all is over', (scene) => scene.until(IS_OVER)],
  ])('goes on %s', async (_, reach) => {
    const scene = await CopyScene.open({ disks: [DISK], traits });
    await scene.start();
    await reach(scene);
    const copy = await scene.restart();
    await scene.until(IS_OVER);
    await scene.soon(copy.settled);
    expect(copy).toMatchObject({ state: 'completed', progress: { percent: 100 } });
    expect(scene.executing).toEqual([0, 0]);
    expect(await scene.soon(scene.target.status())).toBe('paused');
  });

  it.each<[when: string, reach: (scene: CopyScene) => Promise<void>]>([
    ['before anything was copied', async () => undefined],
    ['while disks are copied', (scene) => scene.pass(2000)],
    [
      'when it has failed',
      async (scene) => {
        await scene.pass(9000);
        scene.link.become('cut');
        await scene.pass(100);
      },
    ],
  ])('gives up %s', async (_, reach) => {
    const scene = await CopyScene.open({ disks: [DISK], traits });
    await scene.start();
    await reach(scene);
    const copy = await scene.restart();
    await scene.soon(copy.settled);
    expect(copy.failure?.reason).toBe('AgentRestarted');
    expect(await scene.soon(scene.source.migration.mirrors())).toEqual([]);
    expect(scene.executing[0]).toBe(1);
  });

  it.each(['up', 'cut', 'silent'] as const)('goes on in post-copy, its link %s', async (how) => {
    const scene = await CopyScene.open({ traits: BUSY, configuration: { allowPostCopy: true, progressTimeout: 30 } });
    await scene.start();
    await scene.until(({ state }) => state === 'post-copy');
    await scene.soon(scene.target.continue());
    scene.link.become(how);
    await scene.pass(100);
    const copy = await scene.restart();
    await scene.until(({ state, mode }) => state === 'post-copy' && mode === 'PostCopy', 1000);
    scene.link.become(how === 'cut' ? 'up' : how);
    await scene.pass(50_000);
    scene.link.become('up');
    await scene.until(IS_OVER);
    expect(copy.state).toBe('completed');
    expect(scene.executing).toEqual([0, 1]);
  });

  it('knows what was decided before, how far it was, and that the guest is paused', async () => {
    const configuration = { allowWorkloadDisruption: true, progressTimeout: 30 };
    const scene = await CopyScene.open({ traits: BUSY, configuration });
    const startedAtMs = scene.clock.now();
    const first = await scene.start();
    await scene.until(({ mode }) => mode === 'Paused');
    await scene.pass(100);
    const { mode, decisions, channel } = first;
    const copy = await scene.restart(
      { mode, decisions: [...decisions], channel, progress: { percent: 91 } },
      startedAtMs,
    );
    expect(copy).toMatchObject({ mode: 'Paused', channel, stoppedAtMs: expect.any(Number) });
    await scene.pass(1000);
    expect(copy.progress?.percent).toBeGreaterThanOrEqual(91);
    await scene.until(IS_OVER);
    expect(copy.state).toBe('completed');
    expect(decisionsOf(copy).filter((each) => each.startsWith('pause'))).toHaveLength(1);
  });

  it('leaves a copy alone that it lets go of', async () => {
    const scene = await CopyScene.open();
    const copy = await scene.start();
    await scene.pass(3000);
    copy.detach();
    await scene.soon(copy.settled);
    await scene.pass(20_000);
    expect(copy.state).toBe('copying');
    expect((await scene.soon(scene.source.migration.progress())).state).toBe('pre-switchover');
  });
});
