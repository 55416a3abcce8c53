import type { Plan, Strike } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import { type Act, CONTROLLERS, GUESTS, onlyWith, repeated } from './provocations.ts';
import { misreading } from './spoilt-transports.ts';

const GUESTS_FIRST = repeated('createProtected', 12, 0, 500);
const HORIZON_MS = 200_000;

/** Guests are driven off all the time. */
function allTheTime(what: Act[1]): readonly Act[] {
  return [...GUESTS_FIRST, ...repeated(what, 12, 60_000, 8000)];
}

/** Somebody drains one node after the other, and no webhook is there. */
function withUnansweredDrains(plan: Plan): Plan {
  const strikes: Strike[] = [{ atMs: 50_000, what: 'webhooks-down', victim: 0, durationMs: HORIZON_MS }];
  return onlyWith(plan, HORIZON_MS, allTheTime('drainNode'), strikes);
}

/** Guests are preempted one after the other. */
function withPreemption(plan: Plan): Plan {
  return onlyWith(plan, HORIZON_MS, allTheTime('preempt'));
}

/** Some guests have to leave by a certain time, others at any, and all wait; then one goes after the other. */
function withALine(plan: Plan): Plan {
  return onlyWith(plan, HORIZON_MS + 60_000, [
    ...GUESTS_FIRST,
    [100_000, 'holdMoves'],
    ...repeated('evictLauncher', 3, 130_000, 1000),
    ...repeated('preempt', 3, 140_000, 1000),
    [180_000, 'slowMoves'],
  ]);
}

/** Nobody wants anything. */
function withGuestsAlone(plan: Plan): Plan {
  return onlyWith(plan, HORIZON_MS / 2, GUESTS_FIRST);
}

/** Somebody drains nodes, and thinks better of it at the end. */
function withDrains(plan: Plan): Plan {
  return onlyWith(plan, HORIZON_MS, allTheTime('drainNode'));
}

/** One bug at least for each invariant of evictions. */
export const PLANTED_EVICTION_BUGS: readonly PlantedBug[] = [
  {
    name: 'overlooked-budgets',
    description: 'whoever counts for budgets takes them for ones that keep nobody, and no webhook is there',
    scenario: 'evictions',
    invariant: 'protected-pods-stay',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withUnansweredDrains,
    whose: /^(disruption|manager)/,
    spoilTransport: (transport) =>
      misreading(
        transport,
        (text) => text.replaceAll(/"minAvailable":\d+/g, '"minAvailable":0'),
        '/poddisruptionbudgets',
      ),
  },
  {
    name: 'hasty-agents',
    description: 'agents take pods that were preempted for ones that somebody wants gone',
    scenario: 'evictions',
    invariant: 'protected-guests-go-on',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withPreemption,
    whose: /^node-/,
    spoilTransport: (transport) =>
      misreading(transport, (text) =>
        text.replaceAll('"DisruptionTarget"', '"unseen"').replaceAll('"evacuationCauses":', '"unseen":'),
      ),
  },
  {
    name: 'timeless-queue',
    description: 'the controllers do not see by when guests have to be gone: they go by age alone',
    scenario: 'evictions',
    invariant: 'order-holds',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withALine,
    whose: CONTROLLERS,
    spoilTransport: (transport) => misreading(transport, (text) => text.replaceAll('"deadline":', '"unseen":'), GUESTS),
  },
  {
    name: 'imagined-marks',
    description: 'the controllers take all guests for ones that have to leave their node',
    scenario: 'evictions',
    invariant: 'evacuated-for-cause',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withGuestsAlone,
    whose: CONTROLLERS,
    spoilTransport: (transport) =>
      misreading(
        transport,
        (text) => text.replaceAll(/"nodeName":"(node-\d)"/g, '"nodeName":"$1","evacuationNodeName":"$1"'),
        GUESTS,
      ),
  },
  {
    name: 'unheard-uncordons',
    description: 'the controllers take nodes for cordoned that are not any more',
    scenario: 'evictions',
    invariant: 'evacuations-settle',
    firstSeed: 9,
    seedsMax: 10,
    provoke: withDrains,
    whose: CONTROLLERS,
    spoilTransport: (transport) =>
      misreading(
        transport,
        (text) => text.replaceAll('"unschedulable":false', '"unschedulable":true'),
        '/api/v1/nodes',
      ),
  },
];
