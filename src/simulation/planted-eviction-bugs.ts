import type { Plan, Strike } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import { type Act, isController, onlyWith } from './provocations.ts';
import { misreading } from './spoilt-transports.ts';

/** One bug at least for each invariant of evictions. */

const GUESTS_FIRST: readonly Act[] = Array.from(
  { length: 12 },
  (_, index) => [index * 500, 'createProtected'] as const,
);
const HORIZON_MS = 200_000;

/** Guests are driven off all the time. */
function repeated(what: Act[1]): readonly Act[] {
  return Array.from({ length: 12 }, (_, index) => [60_000 + index * 8000, what] as const);
}

/** Somebody drains one node after the other, and no webhook is there. */
function withUnansweredDrains(plan: Plan): Plan {
  const strikes: Strike[] = [{ atMs: 50_000, what: 'webhooks-down', victim: 0, durationMs: HORIZON_MS }];
  return onlyWith(plan, HORIZON_MS, [...GUESTS_FIRST, ...repeated('drainNode')], strikes);
}

/** Guests are preempted one after the other. */
function withPreemption(plan: Plan): Plan {
  return onlyWith(plan, HORIZON_MS, [...GUESTS_FIRST, ...repeated('preempt')]);
}

/** Some guests have to leave by a certain time, others at any, and all wait; then one goes after the other. */
function withALine(plan: Plan): Plan {
  return onlyWith(plan, HORIZON_MS + 60_000, [
    ...GUESTS_FIRST,
    [100_000, 'holdMoves'],
    ...[0, 1, 2].map((index): Act => [130_000 + index * 1000, 'evictLauncher']),
    ...[0, 1, 2].map((index): Act => [140_000 + index * 1000, 'preempt']),
    [180_000, 'slowMoves'],
  ]);
}

/** Nobody wants anything. */
function withGuestsAlone(plan: Plan): Plan {
  return onlyWith(plan, HORIZON_MS / 2, GUESTS_FIRST);
}

/** Somebody drains nodes, and thinks better of it at the end. */
function withDrains(plan: Plan): Plan {
  return onlyWith(plan, HORIZON_MS, [...GUESTS_FIRST, ...repeated('drainNode')]);
}

export const PLANTED_EVICTION_BUGS: readonly PlantedBug[] = [
  {
    name: 'overlooked-budgets',
    description: 'whoever counts for budgets takes them for ones that keep nobody, and no webhook is there',
    scenario: 'evictions',
    invariant: 'protected-pods-stay',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withUnansweredDrains,
    spoilTransport: (component, transport) =>
      /^(disruption|manager)/.test(component)
        ? misreading(transport, (text, path) =>
            path.includes('/poddisruptionbudgets') ? text.replaceAll(/"minAvailable":\d+/g, '"minAvailable":0') : text,
          )
        : transport,
  },
  {
    name: 'hasty-agents',
    description: 'agents take pods that were preempted for ones that somebody wants gone',
    scenario: 'evictions',
    invariant: 'protected-guests-go-on',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withPreemption,
    spoilTransport: (component, transport) =>
      component.startsWith('node-')
        ? misreading(transport, (text) =>
            text.replaceAll('"DisruptionTarget"', '"unseen"').replaceAll('"evacuationCauses":', '"unseen":'),
          )
        : transport,
  },
  {
    name: 'timeless-queue',
    description: 'the controllers do not see by when guests have to be gone: they go by age alone',
    scenario: 'evictions',
    invariant: 'order-holds',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withALine,
    spoilTransport: (component, transport) =>
      isController(component)
        ? misreading(transport, (text, path) =>
            path.includes('/virtualmachineinstances') ? text.replaceAll('"deadline":', '"unseen":') : text,
          )
        : transport,
  },
  {
    name: 'imagined-marks',
    description: 'the controllers take all guests for ones that have to leave their node',
    scenario: 'evictions',
    invariant: 'evacuated-for-cause',
    firstSeed: 1,
    seedsMax: 10,
    provoke: withGuestsAlone,
    spoilTransport: (component, transport) =>
      isController(component)
        ? misreading(transport, (text, path) =>
            path.includes('/virtualmachineinstances')
              ? text.replaceAll(/"nodeName":"(node-\d)"/g, '"nodeName":"$1","evacuationNodeName":"$1"')
              : text,
          )
        : transport,
  },
  {
    name: 'unheard-uncordons',
    description: 'the controllers take nodes for cordoned that are not any more',
    scenario: 'evictions',
    invariant: 'evacuations-settle',
    firstSeed: 9,
    seedsMax: 10,
    provoke: withDrains,
    spoilTransport: (component, transport) =>
      isController(component)
        ? misreading(transport, (text, path) =>
            path.includes('/api/v1/nodes') ? text.replaceAll('"unschedulable":false', '"unschedulable":true') : text,
          )
        : transport,
  },
];
