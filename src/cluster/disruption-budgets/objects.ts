import type { Condition, KubeObject } from '../../api/meta.ts';
import type { LabelSelectorObject } from '../../machinery/selectors.ts';

/** What the loops look at of a PodDisruptionBudget. */
export interface PodDisruptionBudget extends KubeObject {
  spec?: {
    readonly selector?: LabelSelectorObject;
    readonly minAvailable?: number | string;
    readonly maxUnavailable?: number | string;
  };
  status?: BudgetStatus;
}

export interface BudgetStatus {
  readonly observedGeneration?: number;
  /** When the eviction API let each of these pods go, by name, for as long as nobody has seen it go. */
  readonly disruptedPods?: { readonly [pod: string]: string };
  readonly disruptionsAllowed?: number;
  readonly currentHealthy?: number;
  readonly desiredHealthy?: number;
  readonly expectedPods?: number;
  readonly conditions?: readonly Condition[];
}

/** Whatever says how many pods it wants. */
export interface Workload extends KubeObject {
  spec?: { readonly replicas?: number };
}
