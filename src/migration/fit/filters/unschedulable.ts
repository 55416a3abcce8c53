import type { Filter } from '../filter.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';
import { tolerates } from '../tolerations.ts';

const REASONS: readonly Reason[] = [
  { filter: 'unschedulable', message: 'node(s) were unschedulable', isResolvable: false },
];
/** What `spec.unschedulable` is to tolerations, whether or not the node has the taint yet. */
const TAINT = { key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' };

/** A cordoned node takes only pods that tolerate being there. */
export function unschedulableFilter({ tolerations }: PodInfo): Filter | undefined {
  if (tolerations.some((each) => tolerates(each, TAINT))) return undefined;
  return { reasons: (node) => (node.info.isUnschedulable ? REASONS : NO_REASONS) };
}
