/** What conditions say, by kind. The test beside this looks for each of them in the code. */

interface ConditionMeaning {
  /** What it says while it is True, or as its status says. */
  readonly says: string;
  /** Reasons, each with what it means or what to do. */
  readonly reasons?: { readonly [reason: string]: string };
}

type Conditions = { readonly [kind: string]: { readonly [type: string]: ConditionMeaning } };

/** Conditions of the objects that this project keeps, and of nodes. */
export const CONDITIONS: Conditions = {
  VirtualMachine: {
    Ready: {
      says: "Its guest is ready; reasons are the guest's.",
      reasons: { VMINotExists: 'there is no guest' },
    },
    Failure: { says: 'It could not be started; reason and message are those of the event.' },
    RestartRequired: { says: 'A change takes effect with the next start: `godwit restart VM`.' },
    GuestMovedAway: {
      says: 'The guest went to another namespace or cluster.',
      reasons: { Migrated: 'the message says where it is, and how to get it back' },
    },
  },
  VirtualMachineInstance: {
    Ready: {
      says: 'The guest runs, and its launcher pod is ready.',
      reasons: {
        PodNotExists: 'there is no launcher pod yet',
        PodTerminating: 'its launcher pod is being deleted',
        PodConditionMissing: 'its launcher pod has not said whether it is ready',
        PodNotReady: 'its launcher pod is not ready',
        GuestNotRunning: 'its agent has not said that the guest runs',
        GuestPaused: 'somebody or something holds the guest: see Paused',
        GuestMovedAway: 'it went to another namespace or cluster',
      },
    },
    LiveMigratable: {
      says: 'The guest can move while it runs. Where it is False, the reason is the first obstacle, in this order.',
      reasons: {
        InterfaceNotLiveMigratable: 'use `masquerade`, or allow a bridge by the annotation that the message names',
        CPUModeLiveMigratable: 'its node has no name for its processor: use a named `cpu.model`',
        HostDeviceNotLiveMigratable: 'it has a device of its node',
        SEVNotLiveMigratable: 'its memory is encrypted by SEV',
        TDXNotLiveMigratable: 'its memory is encrypted by TDX',
        SecureExecutionNotLiveMigratable: 'it uses Secure Execution',
        NoTSCFrequencyNotLiveMigratable: "it follows the processor's counter, whose frequency is not known",
        HypervPassthroughNotLiveMigratable: 'it uses hyperv passthrough',
        DisksNotLiveMigratable: 'a disk is on one node alone: use a claim that is ReadWriteMany, or `shared: true`',
        VirtIOFSNotLiveMigratable: 'it shares a directory',
        PersistentReservationNotLiveMigratable: 'it reserves a SCSI disk',
      },
    },
    StorageLiveMigratable: {
      says: 'The guest could move with its disks, wherever those are.',
      reasons: { NotMigratable: 'the message has all obstacles but disks' },
    },
    Synchronized: {
      says: 'False: it could not be made, prepared or kept; reason and message are those of the event, of the pod, or of how QEMU ended.',
      reasons: {
        FailedCreate: 'its launcher pod was refused',
        FailedPvcNotFound: 'a claim is not there',
        GuestLost: 'the node that took it over was given up before it could say so',
      },
    },
    PodScheduled: {
      says: 'False: no node was found for its launcher pod.',
      reasons: { Unschedulable: "the message has each node's reason" },
    },
    Paused: {
      says: 'The guest is held.',
      reasons: {
        PausedByUser: '`godwit unpause VM` lets it go on',
        PausedIOError: 'a disk could not be read or written: mend it, then unpause',
      },
    },
    AgentConnected: { says: 'An agent inside the guest answers.' },
    EvictionRequested: {
      says: 'The guest has to leave its node.',
      reasons: { EvictionRequested: '`status.evacuationCauses` says why' },
    },
    HotVCPUChange: {
      says: 'Processors are to be plugged in.',
      reasons: { MigrationNeeded: 'with its next move', Plugging: 'just now' },
    },
    HotMemoryChange: {
      says: 'Memory is to be plugged in.',
      reasons: { MigrationNeeded: 'with its next move', Plugging: 'just now' },
    },
    VolumesChange: {
      says: 'Volumes are to be on other claims.',
      reasons: { MigrationNeeded: 'with its next move' },
    },
    DecentralizedLiveMigrationFailure: {
      says: 'The other half of its migration cannot be reached; reasons are those of `decentralizedMigrationBlocked`.',
    },
  },
  VirtualMachineInstanceMigration: {
    migrationFailed: { says: 'It failed; the reasons are in the table below.' },
    migrationAbortRequested: {
      says: 'It is to stop.',
      reasons: {
        Canceled: 'it was deleted',
        PostCopy: 'it was deleted too late: it goes on to its end',
        GoneOver: 'it was deleted too late: its guest was at the target',
        TargetPodDown: 'its target pod has ended',
        GuestDeleted: 'the guest is to be deleted',
        NoNews: 'the source has told nothing for too long',
        PeerFailed: 'the other half failed',
        PreparationTimeout: 'the target node did not prepare in time',
        StartTimeout: 'the source node did not begin in time',
      },
    },
    migrationRejectedByResourceQuota: {
      says: 'Its target pod does not fit into the quota of the namespace; it waits.',
      reasons: { ExceededQuota: 'raise the quota, or free some of it' },
    },
    migrationTargetPodUnschedulable: {
      says: 'No node takes its target pod; it waits, and fails after five minutes.',
      reasons: { NoNodeFits: "the message has each node's reason" },
    },
    decentralizedMigrationBlocked: {
      says: 'Its other half is not heard of, or refuses.',
      reasons: {
        WaitingForOtherHalf: 'make the other half, with the same key; the message says where it has to connect to',
        KeyInUse:
          'an earlier half with the same key is kept, until the other cluster has heard how it ended: the message names it',
        Unreachable: 'see that the address is right, and that the other synchronization controller runs',
        InvalidAddress: '`connectURL` is no HOST:PORT',
        NotAllowed: 'administrators allow other addresses only ([trust.md](trust.md))',
        NotTrusted: '`godwit trust` has to be given on both sides',
        VersionMismatch: 'one side is too old for the other',
        Silent: 'nothing was heard for too long; it is tried again',
        Disconnected: 'the connection broke; it is tried again',
        OwnCluster: 'the address leads back to this cluster, and the other half is in another one: see where it leads',
        OtherCluster: 'the address leads to another cluster than before',
      },
    },
  },
  Node: {
    Ready: {
      says: 'Its agent takes pods.',
      reasons: {
        AgentReady: 'all is well',
        AgentNotReady: 'the message says why its agent takes none',
        NodeStatusUnknown: 'its agent was not heard of for too long: see that it runs',
        NodeStatusNeverUpdated: 'its agent was never heard of',
      },
    },
    MemoryPressure: { says: 'It has little memory left, and takes no more pods.' },
    DiskPressure: { says: 'It has little room on its disk left, and takes no more pods.' },
    PIDPressure: { says: 'It has few process numbers left, and takes no more pods.' },
    DrainBlocked: {
      says: 'Somebody empties it, and guests cannot leave.',
      reasons: {
        VirtualMachinesStay: 'the message says which ones, and why',
        NothingInTheWay: 'False: all can leave, or have left',
      },
    },
  },
};
