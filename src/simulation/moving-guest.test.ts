import { afterEach, describe, expect, it } from 'vitest';
import type { CopyState } from '../api/copy-state.ts';
import { MIGRATION, SOURCE, TARGET, TwoNodes, type TwoNodesOptions } from './two-nodes.fixture.ts';

/** Real agents move a guest between models of hosts. What controllers would do, the test does. */

let nodes: TwoNodes;
afterEach(() => {
  nodes.stop();
  expect(nodes.violations).toEqual([]);
});

/** Slow enough for something to happen on the way. */
const SLOW = { bytesPerSecond: 20_000_000 };

async function scene(options: TwoNodesOptions = {}): Promise<void> {
  nodes = new TwoNodes(options);
  await nodes.start();
  await nodes.runGuest();
}

const isSource = (state: CopyState) => () => nodes.model('web-1')?.migration.state === state;

/** The guest is executed here, and it is the same as ever. */
async function runsIn(pod: 'web-1' | 'web-2', bootId: string | undefined): Promise<void> {
  const model = nodes.model(pod);
  expect(model?.isExecuting).toBe(true);
  expect(model?.guest.bootId).toBe(bootId);
  const other = nodes.model(pod === 'web-1' ? 'web-2' : 'web-1');
  expect(other?.end ?? 'never started').toBeDefined();
  const { rightToRun, phase, conditions = [] } = (await nodes.guest()).status ?? {};
  expect(phase).toBe('Running');
  expect(conditions.find(({ type }) => type === 'Paused')).toBeUndefined();
  expect(rightToRun?.holder?.node).toBe(pod === 'web-1' ? SOURCE : TARGET);
  expect(rightToRun?.successor).toBeUndefined();
}

/** It comes to an end, one way or the other, and everything with it. */
async function settles(withinMs?: number): Promise<'moved' | 'stayed'> {
  const isOver = ({ completed }: { completed?: boolean } = {}): boolean => completed === true;
  await nodes.guestIs('over', ({ status }) => isOver(status?.migrationState), withinMs);
  await nodes.pass(40_000);
  return (await nodes.migrationState()).failed === true ? 'stayed' : 'moved';
}

const boot = (): string | undefined => nodes.model('web-1')?.guest.bootId;

describe('a guest that is handed off', () => {
  it('is said to leave together with how it is copied', async () => {
    await scene();
    const begun: unknown[] = [];
    await nodes.handOff();
    await nodes.guestIs('begun', ({ status: { migrationState: state } = {} }) => {
      if (state?.startTimestamp !== undefined) begun.push(state.channel);
      return begun.length > 0;
    });
    expect(begun[0]).toMatchObject({ encrypted: true });
    await settles();
  });

  it('runs on the target, and is gone from the source', async () => {
    await scene();
    const bootId = boot();
    await nodes.handOff();
    expect(await settles()).toBe('moved');
    expect(await nodes.migrationState()).toMatchObject({
      completed: true,
      mode: 'PreCopy',
      targetNodeDomainDetected: true,
      channel: { encrypted: true },
    });
    await runsIn('web-2', bootId);
    expect(nodes.model('web-1')?.end).toBeDefined();
    expect((await nodes.pod('web-1')).status?.phase).toBe('Succeeded');
    expect((await nodes.pod('web-2')).status?.phase).toBe('Running');
  });

  it('is said to be where it is by the word that it has come', async () => {
    await scene();
    await nodes.handOff();
    const places: unknown[] = [];
    await nodes.guestIs('there', ({ status }) => {
      if (status?.rightToRun?.holder?.node === TARGET) places.push(status.nodeName);
      return places.length > 0;
    });
    expect(places).toEqual([TARGET]);
    await settles();
  });

  it('moves by two migrations of one object, as by one', async () => {
    await scene();
    const bootId = boot();
    const { uid = '' } = (await nodes.guest()).metadata;
    const side = (migrationUID: string) => ({ migrationUID, virtualMachineInstanceUID: uid });
    const halves = { sourceState: side(MIGRATION), targetState: side('the other half') };
    await nodes.handOff({}, MIGRATION, 'web-2', TARGET, halves);
    expect(await settles()).toBe('moved');
    await runsIn('web-2', bootId);
    expect((await nodes.guest()).status?.rightToRun).not.toHaveProperty('across');
  });

  it('goes over before its memory has, where that is allowed', async () => {
    await scene({ ...SLOW, traits: { dirtyBytesPerSecond: 500_000_000, workingSetShare: 0.9 } });
    const bootId = boot();
    await nodes.handOff({ allowPostCopy: true, completionTimeoutPerGiB: 40 });
    await nodes.until('post-copy', isSource('postcopy-active'), 120_000);
    await nodes.until('the guest at its target', () => nodes.model('web-2')?.isExecuting === true);
    expect((await nodes.migrationState()).completed).toBeUndefined();
    expect(await settles(120_000)).toBe('moved');
    expect(await nodes.migrationState()).toMatchObject({ mode: 'PostCopy' });
    await runsIn('web-2', bootId);
    expect((await nodes.pod('web-1')).status?.phase).toBe('Succeeded');
  });

  it('is lost, and known to be, where its source dies before all of its memory is over', async () => {
    await scene({ ...SLOW, traits: { dirtyBytesPerSecond: 500_000_000, workingSetShare: 0.9 } });
    await nodes.handOff({ allowPostCopy: true, completionTimeoutPerGiB: 40 });
    await nodes.until('the guest at its target', () => nodes.model('web-2')?.isExecuting === true, 120_000);
    nodes.model('web-1')?.over({ reason: 'Killed', message: 'by the test', log: [] });
    await nodes.pass(5000);
    expect((await nodes.pod('web-1')).status?.phase).toBe('Succeeded');
    expect(nodes.model('web-2')?.end).toBeUndefined();
    // As the controller does when a pod has ended.
    await nodes.forgetPod('web-1');
    await nodes.guestIs('lost', ({ status }) => status?.phase === 'Failed');
    expect((await nodes.guest()).status?.rightToRun?.holder).toBeUndefined();
    expect(nodes.model('web-2')?.end).toBeDefined();
  });

  it('moves though the API server is away while it stands still', async () => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('the copy under way', isSource('active'));
    await nodes.pass(2000);
    nodes.server.crash('by the test');
    await nodes.until('the guest stopped', isSource('pre-switchover'));
    const stoppedMs = nodes.clock.elapsedMs;
    await nodes.until('the guest at its target', () => nodes.model('web-2')?.isExecuting === true);
    expect(nodes.clock.elapsedMs - stoppedMs).toBeLessThan(1000);
    await nodes.until('the source gone', () => nodes.model('web-1')?.end !== undefined);
    await nodes.during(nodes.server.start());
    expect(await settles()).toBe('moved');
    await runsIn('web-2', bootId);
  });

  it('fails where whoever took it is lost before it could say so, and was given up', async () => {
    let isSilent = false;
    const written: {
      readonly status?: { readonly phase?: string; readonly rightToRun?: { readonly epoch: number } };
    }[] = [];
    await scene({
      isUnanswered: (agent, path) => isSilent && agent === TARGET && path.includes('/web/status'),
      onRequest: (component, { path, body }) => {
        if (component === SOURCE && path.includes('/web/status')) written.push(JSON.parse(body ?? '{}') as object);
      },
    });
    await nodes.handOff();
    await nodes.until('the copy under way', isSource('active'));
    isSilent = true;
    await nodes.until('the source gone', () => nodes.model('web-1')?.end !== undefined);
    await nodes.deletePod('web-1');
    await nodes.pass(20_000);
    nodes.kill(TARGET);
    nodes.model('web-2')?.over({ reason: 'Killed', message: 'by the test', log: [] });
    await nodes.pass(20_000);
    expect((await nodes.guest()).status).toMatchObject({ phase: 'Running', rightToRun: { holder: { node: SOURCE } } });
    const taints = [{ key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' }];
    await nodes.patchNode(TARGET, { spec: { taints } });
    await nodes.guestIs('failed', ({ status }) => status?.phase === 'Failed');
    const { rightToRun, conditions } = (await nodes.guest()).status ?? {};
    expect(rightToRun).toEqual({ epoch: 2 });
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Synchronized', reason: 'GuestLost' }));
    // In one write: whoever reads that nobody has the right acts on it.
    expect(written.find(({ status }) => status?.rightToRun?.epoch === 2)?.status?.phase).toBe('Failed');
  });

  it('stays paused where its owner has paused it', async () => {
    await scene(SLOW);
    const model = nodes.model('web-1');
    const bootId = boot();
    model?.stop();
    await nodes.guestIs('paused', ({ status }) => status?.conditions?.some(({ type }) => type === 'Paused') === true);
    const said = model?.guest.said(nodes.clock.now());
    await nodes.handOff();
    expect(await settles()).toBe('moved');
    const { rightToRun, conditions } = (await nodes.guest()).status ?? {};
    expect(rightToRun?.holder?.node).toBe(TARGET);
    expect(conditions).toContainEqual(expect.objectContaining({ type: 'Paused', reason: 'PausedByUser' }));
    expect(nodes.model('web-2')).toMatchObject({ status: 'paused', isExecuting: false });
    expect(model?.guest.said(nodes.clock.now())).toEqual(said);
    nodes.model('web-2')?.continue();
    await nodes.pass(2000);
    await runsIn('web-2', bootId);
  });

  it('can be moved again after it stayed', async () => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('the copy under way', isSource('active'));
    nodes.model('web-2')?.over({ reason: 'Killed', message: 'by the test', log: [] });
    expect(await settles()).toBe('stayed');
    expect((await nodes.pod('web-2')).status?.phase).toBe('Failed');
    await nodes.handOff({}, 'migration-2', 'web-3');
    expect(await settles()).toBe('moved');
    expect(nodes.model('web-3')?.guest.bootId).toBe(bootId);
    expect(nodes.model('web-3')?.isExecuting).toBe(true);
  });
});

describe('a migration that is cancelled', () => {
  it('leaves a guest paused that its owner has paused', async () => {
    await scene(SLOW);
    nodes.model('web-1')?.stop();
    await nodes.guestIs('paused', ({ status }) => status?.conditions?.some(({ type }) => type === 'Paused') === true);
    await nodes.handOff();
    await nodes.until('under way', isSource('active'));
    await nodes.patchGuest({ status: { migrationState: { abortRequested: true } } }, 'status');
    expect(await settles()).toBe('stayed');
    expect(nodes.model('web-1')).toMatchObject({ status: 'paused', isExecuting: false });
    expect((await nodes.guest()).status?.conditions).toContainEqual(expect.objectContaining({ type: 'Paused' }));
  });

  it('leaves a guest paused, and able to go again, whose copy was over when it was given up', async () => {
    await scene(SLOW);
    nodes.model('web-1')?.stop();
    await nodes.guestIs('paused', ({ status }) => status?.conditions?.some(({ type }) => type === 'Paused') === true);
    await nodes.handOff();
    await nodes.until('under way', isSource('active'));
    nodes.peers.unreachable.add(TARGET);
    await nodes.until('all of it over', isSource('completed'));
    expect(await settles()).toBe('stayed');
    expect(nodes.model('web-1')).toMatchObject({ status: 'paused', isExecuting: false });
    expect((await nodes.guest()).status?.conditions).toContainEqual(expect.objectContaining({ type: 'Paused' }));
    nodes.peers.unreachable.delete(TARGET);
    await nodes.handOff({}, 'migration-2', 'web-3');
    expect(await settles()).toBe('moved');
    expect(nodes.model('web-3')).toMatchObject({ status: 'paused', isExecuting: false });
  });

  it.each<[string, () => boolean]>([
    ['before the copy', () => nodes.model('web-2')?.status === 'incoming'],
    ['while it connects', isSource('setup')],
    ['while memory is copied', isSource('active')],
  ])('%s leaves the guest where it is', async (_, isThere) => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('there', isThere);
    await nodes.patchGuest({ status: { migrationState: { abortRequested: true } } }, 'status');
    await nodes.pass(20_000);
    const state = await nodes.migrationState();
    // One that had not begun is ended by the controller.
    const failureReason = 'the migration was cancelled';
    if (state.startTimestamp !== undefined)
      expect(state).toMatchObject({ completed: true, failed: true, abortStatus: 'Succeeded', failureReason });
    await runsIn('web-1', bootId);
    expect(nodes.model('web-2')?.end).toBeDefined();
    expect((await nodes.pod('web-2')).status?.phase).toBe('Failed');
  });
});

describe('a migration that is cancelled late', () => {
  it.each<[string, () => boolean]>([
    ['when the guest stops', isSource('pre-switchover')],
    ['when the rest is sent', isSource('device')],
    ['when the target has all of it', () => nodes.model('web-2')?.status === 'paused'],
    ['when the source says so', isSource('completed')],
    ['when the guest runs at the target', () => nodes.model('web-2')?.isExecuting === true],
  ])('%s: the guest goes on, on one side', async (_, isThere) => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('there', isThere);
    await nodes.patchGuest({ status: { migrationState: { abortRequested: true } } }, 'status');
    const became = await settles();
    await runsIn(became === 'moved' ? 'web-2' : 'web-1', bootId);
  });

  it('after the grant, which nobody has heard: both sides agree on who has the guest', async () => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    nodes.peers.losesLetters = true;
    await nodes.until('all of it over', isSource('completed'));
    await nodes.pass(1000);
    expect(nodes.model('web-2')?.isExecuting).toBe(false);
    await nodes.patchGuest({ status: { migrationState: { abortRequested: true } } }, 'status');
    await nodes.pass(1000);
    nodes.peers.losesLetters = false;
    const became = await settles();
    await runsIn(became === 'moved' ? 'web-2' : 'web-1', bootId);
  });

  it('goes on to its end once its guest runs at the target without all of its memory', async () => {
    await scene({ ...SLOW, traits: { dirtyBytesPerSecond: 500_000_000, workingSetShare: 0.9 } });
    const bootId = boot();
    await nodes.handOff({ allowPostCopy: true, completionTimeoutPerGiB: 40 });
    await nodes.until('the guest at its target', () => nodes.model('web-2')?.isExecuting === true, 120_000);
    await nodes.patchGuest({ status: { migrationState: { abortRequested: true } } }, 'status');
    expect(await settles(120_000)).toBe('moved');
    await runsIn('web-2', bootId);
  });
});

describe('when something dies on the way', () => {
  it('the first cause is told, also where the controller gives up because of it', async () => {
    await scene(SLOW);
    await nodes.handOff();
    await nodes.until('the copy under way', isSource('active'));
    nodes.model('web-2')?.over({ reason: 'Killed', message: 'by the test', log: [] });
    await nodes.patchGuest({ status: { migrationState: { abortRequested: true } } }, 'status');
    expect(await settles()).toBe('stayed');
    expect((await nodes.migrationState()).failureReason).toMatch(/the target is gone/);
  });

  const MOMENTS: readonly [string, () => boolean][] = [
    ['when the target starts', () => nodes.model('web-2') !== undefined],
    ['when the target waits', () => nodes.model('web-2')?.migration.state === 'setup'],
    ['when the source connects', isSource('setup')],
    ['when memory is copied', isSource('active')],
    ['when the guest stops', isSource('pre-switchover')],
    ['when the rest is sent', isSource('device')],
    ['when the target has all of it', () => nodes.model('web-2')?.status === 'paused'],
    ['when the source says so', isSource('completed')],
    ['when the guest runs at the target', () => nodes.model('web-2')?.isExecuting === true],
  ];
  const VICTIMS = [SOURCE, TARGET] as const;

  it.each(MOMENTS.flatMap((moment) => VICTIMS.map((victim) => [victim, ...moment] as const)))(
    'the agent of %s, %s: the guest goes on, on one side',
    async (victim, _, isThere) => {
      await scene({ bytesPerSecond: 60_000_000 });
      const bootId = boot();
      await nodes.handOff();
      await nodes.until('there', isThere);
      nodes.kill(victim);
      await nodes.pass(3000);
      nodes.restart(victim);
      const became = await settles(120_000);
      await runsIn(became === 'moved' ? 'web-2' : 'web-1', bootId);
    },
  );

  it.each(MOMENTS.slice(1))(
    'the machine of the target, %s: the guest goes on, or starts afresh',
    async (_, isThere) => {
      await scene({ bytesPerSecond: 60_000_000 });
      const bootId = boot();
      await nodes.handOff();
      await nodes.until('there', isThere);
      nodes.model('web-2')?.over({ reason: 'Killed', message: 'by the test', log: [] });
      await nodes.pass(60_000);
      const { phase, migrationState, rightToRun } = (await nodes.guest()).status ?? {};
      expect(migrationState?.completed).toBe(true);
      if (migrationState?.failed === true) await runsIn('web-1', bootId);
      else expect([phase, rightToRun?.holder]).toEqual(['Failed', undefined]);
    },
  );
});

describe('in post-copy, with the guest stopped on both sides', () => {
  const BUSY = { bytesPerSecond: 60_000_000, traits: { dirtyBytesPerSecond: 500_000_000, workingSetShare: 0.9 } };

  async function stopped(): Promise<string | undefined> {
    await scene(BUSY);
    const bootId = boot();
    await nodes.handOff({ allowPostCopy: true, completionTimeoutPerGiB: 10 });
    await nodes.until('post-copy', isSource('postcopy-active'), 120_000);
    return bootId;
  }

  it.each([[SOURCE], [TARGET], [SOURCE, TARGET]])(
    'the agents %s %s die: it goes over all the same',
    async (...victims) => {
      const bootId = await stopped();
      for (const victim of victims) nodes.kill(victim);
      await nodes.pass(4000);
      for (const victim of victims) nodes.restart(victim);
      expect(await settles()).toBe('moved');
      await runsIn('web-2', bootId);
    },
  );

  it('the agents do not reach each other until all of its memory is over: it goes over all the same', async () => {
    const bootId = await stopped();
    nodes.peers.losesLetters = true;
    await nodes.until('all of it over', isSource('completed'));
    nodes.peers.losesLetters = false;
    expect(await settles()).toBe('moved');
    await runsIn('web-2', bootId);
  });

  it('the machine of the target dies when all of its memory is over: it goes on at the source', async () => {
    const bootId = await stopped();
    nodes.peers.losesLetters = true;
    await nodes.until('all of it over', isSource('completed'));
    nodes.model('web-2')?.over({ reason: 'Killed', message: 'by the test', log: [] });
    nodes.peers.losesLetters = false;
    expect(await settles()).toBe('stayed');
    await runsIn('web-1', bootId);
  });

  it.each([
    ['and its agent', true],
    ['while the target does not answer', false],
  ])(
    'the machine of the source dies when all of its memory is over, %s: it goes over all the same',
    async (_, isAgent) => {
      const bootId = await stopped();
      nodes.peers.unreachable.add(TARGET);
      await nodes.until('all of it over', isSource('completed'));
      await nodes.pass(1000);
      if (isAgent) nodes.kill(SOURCE);
      nodes.model('web-1')?.over({ reason: 'Killed', message: 'by the test', log: [] });
      await nodes.pass(3000);
      nodes.peers.unreachable.delete(TARGET);
      if (isAgent) nodes.restart(SOURCE);
      expect(await settles()).toBe('moved');
      await runsIn('web-2', bootId);
    },
  );
});

describe('when the agents do not reach each other', () => {
  it('nothing begins, and somebody says why', async () => {
    await scene(SLOW);
    const bootId = boot();
    nodes.peers.unreachable.add(TARGET);
    await nodes.handOff();
    expect(await settles()).toBe('stayed');
    expect((await nodes.migrationState()).failureReason).toMatch(/could not be made ready.*nobody answers/);
    await runsIn('web-1', bootId);
  });

  it('before anything is granted, the guest goes on after a while', async () => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('the copy under way', isSource('active'));
    nodes.peers.unreachable.add(TARGET);
    await nodes.until('the guest stopped', isSource('completed'));
    await nodes.until('it runs again', () => nodes.model('web-1')?.isExecuting === true, 30_000);
    expect(await settles()).toBe('stayed');
    expect((await nodes.migrationState()).failureReason).toMatch(/did not say that it has the guest/);
    await runsIn('web-1', bootId);
  });

  it('a target that did not hear that it was over lets go when the next migration comes to its node', async () => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('the copy under way', isSource('active'));
    nodes.kill(TARGET);
    nodes.peers.unreachable.add(TARGET);
    expect(await settles()).toBe('stayed');
    expect(nodes.model('web-2')).toMatchObject({ status: 'paused', end: undefined });
    await nodes.handOff({}, 'migration-2', 'web-3');
    nodes.peers.unreachable.delete(TARGET);
    nodes.restart(TARGET);
    await nodes.until('the next one under way', isSource('active'), 120_000);
    nodes.model('web-3')?.over({ reason: 'Killed', message: 'by the test', log: [] });
    expect(await settles()).toBe('stayed');
    expect(nodes.model('web-2')?.end).toBeDefined();
    await runsIn('web-1', bootId);
  });

  it('a target that did not hear that it was over lets go when the next migration goes elsewhere', async () => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('the copy under way', isSource('active'));
    nodes.kill(TARGET);
    nodes.peers.unreachable.add(TARGET);
    expect(await settles()).toBe('stayed');
    await nodes.handOff({}, 'migration-2', 'web-3', 'node-c');
    nodes.restart(TARGET);
    await nodes.until('it has let go', () => nodes.model('web-2')?.end !== undefined);
    await nodes.pass(5000);
    expect((await nodes.pod('web-2')).status?.phase).toBe('Failed');
    await runsIn('web-1', bootId);
  });

  it('a grant that is not heard comes through the API', async () => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('all of it over', isSource('completed'));
    nodes.peers.losesLetters = true;
    expect(await settles()).toBe('moved');
    expect((await nodes.migrationState()).sourceLetter).toMatchObject({ kind: 'grant', migrationUid: MIGRATION });
    await runsIn('web-2', bootId);
  });

  it('an answer that is not heard is found in the record', async () => {
    await scene(SLOW);
    const bootId = boot();
    await nodes.handOff();
    await nodes.until('all of it over', isSource('completed'));
    await nodes.until('it was looked at', () => nodes.peers.exchanges > 2);
    nodes.peers.unheard.add(TARGET);
    expect(await settles()).toBe('moved');
    await runsIn('web-2', bootId);
  });
});
