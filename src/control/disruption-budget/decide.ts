import { isMarked } from '../../api/kubevirt/evacuation.ts';
import { needsBudget } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { deepEqual } from '../../machinery/equal.ts';
import {
  BUDGET_MIGRATION_LABEL,
  budgetOwner,
  budgetSelector,
  type DisruptionBudget,
  isLenient,
  keptPods,
} from '../../migration/eviction/disruption-budget.ts';
import { isFinal } from '../vmi/phase.ts';

/** What has to become of a guest's disruption budget; pure. */

export interface BudgetFacts {
  readonly guest: VirtualMachineInstance;
  readonly configuration: KubeVirtConfiguration;
  /** The one of the guest's own name. */
  readonly budget: DisruptionBudget | undefined;
  /** Others that a guest of this name owns: of an older guest, or of who kept guests here before. */
  readonly others: readonly DisruptionBudget[];
  /** How many launcher pods of the guest have not ended. */
  readonly podCount: number;
  /** Whether a migration of the guest is not over. */
  readonly isMigrating: boolean;
  /** Whether the migration that the budget was expanded for is over or gone; true where it was for none. */
  readonly isExpansionOver: boolean;
}

export type BudgetStep =
  | { readonly kind: 'create'; readonly minAvailable: number }
  /** Makes the budget what it should be; `isShrunk` where nothing was wrong with it but that it kept too many. */
  | { readonly kind: 'correct'; readonly minAvailable: number; readonly isShrunk: boolean }
  | { readonly kind: 'delete'; readonly budget: DisruptionBudget; readonly isCertain: boolean };

/** What is next; nothing where all is as it should be. Others go after the guest has its own: one too many keeps, too. */
export function decide(facts: BudgetFacts): readonly BudgetStep[] {
  const { guest, configuration, budget, others } = facts;
  const isOver = guest.metadata.deletionTimestamp !== undefined || isFinal(guest);
  if (!budget && needsBudget(guest, configuration)) return [{ kind: 'create', minAvailable: floorOf(facts) }];
  if (budget && isKept(facts)) {
    const correction = correctionOf(budget, facts);
    if (correction) return [correction];
  } else if (budget) return [{ kind: 'delete', budget, isCertain: isOver }];
  return others.map((each) => ({ kind: 'delete', budget: each, isCertain: true }));
}

/** One that nobody needs any more stays for as long as the guest is about to move: its pods are told apart by it. */
function isKept({ guest, configuration, isMigrating }: BudgetFacts): boolean {
  if (needsBudget(guest, configuration)) return true;
  const isOver = guest.metadata.deletionTimestamp !== undefined || isFinal(guest);
  return !isOver && (isMarked(guest) || isMigrating);
}

/** All pods that are there are kept, and the one that is not there yet. */
function floorOf({ podCount }: BudgetFacts): number {
  return Math.max(1, podCount);
}

function correctionOf(budget: DisruptionBudget, facts: BudgetFacts): BudgetStep | undefined {
  const { guest, podCount, isExpansionOver } = facts;
  const kept = keptPods(budget);
  const isExpanded = kept > 1 || Object.hasOwn(budget.metadata.labels ?? {}, BUDGET_MIGRATION_LABEL);
  const isShrunk = isExpanded && podCount <= 1 && isExpansionOver;
  const minAvailable = isShrunk ? 1 : Math.max(kept, floorOf(facts));
  const isWhole =
    deepEqual(budget.spec?.selector, budgetSelector(guest)) &&
    budget.spec?.maxUnavailable === undefined &&
    !isLenient(budget) &&
    budget.metadata.ownerReferences?.some((each) => deepEqual(each, budgetOwner(guest))) === true;
  if (isWhole && !isShrunk && minAvailable === kept) return undefined;
  return { kind: 'correct', minAvailable, isShrunk: isShrunk && isWhole };
}
