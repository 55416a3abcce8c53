import { agentKeysOf } from '../../api/kubevirt/agent-keys.ts';
import { type HalfVerdict, SENTENCE_LENGTH_MAX, WORD_LENGTH_MAX } from '../../api/kubevirt/migration-halves.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { KubeObject } from '../../api/meta.ts';
import type { SourceHalf, TargetHalf } from './half.ts';
import { stateOfSource, stateOfTarget } from './pair-state.ts';

/** Makes the halves of the objects that they are about. */

/** The objects of one side. */
export interface OwnSide {
  readonly migration: VirtualMachineInstanceMigration;
  readonly guest: VirtualMachineInstance | undefined;
  /** The node of this side's launcher pod, where it is known. */
  readonly node: KubeObject | undefined;
}

/** What the source tells its target. Nothing of another migration of the guest is in it. */
export function sourceHalf({ migration, guest, node }: OwnSide): SourceHalf {
  const state = stateOfSource(migration, guest);
  const side = state?.sourceState ?? {};
  return whole({
    ...common(migration, guest, state, side),
    otherUID: state?.targetState?.migrationUID,
    node: side.node ?? state?.sourceNode,
    pod: side.pod ?? state?.sourcePod,
    agentKeys: keysOf(node) ?? side.agentKeys,
    runner: side.runner,
    epoch: side.epoch,
    nodeSelectors: side.nodeSelectors,
    identity: side.identity,
    memoryBytes: side.memoryBytes,
    vcpus: side.vcpus,
    machineType: side.machineType,
    cpuTopology: side.cpuTopology,
    memory: side.memory,
    hasEnded: state && hasEnded(state, guest) ? true : undefined,
    startTimestamp: state?.startTimestamp,
    mode: state?.mode,
    progress: state?.progress,
    channel: state?.channel,
    decisions: state?.decisions,
    letter: state?.sourceLetter,
  }) as SourceHalf;
}

/** What the target tells its source. Nothing of another migration of the guest is in it. */
export function targetHalf({ migration, guest, node }: OwnSide): TargetHalf {
  const state = stateOfTarget(migration, guest);
  const side = state?.targetState ?? {};
  return whole({
    ...common(migration, guest, state, side),
    otherUID: state?.migrationUid,
    node: state?.targetNode,
    pod: state?.targetPod,
    agentKeys: keysOf(node) ?? side.agentKeys,
    runner: state?.targetRunner,
    nodeAddress: state?.targetNodeAddress,
    directMigrationNodePorts: state?.targetDirectMigrationNodePorts,
    domainDetected: state?.targetNodeDomainDetected,
    domainReadyTimestamp: state?.targetNodeDomainReadyTimestamp,
    downtimeMs: state?.downtimeMs,
    letter: state?.targetLetter,
    migrationPolicyName: state?.migrationPolicyName,
    migrationConfiguration: state?.migrationConfiguration,
  }) as TargetHalf;
}

type SideState = NonNullable<MigrationState['sourceState'] | MigrationState['targetState']>;

function common(
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
  state: MigrationState | undefined,
  { slots, volumes, persistentStatePVCName, selinuxContext, virtualMachineInstanceUID }: SideState,
): object {
  const { uid = '', namespace = '', deletionTimestamp } = migration.metadata;
  return {
    uid,
    namespace,
    name: migration.spec.vmName ?? '',
    vmiUID: virtualMachineInstanceUID ?? guest?.metadata.uid,
    isGone: deletionTimestamp === undefined ? undefined : true,
    abortRequested: state?.abortRequested === true ? true : undefined,
    verdict: verdictOf(migration),
    slots,
    volumes,
    persistentStatePVCName,
    selinuxContext,
  };
}

/**
 * Whether nothing of a guest is left that has yet to be followed by its memory. Its agent writes that it is away once its
 * machine has ended, and not before: that its pod is gone from the API says less.
 */
function hasEnded({ mode, completed }: MigrationState, guest: VirtualMachineInstance | undefined): boolean {
  return mode === 'PostCopy' && completed !== true && isAway(guest?.status?.rightToRun);
}

/** How a migration ended, as its object says; undefined while it has not. */
function verdictOf(migration: VirtualMachineInstanceMigration): HalfVerdict | undefined {
  const { phase, conditions = [], phaseTransitionTimestamps = [] } = migration.status ?? {};
  if (!isFinalMigration(migration)) return undefined;
  const time = phaseTransitionTimestamps.find((each) => each.phase === phase)?.phaseTransitionTimestamp;
  const { reason, message } = conditions.find(({ type }) => type === 'migrationFailed') ?? {};
  return whole<HalfVerdict>({
    phase: phase === 'Succeeded' ? phase : 'Failed',
    reason: cut(reason, WORD_LENGTH_MAX),
    message: cut(message, SENTENCE_LENGTH_MAX),
    time,
  });
}

/** Conditions may say more than the other side takes, which has to hear how it ended in any case. No character is halved. */
function cut(text: string | undefined, lengthMax: number): string | undefined {
  return text === undefined || text.length <= lengthMax ? text : Array.from(text).slice(0, lengthMax).join('');
}

function keysOf(node: KubeObject | undefined): string[] | undefined {
  const keys = agentKeysOf(node?.metadata.annotations);
  return keys.length === 0 ? undefined : keys;
}

/** Without the fields that say nothing. */
function whole<T extends object>(fields: T): T {
  return Object.fromEntries(
    Object.entries(fields).filter(([, value]) => value !== undefined && value !== null && value !== ''),
  ) as T;
}
