import type { Random } from '../../env/ports.ts';
import type { Demand } from '../../migration/fit/fit.ts';
import type { NodeState } from '../../migration/fit/node-state.ts';
import type { PodInfo } from '../../migration/fit/pod-info.ts';
import type { Reason } from '../../migration/fit/reason.ts';
import type { Budgets } from './budgets.ts';
import { fitErrorMessage } from './fit-error.ts';
import type { Nominations } from './nominations.ts';
import { reasonsBesideNominated, Trial } from './trial.ts';

/**
 * Which pods make way for one of higher priority. As upstream: on each node that could do once pods are gone, all lesser
 * pods are imagined away, and as many as possible come back, those that budgets protect first, then the more important
 * ones; of the nodes, the one that loses least is chosen.
 */

/** A node, and the pods that have to go there, most important first. */
export interface Candidate {
  readonly node: NodeState;
  readonly victims: readonly PodInfo[];
  /** How many of them a budget protects. */
  readonly violations: number;
}

export type Preemption =
  | { readonly type: 'preempt'; readonly candidate: Candidate }
  /** Nothing is done; `nomination` says whether the node that the pod waits for remains the one. */
  | { readonly type: 'none'; readonly message: string; readonly nomination: 'keep' | 'clear' };

export interface PreemptionInput {
  readonly demand: Demand;
  readonly nodes: ReadonlyMap<string, NodeState>;
  /** Why each node does not do. */
  readonly refusals: ReadonlyMap<NodeState, readonly Reason[]>;
  readonly nominations: Nominations;
  readonly budgets: Budgets;
  readonly random: Random;
}

/** Nodes that are looked at before the best so far is taken: a tenth, but not fewer than this. */
const CANDIDATES_MIN = 100;
const CANDIDATES_SHARE = 0.1;

const NOT_HELPFUL = 'Preemption is not helpful for scheduling';
const NO_VICTIMS = 'No preemption victims found for incoming pod';

/** Decides whether, where and whom the pod pushes out. It must fit no node as things are. */
export function preempt(input: PreemptionInput): Preemption {
  const { demand, nodes, refusals } = input;
  const obstacle = obstacleOf(input);
  if (obstacle !== undefined) return { type: 'none', message: obstacle, nomination: 'keep' };
  const helpable = [...refusals].filter(([, reasons]) => reasons.every(({ isResolvable }) => isResolvable));
  const { candidates, failures } = findCandidates(input, demand.refusal ? [] : helpable.map(([node]) => node));
  const best = leastHarm(candidates);
  if (best) return { type: 'preempt', candidate: best };
  const hopeless = Array.from({ length: nodes.size - failures.length }, () => NOT_HELPFUL);
  const message = fitErrorMessage(nodes.size, [...failures.flat(), ...hopeless]);
  return { type: 'none', message, nomination: 'clear' };
}

/** Why the pod may push nobody out now. */
function obstacleOf({ demand: { pod }, nodes, refusals, nominations }: PreemptionInput): string | undefined {
  if (pod.pod.spec?.preemptionPolicy === 'Never') return 'not eligible due to preemptionPolicy=Never.';
  const node = nodes.get(nominations.nodeOf(pod.uid) ?? '');
  if (!node || refusals.get(node)?.some(({ isResolvable }) => !isResolvable)) return undefined;
  const isMakingWay = [...node.pods.values()].some((other) => other.priority < pod.priority && isPreempted(other));
  return isMakingWay ? 'not eligible due to a terminating pod on the nominated node.' : undefined;
}

/** Whether a pod is on its way out because a scheduler wanted it. */
function isPreempted({ isTerminating, pod }: PodInfo): boolean {
  const condition = pod.status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  return isTerminating && condition?.status === 'True' && condition.reason === 'PreemptionByScheduler';
}

function findCandidates(
  input: PreemptionInput,
  nodes: readonly NodeState[],
): { readonly candidates: readonly Candidate[]; readonly failures: readonly (readonly string[])[] } {
  const wanted = Math.max(CANDIDATES_MIN, Math.floor(nodes.length * CANDIDATES_SHARE));
  // Starting anywhere, so that on a large cluster not the same nodes are always the ones that are looked at.
  const offset = nodes.length > wanted ? Math.floor(input.random.number() * nodes.length) : 0;
  const candidates: Candidate[] = [];
  const failures: string[][] = [];
  for (const node of [...nodes.slice(offset), ...nodes.slice(0, offset)]) {
    const result = selectVictims(input, node);
    if ('victims' in result) candidates.push(result);
    else failures.push(result.map(({ message }) => message));
    if (candidates.length >= wanted && candidates.some(({ violations }) => violations === 0)) break;
  }
  return { candidates, failures };
}

/** The fewest and least important pods that have to go for the pod to fit; reasons where that is not to be had. */
export function selectVictims(
  { demand, nominations, budgets }: Pick<PreemptionInput, 'demand' | 'nominations' | 'budgets'>,
  node: NodeState,
): Candidate | readonly Pick<Reason, 'message'>[] {
  const lesser = [...node.pods.values()].filter(({ priority }) => priority < demand.pod.priority);
  if (lesser.length === 0) return [{ message: NO_VICTIMS }];
  const trial = new Trial(demand, node);
  try {
    for (const pod of lesser) trial.remove(pod);
    const reasons = reasonsBesideNominated(demand, trial.node, nominations);
    if (reasons.length > 0) return reasons;
    const ordered = lesser.sort(byImportance);
    const violated = budgets.violatedBy(ordered);
    const isSpared = (pod: PodInfo): boolean => {
      trial.add(pod);
      if (reasonsBesideNominated(demand, trial.node, nominations).length === 0) return true;
      trial.remove(pod);
      return false;
    };
    const guarded = ordered.filter((pod) => violated.has(pod) && !isSpared(pod));
    const unguarded = ordered.filter((pod) => !violated.has(pod) && !isSpared(pod));
    return { node, victims: [...guarded, ...unguarded].sort(byImportance), violations: guarded.length };
  } finally {
    trial.end();
  }
}

/** Higher priority first, then longer running. */
function byImportance(a: PodInfo, b: PodInfo): number {
  return b.priority - a.priority || compare(startOf(a), startOf(b));
}

/** A pod that has not started counts as starting now, after all that have. */
function startOf({ pod }: PodInfo): number {
  return pod.status?.startTime === undefined ? Number.POSITIVE_INFINITY : Date.parse(pod.status.startTime);
}

function compare(a: number, b: number): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}

/**
 * The candidate that costs least: fewest pods that budgets protect, lowest highest priority, lowest sum of priorities,
 * fewest pods, and of the most important ones the latest start. The first of equals.
 */
export function leastHarm(candidates: readonly Candidate[]): Candidate | undefined {
  return candidates.reduce<Candidate | undefined>(
    (best, candidate) => (best && compareHarm(candidate, best) >= 0 ? best : candidate),
    undefined,
  );
}

/** Makes every priority positive, so that fewer pods are always the smaller sum. */
const PRIORITY_SHIFT = 2 ** 31;

function compareHarm(a: Candidate, b: Candidate): number {
  const highest = ({ victims }: Candidate): number => victims[0]?.priority ?? Number.NEGATIVE_INFINITY;
  const sum = ({ victims }: Candidate): number =>
    victims.reduce((total, { priority }) => total + priority + PRIORITY_SHIFT, 0);
  return (
    compare(a.violations, b.violations) ||
    compare(highest(a), highest(b)) ||
    compare(sum(a), sum(b)) ||
    compare(a.victims.length, b.victims.length) ||
    compare(earliestStart(b), earliestStart(a))
  );
}

/** When the first of the most important victims started. */
function earliestStart({ victims }: Candidate): number {
  const most = victims.filter(({ priority }) => priority === victims[0]?.priority);
  return Math.min(...most.map(startOf));
}
