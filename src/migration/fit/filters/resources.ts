import type { Filter } from '../filter.ts';
import type { NodeState } from '../node-state.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';

/** What the pod requests has to fit beside what the pods on the node request, and the pod has to be one that it may have. */
export function resourceFilter({ requests }: PodInfo): Filter {
  return {
    reasons(node) {
      if (hasRoom(node, requests)) return NO_REASONS;
      const reasons = shortages(node, requests);
      // Upstream takes a node that is too small in any way for one that no preemption can help.
      const isResolvable = ![...requests].some(([name, amount]) => amount > (node.info.allocatable.get(name) ?? 0));
      return reasons.map((message): Reason => ({ filter: 'resources', message, isResolvable }));
    },
  };
}

function hasRoom(node: NodeState, requests: PodInfo['requests']): boolean {
  const { allocatable } = node.info;
  if (node.pods.size >= (allocatable.get('pods') ?? 0)) return false;
  for (const [name, amount] of requests) {
    if (amount > (allocatable.get(name) ?? 0) - (node.requested.get(name) ?? 0)) return false;
  }
  return true;
}

function shortages(node: NodeState, requests: PodInfo['requests']): string[] {
  const { allocatable } = node.info;
  const messages = node.pods.size >= (allocatable.get('pods') ?? 0) ? ['Too many pods'] : [];
  for (const [name, amount] of requests) {
    if (amount > (allocatable.get(name) ?? 0) - (node.requested.get(name) ?? 0)) messages.push(`Insufficient ${name}`);
  }
  return messages;
}
