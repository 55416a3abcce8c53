import { wholeProgress } from '../../api/kubevirt/migration-progress.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { isStarted } from '../phase/facts.ts';
import type { SourceHalf, TargetHalf } from './half.ts';
import { stateOfSource, stateOfTarget } from './pair-state.ts';
import { type PairStatus, pairStatus } from './pair-status.ts';

/**
 * Writes the half of the other side into a guest. Only what is the other side's changes, whatever the half says, and only
 * in a state that belongs to this pair and is not over:
 * - a pair is one for good: once a half of one migration was heard, halves of others are nobody's;
 * - how a migration ended each side says for itself. The other's verdict is noted as that, and is for the controller to
 *   act on; but of a guest that is there its source is told;
 * - what the two agents rest on, once they have begun, stays as it was: who they are, and the epoch.
 */

/** The guest at the target, once its source was heard; undefined where the half is none of its business. */
export function applySource(
  { migration, guest }: { migration: VirtualMachineInstanceMigration; guest: VirtualMachineInstance },
  half: SourceHalf,
): PairStatus | undefined {
  const state = stateOfTarget(migration, guest);
  if (!state || (state.migrationUid !== undefined && state.migrationUid !== half.uid)) return undefined;
  if (!isOfAnother(half, migration, guest) || !isThis(guest, state.targetState)) return undefined;
  const isOver = state.completed === true;
  // From then on the target's agent may have taken it at its word.
  const isFrozen = state.targetNode !== undefined && state.sourceState?.runner !== undefined;
  const sourceState = {
    ...state.sourceState,
    ...sideOf(half, state.sourceState),
    ...(isFrozen ? {} : machineOf(half)),
    agentKeys: half.agentKeys,
    hasEnded: isOver ? state.sourceState?.hasEnded : half.hasEnded,
  };
  return pairStatus(guest, {
    ...state,
    migrationUid: half.uid,
    ...(isOver ? {} : { sourceNode: half.node ?? state.sourceNode, sourcePod: half.pod ?? state.sourcePod }),
    ...(isOver
      ? {}
      : {
          startTimestamp: state.startTimestamp ?? half.startTimestamp,
          sourceLetter: half.letter ?? state.sourceLetter,
        }),
    ...copyOf(state, half),
    ...abortOf(state, half),
    sourceState,
  });
}

/** The guest at the source, once its target was heard; undefined where the half is none of its business. */
export function applyTarget(
  { migration, guest }: { migration: VirtualMachineInstanceMigration; guest: VirtualMachineInstance },
  half: TargetHalf,
): PairStatus | undefined {
  const state = stateOfSource(migration, guest);
  const bound = state?.targetState?.migrationUID;
  if (!state || (bound !== undefined && bound !== half.uid)) return undefined;
  if (!isOfAnother(half, migration, guest) || !isThis(guest, state.sourceState)) return undefined;
  const isOver = state.completed === true;
  const isFrozen = isOver || isStarted(guest);
  const { nodeAddress, directMigrationNodePorts, domainDetected, domainReadyTimestamp } = half;
  const place = { nodeAddress, directMigrationNodePorts };
  return pairStatus(guest, {
    ...state,
    ...(isFrozen ? {} : frozenOf(half)),
    ...(isOver ? {} : { targetNodeAddress: nodeAddress, targetDirectMigrationNodePorts: directMigrationNodePorts }),
    ...(state.failed === true
      ? {}
      : {
          targetNodeDomainDetected: domainDetected,
          targetNodeDomainReadyTimestamp: domainReadyTimestamp,
          downtimeMs: half.downtimeMs,
        }),
    ...(isOver ? {} : { targetLetter: half.letter ?? state.targetLetter }),
    ...abortOf(state, half),
    ...(isGivable(guest) ? arrivalOf(state, half) : {}),
    targetState: {
      ...state.targetState,
      ...sideOf(half, state.targetState),
      ...(isFrozen ? {} : { node: half.node, pod: half.pod, runner: half.runner, volumes: half.volumes }),
      agentKeys: half.agentKeys,
      ...place,
      domainDetected,
      domainReadyTimestamp,
    },
  });
}

/** Of a source: who executes the guest, and what its machine is like. */
function machineOf(half: SourceHalf): NonNullable<MigrationState['sourceState']> {
  const { runner, epoch, node, pod, nodeSelectors, volumes, identity } = half;
  const { memoryBytes, vcpus, machineType, cpuTopology, memory } = half;
  return {
    runner,
    epoch,
    node,
    pod,
    nodeSelectors,
    volumes,
    identity,
    memoryBytes,
    vcpus,
    machineType,
    cpuTopology,
    memory,
  };
}

/** Of a target: where the guest goes, and how. */
function frozenOf(half: TargetHalf): Partial<MigrationState> {
  return {
    targetNode: half.node,
    targetPod: half.pod,
    targetRunner: half.runner,
    migrationPolicyName: half.migrationPolicyName,
    migrationConfiguration: half.migrationConfiguration,
  };
}

/** What both sides tell of themselves, under the names of a guest's status. Who they are, and how it ended, is said once. */
function sideOf(half: SourceHalf | TargetHalf, known: SideState = {}): SideState {
  return {
    migrationUID: half.uid,
    virtualMachineInstanceUID: known.virtualMachineInstanceUID ?? half.vmiUID,
    domainName: known.domainName ?? half.name,
    domainNamespace: known.domainNamespace ?? half.namespace,
    slots: half.slots,
    verdict: known.verdict ?? half.verdict,
    persistentStatePVCName: half.persistentStatePVCName,
    selinuxContext: half.selinuxContext,
  };
}

type SideState = NonNullable<MigrationState['sourceState'] & MigrationState['targetState']>;

/** Nobody is both sides: who says so would have the guest move as one object. */
function isOfAnother(
  half: SourceHalf | TargetHalf,
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance,
): boolean {
  return half.uid !== migration.metadata.uid && half.vmiUID !== guest.metadata.uid;
}

/** Whether a side is this guest, and not one of the same name that was before. */
function isThis({ metadata }: VirtualMachineInstance, side: SideState | undefined): boolean {
  return side?.virtualMachineInstanceUID !== undefined && side.virtualMachineInstanceUID === metadata.uid;
}

/**
 * How the copy goes. A guest that has gone over in the midst of it is not called back, and progress is none. Once all is
 * over it is news only that more was sent.
 */
function copyOf(state: MigrationState, half: SourceHalf): Partial<MigrationState> {
  const isBack = (half.progress?.percent ?? 0) < (state.progress?.percent ?? 0);
  const isMore = (half.progress?.transferredBytes ?? 0) > (state.progress?.transferredBytes ?? 0);
  const isOld = isBack || (state.completed === true && !isMore);
  return {
    ...(state.mode === 'PostCopy' || half.mode === undefined ? {} : { mode: half.mode }),
    ...(half.progress === undefined || isOld ? {} : { progress: half.progress }),
    ...(half.channel === undefined ? {} : { channel: half.channel }),
    ...(half.decisions === undefined ? {} : { decisions: half.decisions }),
  };
}

/** Who wants a migration to stop does so for good. */
function abortOf(state: MigrationState, half: SourceHalf | TargetHalf): Partial<MigrationState> {
  return half.abortRequested === true && state.completed !== true ? { abortRequested: true } : {};
}

/** Whether the record of a source lets anybody else have the guest: what was promised to nobody, nobody has. */
function isGivable({ status }: VirtualMachineInstance): boolean {
  return status?.rightToRun?.successor !== undefined || isAway(status?.rightToRun);
}

/** Only a target knows that the guest is there, memory and all. Of a copy that was quick its source may have told nothing. */
function arrivalOf(state: MigrationState, { verdict }: TargetHalf): Partial<MigrationState> {
  if (verdict?.phase !== 'Succeeded' || state.completed === true) return {};
  const { time } = verdict;
  return { completed: true, endTimestamp: time, progress: wholeProgress(state.progress, time ?? undefined) };
}
