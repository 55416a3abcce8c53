import { LyingDisk } from './lying-disk.ts';
import type { Plan } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import { type Act, CONTROLLERS, GUESTS, MIGRATIONS, onlyWith, repeated, withServerCrashes } from './provocations.ts';
import { endingAtCancel } from './spoilt-hypervisors.ts';
import { forgetful, misreading, swallowing } from './spoilt-transports.ts';

const GUESTS_FIRST = repeated('createMovable', 12, 0, 500);

/** All guests wait to move, for long enough that everybody knows; then one goes after the other. */
function withALine(plan: Plan): Plan {
  return onlyWith(plan, 500_000, [
    ...GUESTS_FIRST,
    [40_000, 'holdMoves'],
    [60_000, 'migrateAll'],
    [380_000, 'slowMoves'],
  ]);
}

/** Nobody gets any further, and somebody thinks better of it. */
function withCancelsInLine(plan: Plan): Plan {
  return onlyWith(plan, 80_000, [
    ...GUESTS_FIRST,
    [30_000, 'holdMoves'],
    [40_000, 'migrateAll'],
    [60_000, 'deleteMigration'],
  ]);
}

/** Some guests move once. */
function withOneRound(plan: Plan): Plan {
  return onlyWith(plan, 60_000, [...GUESTS_FIRST, [40_000, 'migrateAll']]);
}

/** Guests move all the time, and are called back half of the time. */
function withManyMoves(plan: Plan): Plan {
  const rounds = Array.from({ length: 8 }, (_, index): Act[] => {
    const atMs = 40_000 + index * 40_000;
    return [
      [atMs, 'migrateAll'],
      [atMs + 1500, 'deleteMigration'],
      [atMs + 3000, 'deleteMigration'],
    ];
  });
  return onlyWith(plan, 400_000, [...GUESTS_FIRST, ...rounds.flat()]);
}

/** One bug at least for each invariant of migrations. */
export const PLANTED_MIGRATION_BUGS: readonly PlantedBug[] = [
  {
    name: 'swallowed-slots',
    description: 'some of what is written about slots gets lost, and is taken for done',
    scenario: 'migrations',
    invariant: 'slots-hold',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withManyMoves,
    whose: CONTROLLERS,
    spoilTransport: (transport, random) =>
      swallowing(transport, random, {
        chance: 0.5,
        isSwallowed: ({ method, path }) => method === 'PUT' && path.includes('/configmaps/'),
      }),
  },
  {
    name: 'confused-classes',
    description: 'the controllers take the most urgent migrations for the least urgent ones',
    scenario: 'migrations',
    invariant: 'order-holds',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withALine,
    whose: CONTROLLERS,
    spoilTransport: (transport) =>
      misreading(transport, (text) => text.replaceAll('"priority":"system-critical"', '"priority":"none"'), MIGRATIONS),
  },
  {
    name: 'blind-controllers',
    description: 'the controllers take migrations for over that are under way, and guests for free that move',
    scenario: 'migrations',
    invariant: 'one-move-at-a-time',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withManyMoves,
    whose: CONTROLLERS,
    spoilTransport: (transport) =>
      misreading(
        misreading(
          transport,
          (text) => text.replaceAll(/"phase":"(?:PreparingTarget|TargetReady|Running)"/g, '"phase":"Failed"'),
          MIGRATIONS,
        ),
        (text) => text.replaceAll('"migrationUid":', '"unseen":').replaceAll('"successor":', '"unseen":'),
        GUESTS,
      ),
  },
  {
    name: 'misread-records',
    description: 'the controllers take every guest for one that runs on the second node',
    scenario: 'migrations',
    invariant: 'verdicts-agree',
    firstSeed: 5,
    seedsMax: 10,
    provoke: withManyMoves,
    whose: CONTROLLERS,
    spoilTransport: (transport) =>
      misreading(transport, (text) => text.replaceAll(/("holder":\{[^}]*"node":)"node-\d"/g, '$1"node-1"'), GUESTS),
  },
  {
    name: 'forgotten-progress',
    description: 'the disk loses what was told of copies',
    scenario: 'migrations',
    invariant: 'progress-grows',
    firstSeed: 1,
    seedsMax: 20,
    spoilDisk: (engine) => new LyingDisk(engine),
    provoke: (plan) => withServerCrashes(withManyMoves(plan)),
  },
  {
    name: 'unheard-cancels',
    description: 'the controllers do not see that migrations were deleted',
    scenario: 'migrations',
    invariant: 'cancels-end',
    firstSeed: 3,
    seedsMax: 10,
    provoke: withCancelsInLine,
    whose: CONTROLLERS,
    spoilTransport: (transport) =>
      misreading(transport, (text) => text.replaceAll('"deletionTimestamp":', '"unseen":'), MIGRATIONS),
  },
  {
    name: 'deadly-cancels',
    description: 'machines end when their migration is cancelled',
    scenario: 'migrations',
    invariant: 'no-guest-lost',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withManyMoves,
    spoilHypervisor: endingAtCancel,
  },
  {
    name: 'unheard-moves',
    description: 'the controllers are not told that guests have arrived',
    scenario: 'migrations',
    invariant: 'migrations-settle',
    firstSeed: 2,
    seedsMax: 10,
    provoke: withOneRound,
    whose: CONTROLLERS,
    spoilTransport: (transport, random) =>
      forgetful(transport, random, {
        chance: 1,
        isForgotten: ({ path }, line) => path.includes(GUESTS) && line.includes('"targetNodeDomainReadyTimestamp"'),
      }),
  },
];
