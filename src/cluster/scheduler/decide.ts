import type { Random } from '../../env/ports.ts';
import type { ClusterState } from '../../migration/fit/cluster-state.ts';
import { Demand } from '../../migration/fit/fit.ts';
import type { NodeState } from '../../migration/fit/node-state.ts';
import type { PodInfo } from '../../migration/fit/pod-info.ts';
import type { FilterName, Reason } from '../../migration/fit/reason.ts';
import { best } from '../../migration/fit/score.ts';
import { type VolumePlan, volumePlanner } from '../../migration/fit/volume-plan.ts';
import type { Budgets } from './budgets.ts';
import { fitErrorMessage, refusalMessage } from './fit-error.ts';
import type { Nominations } from './nominations.ts';
import { preempt } from './preemption.ts';
import { reasonsBesideNominated } from './trial.ts';

/** What a scheduler knows. */
export interface SchedulerView {
  readonly cluster: ClusterState;
  readonly nominations: Nominations;
  readonly budgets: Budgets;
}

/** What to do about a pod that has no node. */
export type Decision =
  | {
      readonly type: 'bind';
      readonly node: string;
      /** What has to happen to its claims before; undefined where all are bound. */
      readonly volumes: VolumePlan | undefined;
    }
  | Unschedulable
  /** The pod waits for a node where the victims make way; they are ordered, most important first. */
  | (Omit<Unschedulable, 'type' | 'nomination'> & {
      readonly type: 'preempt';
      readonly node: string;
      readonly victims: readonly PodInfo[];
    });

interface Unschedulable {
  readonly type: 'wait';
  /** Why it fits nowhere, as `kubectl describe` shows it. */
  readonly message: string;
  /** The filters that stand in its way on some node: what changes nothing for them cannot help. */
  readonly filters: ReadonlySet<FilterName>;
  /** Whether the node that the pod waits for, if any, remains the one. */
  readonly nomination: 'keep' | 'clear';
}

/** Decides about one pod, given all there is to know. Changes nothing. */
export function decide(pod: PodInfo, view: SchedulerView, random: Random): Decision {
  const { cluster, nominations } = view;
  if (cluster.nodes.size === 0) return noNodes();
  const demand = new Demand(pod, cluster);
  const nominated = cluster.nodes.get(nominations.nodeOf(pod.uid) ?? '');
  if (nominated && reasonsBesideNominated(demand, nominated, nominations).length === 0)
    return bindTo(nominated, pod, cluster);
  const refusals = new Map<NodeState, readonly Reason[]>();
  const fitting: NodeState[] = [];
  for (const node of cluster.nodes.values()) {
    const reasons = reasonsBesideNominated(demand, node, nominations);
    if (reasons.length === 0) fitting.push(node);
    else refusals.set(node, reasons);
  }
  const chosen = best(pod, fitting, cluster, random);
  if (chosen) return bindTo(chosen, pod, cluster);
  return unschedulable(demand, refusals, view, random);
}

function bindTo({ name, info }: NodeState, pod: PodInfo, { lookups }: ClusterState): Decision {
  return { type: 'bind', node: name, volumes: volumePlanner(pod, lookups)?.(info) };
}

function noNodes(): Decision {
  const filters = new Set<FilterName>(['node-name']);
  return { type: 'wait', message: 'no nodes available to schedule pods', filters, nomination: 'clear' };
}

function unschedulable(
  demand: Demand,
  refusals: ReadonlyMap<NodeState, readonly Reason[]>,
  { cluster: { nodes }, nominations, budgets }: SchedulerView,
  random: Random,
): Decision {
  const reasons = [...refusals.values()].flat();
  const filters = new Set(reasons.map(({ filter }) => filter));
  const message = demand.refusal
    ? refusalMessage(nodes.size, demand.refusal.message)
    : fitErrorMessage(
        nodes.size,
        reasons.map((reason) => reason.message),
      );
  const preemption = preempt({ demand, nodes, refusals, nominations, budgets, random });
  if (preemption.type === 'none') {
    const whole = `${message} preemption: ${preemption.message}`;
    return { type: 'wait', message: whole, filters, nomination: preemption.nomination };
  }
  const { node, victims } = preemption.candidate;
  return { type: 'preempt', node: node.name, victims, message, filters };
}
