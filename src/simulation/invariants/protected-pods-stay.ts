import { evictionStrategyOf, needsBudget } from '../../api/kubevirt/eviction-strategy.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { keyOf } from '../../kube/resource.ts';
import { budgetName, type DisruptionBudget, isRefusing } from '../../migration/eviction/disruption-budget.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import type { Invariant, Unsettled } from '../invariant.ts';
import { guestsOf, migrationsOf, migrationUidOf } from '../moves.ts';
import type { State } from '../observer.ts';
import { configurationIn, guestOfPod, isLeaving } from '../protection.ts';

const BUDGETS = 'poddisruptionbudgets.policy';

/**
 * No eviction takes a pod that a protected guest runs in, or moves to, whoever is down at that time; and in the end each
 * such guest has a budget by which that is so. Pods that have not started are kept by no budget, as Kubernetes has it.
 */
export function protectedPodsStay(): Invariant {
  return {
    name: 'protected-pods-stay',
    observe({ bucket, key, object, previous, isEviction }, state) {
      if (bucket !== 'pods' || !isEviction || !previous || !isLeaving(object, previous)) return undefined;
      const pod: Pod = previous;
      const guest = guestOfPod(pod, state);
      if (pod.status?.phase !== 'Running' || !guest || !isKept(guest, state) || !isNeeded(pod, guest, state))
        return undefined;
      return `pod ${key} was evicted, though ${keyOf(guest)} is ${evictionStrategyOf(guest, configurationIn(state))}`;
    },
    unsettled: ({ state }) =>
      guestsOf(state).flatMap((guest): Unsettled[] => {
        const { phase, rightToRun } = guest.status ?? {};
        if (phase !== 'Running' || !rightToRun?.holder || !needsBudget(guest, configurationIn(state))) return [];
        const budget = budgetOf(guest, state);
        if (budget && isRefusing(budget, true)) return [];
        return [{ key: keyOf(guest), what: budget ? 'has a budget that lets it go' : 'has no budget' }];
      }),
  };
}

/** Whether nobody may simply evict the guest: where that depends on whether it can move, it takes a moment to be so. */
function isKept(guest: VirtualMachineInstance, state: State): boolean {
  const configuration = configurationIn(state);
  if (!needsBudget(guest, configuration)) return false;
  const isAtOnce = evictionStrategyOf(guest, configuration) !== 'LiveMigrateIfPossible';
  return isAtOnce || budgetOf(guest, state) !== undefined;
}

/** Whether the guest runs in the pod, or is on its way there. */
function isNeeded(pod: Pod, { status }: VirtualMachineInstance, state: State): boolean {
  const holder = status?.rightToRun?.holder;
  if (holder?.podUID === pod.metadata.uid) return true;
  const uid = migrationUidOf(pod);
  return uid !== undefined && migrationsOf(state).some((each) => each.metadata.uid === uid && !isFinalMigration(each));
}

function budgetOf(guest: VirtualMachineInstance, state: State): DisruptionBudget | undefined {
  return state.get(BUDGETS, `${guest.metadata.namespace}/${budgetName(guest)}`);
}
