import type { FailureReason } from '../../migration/phase/failure.ts';

/** What somebody can do about a migration that failed, by the reason that it gives. */
const REMEDIES: { readonly [reason in FailureReason]: string } = {
  AnotherMigration: "follow the other one: 'godwit status'",
  Canceled: 'nothing: somebody called it off',
  GuestBusy: "see that the agent of the guest's node runs, which ends the earlier move: 'godwit status'",
  GuestEnded: "start the guest again, if it should run: 'godwit start VM'",
  GuestGone: "start the guest again, if it should run: 'godwit start VM'",
  KeyTaken: 'give both halves another key',
  NotMigratable: "see what keeps it where it is: 'godwit why vm VM'",
  PeerContradicted:
    "if somebody reclaimed the guest ('kubectl describe vm' says who), halt or delete the VirtualMachine of the other side, where it may run, too; if nobody did, what that cluster says is not so: 'godwit trust revoke'",
  PeerFailed: 'see why the other half failed, in its own cluster or namespace',
  PeerLost: "see that the clusters reach each other, and that both run: 'godwit trust list'",
  PreparationTimeout: "see that the agent of the target node runs, and can fetch what the guest needs: 'godwit status'",
  ReceiverMissing: 'make a VirtualMachine with runStrategy WaitAsReceiver at the target',
  ReceiverUnfit: "let 'godwit move' make the machine at the target, as the one here is",
  ReportedByNode:
    'a copy that does not end needs a MigrationPolicy with more bandwidth, allowAutoConverge or allowPostCopy; of all else the logs of both agents say more',
  SlotTimeout: 'let more guests come to a node at once (parallelInboundMigrationsPerNode), or free the target node',
  SlotsElsewhere: 'nothing: the guest had moved meanwhile',
  StartTimeout: "see that the agent of the source node runs: 'godwit status'",
  StateCleared: 'nothing: somebody else wrote the state of the guest',
  Superseded: 'follow the migration that empties the node, or drop addedNodeSelector',
  SyncTimeout: 'see that the other half is there, with the same key, and that the clusters reach and trust each other',
  TakenOver: 'follow the migration that took its place',
  TargetIsSource: 'let the guest go to another node: no second one fits it now',
  TargetPodDown: 'see why its pod ended: kubectl describe pod',
  TargetPodPending: 'see why its pod does not start: kubectl describe pod',
  TargetPodRefused:
    'see what refuses its pod: a quota, a limit range whose default is below what the guest asks for, or a webhook',
  TargetPodRemoved: 'find out who deletes launcher pods',
  TargetPodUnschedulable: 'give a node room for it, or the labels and the processor that it asks for',
  TargetTimeout: 'see why the other half gets no pod, in its own cluster or namespace',
};

/** What to do about a failure, by what a condition gives as its reason. */
export function failureRemedy(reason: string | undefined): string {
  return reason !== undefined && Object.hasOwn(REMEDIES, reason)
    ? REMEDIES[reason as FailureReason]
    : 'see the events of the migration: kubectl describe vmim';
}
