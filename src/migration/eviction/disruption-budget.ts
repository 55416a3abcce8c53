import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { CREATED_BY_LABEL } from '../../api/kubevirt/well-known.ts';
import type { KubeObject, OwnerReference } from '../../api/meta.ts';
import { derivedSuffix } from '../../machinery/derived-identity.ts';
import type { LabelSelectorObject } from '../../machinery/selectors.ts';

/**
 * The disruption budget that keeps the launcher pods of one guest: by it the eviction API says no where no webhook does.
 * A guest has one, whose name follows from its UID, since the eviction API fails for pods that have two.
 */

/** What is looked at in a budget. */
export interface DisruptionBudget extends KubeObject {
  spec?: {
    readonly selector?: LabelSelectorObject;
    readonly minAvailable?: number | string;
    readonly maxUnavailable?: number | string;
    readonly unhealthyPodEvictionPolicy?: string;
  };
  status?: {
    readonly observedGeneration?: number;
    readonly disruptionsAllowed?: number;
    readonly currentHealthy?: number;
    readonly desiredHealthy?: number;
  };
}

/** On a budget: name of the migration that it was expanded for. */
export const BUDGET_MIGRATION_LABEL = 'kubevirt.io/migrationName';

/** Nothing else in the name tells budgets apart, of which a namespace may have thousands. */
const SUFFIX_LENGTH = 12;

/** The name of a guest's budget. */
export function budgetName({ metadata }: Pick<VirtualMachineInstance, 'metadata'>): string {
  return `kubevirt-disruption-budget-${derivedSuffix(metadata.uid ?? '', 'disruption-budget', SUFFIX_LENGTH)}`;
}

/** The owner by which a budget is its guest's, and goes with it. */
export function budgetOwner({ metadata }: VirtualMachineInstance): OwnerReference {
  const { name = '', uid = '' } = metadata;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    name,
    uid,
    controller: true,
    blockOwnerDeletion: true,
  };
}

/** Which pods a guest's budget keeps. */
export function budgetSelector({ metadata }: VirtualMachineInstance): LabelSelectorObject {
  return { matchLabels: { [CREATED_BY_LABEL]: metadata.uid ?? '' } };
}

/** The budget to be created for a guest, so that so many of its pods are kept; for a migration where one is named. */
export function budgetFor(guest: VirtualMachineInstance, minAvailable: number, migration?: string): DisruptionBudget {
  const { namespace = '' } = guest.metadata;
  return {
    apiVersion: 'policy/v1',
    kind: 'PodDisruptionBudget',
    metadata: {
      name: budgetName(guest),
      namespace,
      ...(migration === undefined ? {} : { labels: { [BUDGET_MIGRATION_LABEL]: migration } }),
      ownerReferences: [budgetOwner(guest)],
    },
    spec: { minAvailable, selector: budgetSelector(guest) },
  };
}

/** How many pods a budget keeps, where it says so in a number, as ours do. */
export function keptPods({ spec }: DisruptionBudget): number {
  return typeof spec?.minAvailable === 'number' ? spec.minAvailable : 0;
}

/** Whether what a budget allows was counted for what it says now. */
export function isCounted({ metadata, status }: DisruptionBudget): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata.generation ?? 0);
}

/**
 * Whether a pod that a budget covers cannot be evicted. What was not counted yet lets nobody go either, but may soon. Pods
 * that are not ready are let go where enough others are, whatever is allowed.
 */
export function isRefusing(budget: DisruptionBudget, isPodReady: boolean): boolean {
  const { disruptionsAllowed, currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {};
  const isEnough = isPodReady || (!isLenient(budget) && currentHealthy < desiredHealthy);
  return isCounted(budget) && disruptionsAllowed === 0 && isEnough;
}

/** Whether a budget lets all pods go that are not ready, whoever has it do so: guests go on in such pods. */
export function isLenient({ spec }: DisruptionBudget): boolean {
  return spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow';
}
