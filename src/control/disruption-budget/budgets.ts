import type { EventReason } from '../../api/event-reasons.ts';
import { needsBudget } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { CREATED_BY_LABEL } from '../../api/kubevirt/well-known.ts';
import { ApiError } from '../../api/status.ts';
import { errorText } from '../../kube/error-text.ts';
import type { Informer } from '../../kube/informer.ts';
import { controllerOf } from '../../kube/owner.ts';
import { keyOf } from '../../kube/resource.ts';
import {
  BUDGET_MIGRATION_LABEL,
  budgetFor,
  budgetName,
  budgetOwner,
  budgetSelector,
  type DisruptionBudget,
  isCounted,
  keptPods,
} from '../../migration/eviction/disruption-budget.ts';
import { configurationOf, type ControlContext } from '../context.ts';
import { launchedGuestsOf } from '../migration/keys.ts';
import { disruptionBudgets, type LauncherPod, pods } from '../resources.ts';

/** The disruption budgets of guests, for the controllers that need them to be there before they go on. */
export class Budgets {
  readonly #context: ControlContext;
  readonly #configuration: () => KubeVirtConfiguration;
  readonly #budgets: Informer<DisruptionBudget>;
  readonly #pods: Informer<LauncherPod>;

  constructor(context: ControlContext) {
    this.#context = context;
    this.#configuration = configurationOf(context.informers);
    this.#budgets = context.informers.of(disruptionBudgets);
    this.#pods = context.informers.of(pods, { launched: launchedGuestsOf });
  }

  /** A guest's own budget. */
  of(guest: VirtualMachineInstance): DisruptionBudget | undefined {
    return this.#budgets.get(`${guest.metadata.namespace ?? ''}/${budgetName(guest)}`);
  }

  /** How many launcher pods of the guest have not ended. */
  podCount(guest: VirtualMachineInstance): number {
    const { uid = '' } = guest.metadata;
    return this.#pods.byIndex('launched', keyOf(guest)).filter((pod) => isLive(pod, uid)).length;
  }

  /** The same, as the server has it and as it was heard: no pod is forgotten that we have not heard of yet. */
  async podCountMax(guest: VirtualMachineInstance, signal: AbortSignal): Promise<number> {
    const { namespace = '', uid = '' } = guest.metadata;
    const labelSelector = `${CREATED_BY_LABEL}=${uid}`;
    const { items } = await this.#context.client.list(pods, { namespace, labelSelector }, signal);
    return Math.max(this.podCount(guest), items.filter((pod) => isLive(pod, uid)).length);
  }

  /**
   * Sees to it that a guest which needs a budget has one before its first pod is there. That it cannot be made keeps no
   * guest from starting: people are told, and its controller goes on trying.
   */
  async ensure(guest: VirtualMachineInstance, signal: AbortSignal): Promise<void> {
    if (this.of(guest) || !needsBudget(guest, this.#configuration())) return;
    try {
      await this.create(guest, 1, undefined, signal);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  /**
   * Has the budget of a guest that needs or has one keep a pod more, for a migration that is about to create it. Answers
   * whether that is so, as far as the disruption controller has said; until then it is asked again when the budget changes.
   */
  async expand(
    guest: VirtualMachineInstance,
    { metadata }: VirtualMachineInstanceMigration,
    signal: AbortSignal,
  ): Promise<boolean> {
    const budget = this.of(guest);
    if (!budget && !needsBudget(guest, this.#configuration())) return true;
    const { name = '' } = metadata;
    const isNamed = budget?.metadata.labels?.[BUDGET_MIGRATION_LABEL] === name;
    if (budget && isNamed && keptPods(budget) > this.podCount(guest)) return isCounted(budget);
    const minAvailable = (await this.podCountMax(guest, signal)) + 1;
    if (!budget) {
      await this.create(guest, minAvailable, name, signal);
      return false;
    }
    await this.change(guest, budget, { minAvailable, migration: name }, signal);
    this.#tell(guest, 'Normal', 'SuccessfulUpdate', `Expanded PodDisruptionBudget ${budget.metadata.name}`);
    return false;
  }

  /** Creates a guest's budget; that somebody else has just done so is as good. */
  async create(
    guest: VirtualMachineInstance,
    minAvailable: number,
    migration: string | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const budget = budgetFor(guest, minAvailable, migration);
    try {
      await this.#context.client.create(disruptionBudgets, budget, signal);
    } catch (error) {
      if (error instanceof ApiError && error.code === 409) return;
      this.#tell(guest, 'Warning', 'FailedCreate', `Error creating a PodDisruptionBudget: ${errorText(error)}`);
      throw error;
    }
    this.#tell(guest, 'Normal', 'SuccessfulCreate', `Created PodDisruptionBudget ${budget.metadata.name}`);
  }

  /** Makes a guest's budget what it should be, if it is still what it was. Rejects with 409 where it is not. */
  async change(
    guest: VirtualMachineInstance,
    { metadata, spec }: DisruptionBudget,
    { minAvailable, migration }: { readonly minAvailable: number; readonly migration: string | undefined },
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', uid = '', resourceVersion = '', ownerReferences = [] } = metadata;
    const others = ownerReferences.filter((each) => each.uid !== guest.metadata.uid && each.controller !== true);
    const { matchLabels } = budgetSelector(guest);
    const unwanted = Object.fromEntries(Object.keys(spec?.selector?.matchLabels ?? {}).map((key) => [key, null]));
    const body = {
      metadata: {
        uid,
        resourceVersion,
        labels: { [BUDGET_MIGRATION_LABEL]: migration ?? null },
        ownerReferences: [...others, budgetOwner(guest)],
      },
      // A merge would leave in place what somebody else has added.
      spec: {
        minAvailable,
        maxUnavailable: null,
        unhealthyPodEvictionPolicy: null,
        selector: { matchExpressions: null, matchLabels: { ...unwanted, ...matchLabels } },
      },
    };
    const patch = { type: 'merge', body } as unknown as Parameters<ControlContext['client']['patch']>[3];
    await this.#context.client.patch(disruptionBudgets, namespace, name, patch, signal);
  }

  #tell(guest: VirtualMachineInstance, type: 'Normal' | 'Warning', reason: EventReason, message: string): void {
    this.#context.recorder.event(guest, type, reason, message);
  }
}

/** Whether a pod is the guest's, and has not ended. */
function isLive(pod: LauncherPod, guestUID: string): boolean {
  const { phase } = pod.status ?? {};
  return controllerOf(pod)?.uid === guestUID && phase !== 'Succeeded' && phase !== 'Failed';
}
