import type { Filter } from '../filter.ts';
import type { NodeState } from '../node-state.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';
import { hasEnough, NOTHING, shortages } from '../resource-amounts.ts';

/** What the pod requests has to fit beside what the pods on the node request, and the pod has to be one that it may have. */
export function resourceFilter(pod: PodInfo): Filter {
  return { reasons: (node) => (node.hasRoomFor(pod) ? NO_REASONS : reasonsOf(pod, node)) };
}

function reasonsOf({ requests }: PodInfo, node: NodeState): readonly Reason[] {
  const { allocatable, podCountMax } = node.info;
  const messages = [
    ...(node.pods.size < podCountMax ? [] : ['Too many pods']),
    ...shortages(requests, allocatable, node.requested).map((name) => `Insufficient ${name}`),
  ];
  // Upstream takes a node that is too small in any way for one that no preemption can help.
  const isResolvable = hasEnough(requests, allocatable, NOTHING);
  return messages.map((message): Reason => ({ filter: 'resources', message, isResolvable }));
}
