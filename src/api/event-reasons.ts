/**
 * Why events are recorded, by the kind that they are about. A reason that is not here does not compile, and docs/events.md
 * is made of this: whoever adds one says when it comes, and what somebody can do about it. Those that KubeVirt or Kubernetes
 * has are called as they are there.
 */

interface EventMeaning {
  readonly type: 'Normal' | 'Warning' | 'Normal or Warning';
  /** What has happened. */
  readonly when: string;
  /** What somebody can do about it; absent where nothing has to be done. */
  readonly remedy?: string;
}

type Meanings = { readonly [reason: string]: EventMeaning };

const VIRTUAL_MACHINE = {
  SuccessfulCreate: { type: 'Normal', when: 'Its guest was made.' },
  SuccessfulDelete: { type: 'Normal', when: 'Its guest was told to stop.' },
  SuccessfulUpdate: { type: 'Normal', when: 'A change was passed on to the guest that runs.' },
  FailedCreate: {
    type: 'Warning',
    when: 'Its guest could not be made.',
    remedy: 'the message says which field, quota or webhook is in the way; change that',
  },
  FailedDelete: { type: 'Warning', when: 'Its guest could not be stopped; it is tried again.' },
  FailedUpdate: {
    type: 'Warning',
    when: 'The machine cannot keep the identity of the guest that it has received; the guest runs all the same.',
    remedy: 'mend the template as the message says, before the next start',
  },
  AlreadyExists: {
    type: 'Warning',
    when: 'There is a guest of its name that is not its own.',
    remedy: 'delete that guest, or give the machine another name',
  },
  FailedFindKind: {
    type: 'Warning',
    when: 'Its instance type or preference is of a kind that there is not.',
    remedy: 'correct `kind`',
  },
  FailedFindInstancetype: {
    type: 'Warning',
    when: 'Its instance type is not there.',
    remedy: 'make it, or name another one',
  },
  FailedFindPreference: {
    type: 'Warning',
    when: 'Its preference is not there.',
    remedy: 'make it, or name another one',
  },
  FailedFindRevision: {
    type: 'Warning',
    when: 'The revision of the instance type or preference that it keeps to is gone.',
    remedy: 'remove `revisionName`, so that a new one is kept',
  },
  FailedInfer: {
    type: 'Warning',
    when: 'It names no instance type or preference, and volumes are not asked for one here.',
    remedy: 'give `name`',
  },
  ManualRecoveryRequired: {
    type: 'Warning',
    when: 'Claims of its volumes changed, and what was on the old ones was not copied before the guest ended.',
    remedy: 'go back to the old claims, or copy the contents yourself ([storage.md](storage.md))',
  },
  GuestMovedAway: {
    type: 'Normal',
    when: 'The guest went to another namespace or cluster; the machine is halted, and kept.',
  },
  GrantedAway: {
    type: 'Warning',
    when: 'It is not started, since its guest went to another namespace or cluster.',
    remedy:
      'let the guest come back, or `godwit reclaim` it where the other side is gone for good ([switchover.md](switchover.md))',
  },
  Reclaimed: {
    type: 'Warning',
    when: 'Somebody said that the other side is fenced, and took the guest back, or said which copy of it counts. Kept as a record.',
  },
} as const satisfies Meanings;

/** What an agent says no to, by the protocol of the right to run. */
const RIGHT_TO_RUN = {
  AlreadyRunning: {
    type: 'Warning',
    when: 'The pod has a machine already, and is to get another one.',
    remedy: 'report it: no input of yours should lead here',
  },
  HeldByAnother: {
    type: 'Warning',
    when: 'Another node holds the right to run the guest.',
    remedy:
      'wait until that node has let go; where it is gone for good, declare it out of service ([nodes.md](nodes.md))',
  },
  JournalMissing: {
    type: 'Warning',
    when: "The record names this node, and the node's journal does not know of it: its data directory was lost or exchanged.",
    remedy:
      "bring the node's data directory back; where nothing of it runs, declare the old node out of service, or `godwit reclaim VM --afresh` ([switchover.md](switchover.md#when-nobody-can-say))",
  },
  LaterJournal: {
    type: 'Warning',
    when: 'A later version of the agent wrote about the pod.',
    remedy: 'run that version of the agent, or a later one',
  },
  NotCompleted: { type: 'Warning', when: 'The copy has not ended, so that the right is not passed on yet.' },
  NotHolder: { type: 'Warning', when: 'A migration began in an earlier epoch than the one that the node holds.' },
  NotOutOfService: {
    type: 'Warning',
    when: 'The right of a node was to be taken that nobody has declared out of service.',
  },
  NotReceived: { type: 'Warning', when: 'The target does not say that it has the guest.' },
  NotReserved: { type: 'Warning', when: 'The target is not the successor that was reserved.' },
  NotRunning: { type: 'Warning', when: 'The guest is not executed, so that it cannot move.' },
  NotTheSuccessor: { type: 'Warning', when: 'A migration was meant for another pod.' },
  OutOfService: {
    type: 'Warning',
    when: 'The node was declared out of service, and starts nothing.',
    remedy: 'remove the taint `node.kubernetes.io/out-of-service` once the node is trustworthy again',
  },
  Overtaken: { type: 'Warning', when: 'The pod had its machine; another pod has to be made.' },
  PostCopyRunning: {
    type: 'Warning',
    when: 'A part of the guest is on the target already: the move cannot be called off.',
  },
  Quarantined: {
    type: 'Warning',
    when: 'What the API says and what the node knows of the guest differ, as after data was restored from a backup.',
    remedy:
      'bring all nodes back that the message names, so that they can be heard ([operations.md](operations.md)); if it stays, say which copy counts ([switchover.md](switchover.md#when-nobody-can-say))',
  },
  Refused: { type: 'Warning', when: 'The target refused the guest; the source goes on.' },
  StaleImage: {
    type: 'Warning',
    when: 'A disk is older than what the guest last wrote.',
    remedy:
      'bring the newest disk back, or accept the old one as the message says ([switchover.md](switchover.md#disks))',
  },
  SuccessorUnsettled: {
    type: 'Warning',
    when: 'The successor may have been granted the right, and has to answer first.',
  },
} as const satisfies Meanings;

/** What keeps a machine from being prepared on its node. The same words are the waiting reason of its pod. */
const PREPARATION = {
  ClaimLost: {
    type: 'Warning',
    when: 'A claim has lost its volume.',
    remedy: 'restore the volume, or use another claim',
  },
  ClaimNotBound: { type: 'Warning', when: 'A claim has no volume yet.', remedy: '`kubectl describe pvc` says why' },
  ClaimUnusable: {
    type: 'Warning',
    when: 'A claim has a volume that this node cannot give to a guest.',
    remedy: 'use a volume of a kind that the message names',
  },
  ConfigMapNotFound: {
    type: 'Warning',
    when: 'A ConfigMap is not there.',
    remedy: 'make it, or mark the volume `optional`',
  },
  DiskFailed: {
    type: 'Warning',
    when: 'The node could not read or write a disk.',
    remedy: "see the node's own log; mend its disk",
  },
  DiskFull: {
    type: 'Warning',
    when: 'There is no room for a disk on the node.',
    remedy: 'free some room; it is tried again',
  },
  DiskNotFound: {
    type: 'Warning',
    when: 'A file or device is not on the node.',
    remedy: 'put it there, or use `DiskOrCreate` with a capacity',
  },
  DiskRefused: {
    type: 'Warning',
    when: 'A file or device is not one that a guest may have.',
    remedy: 'use another path',
  },
  DiskTooSmall: {
    type: 'Warning',
    when: 'A disk is smaller than that of the guest which comes.',
    remedy: 'make the claim at the target larger',
  },
  ErrImagePull: {
    type: 'Warning',
    when: 'An image is not in the store of the host.',
    remedy: '`godwit image import NAME FILE` on that host',
  },
  Forbidden: {
    type: 'Warning',
    when: 'The agent may not read an object that the guest needs: it is no longer named by a pod of its node.',
  },
  ImageUnusable: {
    type: 'Warning',
    when: 'An image has no disk, or several, or not the one that is asked for.',
    remedy: 'name its `path`',
  },
  InvalidMachine: {
    type: 'Warning',
    when: 'The machine cannot be, on this node at least.',
    remedy: 'change the field that the message names',
  },
  InvalidVolume: {
    type: 'Warning',
    when: 'A disk cannot be made of what the volume says.',
    remedy: 'change the field that the message names',
  },
  NotSupported: {
    type: 'Warning',
    when: 'A volume is of a kind that there is not here.',
    remedy: 'use another kind ([guests.md](guests.md))',
  },
  PersistentVolumeClaimNotFound: { type: 'Warning', when: 'A claim is not there.', remedy: 'make it' },
  PersistentVolumeNotFound: {
    type: 'Warning',
    when: 'The volume of a claim is not there.',
    remedy: 'restore it, or use another claim',
  },
  SecretIncomplete: { type: 'Warning', when: 'A Secret lacks a key.', remedy: 'add the key that the message names' },
  SecretNotFound: { type: 'Warning', when: 'A Secret is not there.', remedy: 'make it, or mark the volume `optional`' },
} as const satisfies Meanings;

const VIRTUAL_MACHINE_INSTANCE = {
  SuccessfulCreate: {
    type: 'Normal',
    when: 'Its launcher pod, its disruption budget, or a migration for it was made; the message says which.',
  },
  SuccessfulDelete: { type: 'Normal', when: 'One of those was deleted.' },
  SuccessfulUpdate: { type: 'Normal', when: 'Its disruption budget was expanded for a migration, or shrunk after it.' },
  FailedCreate: {
    type: 'Warning',
    when: 'One of those could not be made; or the guest has to leave its node and cannot move.',
    remedy: 'the message says what is in the way: a quota, a webhook, or why it is not live-migratable',
  },
  FailedDelete: { type: 'Warning', when: 'One of those could not be deleted; it is tried again.' },
  FailedPvcNotFound: {
    type: 'Warning',
    when: 'A claim that a volume names is not there.',
    remedy: 'make the claim; the guest waits for it',
  },
  Started: { type: 'Normal', when: 'The guest runs.' },
  ShuttingDown: { type: 'Normal', when: 'The guest was asked to shut down.' },
  Deleted: { type: 'Normal', when: 'The guest was cut off: its time to shut down was over, or it was zero.' },
  Stopped: {
    type: 'Normal or Warning',
    when: 'The guest ended: Normal where somebody wanted that, Warning where it was lost. The message has the last words of QEMU.',
  },
  ShutdownHeld: { type: 'Normal', when: 'Its pod is being deleted, and holds the guest so that it can move.' },
  MoveTooLate: {
    type: 'Warning',
    when: 'It did not move within the time that its pod had, and is shut down.',
    remedy: 'give it more time: `disruptionHoldSeconds` ([preemption.md](preemption.md))',
  },
  EndedByKubelet: {
    type: 'Warning',
    when: 'The kubelet ends its launcher pod by itself, before the node shuts down or because that is short of something: it is shut down, and starts again by its run strategy.',
    remedy: 'drain nodes before they are shut down; look at the conditions and events of the node, and of the pod',
  },
  PostCopyLost: {
    type: 'Warning',
    when: 'The source was gone before all memory had followed the guest: it is lost, and starts again by its run strategy.',
    remedy: 'allow post-copy only where that may happen',
  },
  OldImageUsed: {
    type: 'Warning',
    when: 'The guest was started on a disk that is older than its last one, since somebody accepted that.',
  },
  SuccessfulProcessorPlug: { type: 'Normal', when: 'Processors were plugged in.' },
  FailedProcessorPlug: { type: 'Warning', when: 'Processors could not be plugged in; it is tried again.' },
  SuccessfulMemoryPlug: { type: 'Normal', when: 'Memory was plugged in.' },
  FailedMemoryPlug: { type: 'Warning', when: 'Memory could not be plugged in; it is tried again.' },
  PreparingTarget: { type: 'Normal', when: 'The target node is ready for the guest.' },
  Migrating: { type: 'Normal', when: 'The copy began.' },
  Migrated: {
    type: 'Normal or Warning',
    when: 'The guest is on another node; as a Warning: the copy failed, and the guest goes on where it was.',
    remedy: '`godwit why VM`',
  },
  FailedMigration: { type: 'Warning', when: 'A migration ended before the copy began.', remedy: '`godwit why VM`' },
  MigrationBackoff: {
    type: 'Warning',
    when: 'Earlier migrations of the same kind failed, and the next one waits a while.',
    remedy: '`godwit queue` says until when',
  },
  NoSuitableNodesForHostModelMigration: {
    type: 'Warning',
    when: 'No other node has the processor that the guest started on.',
    remedy: 'give guests a named `cpu.model` that all nodes have',
  },
  Disrupted: { type: 'Warning', when: 'Its pod was preempted, or driven away by a taint.' },
  EvictionBlocked: {
    type: 'Warning',
    when: 'An eviction was refused, since the guest cannot be migrated.',
    remedy: 'the message says why it cannot ([eviction.md](eviction.md))',
  },
  SuccessfulEvict: { type: 'Normal', when: 'Its pod was evicted so that it gets a new launcher.' },
  FailedEvict: { type: 'Warning', when: 'That eviction was refused; it is tried again with the next batch.' },
  SuccessfulChangeAbortion: {
    type: 'Normal',
    when: 'A migration was called off, since what it was for was taken back.',
  },
  FailedChangeAbortion: { type: 'Warning', when: 'It could not be called off; it is tried again.' },
  RightToRunSeized: {
    type: 'Warning',
    when: 'Its node was declared out of service, and the guest may be started elsewhere.',
  },
  ...PREPARATION,
  ...RIGHT_TO_RUN,
  GrantedAway: { type: 'Warning', when: 'The guest went to another namespace or cluster, and is not started here.' },
} as const satisfies Meanings;

const MIGRATION = {
  SuccessfulCreate: { type: 'Normal', when: 'Its target pod was made.' },
  FailedCreate: {
    type: 'Warning',
    when: 'Its target pod was refused.',
    remedy: 'see what refuses it: a quota, or an admission webhook',
  },
  SuccessfulDelete: { type: 'Normal', when: 'Its target pod was deleted.' },
  FailedDelete: { type: 'Warning', when: 'Its target pod could not be deleted; it is tried again.' },
  DisruptionBudgetPending: {
    type: 'Warning',
    when: 'It waits until its disruption budget keeps both pods.',
    remedy: 'see that the controllers run; on Kubernetes, kube-controller-manager',
  },
  SuccessfulHandOver: { type: 'Normal', when: 'The agents were told to move the guest.' },
  FailedHandOver: { type: 'Warning', when: 'They could not be told; it is tried again.' },
  migrationTargetPodUnschedulable: {
    type: 'Warning',
    when: 'No node takes the target pod.',
    remedy: 'the condition of the same name has the reason of each node',
  },
  SuccessfulMigration: { type: 'Normal', when: 'The guest is at its target.' },
  FailedMigration: {
    type: 'Warning',
    when: 'It failed; the condition `migrationFailed` has the reason.',
    remedy: '`godwit why MIGRATION`, and the table below',
  },
  SuccessfulAbortMigration: { type: 'Normal', when: 'It is being called off.' },
  FailedAbortMigration: { type: 'Warning', when: 'The agents could not be told to stop; it is tried again.' },
} as const satisfies Meanings;

const POD = {
  Scheduled: { type: 'Normal', when: 'It was given a node.' },
  FailedScheduling: {
    type: 'Warning',
    when: 'No node fits; the message has the reasons of all.',
    remedy: 'give a node room, labels or taints that fit',
  },
  Preempted: { type: 'Normal', when: 'It makes room for a pod of higher priority.' },
  TaintManagerEviction: { type: 'Normal', when: 'It is deleted, or no longer, by a taint that it does not tolerate.' },
  NodeNotReady: { type: 'Warning', when: 'Its node is not ready.' },
  NotALauncher: {
    type: 'Warning',
    when: 'It is no launcher, and agents run no others.',
    remedy: 'give it a node selector for another node',
  },
  NotDeleted: { type: 'Warning', when: 'It was to be evicted, and is still there after two minutes.' },
  MultiplePodDisruptionBudgets: {
    type: 'Warning',
    when: 'Several budgets select it, so that it cannot be evicted.',
    remedy: 'let one budget select it',
  },
} as const satisfies Meanings;

const NODE = {
  RegisteredNode: { type: 'Normal', when: 'It has joined.' },
  RemovingNode: { type: 'Normal', when: 'It was deleted.' },
  NodeNotReady: {
    type: 'Normal',
    when: 'It was not heard of for too long, or says that it is not ready.',
    remedy: 'see that its agent runs: `godwit why NODE`',
  },
  AgentNotHeard: {
    type: 'Warning',
    when: 'Its agent has said nothing for five minutes: no guests are scheduled there (label `kubevirt.io/schedulable` false) until it does.',
    remedy:
      'see that its agent runs: the pods of the DaemonSet `kubevirt/virt-handler`, or `godwit agent` on the machine',
  },
} as const satisfies Meanings;

const CLAIM = {
  WaitForFirstConsumer: { type: 'Normal', when: 'It is bound when a pod uses it.' },
  ExternalProvisioning: { type: 'Normal', when: 'Whoever makes volumes of its class was told to make one.' },
  ProvisioningSucceeded: { type: 'Normal', when: 'Its directory was made.' },
  ProvisioningFailed: {
    type: 'Warning',
    when: 'No volume could be made.',
    remedy: 'the message says why: no such class, or no room',
  },
  FailedBinding: {
    type: 'Normal or Warning',
    when: 'There is no volume for it, or the one that it names is taken.',
    remedy: 'make a volume, or set a storage class',
  },
  VolumeMismatch: {
    type: 'Warning',
    when: 'The volume that it names does not fit it.',
    remedy: 'change one of them as the message says',
  },
  ClaimLost: {
    type: 'Warning',
    when: 'Its volume is gone.',
    remedy: 'restore the volume, or its contents from a backup',
  },
  ClaimMisbound: {
    type: 'Warning',
    when: 'Two claims name the same volume.',
    remedy: 'delete the one that has nothing',
  },
} as const satisfies Meanings;

const VOLUME = {
  VolumeFailedDelete: {
    type: 'Warning',
    when: 'It is to be deleted, and nobody here made it.',
    remedy: 'delete what is behind it, then the object',
  },
  VolumeFailedRecycle: {
    type: 'Warning',
    when: 'It is to be recycled, which nobody does here.',
    remedy: 'use the policy Delete or Retain',
  },
} as const satisfies Meanings;

const DISRUPTION_BUDGET = {
  NoPods: { type: 'Normal or Warning', when: 'It selects no pods; as a Warning: they cannot be listed.' },
  UnmanagedPods: { type: 'Warning', when: 'It selects pods that nothing with a scale manages.' },
  CalculateExpectedPodCountFailed: {
    type: 'Warning',
    when: 'How many pods there should be cannot be told.',
    remedy: 'see what the message says of their owner',
  },
} as const satisfies Meanings;

const KUBE_VIRT = {
  AllNodesHeard: {
    type: 'Normal',
    when: "All nodes have said what they run since the API's data was restored: guests start again.",
  },
} as const satisfies Meanings;

const MIGRATION_POLICY = {
  SameSelectors: {
    type: 'Warning',
    when: 'An older policy has the same selectors: this one does not count, as `godwit policy explain` says of each guest.',
    remedy: 'give it other selectors, or delete one of the two',
  },
} as const satisfies Meanings;

const LEASE = {
  LeaderElection: { type: 'Normal', when: 'Another replica leads.' },
} as const satisfies Meanings;

const ANY = {
  OwnerRefInvalidNamespace: {
    type: 'Warning',
    when: 'It names an owner in another namespace, or of the whole cluster, that is not there.',
    remedy: 'correct `ownerReferences`',
  },
} as const satisfies Meanings;

/** All of them, by kind; `Any` is one of any kind. */
export const EVENT_REASONS = {
  VirtualMachine: VIRTUAL_MACHINE,
  VirtualMachineInstance: VIRTUAL_MACHINE_INSTANCE,
  VirtualMachineInstanceMigration: MIGRATION,
  Node: NODE,
  Pod: POD,
  PersistentVolumeClaim: CLAIM,
  PersistentVolume: VOLUME,
  PodDisruptionBudget: DISRUPTION_BUDGET,
  MigrationPolicy: MIGRATION_POLICY,
  KubeVirt: KUBE_VIRT,
  Lease: LEASE,
  Any: ANY,
} as const satisfies { readonly [kind: string]: Meanings };

type Reasons = typeof EVENT_REASONS;

/** A reason that an event of ours may have. */
export type EventReason = { [Kind in keyof Reasons]: keyof Reasons[Kind] }[keyof Reasons];
