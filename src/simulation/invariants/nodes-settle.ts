import type { Node, Pod, Taint } from '../../migration/fit/objects.ts';
import { tolerates } from '../../migration/fit/tolerations.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Invariant, Unsettled } from '../invariant.ts';
import type { State } from '../observer.ts';

/**
 * In the end a node that is alive is taken for alive: it is Ready, bears none of the taints of the dead, and that of the
 * cordoned if and only if it is cordoned. Nobody stays on a node who does not tolerate its NoExecute taints.
 */
export function nodesSettle(): Invariant {
  return {
    name: 'nodes-settle',
    unsettled: ({ state }) => [...nodesOf(state)].flatMap((node) => [...complaints(node), ...guests(node, state)]),
  };
}

const CORDONED = 'node.kubernetes.io/unschedulable';
const OF_THE_DEAD: ReadonlySet<string> = new Set(['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']);

function nodesOf(state: State): Iterable<Node> {
  return state.list('nodes');
}

interface Conditions {
  conditions?: { type: string; status: string }[];
}

function* complaints(node: Node): Iterable<Unsettled> {
  const key = keyOf(node);
  const { taints = [], unschedulable = false } = node.spec ?? {};
  const ready = (node.status as Conditions | undefined)?.conditions?.find(({ type }) => type === 'Ready')?.status;
  if (ready !== 'True') yield { key, what: `is alive, and its Ready is ${ready ?? 'missing'}` };
  for (const taint of taints) if (OF_THE_DEAD.has(taint.key)) yield { key, what: `is alive, and bears ${taint.key}` };
  if (taints.some((taint) => taint.key === CORDONED) !== unschedulable)
    yield {
      key,
      what: unschedulable ? 'is cordoned without the taint' : 'bears the taint of the cordoned, and is not',
    };
}

function* guests(node: Node, state: State): Iterable<Unsettled> {
  const taints = (node.spec?.taints ?? []).filter(({ effect }) => effect === 'NoExecute');
  if (taints.length === 0) return;
  for (const pod of state.list('pods') as Iterable<Pod>) {
    if (pod.spec?.nodeName !== node.metadata.name || isOver(pod)) continue;
    const taint = taints.find((each) => !isTolerated(each, pod));
    if (taint)
      yield { key: keyOf(pod), what: `stays on ${node.metadata.name}, though it does not tolerate ${taint.key}` };
  }
}

/** Whether the pod may stay for as long as it likes. */
function isTolerated(taint: Taint, pod: Pod): boolean {
  return (pod.spec?.tolerations ?? []).some((each) => tolerates(each, taint));
}

function isOver(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}
