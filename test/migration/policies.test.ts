import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { probe } from '../support/guest-manifests.ts';
import { leftOut } from '../support/left-out.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { PostCopyOffer } from '../support/post-copy.ts';
import { say } from '../support/say.ts';
import { IS_PAIRED, sample } from '../support/sample.ts';

/** What each option of a policy does to a guest that moves, and that it is told afterwards. */

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let guests: MovingGuests;
let postCopy: PostCopyOffer;

beforeAll(async () => {
  postCopy = new PostCopyOffer();
  guests = await MovingGuests.start({ nodes: 2 });
  await guests.configure({}, ['MigrationDowntimeTuning', 'MigrationStallDetection']);
});
afterAll(async () => {
  await guests.stop();
  postCopy.withdraw();
});

/** A guest that writes so fast that a copy at 8 MiB/s never comes to its end by itself. */
const WILD = 'mib=24 hz=200 rate=60';
const NEVER_ENDS = { bandwidthPerMigration: '8Mi', maxDowntimeMs: 30 };

/** What is done about guests that write too fast: each told from the others afterwards. */
const WAYS = [
  {
    name: 'throttled',
    options: { ...NEVER_ENDS, bandwidthPerMigration: '24Mi', allowAutoConverge: true },
    work: WILD,
    decision: 'throttle',
    mode: 'PreCopy',
  },
  {
    name: 'paused',
    options: { ...NEVER_ENDS, completionTimeoutPerGiB: 9, allowWorkloadDisruption: true, allowPostCopy: false },
    work: WILD,
    decision: 'pause',
    mode: 'Paused',
  },
  {
    name: 'stalled',
    options: {
      ...NEVER_ENDS,
      allowWorkloadDisruption: true,
      allowPostCopy: false,
      experimental: { stallDetector: { stallProgressTimeout: 3, searchLocalMinima: false } },
    },
    work: WILD,
    decision: 'pause',
    reason: 'Stalled',
    mode: 'Paused',
  },
  {
    name: 'early',
    options: { ...NEVER_ENDS, completionTimeoutPerGiB: 8, allowPostCopy: true },
    work: WILD,
    decision: 'post-copy',
    mode: 'PostCopy',
  },
  {
    name: 'stepped',
    options: {
      bandwidthPerMigration: '16Mi',
      maxDowntimeMs: 1500,
      experimental: { downtimeTuning: { initialMs: 20, steps: 4, startAfterIteration: 1, cooldownSeconds: 1 } },
    },
    work: 'mib=24 hz=200 rate=30',
    decision: 'set-downtime',
    mode: 'PreCopy',
  },
] as const;

/** Makes a guest for which a policy with these options holds, and moves it. */
async function moveUnder(name: string, options: object, work: string): Promise<Anything> {
  await guests.policy(name, { policy: name }, options);
  await guests.create(name, probe({ memory: '48Mi', arguments: work }), { policy: name });
  return guests.ends(await guests.ask(name));
}

const decisionsOf = ({ status }: Anything): string[] =>
  (status.migrationState.decisions ?? []).map(({ decision }: Anything) => decision);

/** Moves a guest, and answers how long its copy took by the source's journal: whoever is slow to decide has no part in it. */
async function timedMove(name: string): Promise<{ readonly migration: Anything; readonly copyMs: number }> {
  const home = await guests.holder(name);
  const migration = await guests.ask(name);
  await guests.noted(home, ({ kind }) => kind === 'reserved');
  const startMs = performance.now();
  await guests.noted(home, (entry) => entry.kind === 'machine' && entry.event === 'completed');
  const copyMs = Math.round(performance.now() - startMs);
  return { migration: await guests.succeeds(migration), copyMs };
}

describe('a policy', () => {
  it('limits the bandwidth, so that a copy takes as long as it must', async () => {
    await guests.policy('slow', { policy: 'slow' }, { bandwidthPerMigration: '4Mi' });
    await guests.create('slow', probe({ memory: '48Mi', arguments: 'mib=24' }), { policy: 'slow' });
    const slow = await timedMove('slow');
    const { migrationState } = slow.migration.status;
    expect(migrationState.migrationPolicyName).toBe('slow');
    expect(migrationState.migrationConfiguration.bandwidthPerMigration).toBe('4Mi');
    expect(await guests.isWhole('slow')).toHaveLength(2);
    // The same guest, without the policy.
    const path = '/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies/slow';
    (await guests.host.api.request('DELETE', path)).expect(200);
    const free = await timedMove('slow');
    expect(free.migration.status.migrationState.migrationPolicyName ?? '').toBe('');
    expect(free.migration.status.migrationState.migrationConfiguration.bandwidthPerMigration).toBe('0');
    say(`24 MiB took ${slow.copyMs} ms at 4 MiB/s, and ${free.copyMs} ms without a limit`);
    expect(slow.copyMs / free.copyMs).toBeGreaterThan(2);
    await guests.remove('slow');
  });

  it('has a copy sent plainly', async () => {
    const migration = await moveUnder('plain', { disableTLS: true }, 'mib=8');
    expect(migration.status.phase).toBe('Succeeded');
    // What goes to another namespace is encrypted whatever is said there.
    expect(migration.status.migrationState.channel.encrypted).toBe(IS_PAIRED);
    await guests.isWhole('plain');
    await guests.remove('plain');
  });

  it('gives a guest up that writes too fast, and it goes on where it is; the migration says why', async () => {
    const migration = await moveUnder('wild', { ...NEVER_ENDS, completionTimeoutPerGiB: 3 }, WILD);
    expect(migration.status.phase).toBe('Failed');
    expect(decisionsOf(migration).at(-1)).toBe('give-up');
    expect(migration.status.migrationState.failureReason).toMatch(/longer than its size allows/);
    expect(await guests.isWhole('wild')).toHaveLength(1);
    await guests.remove('wild');
  });

  it.each(sample(WAYS, 1))('has a guest that writes too fast moved all the same: $name, by $decision', async (way) => {
    const { name, options, work, decision, mode } = way;
    if (mode === 'PostCopy' && !postCopy.isPossible) return leftOut('nobody here may do post-copy');
    const migration = await moveUnder(name, options, work);
    expect(migration.status.phase, JSON.stringify(migration.status)).toBe('Succeeded');
    expect(decisionsOf(migration)).toContain(decision);
    if ('reason' in way)
      expect(migration.status.migrationState.decisions).toContainEqual(
        expect.objectContaining({ decision, reason: way.reason }),
      );
    expect(migration.status.migrationState.mode).toBe(mode);
    await guests.isWhole(name);
    await guests.remove(name);
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(guests.host.assertNeverDoubled()).toBeGreaterThan(50));
});
