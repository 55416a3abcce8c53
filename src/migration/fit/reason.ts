/** The checks that a node has to pass, by the name under which a pod waits for them. */
export type FilterName =
  | 'unschedulable'
  | 'node-name'
  | 'taints'
  | 'node-affinity'
  | 'host-ports'
  | 'resources'
  | 'claims'
  | 'volumes'
  | 'topology-spread'
  | 'pod-affinity';

/** Why a node does not do for a pod. */
export interface Reason {
  readonly filter: FilterName;
  /** As kube-scheduler words it. */
  readonly message: string;
  /** Whether taking pods away from the node could change it: only then is preemption worth trying. */
  readonly isResolvable: boolean;
}

/** What a filter answers for a node that does. */
export const NO_REASONS: readonly Reason[] = Object.freeze([]);
