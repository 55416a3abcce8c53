import {
  agentKeys,
  guestIdentity,
  halfVerdict,
  halfVolumes,
  sourceEnd,
  slotState,
} from '../../api/kubevirt/migration-halves.ts';
import { migrationConfiguration } from '../../api/kubevirt/migration-configuration.ts';
import { migrationProgress } from '../../api/kubevirt/migration-progress.ts';
import {
  migrationChannel,
  migrationDecisions,
  migrationLetter,
  migrationMode,
  migrationPorts,
} from '../../api/kubevirt/migration-state.ts';
import { cpuTopology, memoryStatus } from '../../api/kubevirt/processor-and-memory.ts';
import { runner } from '../../api/kubevirt/right-to-run.ts';
import { flag, type Infer, integer, long, mapOf, moment, needed, object, text } from '../../api/typed-schema.ts';

/**
 * The two halves of a migration between two guests: of all that one side knows only what the other needs. They are plain
 * JSON, the same within one cluster and between two. Each is made of the objects of its own side (`project`), checked when
 * it arrives (`parse`), and written into the guest of the other side (`apply`), which then looks as if both sides were
 * in one place: agents and controllers read there what they read of any migration.
 *
 * A half is bound to one pair: nothing of an earlier migration is ever in it.
 */

const half = {
  uid: needed(text('UID of the migration object.')),
  name: needed(text('Name of the guest.')),
  namespace: needed(text('Its namespace.')),
  vmiUID: text('UID of the guest; absent until there is one.'),
  otherUID: text('UID of the migration object of the other half, once it was heard: a pair is one for good.'),
  isGone: flag('Whether the migration object was deleted, or is about to be.'),
  abortRequested: flag('Whether this side wants the migration to stop.'),
  verdict: halfVerdict,
  node: text('The node.'),
  pod: text('The launcher pod.'),
  runner: runner('The launcher pod, by what tells it from all others.'),
  agentKeys,
  slots: slotState,
  volumes: halfVolumes,
  persistentStatePVCName: text('Claim that holds the state of firmware and TPM.'),
  selinuxContext: text('SELinux context of the launcher.'),
};

/** What a source tells. */
export const sourceHalfShape = object('The half of the side that a guest leaves.', {
  ...half,
  epoch: long('The epoch in which it holds the right to run.', { minimum: 1 }),
  nodeSelectors: mapOf('Labels that the target node must have.', text('A value.')),
  identity: guestIdentity,
  memoryBytes: long("The guest's memory.", { minimum: 0 }),
  vcpus: integer('How many processors it has.', { minimum: 0 }),
  machineType: text("The machine's type, in its very version."),
  cpuTopology,
  memory: memoryStatus,
  hasEnded: sourceEnd,
  startTimestamp: moment('When the copy began.'),
  mode: migrationMode,
  progress: migrationProgress,
  channel: migrationChannel,
  decisions: migrationDecisions,
  letter: migrationLetter('What the source has to say, where the target could not be reached.'),
});

/** What a target tells. */
export const targetHalfShape = object('The half of the side that a guest comes to.', {
  ...half,
  nodeAddress: text('Where the target agent listens.'),
  directMigrationNodePorts: migrationPorts,
  domainDetected: flag('Whether the target knows the guest.'),
  domainReadyTimestamp: moment('When the guest ran at the target.'),
  downtimeMs: long('Milliseconds for which the guest stood still.', { minimum: 0 }),
  letter: migrationLetter('What the target has to say, where the source has not asked for it.'),
  migrationPolicyName: text('The policy that holds: the one of the target.'),
  migrationConfiguration,
});

export type SourceHalf = Readonly<Infer<typeof sourceHalfShape>>;
export type TargetHalf = Readonly<Infer<typeof targetHalfShape>>;

/** Which half of a pair. */
export type HalfRole = 'source' | 'target';
