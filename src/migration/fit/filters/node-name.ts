import type { Filter } from '../filter.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';

const REASONS: readonly Reason[] = [
  { filter: 'node-name', message: "node(s) didn't match the requested node name", isResolvable: false },
];

/** A pod that names its node can be on that node only. */
export function nodeNameFilter({ nodeName }: PodInfo): Filter | undefined {
  if (nodeName === '') return undefined;
  return { reasons: (node) => (node.name === nodeName ? NO_REASONS : REASONS) };
}
