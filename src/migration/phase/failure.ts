/** Why migrations fail: one word for programs, a sentence for people. Sentences that KubeVirt has are KubeVirt's. */

export type FailureReason =
  | 'AnotherMigration'
  | 'Canceled'
  | 'GuestBusy'
  | 'GuestEnded'
  | 'GuestGone'
  | 'KeyTaken'
  | 'NotMigratable'
  | 'PeerContradicted'
  | 'PeerFailed'
  | 'PeerLost'
  | 'PreparationTimeout'
  | 'ReceiverMissing'
  | 'ReceiverUnfit'
  | 'ReportedByNode'
  | 'SlotTimeout'
  | 'SlotsElsewhere'
  | 'StartTimeout'
  | 'StateCleared'
  | 'Superseded'
  | 'SyncTimeout'
  | 'TakenOver'
  | 'TargetIsSource'
  | 'TargetPodDown'
  | 'TargetPodPending'
  | 'TargetPodRefused'
  | 'TargetPodRemoved'
  | 'TargetPodUnschedulable'
  | 'TargetTimeout';

export interface MigrationFailure {
  readonly reason: FailureReason;
  readonly message: string;
}

const MESSAGES: Readonly<Record<FailureReason, string>> = {
  AnotherMigration: 'VMI is not eligible for migration because another migration job is in progress.',
  Canceled: 'Migration failed due to being canceled',
  GuestBusy: 'the node of the guest was still at an earlier move of it for too long',
  GuestEnded: 'Migration failed vmi shutdown during migration.',
  GuestGone: 'Migration failed because vmi does not exist.',
  KeyTaken: 'another migration that is not over has the same key',
  NotMigratable: 'Cannot migrate VMI',
  PeerContradicted:
    'the other half says that the guest is there, and the record says that it is here: it never left, or was reclaimed',
  PeerFailed: 'the other half failed',
  PeerLost: 'the other half could not be reached for too long',
  PreparationTimeout: 'the target node did not prepare the guest in time',
  ReceiverMissing:
    'there is no guest that waits to be received: a VirtualMachine with runStrategy WaitAsReceiver makes one',
  ReceiverUnfit: 'the guest that waits is not as the one that would come',
  ReportedByNode: 'source node reported migration failed',
  SlotsElsewhere: 'the guest is on another node by now than the one that it was to leave',
  SlotTimeout: 'the target node took no more guests for too long',
  StartTimeout: 'the source node did not begin in time',
  StateCleared: "VMI's migration state was cleared during the active migration.",
  Superseded:
    'the guest has to leave its node, and no node that this migration asks for takes it: another one moves it',
  SyncTimeout:
    'the other half was not heard of in time: see that it is there, with the same key, and that the clusters reach and trust each other',
  TakenOver: "VMI's migration state was taken over by another migration job during active migration.",
  TargetIsSource: 'the target pod was bound to the node that the guest runs on',
  TargetPodDown: 'Migration failed because target pod shutdown during migration',
  TargetPodPending: 'pending pod timeout period exceeded',
  TargetPodRefused: 'the target pod was refused',
  TargetPodRemoved: 'Migration target pod was removed during active migration.',
  TargetPodUnschedulable: 'unschedulable pod timeout period exceeded',
  TargetTimeout: 'the other half had no target pod in time',
};

/** All reasons that there are. */
export const FAILURE_REASONS = Object.keys(MESSAGES) as readonly FailureReason[];

/** A failure in words; details are what only this case knows. */
export function failure(reason: FailureReason, details = ''): MigrationFailure {
  const sentence = MESSAGES[reason];
  return { reason, message: details === '' ? sentence : `${sentence.replace(/\.$/, '')}: ${details}` };
}
