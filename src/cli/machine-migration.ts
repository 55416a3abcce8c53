import { labelOf } from '../api/kubevirt/complete-migration.ts';
import { isFinalMigration } from '../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_GUEST_LABEL } from '../api/kubevirt/well-known.ts';
import { ApiError } from '../api/status.ts';
import type { Env } from '../env/ports.ts';
import { virtualMachineInstanceMigrations } from '../kube/kubevirt-resources.ts';
import { type ClusterOptions, subresourcePath, withCluster } from './cluster-connection.ts';
import { UserError } from './failure.ts';
import { dryRunOf, missingGuest, put } from './machine-power.ts';

/** `godwit migrate|migrate-cancel`: what virtctl does by the same names. */

export interface MigrateOptions extends ClusterOptions {
  readonly dryRun?: boolean;
  /** Of migrate: labels that the node must have, besides those that the machine asks for. */
  readonly addedNodeSelector?: Readonly<Record<string, string>>;
}

type Print = (line: string) => void;

/** Asks for a machine to be moved to another node. */
export async function migrate(name: string, options: MigrateOptions, env: Env, print: Print): Promise<void> {
  const { addedNodeSelector } = options;
  await withCluster(options, env, async (connection) => {
    const path = subresourcePath(connection.namespace, 'virtualmachines', name, 'migrate');
    const body = { ...(addedNodeSelector ? { addedNodeSelector } : {}), ...dryRunOf(options, print) };
    try {
      await put(connection, path, body);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) throw await missingGuest(connection, name, error);
      throw error;
    }
  });
  print(`VM ${name} was scheduled to migrate`);
}

/** Stops the migration of a machine that is not over. */
export async function cancelMigration(name: string, options: MigrateOptions, env: Env, print: Print): Promise<void> {
  const { signal } = new AbortController();
  await withCluster(options, env, async ({ client, namespace }) => {
    const dryRun = Object.hasOwn(dryRunOf(options, print), 'dryRun');
    const labelSelector = `${MIGRATION_GUEST_LABEL}=${labelOf(name)}`;
    const { items } = await client.list(virtualMachineInstanceMigrations, { namespace, labelSelector }, signal);
    const active = items.find((each) => (each.spec.vmName ?? each.spec.vmiName) === name && !isFinalMigration(each));
    if (!active) throw new UserError(`Found no migration to cancel for ${name}`);
    const { name: migration = '', uid = '' } = active.metadata;
    // Another one of the same name is not meant.
    await client.delete(virtualMachineInstanceMigrations, namespace, migration, signal, {
      dryRun,
      preconditions: { uid },
    });
  });
  print(`VM ${name} was scheduled to migrate-cancel`);
}
