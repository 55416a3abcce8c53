import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { migrationRole } from '../../api/kubevirt/validate-migration.ts';
import { MIGRATION_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { virtualMachineInstanceMigrations, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { finalState } from '../../migration/phase/status.ts';
import type { ControlContext } from '../context.ts';
import { type LauncherPod, pods } from '../resources.ts';
import { deletePod } from './delete-pod.ts';

export interface FinishedMigrationsOptions extends ControlContext {
  readonly configuration: () => KubeVirtConfiguration;
}

/** KubeVirt's. */
const KEPT = 5;

/** A migration that is over, and what is left of it. */
interface Finished {
  readonly migration: VirtualMachineInstanceMigration;
  readonly guest: VirtualMachineInstance | undefined;
  readonly pod: LauncherPod | undefined;
}

/** Lets migrations go that are over, and tidies up after them. */
export class FinishedMigrations {
  readonly #options: FinishedMigrationsOptions;
  readonly #client: Client;
  readonly #pods: Informer<LauncherPod>;

  constructor(options: FinishedMigrationsOptions) {
    this.#options = options;
    this.#client = options.client;
    this.#pods = options.informers.of(pods);
  }

  /** Does all that there is to do for one that is over; `all` are the migrations of the same guest. */
  async settle(
    finished: Finished,
    all: readonly VirtualMachineInstanceMigration[],
    signal: AbortSignal,
  ): Promise<void> {
    const { migration, guest, pod } = finished;
    // A pod that no agent was told to take is nobody's.
    if (pod && migration.status?.migrationState?.targetPod === undefined)
      await deletePod(this.#options, pod, guest, migration, signal);
    const told = await this.#complete(finished, signal);
    await this.#letGo(told, signal);
    if (guest || (await this.#hasLeft(migration, signal))) return this.#collect(guest, all, signal);
    // Nobody could ask for it by its guest any more.
    if (migration.metadata.deletionTimestamp === undefined) await this.#deleteMigration(migration, signal);
  }

  /** Whether the guest went to another object: of its machine, which stays, that is asked for as long as it is there. */
  async #hasLeft({ metadata, spec, status }: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<boolean> {
    if (migrationRole(spec) !== 'source' || status?.phase !== 'Succeeded') return false;
    const machine = await this.#client.find(virtualMachines, metadata.namespace ?? '', spec.vmName ?? '', signal);
    return machine !== undefined;
  }

  /** The status with all that the agents told in the end. */
  async #complete({ migration, guest }: Finished, signal: AbortSignal): Promise<VirtualMachineInstanceMigration> {
    const state = finalState({ migration, guest });
    const progress = state?.progress ?? migration.status?.progress;
    const body = statusPatch(migration, { migrationState: state, progress });
    if (!body) return migration;
    const { namespace = '', name = '' } = migration.metadata;
    const patch = { type: 'merge', body } as const;
    const options = { subresource: 'status' };
    return this.#client.patch(virtualMachineInstanceMigrations, namespace, name, patch, signal, options);
  }

  async #letGo({ metadata }: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '', resourceVersion = '', finalizers = [] } = metadata;
    if (!finalizers.includes(MIGRATION_FINALIZER)) return;
    const left = finalizers.filter((each) => each !== MIGRATION_FINALIZER);
    const body = { metadata: { uid, resourceVersion, finalizers: left } };
    await this.#client.patch(virtualMachineInstanceMigrations, namespace, name, { type: 'merge', body }, signal);
  }

  /** Keeps the newest ones, and deletes the others with the pods that they left. */
  async #collect(
    guest: VirtualMachineInstance | undefined,
    all: readonly VirtualMachineInstanceMigration[],
    signal: AbortSignal,
  ): Promise<void> {
    const kept = this.#options.configuration().migrations?.finishedMigrationsKept ?? KEPT;
    const over = all.filter((each) => isFinalMigration(each) && each.metadata.deletionTimestamp === undefined);
    const old = over.toSorted(isNewer).slice(kept).toReversed();
    for (const migration of old) {
      const stale = this.#stalePod(migration);
      if (stale) await deletePod(this.#options, stale, guest, migration, signal);
      await this.#deleteMigration(migration, signal);
    }
  }

  /** What is left of a migration: the pod that it left, or the one that it did not reach. */
  #stalePod({ metadata, status }: VirtualMachineInstanceMigration): LauncherPod | undefined {
    const { sourcePod = '' } = status?.migrationState ?? {};
    if (status?.phase === 'Succeeded') return this.#pods.get(`${metadata.namespace ?? ''}/${sourcePod}`);
    return this.#pods.byIndex('migration', metadata.uid ?? '')[0];
  }

  async #deleteMigration({ metadata }: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = metadata;
    try {
      await this.#client.delete(virtualMachineInstanceMigrations, namespace, name, signal, { preconditions: { uid } });
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 404)) throw error;
    }
  }
}

function isNewer(a: VirtualMachineInstanceMigration, b: VirtualMachineInstanceMigration): number {
  const [madeA, madeB] = [a, b].map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? ''));
  return (madeB ?? 0) - (madeA ?? 0) || ((a.metadata.uid ?? '') < (b.metadata.uid ?? '') ? 1 : -1);
}
