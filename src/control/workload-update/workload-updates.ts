import { Gauge } from 'prom-client';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { ApiError } from '../../api/status.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { kubeVirts, virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { ControlContext } from '../context.ts';
import { isDuplicate } from '../migration/duplicate.ts';
import { guestKeyOf, guestKeysOf, uidsOf } from '../migration/keys.ts';
import { slotRules } from '../migration/ledger-rules.ts';
import { type LauncherPod, pods } from '../resources.ts';
import { isGoingDown } from '../vmi/phase.ts';
import { decide, isUpdate, type UpdatePlan, type Workload } from './decide.ts';
import { updateMigration } from './update-migration.ts';
import { needLeft, type UpdateNeed, updateNeed } from './update-need.ts';
import { isBeingDeployed, updateStrategyOf } from './update-strategy.ts';

export interface WorkloadUpdatesOptions extends ControlContext {
  /** The launcher's image, as guests are started now. */
  readonly launcherImage: string;
}

/** All is decided at once, since what may be done for one guest depends on what is done for the others. */
const KEY = 'workloads';
/** News come in hundreds, of which each would be decided on: they are heard together. */
const NEWS_MS = 200;
/** When what we read and what we hear disagree, one of them is late: this is how soon we look again. */
const RECHECK_MS = 1000;

/** Values of indexes: guests that need an update, and migrations that are not over. */
const NEEDED = 'needed';
const UNFINISHED = 'unfinished';

type Migration = VirtualMachineInstanceMigration;

/**
 * Gives guests a newer launcher, and makes changes take effect that need one, by moving them; or evicts them, where they
 * cannot move and the cluster allows it. What it costs depends on how many guests that concerns, not on how many there are.
 */
export class WorkloadUpdates implements Service {
  readonly name = 'workload updates';
  readonly #options: WorkloadUpdatesOptions;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #migrations: Informer<Migration>;
  readonly #pods: Informer<LauncherPod>;
  readonly #kubeVirts: Informer<KubeVirt>;
  readonly #controller: Controller;
  readonly #outdated: Gauge | undefined;
  #evictedMs: number | undefined;

  constructor(options: WorkloadUpdatesOptions) {
    const { env, informers, metrics } = options;
    this.#options = options;
    this.#guests = informers.of(virtualMachineInstances, {
      update: (guest) => (this.#needOf(guest) ? [NEEDED] : []),
    });
    this.#migrations = informers.of(virtualMachineInstanceMigrations, {
      guest: guestKeysOf,
      unfinished: (migration) => (isFinalMigration(migration) ? [] : [UNFINISHED]),
    });
    this.#pods = informers.of(pods, { uid: uidsOf });
    this.#kubeVirts = informers.of(kubeVirts);
    this.#controller = new Controller({
      name: 'workload-update-controller',
      env,
      reconcile: (_key, signal) => this.#reconcile(signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#outdated =
      metrics &&
      new Gauge({
        name: 'kubevirt_vmi_number_of_outdated',
        help: 'Guests whose launcher is not the current one.',
        registers: [metrics.registry],
      });
    this.#listen();
  }

  run(signal: AbortSignal): Promise<void> {
    this.#controller.enqueue(KEY);
    return this.#controller.run(signal);
  }

  #listen(): void {
    const wake = (): void => this.#controller.enqueue(KEY, { afterMs: NEWS_MS });
    this.#guests.onChange(({ object, old }) => {
      if (this.#needOf(object) || (old && this.#needOf(old))) wake();
    });
    this.#migrations.onChange(({ type, object, old }) => {
      const isSettled = old && isFinalMigration(old) && isFinalMigration(object) && type !== 'deleted';
      if (!isSettled) wake();
    });
    this.#kubeVirts.onChange(({ object, old }) => {
      if (!old || !deepEqual(old.spec, object.spec) || isBeingDeployed(old) !== isBeingDeployed(object)) wake();
    });
  }

  #needOf(guest: VirtualMachineInstance): UpdateNeed | undefined {
    return updateNeed(guest, this.#options.launcherImage);
  }

  /** The pod that the guest may run in. */
  #podOf({ status }: VirtualMachineInstance): LauncherPod | undefined {
    return this.#pods.byIndex('uid', status?.rightToRun?.holder?.podUID ?? '')[0];
  }

  async #reconcile(signal: AbortSignal): Promise<Result | void> {
    const [kubeVirt] = this.#kubeVirts.list();
    if (!kubeVirt) return;
    const workloads = this.#workloads();
    await this.#count(kubeVirt, workloads.filter(({ need }) => need?.isOutdated).length, signal);
    if (isBeingDeployed(kubeVirt)) return;
    const { clock } = this.#options.env;
    const plan = decide({
      workloads,
      strategy: updateStrategyOf(kubeVirt),
      migrationsMax: slotRules(kubeVirt).limits.perCluster,
      migrationsUnderWay: this.#migrations.byIndex('unfinished', UNFINISHED).filter(isUnderWay).length,
      evictedMs: this.#evictedMs,
      nowMs: clock.now(),
    });
    const isSettled = await this.#act(plan, kubeVirt, signal);
    if (!isSettled) return { requeueAfterMs: RECHECK_MS };
    return plan.wakeAtMs === undefined ? undefined : { requeueAfterMs: plan.wakeAtMs - clock.now() };
  }

  /** Guests that need an update, and those that a migration of ours is under way for. */
  #workloads(): readonly Workload[] {
    const guests = new Map(this.#guests.byIndex('update', NEEDED).map((guest) => [keyOf(guest), guest]));
    for (const migration of this.#migrations.byIndex('unfinished', UNFINISHED)) {
      const key = guestKeyOf(migration);
      const guest = isUpdate(migration) && !guests.has(key) ? this.#guests.get(key) : undefined;
      if (guest) guests.set(key, guest);
    }
    return [...guests].map(([key, guest]) => {
      const pod = this.#podOf(guest);
      return {
        guest,
        need: this.#needOf(guest),
        isServed: needLeft(guest, pod, this.#options.launcherImage) === undefined,
        migrations: this.#migrations.byIndex('guest', key),
        isPodEnding: pod !== undefined && isGoingDown(pod),
      };
    });
  }

  /** Answers whether all was as it was thought to be. */
  async #act({ moved, evicted, canceled }: UpdatePlan, kubeVirt: KubeVirt, signal: AbortSignal): Promise<boolean> {
    let isSettled = true;
    for (const { guest, migration } of canceled) await this.#cancel(guest, migration, signal);
    for (const workload of moved) isSettled = (await this.#move(workload, kubeVirt, signal)) && isSettled;
    if (evicted.length > 0) this.#evictedMs = this.#options.env.clock.now();
    for (const workload of evicted) await this.#evict(workload, signal);
    return isSettled;
  }

  async #move(heard: Workload, kubeVirt: KubeVirt, signal: AbortSignal): Promise<boolean> {
    const { client, recorder, launcherImage } = this.#options;
    const { namespace = '', name = '', uid } = heard.guest.metadata;
    // It may have moved by now, or the change may have been taken back: we may not have heard of that yet, nor its controller.
    const guest = await client.find(virtualMachineInstances, namespace, name, signal);
    const need = guest && needLeft(guest, this.#podOf(guest), launcherImage);
    if (!need || guest.metadata.uid !== uid) return false;
    const migration = updateMigration({ ...heard, guest, need }, kubeVirt.spec.configuration ?? {});
    try {
      await client.create(virtualMachineInstanceMigrations, migration, signal);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      // It is there, and we have not heard of it yet; or another one is, which serves as well.
      if (isDuplicate(error)) return false;
      recorder.event(guest, 'Warning', 'FailedCreate', `Error creating a Migration: ${error.message}`);
      throw error;
    }
    const message = `Created Migration ${migration.metadata.name} for automated workload update`;
    recorder.event(guest, 'Normal', 'SuccessfulCreate', message);
    return true;
  }

  async #cancel(guest: VirtualMachineInstance, { metadata }: Migration, signal: AbortSignal): Promise<void> {
    const { client, recorder } = this.#options;
    const { namespace = '', name = '', uid = '' } = metadata;
    // We may not have heard yet that it is needed after all.
    const current = await client.find(virtualMachineInstances, namespace, guest.metadata.name ?? '', signal);
    if (current && this.#needOf(current)) return;
    try {
      await client.delete(virtualMachineInstanceMigrations, namespace, name, signal, { preconditions: { uid } });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) return;
      const message = `Error deleting Migration ${name} of a change that was taken back: ${error.message}`;
      recorder.event(guest, 'Warning', 'FailedChangeAbortion', message);
      throw error;
    }
    const message = `Deleted Migration ${name}: the change was taken back`;
    recorder.event(guest, 'Normal', 'SuccessfulChangeAbortion', message);
  }

  /** Asks for the eviction, as anybody would: budgets and whoever protects guests are heard. */
  async #evict(heard: Workload, signal: AbortSignal): Promise<void> {
    const { client, recorder, launcherImage } = this.#options;
    const { namespace = '', name: guestName = '' } = heard.guest.metadata;
    // It may have moved by now.
    const guest = await client.find(virtualMachineInstances, namespace, guestName, signal);
    const pod = guest && this.#podOf(guest);
    if (!pod || !needLeft(guest, pod, launcherImage)?.isOutdated) return;
    const { name = '', uid = '' } = pod.metadata;
    const deleteOptions = { preconditions: { uid } };
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { namespace, name }, deleteOptions };
    try {
      await client.post(pods, namespace, name, 'eviction', eviction, signal);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (error.code === 404) return;
      // The next batch tries again.
      recorder.event(guest, 'Warning', 'FailedEvict', `Error evicting Pod ${name}: ${error.message}`);
      return;
    }
    recorder.event(guest, 'Normal', 'SuccessfulEvict', `Evicted Pod ${name} for automated workload update`);
  }

  async #count(kubeVirt: KubeVirt, count: number, signal: AbortSignal): Promise<void> {
    this.#outdated?.set(count);
    const known = kubeVirt.status?.outdatedVirtualMachineInstanceWorkloads;
    if (known === count || (known === undefined && count === 0)) return;
    const body = statusPatch(kubeVirt, { outdatedVirtualMachineInstanceWorkloads: count });
    if (!body) return;
    const { namespace = '', name = '' } = kubeVirt.metadata;
    const options = { subresource: 'status' };
    try {
      await this.#options.client.patch(kubeVirts, namespace, name, { type: 'merge', body }, signal, options);
    } catch (error) {
      // Somebody else wrote at the same time: we hear of it, and begin anew.
      if (!(error instanceof ApiError && error.code === 409)) throw error;
      this.#controller.enqueue(KEY, { afterMs: RECHECK_MS });
    }
  }
}

/** Whether a migration has its share of what the cluster carries out at once, or is one of ours, and about to have. */
function isUnderWay(migration: Migration): boolean {
  return isUpdate(migration) || !['', 'Pending'].includes(migration.status?.phase ?? '');
}
