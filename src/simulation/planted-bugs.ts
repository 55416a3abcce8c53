import { LyingDisk } from './lying-disk.ts';
import { MuteDisk } from './mute-disk.ts';
import type { PlantedBug } from './planted-bug.ts';
import { PLANTED_EVICTION_BUGS } from './planted-eviction-bugs.ts';
import { PLANTED_MIGRATION_BUGS } from './planted-migration-bugs.ts';
import { PLANTED_PAIR_BUGS } from './planted-pair-bugs.ts';
import { CONTROLLERS, withDeaths, withServerCrashes } from './provocations.ts';
import { denyingMachines, endingNothing } from './spoilt-hypervisors.ts';
import { denying, forgetful, hasty, hollowing, misreading, miswriting, swallowing } from './spoilt-transports.ts';

const SCHEDULERS = /^scheduler/;
const COLLECTORS = /^(garbage|manager)/;
const ALL_BUT_THE_USER = /^(?!user$)/;

/** One bug at least for each invariant: a check that cannot fail is none. */
export const PLANTED_BUGS: readonly PlantedBug[] = [
  {
    name: 'lying-disk',
    description: 'the disk acknowledges what it has not written',
    scenario: 'pods',
    invariant: 'durability',
    firstSeed: 2,
    seedsMax: 10,
    spoilDisk: (engine) => new LyingDisk(engine),
    provoke: withServerCrashes,
  },
  {
    name: 'forgotten-bindings',
    description: 'the disk loses bindings that were acknowledged, so that pods are bound again',
    scenario: 'pods',
    invariant: 'bound-once',
    firstSeed: 4,
    seedsMax: 30,
    spoilDisk: (engine) => new LyingDisk(engine),
    provoke: withServerCrashes,
  },
  {
    name: 'two-schedulers',
    description: 'two replicas of each loop work at once, since nobody elects a leader',
    scenario: 'pods',
    invariant: 'no-overcommit',
    firstSeed: 2,
    seedsMax: 20,
    hasNoElection: true,
  },
  {
    name: 'blind-scheduler',
    description: 'the scheduler does not see beside whom pods do not want to be',
    scenario: 'pods',
    invariant: 'anti-affinity-holds',
    firstSeed: 1,
    seedsMax: 10,
    whose: SCHEDULERS,
    spoilTransport: (transport) => misreading(transport, (text) => text.replaceAll('"podAntiAffinity":', '"unseen":')),
  },
  {
    name: 'confused-priorities',
    description: 'the scheduler takes pods without a priority for the most important ones',
    scenario: 'pods',
    invariant: 'preemption-is-fair',
    firstSeed: 1,
    seedsMax: 10,
    whose: SCHEDULERS,
    spoilTransport: (transport) => misreading(transport, (text) => text.replaceAll('"priority":0', '"priority":2000')),
  },
  {
    name: 'hasty-preemption',
    description: 'the scheduler gives no grace to those whom it pushes out',
    scenario: 'pods',
    invariant: 'preemption-is-fair',
    firstSeed: 5,
    seedsMax: 10,
    whose: SCHEDULERS,
    spoilTransport: hasty,
  },
  {
    name: 'uncounted-evictions',
    description: 'the disruption controller does not hear of pods that are being deleted',
    scenario: 'budgets',
    invariant: 'evictions-keep-budgets',
    firstSeed: 1,
    seedsMax: 30,
    whose: /^(disruption|manager)/,
    spoilTransport: (transport, random) =>
      forgetful(transport, random, { chance: 1, isForgotten: (_, line) => line.includes('"deletionTimestamp"') }),
  },
  {
    name: 'swallowed-deletions',
    description: 'deletions are taken for done that were never sent',
    scenario: 'pods',
    invariant: 'deletions-end',
    firstSeed: 1,
    seedsMax: 5,
    spoilTransport: (transport, random) =>
      swallowing(transport, random, { chance: 0.2, isSwallowed: ({ method }) => method === 'DELETE' }),
  },
  {
    name: 'unheard-pods',
    description: 'the scheduler is not told of some new pods',
    scenario: 'pods',
    invariant: 'pods-settle',
    firstSeed: 1,
    seedsMax: 5,
    whose: SCHEDULERS,
    spoilTransport: (transport, random) =>
      forgetful(transport, random, {
        chance: 0.5,
        isForgotten: ({ path }, line) => path.includes('/pods') && line.startsWith('{"type":"ADDED"'),
      }),
  },
  {
    name: 'swallowed-taints',
    description: 'what is written about nodes by whoever looks after them gets lost',
    scenario: 'pods',
    invariant: 'nodes-settle',
    firstSeed: 1,
    seedsMax: 10,
    whose: /^(node-lifecycle|manager)/,
    spoilTransport: (transport, random) =>
      swallowing(transport, random, {
        chance: 1,
        isSwallowed: ({ method, path }) => method !== 'GET' && path.startsWith('/api/v1/nodes/'),
      }),
  },
  {
    name: 'swallowed-counts',
    description: 'what is written about budgets by whoever counts gets lost',
    scenario: 'budgets',
    invariant: 'budgets-settle',
    firstSeed: 1,
    seedsMax: 10,
    whose: ALL_BUT_THE_USER,
    spoilTransport: (transport, random) =>
      swallowing(transport, random, {
        chance: 0.3,
        isSwallowed: ({ method, path }) => method !== 'GET' && path.includes('/poddisruptionbudgets/'),
      }),
  },
  {
    name: 'missing-owners',
    description: 'the garbage collector is neither told that some owners are there, nor finds them',
    scenario: 'garbage',
    invariant: 'only-garbage-collected',
    firstSeed: 1,
    seedsMax: 10,
    whose: COLLECTORS,
    spoilTransport: (transport, random) =>
      denying(
        forgetful(transport, random, { chance: 0.5, isForgotten: (_, line) => line.startsWith('{"type":"ADDED"') }),
        random,
        { chance: 0.5, isDenied: ({ path }) => /\/member-\d+$/.test(path) },
      ),
  },
  {
    name: 'uncollected-garbage',
    description: 'the garbage collector is not told that some owners are gone',
    scenario: 'garbage',
    invariant: 'garbage-settles',
    firstSeed: 1,
    seedsMax: 10,
    whose: COLLECTORS,
    spoilTransport: (transport, random) =>
      forgetful(transport, random, { chance: 0.3, isForgotten: (_, line) => line.startsWith('{"type":"DELETED"') }),
  },
  {
    name: 'undercounted-quotas',
    description: 'whoever counts for quotas is not shown the last of the objects that are stored',
    scenario: 'quotas',
    invariant: 'quotas-hold',
    firstSeed: 1,
    seedsMax: 10,
    whose: /^(resourcequota|manager)/,
    spoilTransport: (transport) => misreading(transport, withoutLast, '/namespaces/'),
  },
  {
    name: 'swallowed-usage',
    description: 'what is written about quotas by whoever counts gets lost',
    scenario: 'quotas',
    invariant: 'quotas-settle',
    firstSeed: 1,
    seedsMax: 10,
    whose: ALL_BUT_THE_USER,
    spoilTransport: (transport, random) =>
      swallowing(transport, random, {
        chance: 1,
        isSwallowed: ({ method, path }) => method !== 'GET' && path.includes('/resourcequotas/'),
      }),
  },
  {
    name: 'lost-events',
    description: 'a watch loses events without breaking off',
    scenario: 'pods',
    invariant: 'caches-catch-up',
    firstSeed: 1,
    seedsMax: 5,
    whose: /^(?!node-)/,
    spoilTransport: (transport, random) =>
      forgetful(transport, random, { chance: 0.05, isForgotten: (_, line) => !line.includes('"BOOKMARK"') }),
  },
  {
    name: 'hollow-owners',
    description: 'the garbage collector is answered with owners of which nothing is left',
    scenario: 'garbage',
    invariant: 'no-bugs',
    firstSeed: 5,
    seedsMax: 10,
    whose: COLLECTORS,
    spoilTransport: (transport, random) =>
      hollowing(transport, random, { chance: 0.5, isHollow: ({ path }) => /\/member-\d+$/.test(path) }),
  },
  {
    name: 'mute-disk',
    description: 'the disk never answers a server that starts again',
    scenario: 'quotas',
    invariant: 'everything-runs',
    firstSeed: 2,
    seedsMax: 5,
    spoilDisk: (engine) => new MuteDisk(engine),
    provoke: withServerCrashes,
  },
  {
    name: 'denied-machines',
    description: 'agents that start again do not find the machines that run',
    scenario: 'machines',
    invariant: 'runs-once',
    firstSeed: 1,
    seedsMax: 10,
    spoilHypervisor: denyingMachines,
    provoke: withDeaths,
  },
  {
    name: 'empty-promises',
    description: 'machines that are ended go on',
    scenario: 'machines',
    invariant: 'gone-guests-end',
    firstSeed: 1,
    seedsMax: 10,
    spoilHypervisor: endingNothing,
  },
  {
    name: 'repeated-boots',
    description: 'guests boot with an id that was there before, and say again what was said',
    scenario: 'machines',
    invariant: 'lines-said-once',
    firstSeed: 1,
    seedsMax: 5,
    spoilHostChance: (random) => ({ ...random, bytes: (count) => new Uint8Array(count) }),
  },
  {
    name: 'forgotten-epochs',
    description: 'the disk loses records of the right to run that were acknowledged',
    scenario: 'machines',
    invariant: 'epochs-grow',
    firstSeed: 1,
    seedsMax: 20,
    spoilDisk: (engine) => new LyingDisk(engine),
    provoke: withServerCrashes,
  },
  {
    name: 'unheard-launchers',
    description: 'the controllers are not told that launcher pods run',
    scenario: 'machines',
    invariant: 'machines-settle',
    firstSeed: 3,
    seedsMax: 10,
    whose: CONTROLLERS,
    spoilTransport: (transport, random) =>
      forgetful(transport, random, {
        chance: 1,
        isForgotten: ({ path }, line) => path.includes('/pods?') && line.startsWith('{"type":"MODIFIED"'),
      }),
  },
  {
    name: 'overstepping-agents',
    description: 'agents write what is for the controllers to write, and are refused it',
    scenario: 'machines',
    invariant: 'machines-settle',
    firstSeed: 1,
    seedsMax: 3,
    whose: /^node-/,
    spoilTransport: (transport, random) =>
      miswriting(transport, random, {
        chance: 1,
        miswrite: (body, path) =>
          path.includes('/virtualmachineinstances/')
            ? body.replace('"status":{', '"status":{"evacuationNodeName":"here",')
            : body,
      }),
  },
  ...PLANTED_MIGRATION_BUGS,
  ...PLANTED_EVICTION_BUGS,
  ...PLANTED_PAIR_BUGS,
];

/** A list without its last object; whatever else as it is. */
function withoutLast(text: string): string {
  const list = JSON.parse(text) as { readonly items?: readonly unknown[] };
  return list.items ? JSON.stringify({ ...list, items: list.items.slice(0, -1) }) : text;
}
