import {
  choice,
  flag,
  type Infer,
  integer,
  listOf,
  long,
  mapOf,
  moment,
  needed,
  object,
  openObject,
  quantity,
  text,
} from '../typed-schema.ts';
import { migrationConfiguration } from './migration-configuration.ts';
import { migrationProgress } from './migration-progress.ts';
import { agentKeys, guestIdentity, halfVerdict, halfVolumes, sourceEnd, slotState } from './migration-halves.ts';
import { cpuTopology, memoryStatus } from './processor-and-memory.ts';
import { runner } from './right-to-run.ts';

/**
 * The migration that a guest is in, or was in last. The flat fields are the older ones and always set; the nested
 * states are set for migrations between two control planes. Note the spelling: `migrationUid` here, `migrationUID` there.
 */

/** Which port leads to which channel. */
export const migrationPorts = mapOf('Which port of the node leads to which channel.', integer('The channel.'));
const cpuSet = listOf("The node's processors that are the guest's.", integer('A processor.'));

const side = {
  node: text('The node.'),
  pod: text('The launcher pod.'),
  migrationUID: text('UID of the migration object on this side.'),
  virtualMachineInstanceUID: text("UID of the guest's object on this side."),
  domainName: text('Name of the guest on this side.'),
  domainNamespace: text('Namespace of the guest on this side.'),
  syncAddress: text(
    'Where the synchronization controller of this side is reached. Not written here: see connectURL and syncEndpoint of the migration.',
  ),
  persistentStatePVCName: text('Claim that holds the state of firmware and TPM.'),
  selinuxContext: text('SELinux context of the launcher.'),
};

/** What is Godwit's own of both sides. */
const ownSide = {
  agentKeys,
  slots: slotState,
  volumes: halfVolumes,
  verdict: halfVerdict,
};

const sourceState = object('The side that the guest leaves.', {
  ...side,
  ...ownSide,
  nodeSelectors: mapOf('Labels that the target node must have.', text('A value.')),
  runner: runner('Who executes the guest there.'),
  epoch: long('The epoch in which it holds the right to run.', { minimum: 1 }),
  identity: guestIdentity,
  memoryBytes: long("The guest's memory.", { minimum: 0 }),
  vcpus: integer('How many processors it has.', { minimum: 0 }),
  machineType: text("The machine's type, in its very version."),
  cpuTopology,
  memory: memoryStatus,
  hasEnded: sourceEnd,
});

const targetState = object('The side that the guest moves to.', {
  ...side,
  ...ownSide,
  runner: runner('Who waits for the guest there.'),
  nodeAddress: text('Where the target agent listens.'),
  directMigrationNodePorts: migrationPorts,
  domainDetected: flag('Whether the target knows the guest.'),
  domainReadyTimestamp: moment('When the guest ran at the target.'),
  attachmentPodUID: text('UID of the pod that holds plugged-in volumes.'),
  cpuSet,
  nodeTopology: text("The node's topology, as JSON."),
});

/** How a guest moves. */
export const migrationMode = choice('How the guest moves.', ['PreCopy', 'PostCopy', 'Paused', '']);
const migrationNetworkType = text('Pod or Migration.');

/** What both halves of a migration have under the names of the proposal; `migration-twins` says which they have here. */
const proposedSide = {
  migrationConfiguration,
  migrationNetworkType,
  mode: migrationMode,
  migrationUid: side.migrationUID,
  node: side.node,
  pod: side.pod,
  vmiUID: side.virtualMachineInstanceUID,
  namespace: side.domainNamespace,
  domainName: side.domainName,
  syncAddress: side.syncAddress,
  persistentStatePVCName: side.persistentStatePVCName,
  selinuxContext: side.selinuxContext,
};

/** The same as `migrationState.sourceState`, as the proposal names it. */
export const sourceMigrationState = object('The side that the guest leaves.', {
  ...proposedSide,
  nodeLabelSelectors: mapOf('Labels that the target node must have.', text('A value.')),
});

/** The same as `migrationState.targetState`, as the proposal names it. */
export const targetMigrationState = object('The side that the guest moves to.', {
  ...proposedSide,
  nodeAddress: text('Where the target agent listens.'),
  directMigrationNodePorts: migrationPorts,
  nodeDomainDetected: flag('Whether the target knows the guest.'),
  nodeDomainReadyTimestamp: moment('When the guest ran at the target.'),
  attachmentPodUID: text('UID of the pod that holds plugged-in volumes.'),
  cpuSet,
  nodeTopology: text("The node's topology, as JSON."),
});

/** What a copy was sent with. */
export const migrationChannel = object('What the copy was sent with.', {
  encrypted: flag('Whether it was encrypted; both sides prove who they are in any case.'),
  multifdChannels: integer('How many connections it was spread over; 0 for one in all.', { minimum: 0 }),
  compression: text('How it was packed: none or zstd.'),
});

const migrationDecision = object('What was decided while the guest moved.', {
  time: moment('When.'),
  decision: needed(text('What was decided, in one word.')),
  reason: needed(text('One word for why.')),
  message: text('Why, in words.'),
  iteration: integer('The pass of the copy at which it was.'),
});

/** What agents say to each other through the API where their own channel does not carry it. */
export const migrationLetter = (description: string) =>
  object(description, {
    kind: needed(
      choice('What it says.', ['grant', 'taken', 'refused', 'aborted', 'please-refuse', 'is-it-over'] as const),
    ),
    epoch: needed(long('The epoch in which the source holds the right to run.', { minimum: 1 })),
    migrationUid: needed(text('UID of the migration object.')),
    sourcePodUID: needed(text('UID of the launcher pod that the guest leaves.')),
    targetPodUID: needed(text('UID of the launcher pod that it moves to.')),
    isPostCopy: flag('Whether the guest goes over before its memory has.'),
    isPaused: flag('Whether its owner holds the guest, which then runs on neither side.'),
  });

/** How many decisions a status has room for: the first and the last ones tell the story. */
const DECISIONS_MAX = 64;

/** All that was decided about a copy. */
export const migrationDecisions = listOf('What was decided about the copy, in order.', migrationDecision, {
  maxItems: DECISIONS_MAX,
});

/** Progress of a migration, in a guest's status. */
export const migrationState = openObject('The migration that the guest is in, or was in last.', {
  migrationUid: text('UID of the migration object.'),
  sourceNode: text('The node that the guest leaves.'),
  sourcePod: text('The launcher pod that it leaves.'),
  targetNode: text('The node that it moves to.'),
  targetPod: text('The launcher pod that it moves to.'),
  targetNodeAddress: text('Where the target agent listens.'),
  targetDirectMigrationNodePorts: migrationPorts,
  targetRunner: runner('Who waits for the guest there.'),
  targetNodeDomainDetected: flag('Whether the target knows the guest.'),
  targetNodeDomainReadyTimestamp: moment('When the guest ran at the target.'),
  targetAttachmentPodUID: text('UID of the pod that holds plugged-in volumes at the target.'),
  targetCPUSet: cpuSet,
  targetNodeTopology: text("The target node's topology, as JSON."),
  targetMemoryOverhead: quantity('What QEMU takes beside the memory of the guest, at the target.'),
  startTimestamp: moment('When the copy began.'),
  endTimestamp: moment('When it ended, either way.'),
  completed: flag('Whether it is over.'),
  failed: flag('Whether it failed.'),
  failureReason: text('Why it failed.'),
  abortRequested: flag('Whether somebody wants it to stop.'),
  abortStatus: choice('What became of that.', ['Succeeded', 'Failed', 'Aborting', '']),
  mode: migrationMode,
  progress: migrationProgress,
  channel: migrationChannel,
  decisions: migrationDecisions,
  downtimeMs: long('Milliseconds for which the guest stood still.', { minimum: 0 }),
  migratedVolumes: listOf(
    'Volumes that are on other claims at the target, and whose contents are copied there.',
    object('A volume.', {
      volumeName: needed(text('Its name.')),
      sourceClaim: needed(text('The claim that it is on at the source.')),
      targetClaim: needed(text('The claim that it is on at the target.')),
    }),
  ),
  migrationPolicyName: text('The policy that holds.'),
  migrationConfiguration,
  migrationNetworkType,
  sourcePersistentStatePVCName: text('Claim with the state of firmware and TPM at the source.'),
  targetPersistentStatePVCName: text('The same at the target.'),
  sourceLetter: migrationLetter('What the source has to say, where the target could not be reached.'),
  targetLetter: migrationLetter('What the target has to say, where the source has not asked for it.'),
  sourceState,
  targetState,
});

export type MigrationLetter = NonNullable<MigrationState['sourceLetter']>;
export type MigrationState = Infer<typeof migrationState>;
export type MigrationDecision = Infer<typeof migrationDecision>;
