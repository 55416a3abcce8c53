import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { GUEST_STATUS_TWINS, withTwins } from '../../api/kubevirt/migration-twins.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { isStarted } from '../phase/facts.ts';
import type { SourceHalf, TargetHalf } from './half.ts';
import { stateOfSource, stateOfTarget } from './pair-state.ts';

/**
 * Writes the half of the other side into a guest. Only what is the other side's changes, whatever the half says, and only
 * in a state that belongs to this pair and is not over:
 * - a pair is one for good: once a half of one migration was heard, halves of others are nobody's;
 * - how a migration ended each side says for itself. The other's verdict is noted as that, and is for the controller to
 *   act on; but of a guest that is there its source is told;
 * - what the two agents rest on, once they have begun, stays as it was: who they are, and the epoch.
 */

/** What a guest's status should have of a migration; for `statusPatch`. */
export type PairStatus = Pick<
  VirtualMachineInstanceStatus,
  'migrationState' | 'sourceMigrationState' | 'targetMigrationState'
>;

/** The guest at the target, once its source was heard; undefined where the half is none of its business. */
export function applySource(
  { migration, guest }: { migration: VirtualMachineInstanceMigration; guest: VirtualMachineInstance },
  half: SourceHalf,
): PairStatus | undefined {
  const state = stateOfTarget(migration, guest);
  if (!state || (state.migrationUid !== undefined && state.migrationUid !== half.uid)) return undefined;
  if (state.targetState?.virtualMachineInstanceUID !== guest.metadata.uid) return undefined;
  const isOver = state.completed === true;
  // From then on the target's agent may have taken it at its word.
  const isFrozen = state.targetNode !== undefined && state.sourceState?.runner !== undefined;
  const { runner, epoch, agentKeys } = half;
  const sourceState = {
    ...state.sourceState,
    ...sideOf(half),
    ...(isFrozen ? {} : { runner, epoch, node: half.node, pod: half.pod, nodeSelectors: half.nodeSelectors }),
    agentKeys,
    ...(isFrozen ? {} : { identity: half.identity, memoryBytes: half.memoryBytes, vcpus: half.vcpus }),
  };
  return withBothNames(guest, {
    ...state,
    migrationUid: half.uid,
    ...(isOver ? {} : { sourceNode: half.node ?? state.sourceNode, sourcePod: half.pod ?? state.sourcePod }),
    ...(isOver ? {} : { startTimestamp: state.startTimestamp ?? half.startTimestamp, sourceLetter: half.letter }),
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
  if (state.sourceState?.virtualMachineInstanceUID !== guest.metadata.uid) return undefined;
  const isOver = state.completed === true;
  const isFrozen = isOver || isStarted(guest);
  const { nodeAddress, directMigrationNodePorts, domainDetected, domainReadyTimestamp } = half;
  const place = { nodeAddress, directMigrationNodePorts };
  return withBothNames(guest, {
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
    ...(isOver ? {} : { targetLetter: half.letter }),
    ...abortOf(state, half),
    ...arrivalOf(state, half),
    targetState: {
      ...state.targetState,
      ...sideOf(half),
      ...(isFrozen ? {} : { node: half.node, pod: half.pod, runner: half.runner }),
      agentKeys: half.agentKeys,
      ...place,
      domainDetected,
      domainReadyTimestamp,
    },
  });
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

/** What both sides tell of themselves, under the names of a guest's status. */
function sideOf(half: SourceHalf | TargetHalf) {
  return {
    migrationUID: half.uid,
    virtualMachineInstanceUID: half.vmiUID,
    domainName: half.name,
    domainNamespace: half.namespace,
    slots: half.slots,
    volumes: half.volumes,
    verdict: half.verdict,
    persistentStatePVCName: half.persistentStatePVCName,
    selinuxContext: half.selinuxContext,
  };
}

/** How the copy goes. A guest that has gone over in the midst of it is not called back, and progress is none. */
function copyOf(state: MigrationState, half: SourceHalf): Partial<MigrationState> {
  const isBack = (half.progress?.percent ?? 0) < (state.progress?.percent ?? 0);
  return {
    ...(state.mode === 'PostCopy' || half.mode === undefined ? {} : { mode: half.mode }),
    ...(half.progress === undefined || isBack ? {} : { progress: half.progress }),
    ...(half.channel === undefined ? {} : { channel: half.channel }),
    ...(half.decisions === undefined ? {} : { decisions: half.decisions }),
  };
}

/** Who wants a migration to stop does so for good. */
function abortOf(state: MigrationState, half: SourceHalf | TargetHalf): Partial<MigrationState> {
  return half.abortRequested === true && state.completed !== true ? { abortRequested: true } : {};
}

/** Only a target knows that the guest is there, memory and all. */
function arrivalOf(state: MigrationState, { verdict }: TargetHalf): Partial<MigrationState> {
  if (verdict?.phase !== 'Succeeded' || state.completed === true) return {};
  return { completed: true, endTimestamp: verdict.time };
}

/** With both names of what has two, and without what says nothing. */
function withBothNames(guest: VirtualMachineInstance, state: MigrationState): PairStatus {
  const { sourceMigrationState: _source, targetMigrationState: _target, ...status } = guest.status ?? {};
  const told: VirtualMachineInstanceStatus = withTwins(
    { ...status, migrationState: pruned(state) as MigrationState },
    GUEST_STATUS_TWINS,
  );
  const { migrationState, sourceMigrationState, targetMigrationState } = told;
  return { migrationState, sourceMigrationState, targetMigrationState };
}

function pruned(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([field, each]) => [field, pruned(each)]),
  );
}
