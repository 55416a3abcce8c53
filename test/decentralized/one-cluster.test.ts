import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { sample } from '../support/sample.ts';

/**
 * Pairs within one cluster: of one guest, which is then an ordinary migration in two objects, and of two, in two namespaces,
 * which is the same as between clusters.
 */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const PATIENT = { bandwidthPerMigration: '1Mi', maxDowntimeMs: 1 };

const PAIRS = [
  { what: 'one guest', elsewhere: 'default', disk: 'shared' },
  { what: 'guests of two namespaces', elsewhere: 'elsewhere', disk: 'local' },
] as const;

describe.each(sample(PAIRS, 1))('a pair of $what', ({ elsewhere, disk }) => {
  let guests: MovingGuests;
  beforeAll(async () => {
    guests = await MovingGuests.start({ nodes: 2, elsewhere });
    await guests.configure({}, ['MigrationDowntimeTuning']);
    await guests.policy('endless', { pace: 'endless' }, PATIENT);
    await guests.host.create(claim('guest', disk, '4Mi'));
    const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: 'guest' } } }];
    const spec = probe({ memory: '48Mi', arguments: 'mib=24 hz=200 rate=20 write=20', volumes });
    await guests.create('guest', spec, { pace: 'endless' });
  });
  afterAll(() => guests?.stop());

  /** What is said of the right to run: which epoch, and where. */
  const recordOf = async (): Promise<Anything> => (await guests.host.guest('guest')).status.rightToRun;

  it('is called off as one, by either', async () => {
    for (let times = 0; times < 2; times++) {
      const migration = await guests.ask('guest');
      await guests.reaches(migration, 'Running');
      await guests.cancel(migration);
      await guests.isGone(migration);
      expect(await guests.isWhole('guest')).toHaveLength(1);
    }
    expect((await recordOf()).successor).toBeUndefined();
  });

  it('moves a guest with its disk there and back', async () => {
    const path = '/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies/endless';
    (await guests.host.api.request('DELETE', path)).expect(200);
    for (const stays of [2, 3]) {
      const { epoch } = await recordOf();
      await guests.move('guest');
      expect((await recordOf()).epoch).toBeGreaterThan(epoch);
      expect(guests.host.namespaceOf('guest')).toBe(stays === 2 ? elsewhere : 'default');
      expect(await guests.host.ask('guest', 'disk')).toMatch(/ bad=0\b/);
      expect(await guests.isWhole('guest')).toHaveLength(stays);
      await eventually(() => expect(guests.host.qemus()).toHaveLength(1), 60_000);
    }
    guests.host.assertNeverDoubled();
  });
});
