import type { Node, Taint, Toleration } from '../fit/objects.ts';
import { tolerates } from '../fit/tolerations.ts';

/** Taints by which a node says that it cannot run pods: whoever leaves it for that cannot move from there. */
const OF_BROKEN_NODES: ReadonlySet<string> = new Set([
  'node.kubernetes.io/not-ready',
  'node.kubernetes.io/unreachable',
  'node.kubernetes.io/out-of-service',
]);

interface Tolerant {
  readonly spec?: { readonly tolerations?: readonly Toleration[] };
}

/**
 * Whether a pod that a taint manager deleted has to leave because somebody wants its node free of it, and not because its
 * node was not heard of. A taint may be gone by now; then it is asked whether the node was well when the pod was deleted.
 */
export function isDrivenAway(pod: Tolerant, node: Node | undefined, deletedMs: number): boolean {
  if (!node) return true;
  const evicting = evictingTaints(pod, node);
  if (evicting.some(({ key }) => !OF_BROKEN_NODES.has(key))) return true;
  if (evicting.length > 0) return false;
  const ready = node.status?.conditions?.find(({ type }) => type === 'Ready');
  // Times are told in whole seconds: a node that is heard of again in the very second was not heard of before.
  return ready?.status === 'True' && !(Date.parse(ready.lastTransitionTime ?? '') >= deletedMs);
}

/** Whether the node has taints that the pod does not stay with for ever. */
export function isTainted(pod: Tolerant, node: Node | undefined): boolean {
  return node !== undefined && evictingTaints(pod, node).length > 0;
}

function evictingTaints(pod: Tolerant, { spec }: Node): readonly Taint[] {
  return (spec?.taints ?? []).filter((taint) => evicts(taint, pod.spec?.tolerations ?? []));
}

/** Whether the pod does not stay for ever where the taint is. */
function evicts(taint: Taint, tolerations: readonly Toleration[]): boolean {
  if (taint.effect !== 'NoExecute') return false;
  const toleration = tolerations.find((each) => tolerates(each, taint));
  return toleration === undefined || toleration.tolerationSeconds !== undefined;
}
