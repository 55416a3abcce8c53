import type { Filter } from '../filter.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';

const MISMATCH: readonly Reason[] = [
  { filter: 'node-affinity', message: "node(s) didn't match Pod's node affinity/selector", isResolvable: false },
];
const NOT_NAMED: readonly Reason[] = [
  { filter: 'node-affinity', message: "node(s) didn't satisfy plugin(s) [NodeAffinity]", isResolvable: false },
];

/** Where every affinity term names its nodes, no other node is looked at any further. */
export function nodeNamesFilter({ nodeNames }: PodInfo): Filter | undefined {
  return nodeNames && { reasons: (node) => (nodeNames.has(node.name) ? NO_REASONS : NOT_NAMED) };
}

/** The node has to match `nodeSelector` and required node affinity. */
export function nodeAffinityFilter({ acceptsNode }: PodInfo): Filter | undefined {
  return acceptsNode && { reasons: (node) => (acceptsNode(node.info) ? NO_REASONS : MISMATCH) };
}
