import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { ownerUidOf } from '../../migration/halves/pair-state.ts';
import { MIGRATIONS, VMIS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';
import { guestKeyOf, migrationUidOf } from '../moves.ts';
import type { State } from '../observer.ts';

/**
 * A migration has one verdict, for good, and it is that of the record of the right to run: Succeeded if and only if its
 * target pod took the guest. One whose guest was lost there ahead of its memory may have failed, and has not succeeded. Of
 * a guest that is gone there is no record any more.
 */
export function verdictsAgree(): Invariant {
  /** UIDs of migrations by those of their target pods. */
  const targets = new Map<string, string>();
  /** Migrations whose target took the guest, with the guest's UID. */
  const taken = new Map<string, string>();
  const verdicts = new Map<string, string>();
  const aboutGuest = ({ metadata, status }: VirtualMachineInstance): string | undefined => {
    const migration = targets.get(status?.rightToRun?.holder?.podUID ?? '');
    if (migration === undefined) return undefined;
    taken.set(migration, metadata.uid ?? '');
    return verdicts.get(migration) === 'Failed' && !isLostAhead({ status })
      ? `${metadata.name} was taken by the target of migration ${migration}, which has failed`
      : undefined;
  };
  const aboutMigration = (migration: VirtualMachineInstanceMigration, state: State): string | undefined => {
    const { uid = '', name } = migration.metadata;
    const { phase = '' } = migration.status ?? {};
    const before = verdicts.get(uid);
    if (before !== undefined && before !== phase) return `migration ${name} was ${before}, and is ${phase}`;
    if (before !== undefined || !isFinalMigration(migration)) return undefined;
    verdicts.set(uid, phase);
    const guest = state.get(VMIS, guestKeyOf(migration)) as VirtualMachineInstance | undefined;
    const taker = taken.get(uid);
    if (phase === 'Succeeded' && taker === undefined)
      return `migration ${name} succeeded, and its target has taken nothing`;
    if (phase === 'Succeeded' && guest && isLostAhead(guest) && ownerUidOf(guest) === uid)
      return `migration ${name} succeeded, and its guest was lost ahead of its memory`;
    return phase === 'Failed' && taker !== undefined && taker === guest?.metadata.uid && !isLostAhead(guest)
      ? `migration ${name} failed, though its target has taken the guest`
      : undefined;
  };
  return {
    name: 'verdicts-agree',
    observe({ bucket, object }, state) {
      if (!object) return undefined;
      const target = bucket === 'pods' ? migrationUidOf(object) : undefined;
      if (target !== undefined) targets.set(object.metadata.uid ?? '', target);
      if (bucket === VMIS) return aboutGuest(object as VirtualMachineInstance);
      return bucket === MIGRATIONS ? aboutMigration(object as VirtualMachineInstanceMigration, state) : undefined;
    },
  };
}

/** Whether a guest has ended that ran ahead of its memory, and of which nobody has said that all of it came. */
function isLostAhead({ status }: Pick<VirtualMachineInstance, 'status'>): boolean {
  const isOver = status?.phase === 'Failed' || status?.phase === 'Succeeded';
  const { mode, completed, failed } = status?.migrationState ?? {};
  return isOver && mode === 'PostCopy' && (completed !== true || failed === true);
}
