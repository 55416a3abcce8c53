import { LyingDisk } from './lying-disk.ts';
import type { Plan } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import { type Act, isController, onlyWith, withServerCrashes } from './provocations.ts';
import { endingAtCancel } from './spoilt-hypervisors.ts';
import { forgetful, misreading, swallowing } from './spoilt-transports.ts';

const MIGRATIONS = '/virtualmachineinstancemigrations';
const GUESTS = '/virtualmachineinstances';

const GUESTS_FIRST: readonly Act[] = Array.from({ length: 12 }, (_, index) => [index * 500, 'createMovable'] as const);

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
    spoilTransport: (component, transport, random) =>
      isController(component)
        ? swallowing(transport, random, {
            chance: 0.5,
            isSwallowed: ({ method, path }) => method === 'PUT' && path.includes('/configmaps/'),
          })
        : transport,
  },
  {
    name: 'confused-classes',
    description: 'the controllers take the most urgent migrations for the least urgent ones',
    scenario: 'migrations',
    invariant: 'order-holds',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withALine,
    spoilTransport: (component, transport) =>
      isController(component)
        ? misreading(transport, (text, path) =>
            path.includes(MIGRATIONS) ? text.replaceAll('"priority":"system-critical"', '"priority":"none"') : text,
          )
        : transport,
  },
  {
    name: 'blind-controllers',
    description: 'the controllers take migrations for over that are under way, and guests for free that move',
    scenario: 'migrations',
    invariant: 'one-move-at-a-time',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withManyMoves,
    spoilTransport: (component, transport) =>
      isController(component)
        ? misreading(transport, (text, path) => {
            if (path.includes(MIGRATIONS))
              return text.replaceAll(/"phase":"(?:PreparingTarget|TargetReady|Running)"/g, '"phase":"Failed"');
            return path.includes(GUESTS)
              ? text.replaceAll('"migrationUid":', '"unseen":').replaceAll('"successor":', '"unseen":')
              : text;
          })
        : transport,
  },
  {
    name: 'misread-records',
    description: 'the controllers take every guest for one that runs on the second node',
    scenario: 'migrations',
    invariant: 'verdicts-agree',
    firstSeed: 4,
    seedsMax: 10,
    provoke: withManyMoves,
    spoilTransport: (component, transport) =>
      isController(component)
        ? misreading(transport, (text, path) =>
            path.includes(GUESTS) ? text.replaceAll(/("holder":\{[^}]*"node":)"node-\d"/g, '$1"node-1"') : text,
          )
        : transport,
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
    spoilTransport: (component, transport) =>
      isController(component)
        ? misreading(transport, (text, path) =>
            path.includes(MIGRATIONS) ? text.replaceAll('"deletionTimestamp":', '"unseen":') : text,
          )
        : transport,
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
    firstSeed: 1,
    seedsMax: 10,
    provoke: withOneRound,
    spoilTransport: (component, transport, random) =>
      isController(component)
        ? forgetful(transport, random, {
            chance: 1,
            isForgotten: ({ path }, line) => path.includes(GUESTS) && line.includes('"targetNodeDomainReadyTimestamp"'),
          })
        : transport,
  },
];
