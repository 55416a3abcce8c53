import type { NodeState } from './node-state.ts';
import type { PodInfo } from './pod-info.ts';
import type { Reason } from './reason.ts';

/** A check that nodes have to pass, prepared for one pod. Made by a function that answers undefined where any node passes. */
export interface Filter {
  /** Why the node does not do; empty where it does. */
  reasons(node: NodeState): readonly Reason[];
  /**
   * Tells that another pod is now imagined on a node (1), or imagined away from it (-1). The node itself has been
   * changed already, or is about to be.
   */
  imagine?(other: PodInfo, node: NodeState, by: 1 | -1): void;
}
