import { formatTime, type JsonObject } from '../../api/meta.ts';
import type { Node, NodeCondition } from '../../migration/fit/objects.ts';

/** What a node says about itself, and what is said about it when it says nothing any more. */

/** The network is not the kubelet's to report. */
const REPORTED_BY_KUBELET = ['Ready', 'MemoryPressure', 'DiskPressure', 'PIDPressure'];

export function readyConditionOf(node: Pick<Node, 'status'> | undefined): NodeCondition | undefined {
  return node?.status?.conditions?.find(({ type }) => type === 'Ready');
}

/** Whether the node is ready; undefined where nobody has said anything yet. */
export function readinessOf(node: Pick<Node, 'status'> | undefined): string | undefined {
  return readyConditionOf(node)?.status;
}

/**
 * The strategic patch of a node's status that says that nothing has been heard of it, for this very version of the
 * node; undefined where that is known.
 */
export function silencePatch(node: Node, nowMs: number): JsonObject | undefined {
  if (readinessOf(node) === 'Unknown') return undefined;
  const { uid = '', resourceVersion = '', creationTimestamp } = node.metadata;
  const lastTransitionTime = formatTime(nowMs);
  const conditions: JsonObject[] = [];
  for (const type of REPORTED_BY_KUBELET) {
    const known = node.status?.conditions?.find((each) => each.type === type);
    if (known?.status === 'Unknown') continue;
    conditions.push({
      type,
      status: 'Unknown',
      reason: known ? 'NodeStatusUnknown' : 'NodeStatusNeverUpdated',
      message: known ? 'Kubelet stopped posting node status.' : 'Kubelet never posted node status.',
      ...(known || creationTimestamp === undefined ? {} : { lastHeartbeatTime: creationTimestamp }),
      lastTransitionTime,
    });
  }
  return { metadata: { uid, resourceVersion }, status: { conditions } };
}
