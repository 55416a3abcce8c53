import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { JsonObject } from '../../api/meta.ts';
import { SYNCHRONIZATION_FINALIZER } from '../../api/kubevirt/well-known.ts';
import type { Client } from '../../kube/client.ts';
import { virtualMachineInstanceMigrations, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import type { PairStatus } from './halves.ts';
import { BLOCKED_CONDITION, type Problem, withProblem } from './problem.ts';
import { PEER_ANNOTATION } from './side.ts';

/**
 * What the synchronization controller writes of the objects of its own cluster. Each write is for the object as it was
 * looked at, and no other, since all that is written here has other writers besides; what is as it should be is not written.
 */

type Migration = VirtualMachineInstanceMigration;
type Guest = VirtualMachineInstance;

/** Binds a migration to the cluster of its other half, and keeps it until that half knows how it ended. */
export function keep(client: Client, migration: Migration, peer: string, signal: AbortSignal): Promise<Migration> {
  const finalizers = [...(migration.metadata.finalizers ?? []), SYNCHRONIZATION_FINALIZER];
  return patchMetadata(client, migration, { finalizers, annotations: { [PEER_ANNOTATION]: peer } }, signal);
}

/** Keeps a migration no longer. */
export function release(client: Client, migration: Migration, signal: AbortSignal): Promise<Migration> {
  const finalizers = (migration.metadata.finalizers ?? []).filter((each) => each !== SYNCHRONIZATION_FINALIZER);
  return patchMetadata(client, migration, { finalizers }, signal);
}

function patchMetadata(
  client: Client,
  { metadata }: Migration,
  change: JsonObject,
  signal: AbortSignal,
): Promise<Migration> {
  const { namespace = '', name = '', uid = '', resourceVersion = '' } = metadata;
  const body = { metadata: { uid, resourceVersion, ...change } };
  return client.patch(virtualMachineInstanceMigrations, namespace, name, { type: 'merge', body }, signal);
}

/** Says on a migration where its side is reached, and what keeps it from the other. */
export async function tellMigration(
  client: Client,
  migration: Migration,
  { addresses, problem, nowMs }: { addresses: readonly string[]; problem: Problem | undefined; nowMs: number },
  signal: AbortSignal,
): Promise<Migration> {
  const [syncEndpoint] = addresses;
  const patch = statusPatch(migration, {
    conditions: withProblem(migration.status?.conditions, BLOCKED_CONDITION, problem, nowMs),
    ...(syncEndpoint === undefined ? {} : { syncEndpoint, synchronizationAddresses: addresses }),
  });
  if (!patch) return migration;
  const { namespace = '', name = '', uid = '' } = migration.metadata;
  // Nobody else says where we are reached: only conditions have other writers who could be overwritten.
  const isShared = Object.hasOwn(patch['status'] as object, 'conditions');
  const body = isShared ? patch : { ...patch, metadata: { uid } };
  const options = { subresource: 'status' };
  return client.patch(virtualMachineInstanceMigrations, namespace, name, { type: 'merge', body }, signal, options);
}

/** Says on a guest what was heard of the other side. */
export async function tellGuest(
  client: Client,
  guest: Guest,
  status: Partial<PairStatus> & Pick<NonNullable<Guest['status']>, 'conditions'>,
  signal: AbortSignal,
): Promise<Guest> {
  const body = statusPatch(guest, status);
  if (!body) return guest;
  const { namespace = '', name = '' } = guest.metadata;
  const options = { subresource: 'status' };
  return client.patch(virtualMachineInstances, namespace, name, { type: 'merge', body }, signal, options);
}
