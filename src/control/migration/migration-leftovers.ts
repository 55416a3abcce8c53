import { labelOf } from '../../api/kubevirt/complete-migration.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { sidesOf } from '../../api/kubevirt/migration-sides.ts';
import { MIGRATION_GUEST_LABEL } from '../../api/kubevirt/well-known.ts';
import { ApiError } from '../../api/status.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { keyOf, splitKey } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { ownerUidOf } from '../../migration/halves/pair-state.ts';
import { isStarted } from '../../migration/phase/facts.ts';
import { failure } from '../../migration/phase/failure.ts';
import type { ControlContext } from '../context.ts';
import { type LauncherPod, pods } from '../resources.ts';
import { deletePod } from './delete-pod.ts';
import { withdrawnState, writeState } from './hand-off.ts';
import { guestKeyOf, guestKeysOf, launchedGuestsOf, migrationUidsOf, uidsOf } from './keys.ts';
import { isOver, leftovers } from './leftovers.ts';

const RECHECK_MS = 1000;

/**
 * Tidies up after migrations that are not there any more: of one that was deleted nothing is kept, and what the agents
 * have of one whose finalizer somebody took away is stopped. Keyed by guests.
 */
export class MigrationLeftovers implements Service {
  readonly name = 'migration leftovers';
  readonly #context: ControlContext;
  readonly #guests: Informer<VirtualMachineInstance>;
  readonly #pods: Informer<LauncherPod>;
  readonly #migrations: Informer<VirtualMachineInstanceMigration>;
  readonly #controller: Controller;

  constructor(context: ControlContext) {
    const { env, informers, metrics } = context;
    this.#context = context;
    this.#guests = informers.of(virtualMachineInstances);
    this.#pods = informers.of(pods, { launched: launchedGuestsOf });
    this.#migrations = informers.of(virtualMachineInstanceMigrations, { guest: guestKeysOf, uid: uidsOf });
    this.#controller = new Controller({
      name: 'migration-leftovers',
      env,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#listen();
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  /** Few changes have anything to do with this; those that may are looked at. */
  #listen(): void {
    this.#migrations.onChange(({ type, object }) => {
      if (type === 'deleted') this.#controller.enqueue(guestKeyOf(object));
    });
    this.#pods.onChange(({ object }) => {
      const [uid] = migrationUidsOf(object);
      const isOrphan = uid !== undefined && this.#migrations.byIndex('uid', uid).length === 0;
      if (isOrphan || isOver(object)) for (const key of launchedGuestsOf(object)) this.#controller.enqueue(key);
    });
    this.#guests.onChange(({ object }) => {
      const { completed } = object.status?.migrationState ?? {};
      const owner = ownerUidOf(object);
      const isOrphan = owner !== '' && this.#migrations.byIndex('uid', owner).length === 0;
      if (isOrphan && completed !== true) this.#controller.enqueue(keyOf(object));
    });
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    const known = this.#guests.get(key);
    const launchers = this.#pods.byIndex('launched', key);
    if (!known || isNothing(leftovers(known, launchers, this.#migrations.byIndex('guest', key)))) return;
    try {
      // Caches may be late, each by its own time: what is here is gone only where the server does not know it either.
      const { guest, migrations } = await this.#ask(key, signal);
      const left = leftovers(guest, launchers, migrations);
      if (left.isAbandoned) await this.#stop(guest, signal);
      for (const pod of left.pods) await deletePod(this.#context, pod, guest, guest, signal);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      if (error instanceof ApiError && error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
  }

  async #ask(
    key: string,
    signal: AbortSignal,
  ): Promise<{ guest: VirtualMachineInstance; migrations: readonly VirtualMachineInstanceMigration[] }> {
    const { client } = this.#context;
    const { namespace, name } = splitKey(key);
    const guest = await client.get(virtualMachineInstances, namespace, name, signal);
    const labelSelector = `${MIGRATION_GUEST_LABEL}=${labelOf(name)}`;
    const { items } = await client.list(virtualMachineInstanceMigrations, { namespace, labelSelector }, signal);
    const listed = items.filter((each) => guestKeyOf(each) === key);
    return { guest, migrations: [...listed, ...this.#migrations.byIndex('guest', key)] };
  }

  async #stop(guest: VirtualMachineInstance, signal: AbortSignal): Promise<void> {
    const { client, env } = this.#context;
    const state = guest.status?.migrationState ?? {};
    const { isSource, isTarget } = sidesOf(guest);
    // An agent that was told to receive a guest alone can say that it never will.
    const isReceiving = isTarget && !isSource && state.targetNode !== undefined;
    const stopped =
      isStarted(guest) || isReceiving
        ? { ...state, abortRequested: true }
        : withdrawnState(state, failure('Canceled'), env.clock.now());
    await writeState(client, guest, stopped, signal);
  }
}

function isNothing({ isAbandoned, pods: left }: ReturnType<typeof leftovers>): boolean {
  return !isAbandoned && left.length === 0;
}
