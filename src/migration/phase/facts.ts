import type { ServedCause } from '../../api/kubevirt/migration-cause.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { migrationRole } from '../../api/kubevirt/validate-migration.ts';
import { stateOfSource, stateOfTarget } from '../halves/pair-state.ts';
import type { SlotState } from '../slots/request.ts';

/** What is known of one migration when it is decided what becomes of it. */
export interface MigrationFacts {
  readonly migration: VirtualMachineInstanceMigration;
  /** Undefined only where the server itself says that there is none. */
  readonly guest: VirtualMachineInstance | undefined;
  readonly targetPod: TargetPod | undefined;
  /** The slots that it has; `elsewhere` where it has them for good, and guest or pod are on other nodes by now. */
  readonly slots: SlotState | 'elsewhere' | undefined;
  /** Another migration of the same guest that goes before this one. */
  readonly hasBetterRival: boolean;
  /** Whether the guest has to leave its node, and gets a migration for that as soon as it has none. */
  readonly isEvacuated: boolean;
  /** Whether the migration that the guest's state is of, if it is another one, is still there and not over. */
  readonly isOtherOwnerAlive: boolean;
  /** All causes that it serves now. */
  readonly causes: readonly ServedCause[];
  /** Since when nothing new was heard of the copy. */
  readonly newsMs: number;
  readonly nowMs: number;
  /** How long a half waits for its other half. */
  readonly syncTimeoutMs: number;
  /** Of halves alone. */
  readonly pair?: PairFacts | undefined;
}

/** What is known of a half besides. */
export interface PairFacts {
  /** Whether another migration of the same role, that is not over, has the key. */
  readonly isKeyTaken: boolean;
  /** Whether both halves are of one guest, which moves as one object. */
  readonly isSameGuest: boolean;
  /** The other half of the same guest; undefined where there is none (any more), and for halves of two guests. */
  readonly partner: VirtualMachineInstanceMigration | undefined;
  /** Whether all that the other half has to know of this side is in the guest's status. */
  readonly isDescribed: boolean;
  /** Of a target: what keeps its guest from being what comes; undefined also while that is not known. */
  readonly objection: string | undefined;
  /** Of a target: whether its guest is what comes. */
  readonly isAdopted: boolean;
  /** Whether the other half has what it needs of slots for this one to go on. */
  readonly isPeerReady: boolean;
  /** Of a source whose guest is gone: whether its machine remembers that the guest went to another object. */
  readonly isGivenAway: boolean;
  /** Of a source: whether its record was restored, and its node has yet to say what became of the guest since. */
  readonly isRecordOld: boolean;
}

/** What is looked at in the target's launcher pod. */
export interface TargetPod {
  readonly name: string;
  /** Empty until it is bound. */
  readonly nodeName: string;
  /** Whether its container runs. Whether it is ready to serve is not asked: nothing serves there yet. */
  readonly isUp: boolean;
  /** Whether it has ended, or is about to. */
  readonly isDown: boolean;
  /** Why it ended, where anybody says so. */
  readonly cause: string;
  /** Whether the scheduler says that no node does. */
  readonly isUnschedulable: boolean;
  readonly createdMs: number;
}

/**
 * The node that a guest would leave now: whoever may execute it knows sooner than its status where it is; but who executes
 * the guest of another object may be on a node of another cluster.
 */
export function sourceNodeOf(guest: VirtualMachineInstance | undefined): string | undefined {
  const { rightToRun, nodeName } = guest?.status ?? {};
  return isAway(rightToRun) ? nodeName : (rightToRun?.holder?.node ?? nodeName);
}

/** Phases in which the agents have the migration. */
const HANDED_OFF: ReadonlySet<MigrationPhase> = new Set(['PreparingTarget', 'TargetReady', 'Running']);

/** The guest's state of this very migration; undefined where it is of another one, or of none. */
export function ownState({
  migration,
  guest,
}: Pick<MigrationFacts, 'migration' | 'guest'>): MigrationState | undefined {
  const isTarget = migrationRole(migration.spec) === 'target';
  return isTarget ? stateOfTarget(migration, guest) : stateOfSource(migration, guest);
}

/** Whether the agents have it, or had it: its phase says so, or the guest, which is told first. */
export function isHandedOff(facts: Pick<MigrationFacts, 'migration' | 'guest'>): boolean {
  return isRouted(facts) || HANDED_OFF.has(facts.migration.status?.phase ?? '');
}

/** Whether the guest's state leads an agent of this side to it; halves have a state long before. */
function isRouted(facts: Pick<MigrationFacts, 'migration' | 'guest'>): boolean {
  const state = ownState(facts);
  const role = migrationRole(facts.migration.spec);
  if (role === 'local') return state !== undefined;
  return isSet(role === 'source' ? state?.sourceNode : state?.targetNode);
}

/** Whether the source may have begun: from then on nobody but the agents can say how it ends. */
export function isStarted({ status }: VirtualMachineInstance): boolean {
  return isSet(status?.migrationState?.startTimestamp) || status?.rightToRun?.successor !== undefined;
}

/** Whether somebody executes the guest, who could hand it over. */
export function isMovable({ status }: VirtualMachineInstance): boolean {
  return status?.phase === 'Running' && status.rightToRun?.holder !== undefined && !isAway(status.rightToRun);
}

/** When a phase began; undefined where it has not. */
export function phaseBeganMs({ status }: VirtualMachineInstanceMigration, phase: MigrationPhase): number | undefined {
  const found = status?.phaseTransitionTimestamps?.find((each) => each.phase === phase)?.phaseTransitionTimestamp;
  return found === undefined || found === null ? undefined : Date.parse(found);
}

function isSet(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}
