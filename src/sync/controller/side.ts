import { migrationRole } from '../../api/kubevirt/validate-migration.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { SYNCHRONIZATION_FINALIZER } from '../../api/kubevirt/well-known.ts';
import type { Role } from '../channel.ts';

/** Our side of a pair, as its migration object says. */

type Migration = VirtualMachineInstanceMigration;

export interface Side {
  readonly role: Role;
  readonly key: string;
  /** Where the other side is reached; of sources alone. */
  readonly connectURL?: string;
}

/** On a half of a pair: the cluster that the other half is in, from before the first word to it. */
export const PEER_ANNOTATION = 'godwit.dev/synchronization-peer';

/** Undefined for a migration that is no half of a pair. */
export function sideOf({ spec }: Pick<Migration, 'spec'>): Side | undefined {
  const role = migrationRole(spec);
  if (role === 'local') return undefined;
  const key = (role === 'source' ? spec.sendTo?.key : spec.receive?.key) ?? '';
  if (key === '') return undefined;
  return role === 'source' ? { role, key, connectURL: spec.sendTo?.connectURL ?? '' } : { role, key };
}

export function otherRole(role: Role): Role {
  return role === 'source' ? 'target' : 'source';
}

/** What a half is found by: its part, and its key. */
export function sideId(role: Role, key: string): string {
  return `${role} ${key}`;
}

/** The index of migrations by part and key. */
export function sideIdsOf(migration: Migration): string[] {
  const side = sideOf(migration);
  return side ? [sideId(side.role, side.key)] : [];
}

/** The guest of a migration, by its key. */
export function guestKeyOf({ metadata, spec }: Migration): string {
  return `${metadata.namespace ?? ''}/${spec.vmName ?? ''}`;
}

/** The index of halves of pairs by their guests. */
export function pairGuestsOf(migration: Migration): string[] {
  return sideOf(migration) ? [guestKeyOf(migration)] : [];
}

/** Whether the migration has its key to itself, as far as the migration controller has said. */
export function hasKey(migration: Migration): boolean {
  return !isFinalMigration(migration) && (migration.status?.phase ?? '') !== '';
}

export function isKept({ metadata }: Pick<Migration, 'metadata'>): boolean {
  return metadata.finalizers?.includes(SYNCHRONIZATION_FINALIZER) === true;
}

export function peerOf({ metadata }: Pick<Migration, 'metadata'>): string | undefined {
  return metadata.annotations?.[PEER_ANNOTATION];
}

/**
 * Of all migrations with one key and part, the one that the key means: the one that has begun to talk, for as long as it
 * has to; then the one that has the key.
 */
export function meant(candidates: readonly Migration[]): Migration | undefined {
  return eldestOf(candidates.filter(isKept)) ?? eldestOf(candidates.filter(hasKey));
}

/** The one that was made first. */
export function eldestOf(migrations: readonly Migration[]): Migration | undefined {
  return migrations.reduce<Migration | undefined>(
    (eldest, each) => (eldest && isElder(eldest, each) ? eldest : each),
    undefined,
  );
}

function isElder({ metadata: one }: Migration, { metadata: other }: Migration): boolean {
  const [a, b] = [one.creationTimestamp ?? '', other.creationTimestamp ?? ''];
  return a === b ? (one.uid ?? '') < (other.uid ?? '') : a < b;
}

/** Whether both halves are of one and the same guest, which needs nobody in between. */
export function isOneGuest(one: Migration, other: Migration): boolean {
  return one.metadata.namespace === other.metadata.namespace && one.spec.vmName === other.spec.vmName;
}
