import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { migratedGuestErrors } from '../../api/kubevirt/validate-migration.ts';
import { failed, type MigrationDecision, withdrawn } from './decision.ts';
import { isHandedOff, type MigrationFacts, ownState, type PairFacts } from './facts.ts';
import { isMeanwhile, seeking } from './pairing.ts';
import { decideWithin } from './within-cluster.ts';

/**
 * Two halves of the very same guest: a migration within the cluster that consists of two objects. The source's is carried
 * out as any other, once its other half is there, and is cancelled with it; the target's follows it in all.
 */
export function decideSameGuest(facts: MigrationFacts, role: 'source' | 'target', pair: PairFacts): MigrationDecision {
  return role === 'source' ? source(facts, pair) : target(facts, pair);
}

function source(facts: MigrationFacts, { partner, isKeyTaken }: PairFacts): MigrationDecision {
  const { migration } = facts;
  if (isKeyTaken && !isHandedOff(facts)) return failed('KeyTaken');
  const { phase = '' } = migration.status ?? {};
  const isAlone = !partner && (phase === '' || phase === 'Synchronizing');
  if (isAlone && migration.metadata.deletionTimestamp === undefined) return seeking('Synchronizing', facts);
  const deletionTimestamp = migration.metadata.deletionTimestamp ?? endOf(partner);
  const asOne: VirtualMachineInstanceMigration = {
    ...migration,
    metadata: { ...migration.metadata, ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }) },
    status: { ...migration.status, phase: phase === 'Synchronizing' ? '' : phase },
  };
  const decision = obstacleTo(facts) ?? decideWithin({ ...facts, migration: asOne });
  const state = ownState(facts);
  // It may have told the guest what it is before it knew that its other half is of the same guest.
  const isOpen = state !== undefined && state.completed !== true;
  return decision.failure && !decision.step && isOpen ? withdrawn(decision.failure) : decision;
}

/** A guest that stays the same object has its disks where they are: they are not copied, as they would be to another. */
function obstacleTo({ migration, guest, targetPod }: MigrationFacts): MigrationDecision | undefined {
  if (!isMeanwhile(migration.status?.phase ?? '') || targetPod || !guest) return undefined;
  const { vmName = '' } = migration.spec;
  const [obstacle] = migratedGuestErrors({ ...migration, spec: { vmName } }, guest);
  return obstacle && { phase: 'Failed', failure: { reason: 'NotMigratable', message: obstacle.message } };
}

/** Since when the other half is wanted no more; it may even be gone. */
function endOf(partner: VirtualMachineInstanceMigration | undefined): string | undefined {
  if (!partner || isFinalMigration(partner)) return 'ended';
  return partner.metadata.deletionTimestamp;
}

function target(facts: MigrationFacts, { partner, isKeyTaken }: PairFacts): MigrationDecision {
  const { migration, guest } = facts;
  const { phase = '' } = migration.status ?? {};
  if (isKeyTaken && !isHandedOff(facts)) return failed('KeyTaken');
  if (partner) return after(partner);
  const state = ownState(facts);
  if (state && guest) return withoutSource(guest, state);
  if (migration.metadata.deletionTimestamp !== undefined) return failed('Canceled');
  if (!guest) return failed('GuestGone');
  if (phase !== '' && phase !== 'WaitingForSync') return failed('PeerFailed', 'it is gone');
  return seeking('WaitingForSync', facts);
}

/** What became of it the record says, where nobody else can any more. */
function withoutSource({ status }: VirtualMachineInstance, { targetNode }: MigrationState): MigrationDecision {
  const { holder, successor } = status?.rightToRun ?? {};
  if (successor) return { phase: 'Running' };
  return holder !== undefined && holder.node === targetNode
    ? { phase: 'Succeeded' }
    : failed('PeerFailed', 'it is gone');
}

function after({ status }: VirtualMachineInstanceMigration): MigrationDecision {
  const { phase = '', conditions = [] } = status ?? {};
  if (phase === '' || phase === 'Synchronizing') return { phase: 'WaitingForSync' };
  if (phase !== 'Failed') return { phase };
  const { message = '' } = conditions.find(({ type }) => type === 'migrationFailed') ?? {};
  return failed('PeerFailed', message);
}
