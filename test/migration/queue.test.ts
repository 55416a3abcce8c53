import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything, EventStream } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { probe, virtualMachine } from '../support/guest-manifests.ts';
import { isOtherHalf, mostAtOnce, noSlotIsTaken } from '../support/moves-at-once.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { IS_FULL, IS_PAIRED } from '../support/sample.ts';
import { say } from '../support/say.ts';

/** Many migrations at once: which of them go, in what order, and never more than may. */

vi.setConfig({ testTimeout: 400_000, hookTimeout: 240_000 });

const CROWD = IS_FULL && !IS_PAIRED ? 50 : 8;
const LIMITS = {
  parallelMigrationsPerCluster: 3,
  parallelOutboundMigrationsPerNode: 2,
  parallelInboundMigrationsPerNode: 2,
};
const names = Array.from({ length: CROWD }, (_, index) => `crowd-${index}`);

let guests: MovingGuests;
let events: EventStream;
beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: 3 });
  await guests.configure(LIMITS, ['MigrationDowntimeTuning']);
  await Promise.all(names.map((name) => guests.host.create(virtualMachine(name, probe({ tickMs: 100 })))));
  for (const name of names) await guests.knows(name);
  events = await guests.watchMigrations();
});
afterAll(() => guests.stop());

/** Whether a migration has a place. */
const isUnderWay = ({ status }: Anything): boolean =>
  ['Scheduling', 'Scheduled', 'PreparingTarget', 'TargetReady', 'Running'].includes(status?.phase);

describe('migrations', () => {
  it(`of ${CROWD} guests at once all come to their turn, and never are more than may`, async () => {
    const asked = await Promise.all(names.map((name) => guests.ask(name)));
    await eventually(async () => {
      const left = (await guests.migrations()).filter(({ status }) => !['Succeeded', 'Failed'].includes(status?.phase));
      expect(left.map(({ metadata }) => metadata.name)).toEqual([]);
    }, 600_000);
    for (const migration of asked) await guests.succeeds(migration);
    const { all, from, to } = mostAtOnce(events);
    say(`at most ${all} at once, ${from} from a node, ${to} to a node`);
    expect(all).toBeLessThanOrEqual(LIMITS.parallelMigrationsPerCluster);
    expect(from).toBeLessThanOrEqual(LIMITS.parallelOutboundMigrationsPerNode);
    expect(to).toBeLessThanOrEqual(LIMITS.parallelInboundMigrationsPerNode);
    for (const name of names) await guests.isWhole(name);
  }, 900_000);

  it('of one guest are one at a time, also when two are asked for in the same instant', async () => {
    const [name = ''] = names;
    const answers = await Promise.all([0, 1, 2, 3].map((index) => guests.request(`twin-${index}`, { vmiName: name })));
    const made = answers.flatMap(({ status }, index) => (status === 201 ? [`twin-${index}`] : []));
    expect(made.length).toBeGreaterThan(0);
    const ended = await Promise.all(made.map((migration) => guests.ends(migration)));
    expect(ended.filter(({ status }) => status.phase === 'Succeeded')).toHaveLength(1);
    for (const answer of answers) if (answer.status !== 201) expect(answer.text).toContain('in-flight migration');
    await guests.isWhole(name);
  });

  it('go by class, once there is room, whoever came while there was none', async () => {
    await guests.configure({ parallelMigrationsPerCluster: 1 });
    await guests.policy('held', { pace: 'held' }, { bandwidthPerMigration: '1Mi', maxDowntimeMs: 1 });
    await guests.create('first', probe({ arguments: 'mib=16 hz=200 rate=20' }), { pace: 'held' });
    const first = await guests.ask('first');
    await guests.reaches(first, 'Running');
    const classes = [undefined, 'system-maintenance', 'user-triggered', 'system-critical'];
    const asked: string[] = [];
    for (const [index, priority] of [...classes, ...classes].entries())
      asked.push(await guests.ask(names[index] ?? '', priority === undefined ? {} : { priority }));
    for (const migration of asked) await guests.reaches(migration, 'Pending');
    const since = events.events.length;
    await guests.cancel(first);
    for (const migration of asked) await guests.succeeds(migration);
    const order: string[] = [];
    for (const { object } of events.events.slice(since))
      if (
        asked.includes(object.metadata.name) &&
        !isOtherHalf(object) &&
        isUnderWay(object) &&
        !order.includes(object.metadata.name)
      )
        order.push(object.metadata.name);
    const rank = (migration: string): number => classes.length - (asked.indexOf(migration) % classes.length);
    expect(order.map(rank)).toEqual([1, 1, 2, 2, 3, 3, 4, 4]);
    await guests.isGone(first);
    await guests.remove('first');
    await guests.configure(LIMITS);
  });

  it('are not held up by one that cannot go', async () => {
    const [blocked = '', free = ''] = names;
    const stuck = await guests.ask(blocked, { priority: 'system-critical', addedNodeSelector: { zone: 'moon' } });
    await guests.succeeds(await guests.ask(free));
    expect((await guests.migration(stuck)).status.phase).not.toBe('Succeeded');
    await guests.cancel(stuck);
    await guests.isGone(stuck);
  });

  it('wait while a quota leaves no room, and go once it does', async () => {
    const [name = ''] = names;
    const path = `/api/v1/namespaces/${guests.targetNamespaceOf(name)}/resourcequotas`;
    const quota = {
      apiVersion: 'v1',
      kind: 'ResourceQuota',
      metadata: { name: 'tight' },
      spec: { hard: { pods: '999' } },
    };
    (await guests.host.api.request('POST', path, { body: quota })).expect(201);
    const used = await eventually(async () => {
      const { json } = await guests.host.api.request('GET', `${path}/tight`);
      expect(json.status?.used?.pods).toBeDefined();
      return json.status.used.pods;
    });
    const headers = { 'content-type': 'application/merge-patch+json' };
    const body = { spec: { hard: { pods: used } } };
    (await guests.host.api.request('PATCH', `${path}/tight`, { body, headers })).expect(200);
    await eventually(async () => {
      const { json } = await guests.host.api.request('GET', `${path}/tight`);
      expect(json.status.hard.pods).toBe(used);
    });
    const migration = await guests.ask(name);
    await eventually(async () => {
      const conditions = (await guests.halves(migration)).flatMap(({ status }) => status?.conditions ?? []);
      expect(JSON.stringify(conditions)).toContain('migrationRejectedByResourceQuota');
    });
    (await guests.host.api.request('DELETE', `${path}/tight`)).expect(200);
    await guests.succeeds(migration);
    await guests.isWhole(name);
  });

  it('leave no slot taken, and no guest that ran twice', async () => {
    await noSlotIsTaken(guests.host.api);
    expect(guests.host.assertNeverDoubled()).toBeGreaterThan(10);
  });
});
