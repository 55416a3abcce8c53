import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';

/** How a move goes, and how it ended. Pure. */

/** One side as it is. */
export interface SideNow {
  readonly migration: VirtualMachineInstanceMigration | undefined;
  readonly guest: VirtualMachineInstance | undefined;
  readonly machine: VirtualMachine | undefined;
}

export interface MoveNow {
  readonly source: SideNow;
  readonly target: SideNow;
  /** Whether the half where the guest is was ever seen. */
  readonly hasBegun: boolean;
  /** Both halves as they were seen last, though they may be gone by now. */
  readonly last?: readonly [SideNow['migration'], SideNow['migration']];
}

export type Verdict =
  | { readonly kind: 'moved' }
  /** The guest runs where it was. */
  | { readonly kind: 'failed'; readonly reason: string; readonly why: string };

/**
 * How it ended; undefined while it has not. A move has failed only when both halves say so, or are gone, or nobody can come
 * any more to one that still waits, and nobody at the target has the guest: what was made for it may be removed then.
 */
export function verdictOf({ source, target, hasBegun, last }: MoveNow): Verdict | undefined {
  const isGone = source.machine?.status?.rightToRun?.grantedAway === true;
  const isThere = hasRight(target.guest);
  const halves = [source.migration, target.migration];
  const hasSucceeded = halves.some((half) => half?.status?.phase === 'Succeeded');
  const isOver = halves.every((half) => !half || half.status?.phase === 'Succeeded');
  // Guests end, and machines are deleted, also before anybody has looked.
  const hasLeft = isGone || (hasSucceeded && !source.machine);
  // What the source says of its end says nothing of where the guest came: that it came here is seen here.
  const wasHere = target.migration !== undefined || last?.[1] !== undefined;
  if (isOver && hasLeft && (isThere || (hasSucceeded && wasHere))) return { kind: 'moved' };
  // Nothing of what follows may be said of a guest that the target has.
  if (isGone || isThere || hasSucceeded) return undefined;
  const isInVain = hasBegun && isKept(source) && isAlone(target);
  if (!isInVain && halves.some((half) => half && !isFinalMigration(half))) return undefined;
  return { kind: 'failed', ...reasonOf(last ?? halves) };
}

/** Whether nothing takes a guest away from where it is: who would send it is over, and it was promised to nobody. */
function isKept({ migration, guest }: SideNow): boolean {
  const isOver = !migration || isFinalMigration(migration);
  return isOver && hasRight(guest) && guest?.status?.rightToRun?.successor === undefined;
}

/** Whether a half has not met the other one. It may be where nobody can tell it that there is no other one any more. */
function isAlone({ migration }: SideNow): boolean {
  return ['', 'WaitingForSync'].includes(migration?.status?.phase ?? '');
}

/** Whether a guest has come to a machine: it is there, or was, and the machine is again what it is otherwise. */
export function hasCome({ machine, guest }: Pick<SideNow, 'machine' | 'guest'>): boolean {
  if (!machine || machine.status?.rightToRun?.grantedAway === true) return false;
  return hasRight(guest) || effectiveRunStrategy(machine.spec) !== 'WaitAsReceiver';
}

/** Whether a guest may run, and has not gone elsewhere. */
export function hasRight(guest: VirtualMachineInstance | undefined): boolean {
  const record = guest?.status?.rightToRun;
  return record !== undefined && !isAway(record);
}

/** The reason of whoever failed first: the other half only says so. */
function reasonOf(halves: readonly (VirtualMachineInstanceMigration | undefined)[]): {
  readonly reason: string;
  readonly why: string;
} {
  const reasons = halves.flatMap((half) => {
    const failed = half?.status?.conditions?.find(({ type }) => type === 'migrationFailed');
    return failed ? [{ reason: failed.reason ?? '', why: failed.message ?? '' }] : [];
  });
  const own = reasons.find(({ reason }) => reason !== 'PeerFailed') ?? reasons[0];
  return own ?? { reason: 'Cancelled', why: 'the migrations were deleted' };
}

/** A side in words. */
export interface SideRow {
  readonly side: 'from' | 'to';
  readonly machine: string;
  readonly phase: string;
  readonly node: string;
  readonly progress: string;
  /** What is wrong at the moment. */
  readonly trouble: string;
}

/** What is shown of a side. */
export function rowOf(side: 'from' | 'to', machine: string, { migration, guest }: SideNow): SideRow {
  const { phase = '', conditions = [], progress } = migration?.status ?? {};
  const state = guest?.status?.migrationState;
  const blocked = conditions.find(({ type, status }) => type === 'decentralizedMigrationBlocked' && status === 'True');
  const failed = conditions.find(({ type }) => type === 'migrationFailed');
  return {
    side,
    machine,
    phase: migration ? phase || 'New' : 'Gone',
    node: (side === 'from' ? state?.sourceNode : state?.targetNode) ?? guest?.status?.nodeName ?? '',
    progress: phase === 'Running' ? (progress?.summary ?? '') : '',
    trouble: failed?.message ?? blocked?.message ?? '',
  };
}
