import { labelOf } from '../api/kubevirt/complete-migration.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_GUEST_LABEL } from '../api/kubevirt/well-known.ts';
import { ApiError } from '../api/status.ts';
import type { Env } from '../env/ports.ts';
import { virtualMachineInstanceMigrations } from '../kube/kubevirt-resources.ts';
import { type ClusterConnection, type ClusterOptions, subresourcePath, withCluster } from './cluster-connection.ts';
import { UserError } from './failure.ts';
import { dryRunOf, missingGuest, put } from './machine-power.ts';
import { withRemedy } from './power-remedies.ts';
import { watchMigration } from './watch/watch-migration.ts';
import { LineView, TerminalView } from './watch/watch-view.ts';

/** `godwit migrate|migrate-cancel`: what virtctl does by the same names. */

export interface MigrateOptions extends ClusterOptions {
  readonly dryRun?: boolean;
  /** Of migrate: labels that the node must have, besides those that the machine asks for. */
  readonly addedNodeSelector?: Readonly<Record<string, string>>;
  /** Of migrate: follows it to its end. */
  readonly watch?: boolean;
}

/** Where a migration that is watched is drawn, and how people stop watching. */
export interface WatchTerminal {
  readonly output: NodeJS.WriteStream;
  /** Aborts when they do. */
  readonly interrupted: AbortSignal;
}

type Print = (line: string) => void;

/** Asks for a machine to be moved to another node, and follows that, if it is told to. */
export async function migrate(
  name: string,
  options: MigrateOptions,
  env: Env,
  print: Print,
  terminal?: WatchTerminal,
): Promise<void> {
  const { addedNodeSelector } = options;
  const isWatched = options.watch === true && options.dryRun !== true && terminal !== undefined;
  await withCluster(options, env, async (connection) => {
    const before = isWatched ? await migrationsOf(name, connection) : [];
    const path = subresourcePath(connection.namespace, 'virtualmachines', name, 'migrate');
    const body = { ...(addedNodeSelector ? { addedNodeSelector } : {}), ...dryRunOf(options, print) };
    try {
      await put(connection, path, body);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) throw await missingGuest(connection, name, error);
      throw isUnderWay(error) ? alreadyMoving(name, connection, error) : withRemedy(error, name);
    }
    print(`VM ${name} was scheduled to migrate`);
    if (isWatched) await follow(name, before, { connection, env, print, terminal });
  });
}

function isUnderWay(error: unknown): error is ApiError {
  return error instanceof ApiError && error.message.includes('in-flight migration detected');
}

function alreadyMoving(name: string, { namespace }: ClusterConnection, cause: ApiError): UserError {
  return new UserError(
    `in-flight migration detected: ${name} is to move already; 'godwit why ${name} -n ${namespace}' says how that is, 'godwit migrate-cancel ${name} -n ${namespace}' calls it off`,
    { cause },
  );
}

/** The migrations of a guest that are there, also those that are over. */
async function migrationsOf(
  name: string,
  { client, namespace }: ClusterConnection,
): Promise<readonly VirtualMachineInstanceMigration[]> {
  const labelSelector = `${MIGRATION_GUEST_LABEL}=${labelOf(name)}`;
  const { signal } = new AbortController();
  const { items } = await client.list(virtualMachineInstanceMigrations, { namespace, labelSelector }, signal);
  return items.filter(({ spec }) => (spec.vmName ?? spec.vmiName) === name);
}

interface Following {
  readonly connection: ClusterConnection;
  readonly env: Env;
  readonly print: Print;
  readonly terminal: WatchTerminal;
}

/** Follows the migration that was made since it was last looked. */
async function follow(
  name: string,
  before: readonly VirtualMachineInstanceMigration[],
  { connection, env, print, terminal }: Following,
): Promise<void> {
  const known = new Set(before.map(({ metadata }) => metadata.uid));
  const now = await migrationsOf(name, connection);
  const migration = now.find(({ metadata }) => !known.has(metadata.uid));
  if (!migration) throw new UserError(`the migration of ${name} was called off; it goes on where it is`);
  const { output, interrupted } = terminal;
  const view = output.isTTY ? new TerminalView(output) : new LineView(print);
  const { client } = connection;
  try {
    print(await watchMigration({ client, env, migration, guest: name, view }, interrupted));
  } catch (error) {
    if (!interrupted.aborted) throw error;
    const { namespace } = connection;
    throw new UserError(
      `stopped: the migration goes on by itself; 'godwit why ${name} -n ${namespace}' says how it is, 'godwit migrate-cancel ${name} -n ${namespace}' calls it off`,
      { exitCode: 130 },
    );
  }
}

/** Stops the migration of a machine that is not over. */
export async function cancelMigration(name: string, options: MigrateOptions, env: Env, print: Print): Promise<void> {
  const { signal } = new AbortController();
  await withCluster(options, env, async (connection) => {
    const { client, namespace } = connection;
    const dryRun = Object.hasOwn(dryRunOf(options, print), 'dryRun');
    const active = (await migrationsOf(name, connection)).find((each) => !isFinalMigration(each));
    if (!active)
      throw new UserError(
        `Found no migration to cancel for ${name}; 'godwit why ${name} -n ${namespace}' says where it is, and how`,
      );
    const { name: migration = '', uid = '' } = active.metadata;
    // Another one of the same name is not meant.
    await client.delete(virtualMachineInstanceMigrations, namespace, migration, signal, {
      dryRun,
      preconditions: { uid },
    });
  });
  print(`VM ${name} was scheduled to migrate-cancel`);
}
