import type { KubeVirt, KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { ApiError } from '../../api/status.ts';
import { unreachable } from '../../api/unreachable.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import { errorText } from '../../kube/error-text.ts';
import type { Informer } from '../../kube/informer.ts';
import { kubeVirts, virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import { keyOf, splitKey } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import {
  BUDGET_MIGRATION_LABEL,
  budgetName,
  type DisruptionBudget,
  keptPods,
} from '../../migration/eviction/disruption-budget.ts';
import { configurationOf, type ControlContext } from '../context.ts';
import { MovingGuests } from '../moving-guests.ts';
import { guestKeyOf, guestKeysOf, launchedGuestsOf, uidsOf } from '../migration/keys.ts';
import { disruptionBudgets, type LauncherPod, pods } from '../resources.ts';
import { Budgets } from './budgets.ts';
import { type BudgetFacts, type BudgetStep, decide } from './decide.ts';

const WORKERS = 4;
/** How soon it is looked again when somebody else wrote at the same time. */
const RECHECK_MS = 1000;

/**
 * Keeps one disruption budget for each guest whose pod must not simply be evicted, from the guest's first moment to its
 * last. Migrations expand it before they create a pod; here it shrinks when one pod is left. Keyed by guests.
 */
export class DisruptionBudgets implements Service {
  readonly name = 'disruption budgets';
  readonly #context: ControlContext;
  readonly #configuration: () => KubeVirtConfiguration;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #migrations: Informer<VirtualMachineInstanceMigration>;
  readonly #informer: Informer<DisruptionBudget>;
  readonly #budgets: Budgets;
  readonly #controller: Controller;

  constructor(context: ControlContext) {
    const { env, informers, metrics } = context;
    this.#context = context;
    this.#configuration = configurationOf(informers);
    this.#guests = informers.of(virtualMachineInstances);
    this.#migrations = informers.of(virtualMachineInstanceMigrations, { guest: guestKeysOf, uid: uidsOf });
    this.#informer = informers.of(disruptionBudgets, { guest: keptGuestsOf });
    this.#budgets = new Budgets(context);
    this.#controller = new Controller({
      name: 'disruption-budget-controller',
      env,
      workers: WORKERS,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    const moving = new MovingGuests(informers);
    this.#listen(moving, informers.of(pods, { launched: launchedGuestsOf }), informers.of(kubeVirts));
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  #listen(moving: MovingGuests, launchers: Informer<LauncherPod>, configurations: Informer<KubeVirt>): void {
    const enqueue = (key: string, afterMs = 0): void => this.#controller.enqueue(key, { afterMs });
    this.#guests.onChange(({ type, object }) =>
      enqueue(keyOf(object), type === 'deleted' ? 0 : moving.patienceMs(object)),
    );
    this.#informer.onChange(({ object, old }) => {
      for (const key of new Set([...keptGuestsOf(object), ...(old ? keptGuestsOf(old) : [])])) enqueue(key);
    });
    // How far a migration is matters not, only whether it is over.
    this.#migrations.onChange(({ type, object }) => {
      if (type === 'deleted' || isFinalMigration(object)) enqueue(guestKeyOf(object));
    });
    launchers.onChange(({ type, object, old }) => {
      const isNews = type !== 'updated' || object.status?.phase !== old?.status?.phase;
      if (isNews) for (const key of launchedGuestsOf(object)) enqueue(key);
    });
    // Guests that say nothing do what the cluster says.
    configurations.onChange(({ type, object, old }) => {
      const before = old?.spec.configuration?.evictionStrategy;
      if (type === 'updated' && object.spec.configuration?.evictionStrategy === before) return;
      for (const guest of this.#guests.list()) if (guest.spec.evictionStrategy === undefined) enqueue(keyOf(guest));
    });
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    try {
      const guest = this.#guests.get(key);
      if (!guest) return await this.#tidy(key, signal);
      for (const step of decide(await this.#observe(key, guest, signal))) await this.#make(step, guest, signal);
    } catch (error) {
      // Somebody else wrote at the same time, or it is gone; we hear of it, and begin anew.
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) return;
      if (error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
  }

  async #observe(key: string, guest: VirtualMachineInstance, signal: AbortSignal): Promise<BudgetFacts> {
    const budget = this.#budgets.of(guest);
    const own = budgetName(guest);
    return {
      guest,
      configuration: this.#configuration(),
      budget,
      others: this.#informer.byIndex('guest', key).filter(({ metadata }) => metadata.name !== own),
      podCount: this.#budgets.podCount(guest),
      isMigrating: this.#migrations.byIndex('guest', key).some((each) => !isFinalMigration(each)),
      isExpansionOver: budget === undefined || (await this.#isExpansionOver(budget, signal)),
    };
  }

  /** That a migration is gone is believed of the server alone. */
  async #isExpansionOver({ metadata }: DisruptionBudget, signal: AbortSignal): Promise<boolean> {
    const { namespace = '', labels = {} } = metadata;
    const name = labels[BUDGET_MIGRATION_LABEL];
    if (!name) return true;
    const known = this.#migrations.get(`${namespace}/${name}`);
    const migration =
      known ?? (await this.#context.client.find(virtualMachineInstanceMigrations, namespace, name, signal));
    return migration === undefined || isFinalMigration(migration);
  }

  async #make(step: BudgetStep, guest: VirtualMachineInstance, signal: AbortSignal): Promise<void> {
    switch (step.kind) {
      case 'create':
        return this.#budgets.create(guest, step.minAvailable, undefined, signal);
      case 'correct':
        return this.#correct(step, guest, signal);
      case 'delete':
        if (step.isCertain || (await this.#isCurrent(guest, signal))) await this.#delete(step.budget, guest, signal);
        return;
      default:
        return unreachable(step);
    }
  }

  async #correct(
    { minAvailable, isShrunk }: Extract<BudgetStep, { kind: 'correct' }>,
    guest: VirtualMachineInstance,
    signal: AbortSignal,
  ): Promise<void> {
    const budget = this.#budgets.of(guest);
    if (!budget) return;
    // We may not have heard of the other pod yet; when we do, we come again.
    if (minAvailable === 1 && keptPods(budget) > 1 && (await this.#budgets.podCountMax(guest, signal)) > 1) return;
    const migration = minAvailable === 1 ? undefined : budget.metadata.labels?.[BUDGET_MIGRATION_LABEL];
    await this.#budgets.change(guest, budget, { minAvailable, migration }, signal);
    const verb = isShrunk ? 'shrank' : 'corrected';
    this.#context.recorder.event(
      guest,
      'Normal',
      'SuccessfulUpdate',
      `${verb} PodDisruptionBudget ${budget.metadata.name}`,
    );
  }

  /** A guest that just became movable must not lose its budget on the word of a late cache. */
  async #isCurrent({ metadata }: VirtualMachineInstance, signal: AbortSignal): Promise<boolean> {
    const { namespace = '', name = '', resourceVersion } = metadata;
    const now = await this.#context.client.get(virtualMachineInstances, namespace, name, signal);
    return now.metadata.resourceVersion === resourceVersion;
  }

  async #delete(
    { metadata }: DisruptionBudget,
    guest: VirtualMachineInstance | undefined,
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', uid = '', deletionTimestamp } = metadata;
    if (deletionTimestamp !== undefined) return;
    try {
      await this.#context.client.delete(disruptionBudgets, namespace, name, signal, { preconditions: { uid } });
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      const message = `Error deleting the PodDisruptionBudget ${name}: ${errorText(error)}`;
      if (guest) this.#context.recorder.event(guest, 'Warning', 'FailedDelete', message);
      throw error;
    }
    if (guest) this.#context.recorder.event(guest, 'Normal', 'SuccessfulDelete', `Deleted PodDisruptionBudget ${name}`);
  }

  /** What is left of a guest that is gone, which the server alone can say. */
  async #tidy(key: string, signal: AbortSignal): Promise<void> {
    const left = this.#informer.byIndex('guest', key);
    const { namespace, name } = splitKey(key);
    if (left.length === 0 || (await this.#context.client.find(virtualMachineInstances, namespace, name, signal)))
      return;
    for (const budget of left) await this.#delete(budget, undefined, signal);
  }
}

/** The guest that owns a budget; none for those of others. */
function keptGuestsOf(budget: DisruptionBudget): readonly string[] {
  const owner = controllerOf(budget);
  const isGuest = owner?.kind === 'VirtualMachineInstance' && owner.apiVersion.startsWith('kubevirt.io/');
  return isGuest ? [`${budget.metadata.namespace ?? ''}/${owner.name}`] : [];
}
