import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { migrationRole } from '../../api/kubevirt/validate-migration.ts';
import { ownState, sourceNodeOf } from '../../migration/phase/facts.ts';
import { earliestDeadlineMs, effectivePriority } from '../../migration/slots/order.ts';
import type { MigrationReference, SlotRequest } from '../../migration/slots/request.ts';
import type { LauncherPod } from '../resources.ts';
import type { LocalPair } from './local-pair.ts';

/** What migrations need of slots. */

/** A migration, its guest, and the pod that the guest would move to. */
export interface Mover {
  readonly migration: VirtualMachineInstanceMigration;
  readonly guest: VirtualMachineInstance | undefined;
  readonly pod: LauncherPod | undefined;
}

/** Of a migration within the cluster, of one object or two; undefined where it is of a guest that leaves no node. */
export function requestWithin(
  { migration, guest, pod }: Mover,
  members: readonly VirtualMachineInstanceMigration[] = [migration],
): SlotRequest | undefined {
  const state = migration.status?.migrationState;
  // What was handed off keeps its source, wherever its guest is by now.
  const sourceNode = state?.targetNode ? state.sourceNode : sourceNodeOf(guest);
  if (!sourceNode) return undefined;
  return {
    ...common(migration),
    kind: 'local',
    members: members.map(referenceTo),
    sourceNode,
    targetNode: pod?.spec?.nodeName || undefined,
    peer: undefined,
  };
}

/**
 * Of a half, once it knows its other one; undefined before. The halves of two guests in one cluster ask as one, and it is
 * the source that does.
 */
export function requestOfHalf({ migration, guest, pod }: Mover, pair: LocalPair): SlotRequest | undefined {
  const { source, target } = pair;
  const state = ownState({ migration, guest });
  if (source && target)
    return migration === source ? requestWithin({ migration, guest, pod }, [source, target]) : undefined;
  const asked = { ...common(migration), members: [referenceTo(migration)] };
  if (migrationRole(migration.spec) === 'target') {
    if (state?.sourceState?.virtualMachineInstanceUID === undefined) return undefined;
    const targetNode = pod?.spec?.nodeName || undefined;
    return { ...asked, kind: 'receive', sourceNode: undefined, targetNode, peer: state.sourceState.slots };
  }
  const sourceNode = state?.sourceState?.node ?? state?.sourceNode;
  if (state?.targetState?.virtualMachineInstanceUID === undefined || !sourceNode) return undefined;
  return { ...asked, kind: 'send', sourceNode, targetNode: undefined, peer: state.targetState.slots };
}

function common({ metadata, spec, status }: VirtualMachineInstanceMigration) {
  const causes = status?.causes ?? [];
  return {
    uid: metadata.uid ?? '',
    priority: effectivePriority(spec.priority, causes),
    deadlineMs: earliestDeadlineMs(causes),
    createdMs: Date.parse(metadata.creationTimestamp ?? ''),
  };
}

/** The object of a migration, as ledgers name it. */
export function referenceTo({ metadata }: VirtualMachineInstanceMigration): MigrationReference {
  const { namespace = '', name = '', uid = '' } = metadata;
  return { namespace, name, uid };
}
