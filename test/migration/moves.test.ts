import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { claim, linux, probe } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { IS_FULL, IS_PAIRED } from '../support/sample.ts';
import { say } from '../support/say.ts';

/** Running guests go from node to node, with their memory, their disks and their consoles. */

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

/** How far a guest's clock may be off, which it tells in whole seconds. */
const CLOCK_SECONDS = 2;
const IN_A_ROW = IS_FULL && !IS_PAIRED ? 20 : 4;

let guests: MovingGuests;
beforeAll(async () => (guests = await MovingGuests.start({ nodes: 2, linux: true })));
afterAll(() => guests.stop());

const shared = (claimName: string) => ({ name: 'shared', source: { persistentVolumeClaim: { claimName } } });
const own = { name: 'own', source: { emptyDisk: { capacity: '8Mi' } } };

/** What the guest itself finds when it looks through all of it. */
async function expectChecked(name: string, ...parts: readonly string[]): Promise<void> {
  for (const part of parts) expect(await guests.host.ask(name, part)).toMatch(/ bad=0\b/);
}

describe('a guest', () => {
  it('moves, and everybody is told', async () => {
    await guests.create('idle', probe());
    const before = await guests.holder('idle');
    const { metadata, status } = await guests.move('idle');
    const after = await guests.holder('idle');
    expect(after.node).not.toBe(before.node);
    expect(status.phaseTransitionTimestamps.map(({ phase }: { phase: string }) => phase)).toEqual([
      ...(IS_PAIRED ? ['Synchronizing'] : []),
      'Pending',
      'Scheduling',
      'Scheduled',
      'PreparingTarget',
      'TargetReady',
      'Running',
      'Succeeded',
    ]);
    // What the source has to say last may come after the verdict.
    await eventually(async () =>
      expect((await guests.migration(metadata.name)).status.migrationState).toMatchObject({
        migrationUid: metadata.uid,
        sourceNode: before.node,
        targetNode: after.node,
        completed: true,
        mode: 'PreCopy',
        channel: { encrypted: true },
        progress: { percent: 100 },
        downtimeMs: expect.any(Number) as number,
      }),
    );
    expect(status.migrationState.failed ?? false).toBe(false);
    const guest = await guests.host.guest('idle');
    expect(guest.status).toMatchObject({ phase: 'Running', nodeName: after.node });
    await eventually(async () => {
      const { metadata } = await guests.host.guest('idle');
      expect(metadata.labels['kubevirt.io/nodeName']).toBe(after.node);
    });
    expect(guest.status.rightToRun).toMatchObject({ epoch: 2, holder: after });
    expect(guest.status.rightToRun.successor).toBeUndefined();
    await guests.host.told('idle', /Migrated: .*migrated to node/);
    const table = await guests.host.kubectl.ok(`get vmim ${metadata.name}`);
    expect(table).toMatch(/PHASE +VMI +PRIORITY +CAUSE +SOURCE +TARGET +PROGRESS +AGE/);
    expect(table).toMatch(
      new RegExp(`Succeeded +idle +\\d+ +${IS_PAIRED ? 'CrossCluster' : 'User'} +${before.node} +${after.node} +100%`),
    );
  });

  it('leaves nothing behind where it was', async () => {
    await eventually(() => expect(guests.host.qemus()).toHaveLength(1), 60_000);
    const guest = await guests.host.guest('idle');
    await eventually(async () => {
      const { status } = await guests.host.guest('idle');
      expect(Object.values(status.activePods)).toEqual([guest.status.nodeName]);
    }, 60_000);
    await guests.remove('idle');
  });

  it(`that writes to its memory and to its disk moves ${IN_A_ROW} times in a row`, async () => {
    await guests.host.create(claim('busy', 'shared'));
    await guests.create('busy', probe({ arguments: 'mib=16 hz=200 rate=20 write=5', volumes: [shared('busy')] }));
    for (let move = 0; move < IN_A_ROW; move++) await guests.move('busy');
    await expectChecked('busy', 'memory', 'disk');
    expect(await guests.isWhole('busy')).toHaveLength(IN_A_ROW + 1);
    const silences = guests.times.silencesMs(guests.bootOf('busy'));
    expect(silences).toHaveLength(IN_A_ROW);
    say(`silences of a busy guest: ${silences.map((ms) => `${Math.round(ms)} ms`).join(', ')}`);
    await guests.remove('busy');
  }, 900_000);

  it('takes along the disks that are its own, as they are', async () => {
    await guests.create('owner', probe({ arguments: 'mib=8 write=5 blocks=64', volumes: [own] }));
    for (let move = 0; move < 2; move++) await guests.move('owner');
    await expectChecked('owner', 'memory', 'disk');
    expect(await guests.isWhole('owner')).toHaveLength(3);
    await guests.remove('owner');
  });

  it('that is Linux moves, with its network and its clock', async () => {
    await guests.create('tux', linux({ ports: [80], arguments: 'mib=16 rate=10' }));
    await guests.move('tux');
    await expectChecked('tux', 'memory');
    const address = await guests.host.forwardOf('tux', 80);
    const answer = await eventually(async () => (await fetch(`http://${address}/`)).text(), 60_000);
    expect(answer).toContain(guests.bootOf('tux'));
    const beforeMs = await eventually(async () => {
      const askedMs = Date.now();
      expect(await guests.host.ask('tux', 'clock')).toContain('set=1');
      return askedMs;
    }, 60_000);
    const [, clock] = /clock=(\d+)/.exec(await guests.host.ask('tux', 'clock')) ?? [];
    expect(Number(clock)).toBeGreaterThanOrEqual(beforeMs / 1000 - CLOCK_SECONDS);
    expect(Number(clock)).toBeLessThanOrEqual(Date.now() / 1000 + CLOCK_SECONDS);
    await guests.remove('tux');
  });

  it('that is paused stays so, and goes on where it is let', async () => {
    await guests.create('sleeper', probe());
    // Whoever spoke but once was not heard for certain.
    await guests.host.lives('sleeper');
    expect(await guests.host.change('sleeper', 'pause')).toBe(202);
    await guests.succeeds(await guests.ask('sleeper'));
    const { podUID } = await guests.holder('sleeper');
    expect(guests.host.logs().get(podUID) ?? '').not.toContain('guest boot=');
    // Its machine elsewhere takes over what it was a moment later.
    await eventually(async () => expect((await guests.host.guest('sleeper')).status.phase).toBe('Running'));
    expect(await guests.host.change('sleeper', 'unpause')).toBe(202);
    expect(await guests.isWhole('sleeper')).toHaveLength(2);
    await guests.remove('sleeper');
  });
});

describe('whoever speaks to a guest', () => {
  it('finds it at its console again', async () => {
    await guests.create('talker', probe());
    expect(await guests.host.ask('talker', 'ping before')).toContain('before');
    await guests.move('talker');
    expect(await guests.host.ask('talker', 'ping after')).toContain('after');
    await guests.remove('talker');
  });
});

describe('a guest that cannot move', () => {
  it('says why before anybody tries, and is refused', async () => {
    await guests.host.create(claim('pinned', 'local'));
    const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: 'pinned' } } }];
    await guests.create('pinned', probe({ volumes }));
    const answer = await guests.request('pinned-0', { vmiName: 'pinned' });
    expect(answer.expect(422).json.message).toMatch(/DisksNotLiveMigratable/);
    await guests.remove('pinned');
  });

  it('because no node fits learns at once why each does not', async () => {
    await guests.create('picky', probe());
    const migration = await guests.ask('picky', { addedNodeSelector: { zone: 'moon' } });
    await eventually(async () => {
      const said = JSON.stringify((await guests.halves(migration)).map(({ status }) => status?.conditions ?? []));
      for (const node of ['node-1', 'node-2']) expect(said).toContain(node);
    });
    await guests.cancel(migration);
    await guests.isGone(migration);
    await guests.isWhole('picky');
    await guests.remove('picky');
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(guests.host.assertNeverDoubled()).toBeGreaterThan(50));
});
