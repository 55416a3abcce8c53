import { isAcross, sidesOf } from '../../api/kubevirt/migration-sides.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatTime, type JsonObject } from '../../api/meta.ts';
import { type ApiError, conflict } from '../../api/status.ts';
import { trueAgain } from '../../migration/right-to-run/record.ts';
import { reclaimAcross } from '../../migration/right-to-run/seize.ts';

/**
 * What is written when an admin says that nothing of a guest runs at the other side of its migration any more, nor will.
 * That is the one word that is believed instead of the other side's own.
 *
 *   right granted, and never answered     its holder has it back, in a new epoch: its agent reads that in the record, writes
 *                                         `regained` into its journal, and goes on with the guest where it stood
 *   the same, the holder out of service   nobody has it: the machine can start afresh
 *   guest gone to the other side          the machine forgets that, and can start afresh, on its disks as the guest left them
 *   receiver that was promised a guest    it is told to refuse, as its source would have told it
 */

export interface ReclaimPlan {
  /** A merge patch of the machine's status. It comes first. */
  readonly machine?: JsonObject;
  /** Merge patches of the guest's status, one after the other. */
  readonly guest?: readonly JsonObject[];
  /** What becomes of it, for people. */
  readonly message: string;
}

/** What is known when it is asked for. */
export interface ReclaimFacts {
  readonly machine: VirtualMachine;
  /** The machine's own guest. */
  readonly guest: VirtualMachineInstance | undefined;
  /** Whether the node that holds the right, of this cluster, was declared out of service. */
  readonly isHolderGone: boolean;
  /** Of the node whose copy is to be kept, where there is such a node. */
  readonly keptNodeUID?: string | undefined;
  readonly nowMs: number;
}

/** What to write. Throws why nothing is to be. */
export function planReclaim(facts: ReclaimFacts): ReclaimPlan {
  const { machine, guest } = facts;
  if (guest?.status?.rightToRun?.across === true) return fromRecord(facts, guest);
  const letter = guest && refusalLetter(guest);
  if (letter) {
    const message = 'the node that waits for the guest is asked to refuse it; if it has taken it, the guest runs here';
    return { guest: [{ status: { migrationState: { sourceLetter: letter } } }], message };
  }
  const { rightToRun } = machine.status ?? {};
  if (!guest && rightToRun?.grantedAway === true)
    return {
      machine: forgotten(machine, rightToRun.epoch + 1, rightToRun.volumes),
      message: 'the machine can be started here again, on its disks as the guest left them',
    };
  throw objectionOf(
    machine,
    'nothing of its guest is at, or on its way to, another namespace or cluster; of one that is here, say which copy counts: keep or afresh',
  );
}

export function objectionOf({ metadata }: VirtualMachine, why: string): ApiError {
  return conflict({ group: 'kubevirt.io', plural: 'virtualmachine' }, metadata.name ?? '', why);
}

function fromRecord({ machine, isHolderGone, nowMs }: ReclaimFacts, guest: VirtualMachineInstance): ReclaimPlan {
  const record = guest.status?.rightToRun;
  const step = record && reclaimAcross(record, isHolderGone).steps[0];
  if (!record || step?.kind !== 'record') throw new Error('a record across is reclaimed by another record');
  const { epoch, holder, volumes } = step.to;
  const rightToRun: JsonObject = { ...(step.to as unknown as JsonObject), successor: null, across: null };
  if (holder) {
    const message = `the guest goes on at node ${holder.node}, unless the other side was heard to have it`;
    return { guest: [{ status: { rightToRun } }], message };
  }
  const isOver = isAway(record);
  return {
    machine: forgotten(machine, epoch, volumes),
    guest: [{ status: { rightToRun: { ...rightToRun, holder: null }, ...(isOver ? {} : failed(guest, nowMs)) } }],
    message: 'nobody has the right to run the guest; the machine can start it afresh, on its disks as it left them',
  };
}

/** What a guest says of itself that nobody has any more. */
export function failed({ status }: VirtualMachineInstance, nowMs: number): JsonObject {
  const phases = status?.phaseTransitionTimestamps ?? [];
  const last = { phase: 'Failed', phaseTransitionTimestamp: formatTime(nowMs) };
  return { phase: 'Failed', phaseTransitionTimestamps: [...phases, last] as unknown as JsonObject[] };
}

/** The machine remembers nothing of where its guest went, and that its own disks are the true ones. */
function forgotten({ status }: VirtualMachine, epoch: number, volumes: Parameters<typeof trueAgain>[0]): JsonObject {
  const known = status?.rightToRun?.epoch ?? 0;
  const next = Math.max(epoch, known + (status?.rightToRun?.grantedAway === true ? 1 : 0));
  const kept = trueAgain(volumes, next);
  return {
    status: {
      rightToRun: { epoch: next, grantedAway: null, ...(kept ? { volumes: kept as unknown as JsonObject[] } : {}) },
    },
  };
}

/** What the source of a guest that is on its way here would say; undefined where none is. */
function refusalLetter(guest: VirtualMachineInstance): JsonObject | undefined {
  const { migrationState: state, rightToRun } = guest.status ?? {};
  const { runner, epoch, migrationUID } = state?.sourceState ?? {};
  const { isTarget } = sidesOf(guest);
  if (!state || !isAcross(guest) || !isTarget || rightToRun || state.completed === true) return undefined;
  if (!runner || epoch === undefined || !state.targetRunner) return undefined;
  return {
    kind: 'please-refuse',
    epoch,
    migrationUid: migrationUID || (state.migrationUid ?? ''),
    sourcePodUID: runner.podUID,
    targetPodUID: state.targetRunner.podUID,
    isPostCopy: null,
    isPaused: null,
  };
}
