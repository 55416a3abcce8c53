import {
  choice,
  flag,
  type Infer,
  integer,
  listOf,
  mapOf,
  moment,
  object,
  openObject,
  quantity,
  text,
} from '../typed-schema.ts';
import { migrationConfiguration } from './migration-configuration.ts';

/**
 * The migration that a guest is in, or was in last. The flat fields are the older ones and always set; the nested
 * states are set for migrations between two control planes. Note the spelling: `migrationUid` here, `migrationUID` there.
 */

const ports = mapOf('Which port of the node leads to which channel.', integer('The channel.'));
const cpuSet = listOf("The node's processors that are the guest's.", integer('A processor.'));

const side = {
  node: text('The node.'),
  pod: text('The launcher pod.'),
  migrationUID: text('UID of the migration object on this side.'),
  virtualMachineInstanceUID: text("UID of the guest's object on this side."),
  domainName: text('Name of the guest on this side.'),
  domainNamespace: text('Namespace of the guest on this side.'),
  syncAddress: text('Where the synchronization controller of this side is reached.'),
  persistentStatePVCName: text('Claim that holds the state of firmware and TPM.'),
  selinuxContext: text('SELinux context of the launcher.'),
};

const sourceState = object('The side that the guest leaves.', {
  ...side,
  nodeSelectors: mapOf('Labels that the target node must have.', text('A value.')),
});

const targetState = object('The side that the guest moves to.', {
  ...side,
  nodeAddress: text('Where the target agent listens.'),
  directMigrationNodePorts: ports,
  domainDetected: flag('Whether the target knows the guest.'),
  domainReadyTimestamp: moment('When the guest ran at the target.'),
  attachmentPodUID: text('UID of the pod that holds plugged-in volumes.'),
  cpuSet,
  nodeTopology: text("The node's topology, as JSON."),
});

/** Progress of a migration, in a guest's status. */
export const migrationState = openObject('The migration that the guest is in, or was in last.', {
  migrationUid: text('UID of the migration object.'),
  sourceNode: text('The node that the guest leaves.'),
  sourcePod: text('The launcher pod that it leaves.'),
  targetNode: text('The node that it moves to.'),
  targetPod: text('The launcher pod that it moves to.'),
  targetNodeAddress: text('Where the target agent listens.'),
  targetDirectMigrationNodePorts: ports,
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
  mode: choice('How the guest moves.', ['PreCopy', 'PostCopy', 'Paused', '']),
  migrationPolicyName: text('The policy that holds.'),
  migrationConfiguration,
  migrationNetworkType: text('Pod or Migration.'),
  sourcePersistentStatePVCName: text('Claim with the state of firmware and TPM at the source.'),
  targetPersistentStatePVCName: text('The same at the target.'),
  sourceState,
  targetState,
});

export type MigrationState = Infer<typeof migrationState>;
