import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { formatTime } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import { virtualMachineInstanceMigrations } from '../../kube/kubevirt-resources.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import type { Clock } from '../../env/ports.ts';
import type { ControlContext } from '../context.ts';

const REASON = 'this version of Godwit does not move guests yet; the guest stays where it is';
/** How soon it is looked again when somebody else wrote at the same time. */
const RECHECK_MS = 1000;

/** Fails every migration with the reason, and lets it go: nobody is to wait for what will not happen. */
export class MigrationRefusals implements Service {
  readonly name = 'migration refusals';
  readonly #clock: Clock;
  readonly #client: Client;
  readonly #recorder: ControlContext['recorder'];
  readonly #migrations: Informer<VirtualMachineInstanceMigration>;
  readonly #controller: Controller;

  constructor({ env, client, recorder, informers, metrics }: ControlContext) {
    this.#clock = env.clock;
    this.#client = client;
    this.#recorder = recorder;
    this.#migrations = informers.of(virtualMachineInstanceMigrations);
    this.#controller = new Controller({
      name: 'migration-controller',
      env,
      reconcile: (key, signal) => this.#reconcile(key, signal),
      ...(metrics ? { metrics } : {}),
    });
    this.#migrations.onChange(({ object }) => this.#controller.enqueue(keyOf(object)));
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | void> {
    const migration = this.#migrations.get(key);
    if (!migration) return;
    try {
      if (isFinalMigration(migration)) await this.#letGo(migration, signal);
      else await this.#fail(migration, signal);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return;
      if (error instanceof ApiError && error.code === 409) return { requeueAfterMs: RECHECK_MS };
      throw error;
    }
  }

  async #fail(migration: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = migration.metadata;
    const at = formatTime(this.#clock.now());
    const body = statusPatch(migration, {
      phase: 'Failed',
      phaseTransitionTimestamps: [{ phase: 'Failed', phaseTransitionTimestamp: at }],
      migrationState: { migrationUid: uid, failed: true, failureReason: REASON, endTimestamp: at },
    });
    if (!body) return;
    const patch = { type: 'merge', body } as const;
    await this.#client.patch(virtualMachineInstanceMigrations, namespace, name, patch, signal, {
      subresource: 'status',
    });
    this.#recorder.event(migration, 'Warning', 'FailedMigration', REASON);
  }

  async #letGo({ metadata }: VirtualMachineInstanceMigration, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '', resourceVersion = '', finalizers = [] } = metadata;
    if (!finalizers.includes(MIGRATION_FINALIZER)) return;
    const left = finalizers.filter((each) => each !== MIGRATION_FINALIZER);
    const body = { metadata: { uid, resourceVersion, finalizers: left } };
    await this.#client.patch(virtualMachineInstanceMigrations, namespace, name, { type: 'merge', body }, signal);
  }
}
