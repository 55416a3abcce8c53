import type { Filter } from '../filter.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';

const REASONS: readonly Reason[] = [
  {
    filter: 'host-ports',
    message: "node(s) didn't have free ports for the requested pod ports",
    isResolvable: true,
  },
];

/** The ports of the node that the pod wants have to be free. */
export function hostPortFilter({ hostPorts }: PodInfo): Filter | undefined {
  if (hostPorts.length === 0) return undefined;
  return { reasons: (node) => (hostPorts.some((port) => node.hostPorts.isTaken(port)) ? REASONS : NO_REASONS) };
}
