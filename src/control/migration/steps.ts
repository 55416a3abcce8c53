import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { migrationRole } from '../../api/kubevirt/validate-migration.ts';
import { ApiError } from '../../api/status.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { Client } from '../../kube/client.ts';
import { errorText } from '../../kube/error-text.ts';
import type { Informer } from '../../kube/informer.ts';
import { migrationPolicies, virtualMachineInstanceMigrations } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Node, PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import type { MigrationDecision } from '../../migration/phase/decision.ts';
import { type MigrationFacts, ownState, sourceNodeOf } from '../../migration/phase/facts.ts';
import { failure, type MigrationFailure } from '../../migration/phase/failure.ts';
import type { StatusInput } from '../../migration/phase/status.ts';
import { PolicyIndex } from '../../migration/policies/policy-index.ts';
import { BUDGET_MIGRATION_LABEL } from '../../migration/eviction/disruption-budget.ts';
import type { ControlContext } from '../context.ts';
import { claimChanges, claimsOfPod } from '../claim-changes.ts';
import { Budgets } from '../disruption-budget/budgets.ts';
import { disruptionBudgets, type LauncherPod, namespaces, nodes, persistentVolumeClaims, pods } from '../resources.ts';
import type { KubeletLaunchers } from '../vmi/launcher-pod.ts';
import { announce, frozenOptions, migratedVolume, withdrawnState, writeState } from './hand-off.ts';
import { migrationUidsOf } from './keys.ts';
import { machineNeeds } from './machine-needs.ts';
import { adopt, receivedState, sentState, sidesOfOne } from './pair-steps.ts';
import type { Pairs } from './pairs.ts';
import { QuotaWaiters } from './quota-waiters.ts';
import { TargetFitness } from './target-fitness.ts';
import { targetPodName, targetPodOf } from './target-pod.ts';

export interface MigrationStepsOptions extends ControlContext {
  readonly launcherImage: string;
  /** How launcher pods are where kubelets run them; where absent, agents do. */
  readonly kubelets?: KubeletLaunchers | undefined;
  readonly configuration: () => KubeVirtConfiguration;
  readonly pairs: Pairs;
  /** Has a migration looked at again, by its key. */
  readonly wake: (key: string) => void;
}

/** The pods of a migration, as far as they are there. */
export interface MigrationPods {
  /** The one that executes the guest. */
  readonly source: LauncherPod | undefined;
  readonly target: LauncherPod | undefined;
}

/** What was learned on the way: the facts as they are now, and what the status has to say. */
export interface StepOutcome {
  readonly facts: MigrationFacts;
  readonly input: StatusInput;
  /** When it has to be looked at again although nothing happens. */
  readonly wakeAtMs?: number;
}

/** How long it may take until a budget was counted before people are told that a migration waits for that. */
const BUDGET_PATIENCE_MS = 30_000;

/** Stands for: what was decided is not true any more. It has to be looked at again. */
export const STALE = 'stale';

/** Makes the steps that were decided. Each can be made again, by whoever finds it undone. */
export class MigrationSteps {
  readonly #options: MigrationStepsOptions;
  readonly #client: Client;
  readonly #nodes: Informer<Node>;
  readonly #claims: Informer<PersistentVolumeClaim>;
  readonly #namespaces: ReturnType<ControlContext['informers']['of']>;
  readonly #policies = new PolicyIndex();
  readonly #fitness: TargetFitness;
  readonly #quotas: QuotaWaiters;
  readonly #budgets: Budgets;
  /** Since when migrations, by their keys, wait for their budgets to be counted. */
  readonly #uncounted = new Map<string, number>();

  constructor(options: MigrationStepsOptions) {
    const { informers, client, wake } = options;
    this.#options = options;
    this.#client = client;
    this.#nodes = informers.of(nodes);
    this.#claims = informers.of(persistentVolumeClaims);
    this.#namespaces = informers.of(namespaces);
    this.#fitness = new TargetFitness(informers);
    this.#quotas = new QuotaWaiters(informers, wake);
    this.#budgets = new Budgets(options);
    // A migration goes on once the budget that it had expanded was counted.
    informers.of(disruptionBudgets).onChange(({ object: { metadata } }) => {
      const name = metadata.labels?.[BUDGET_MIGRATION_LABEL];
      if (name !== undefined) wake(`${metadata.namespace ?? ''}/${name}`);
    });
    informers.of<MigrationPolicy>(migrationPolicies).onChange(({ type, object }) => {
      if (type === 'deleted') this.#policies.delete(object.metadata.name ?? '');
      else this.#policies.set(object);
    });
  }

  /** Whether a migration, by its key, could not use a slot until a quota changes. */
  isWaitingForQuota(key: string): boolean {
    return this.#quotas.has(key);
  }

  /** Forgets a migration that waits for nothing any more. */
  forget(key: string): void {
    this.#quotas.delete(key);
    this.#uncounted.delete(key);
  }

  async make(
    facts: MigrationFacts,
    { phase, failure: cause, step }: MigrationDecision,
    these: MigrationPods,
    signal: AbortSignal,
  ): Promise<StepOutcome | typeof STALE> {
    const { guest } = facts;
    const input = { phase, failure: cause };
    if (!step || !guest) return { facts, input: { ...input, unfitness: this.#unfitness(facts, these.target, phase) } };
    switch (step.kind) {
      case 'create-target':
        return this.#createTarget(facts, guest, signal);
      case 'hand-off':
        return this.#handOff(facts, guest, these, signal);
      case 'announce':
        await announce(this.#client, guest, ownState(facts)?.targetNode ?? '', signal);
        return { facts, input };
      case 'describe':
        return { facts: { ...facts, guest: await this.#describe(facts, guest, signal) }, input };
      case 'adopt':
        await adopt(this.#client, guest, ownState(facts)?.sourceState ?? {}, signal);
        return { facts, input };
      case 'request-abort':
        return { ...(await this.#requestAbort(facts, guest, signal)), input: { ...input, abort: step.reason } };
      case 'withdraw':
        return this.#withdraw(facts, guest, step.failure, signal);
      default:
        return unreachable(step);
    }
  }

  #unfitness({ guest, migration }: MigrationFacts, pod: LauncherPod | undefined, phase: string): string | undefined {
    const isUnbound = phase === 'Scheduling' && pod !== undefined && !pod.spec?.nodeName;
    if (!isUnbound || !guest) return undefined;
    const unfitness = this.#fitness.unfitness(guest, pod);
    if (isNewlyUnfit(migration, unfitness) && this.#fitness.hasOnlyProcessor(guest, pod))
      this.#options.recorder.event(guest, 'Warning', 'NoSuitableNodesForHostModelMigration', ONLY_PROCESSOR);
    return unfitness;
  }

  async #createTarget(
    facts: MigrationFacts,
    guest: VirtualMachineInstance,
    signal: AbortSignal,
  ): Promise<StepOutcome | typeof STALE> {
    const { migration } = facts;
    const { namespace = '', name = '', uid, resourceVersion } = migration.metadata;
    // No moment without: a pod that no budget keeps could be evicted, or the guest's first one in its place.
    const isSecond = !isReceiver(facts);
    if (isSecond && !(await this.#budgets.expand(guest, migration, signal))) return this.#waitForBudget(facts);
    this.#uncounted.delete(keyOf(migration));
    // One whose pod came and went must not get another one on the word of a late cache.
    const current = await this.#client.get(virtualMachineInstanceMigrations, namespace, name, signal);
    if (current.metadata.uid !== uid || current.metadata.resourceVersion !== resourceVersion) return STALE;
    const pod = this.#podOf(guest, facts);
    const quotaChanges = this.#quotas.changeCount;
    try {
      const created = await this.#client.create(pods, pod as LauncherPod, signal);
      const message = `Created migration target pod ${created.metadata.name}`;
      this.#options.recorder.event(migration, 'Normal', 'SuccessfulCreate', message);
      this.#quotas.delete(keyOf(migration));
      return { facts, input: { phase: 'Scheduling', unfitness: this.#unfitness(facts, created, 'Scheduling') } };
    } catch (error) {
      const outcome = await this.#refusedTarget(facts, guest, error, signal);
      if (this.#quotas.changeCount === quotaChanges) return outcome;
      // It waits for nothing: the room that it would wait for is there.
      this.#quotas.delete(keyOf(migration));
      return STALE;
    }
  }

  /** It is woken when the budget changes. That nobody counts it is nothing that we could change, but people should know. */
  #waitForBudget(facts: MigrationFacts): StepOutcome {
    const { migration, nowMs } = facts;
    const sinceMs = this.#uncounted.get(keyOf(migration)) ?? nowMs;
    this.#uncounted.set(keyOf(migration), sinceMs);
    const waiting: StepOutcome = { facts, input: { phase: 'Pending' } };
    const wakeAtMs = sinceMs + BUDGET_PATIENCE_MS;
    if (nowMs < wakeAtMs) return { ...waiting, wakeAtMs };
    const message = "the guest's PodDisruptionBudget has not been counted yet: see that the disruption controller runs";
    this.#options.recorder.event(migration, 'Warning', 'DisruptionBudgetPending', message);
    return waiting;
  }

  #podOf(guest: VirtualMachineInstance, facts: MigrationFacts) {
    const { launcherImage: image, kubelets, configuration } = this.#options;
    const { namespace = '' } = guest.metadata;
    const isBlock = (claim: string): boolean => this.#claims.get(`${namespace}/${claim}`)?.spec?.volumeMode === 'Block';
    const sourceNode = this.#nodes.get(sourceNodeOf(guest) ?? '');
    const needs = isReceiver(facts)
      ? (ownState(facts)?.sourceState?.nodeSelectors ?? {})
      : machineNeeds(guest, sourceNode?.metadata.labels ?? {});
    const options = { image, kubelets, configuration: configuration(), isBlock };
    return targetPodOf(guest, targetMigrationOf(facts), needs, options);
  }

  async #refusedTarget(
    facts: MigrationFacts,
    guest: VirtualMachineInstance,
    error: unknown,
    signal: AbortSignal,
  ): Promise<StepOutcome | typeof STALE> {
    const { migration } = facts;
    if (!(error instanceof ApiError)) throw error;
    if (error.code === 409 && (await this.#isThere(guest, targetMigrationOf(facts), signal)))
      return { facts, input: { phase: 'Scheduling' } };
    if (error.code === 403 && error.message.includes('exceeded quota')) {
      this.#quotas.add(keyOf(migration));
      return { facts, input: { phase: 'Pending', quotaRefusal: error.message } };
    }
    this.#options.recorder.event(migration, 'Warning', 'FailedCreate', `Error creating pod: ${error.message}`);
    const isForGood = error.code === 403 || error.code === 422 || error.code === 400;
    if (!isForGood) throw error;
    return { facts, input: { phase: 'Failed', failure: failure('TargetPodRefused', error.message) } };
  }

  /** Whether the pod that is in the way is the migration's own, and only our cache is late. */
  async #isThere(
    guest: VirtualMachineInstance,
    migration: VirtualMachineInstanceMigration,
    signal: AbortSignal,
  ): Promise<boolean> {
    const { namespace = '' } = guest.metadata;
    const pod = await this.#client.get(pods, namespace, targetPodName(guest, migration), signal);
    return migrationUidsOf(pod).includes(migration.metadata.uid ?? '');
  }

  async #handOff(
    facts: MigrationFacts,
    guest: VirtualMachineInstance,
    { source, target }: MigrationPods,
    signal: AbortSignal,
  ): Promise<StepOutcome | typeof STALE> {
    const { migration, pair } = facts;
    if (pair && !pair.isSameGuest) return this.#handOffHalf(facts, guest, { source, target }, signal);
    const sourceNode = guest.status?.rightToRun?.holder?.node;
    if (!source || !target || sourceNode === undefined) return STALE;
    const route = {
      migrationUid: migration.metadata.uid ?? '',
      sourceNode,
      sourcePod: source.metadata.name ?? '',
      targetNode: target.spec?.nodeName ?? '',
      targetPod: target.metadata.name ?? '',
    };
    const claims = claimChanges(claimsOfPod(source), claimsOfPod(target));
    const state = {
      ...route,
      ...this.#optionsOf(guest),
      ...(claims.length > 0 ? { migratedVolumes: claims.map(migratedVolume) } : {}),
      ...(pair?.partner ? sidesOfOne(guest, route, migration, pair.partner) : {}),
    };
    const written = await this.#write(facts, guest, state, 'FailedHandOver', signal);
    const message = 'Migration target pod is ready for preparation by virt-handler.';
    this.#options.recorder.event(migration, 'Normal', 'SuccessfulHandOver', message);
    const announced = await announce(this.#client, written, route.targetNode, signal);
    return { facts: { ...facts, guest: announced }, input: { phase: 'PreparingTarget' } };
  }

  /** Gives the agent of this side its part; the other one gets its own by its own half. */
  async #handOffHalf(
    facts: MigrationFacts,
    guest: VirtualMachineInstance,
    { source, target }: MigrationPods,
    signal: AbortSignal,
  ): Promise<StepOutcome | typeof STALE> {
    const { migration } = facts;
    const own = ownState(facts);
    const pod = isReceiver(facts) ? target : source;
    if (!own || !pod) return STALE;
    const state = isReceiver(facts) ? receivedState(own, pod, this.#optionsOf(guest)) : sentState(own, guest, pod);
    const written = await this.#write(facts, guest, state, 'FailedHandOver', signal);
    const message = isReceiver(facts)
      ? 'Migration target pod is ready for preparation by virt-handler.'
      : 'The guest is ready to be sent by virt-handler.';
    this.#options.recorder.event(migration, 'Normal', 'SuccessfulHandOver', message);
    const told = isReceiver(facts) ? await announce(this.#client, written, state.targetNode ?? '', signal) : written;
    return { facts: { ...facts, guest: told }, input: { phase: 'PreparingTarget' } };
  }

  #optionsOf(guest: VirtualMachineInstance): ReturnType<typeof frozenOptions> {
    const labels = this.#namespaces.get(guest.metadata.namespace ?? '')?.metadata.labels ?? {};
    return frozenOptions(guest, labels, this.#policies, this.#options.configuration());
  }

  async #describe(
    facts: MigrationFacts,
    guest: VirtualMachineInstance,
    signal: AbortSignal,
  ): Promise<VirtualMachineInstance> {
    const state = this.#options.pairs.described(facts.migration, guest, facts.slots);
    return state ? this.#write(facts, guest, state, 'FailedHandOver', signal) : guest;
  }

  /** Tells the guest's agents, or people that it cannot be told. */
  async #write(
    { migration }: MigrationFacts,
    guest: VirtualMachineInstance,
    state: MigrationState,
    failureReason: 'FailedHandOver' | 'FailedAbortMigration',
    signal: AbortSignal,
  ): Promise<VirtualMachineInstance> {
    try {
      return await writeState(this.#client, guest, state, signal);
    } catch (error) {
      const isLate = error instanceof ApiError && (error.code === 409 || error.code === 404);
      const message = `the guest's status cannot be written: ${errorText(error)}`;
      if (!isLate) this.#options.recorder.event(migration, 'Warning', failureReason, message);
      throw error;
    }
  }

  async #requestAbort(
    facts: MigrationFacts,
    guest: VirtualMachineInstance,
    signal: AbortSignal,
  ): Promise<Pick<StepOutcome, 'facts'>> {
    const state = { ...ownState(facts), abortRequested: true };
    const written = await this.#write(facts, guest, state, 'FailedAbortMigration', signal);
    return { facts: { ...facts, guest: written } };
  }

  async #withdraw(
    facts: MigrationFacts,
    guest: VirtualMachineInstance,
    cause: MigrationFailure,
    signal: AbortSignal,
  ): Promise<StepOutcome> {
    const state = withdrawnState(ownState(facts) ?? {}, cause, facts.nowMs);
    const written = await writeState(this.#client, guest, state, signal);
    const { uid = '' } = facts.migration.metadata;
    const message = `VirtualMachineInstance migration uid ${uid} failed. reason: ${cause.message}`;
    this.#options.recorder.event(guest, 'Warning', 'FailedMigration', message);
    return { facts: { ...facts, guest: written }, input: { phase: 'Failed', failure: cause } };
  }
}

/** Whether the guest comes from another object. */
function isReceiver({ migration, pair }: MigrationFacts): boolean {
  return pair !== undefined && !pair.isSameGuest && migrationRole(migration.spec) === 'target';
}

/** The migration that the target pod is of: of two halves of one guest it is the target's, though the source's makes it. */
function targetMigrationOf({ migration, pair }: MigrationFacts): VirtualMachineInstanceMigration {
  return (pair?.isSameGuest === true ? pair.partner : undefined) ?? migration;
}

const ONLY_PROCESSOR =
  'Migration cannot proceed since no node is suitable to run the required CPU model / required features.';

/** Whether a target fits nowhere, and nobody has been told so yet in these words. */
export function isNewlyUnfit({ status }: VirtualMachineInstanceMigration, unfitness: string | undefined): boolean {
  const told = status?.conditions?.find(({ type }) => type === 'migrationTargetPodUnschedulable')?.message;
  return unfitness !== undefined && unfitness !== told;
}
