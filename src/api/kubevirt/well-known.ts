/** Names that users, agents and tools of KubeVirt know. */

/** The namespace of all that runs the virtual machines. */
export const SYSTEM_NAMESPACE = 'kubevirt';

/** Keeps a machine until its guest is gone, and a guest until its machine has taken note of how it ended. */
export const MACHINE_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';
/** Keeps a guest until nobody executes it. */
export const GUEST_FINALIZER = 'foregroundDeleteVirtualMachine';
/** Keeps a migration until it is over, one way or the other. */
export const MIGRATION_FINALIZER = 'kubevirt.io/migrationJobFinalize';
/** Keeps half of a migration until the other side knows how it ended. */
export const SYNCHRONIZATION_FINALIZER = 'synchronization.kubevirt.io/migrationFinalizer';

/** Labels of all that is installed, by which an admin lists it. */
export const PART_OF_GODWIT = { 'app.kubernetes.io/part-of': 'godwit' } as const;
/** What a pod is. */
export const APP_LABEL = 'kubevirt.io';
/** UID of the guest that a launcher pod is for. For selectors: who needs certainty looks at the owner. */
export const CREATED_BY_LABEL = 'kubevirt.io/created-by';
/** Name of the guest that a launcher pod is for, and of the machine that a guest is of. */
export const MACHINE_NAME_LABEL = 'vm.kubevirt.io/name';
/** Name of the guest that a migration is of, as far as a label has room for it. For selectors alone. */
export const MIGRATION_GUEST_LABEL = 'kubevirt.io/vmi-name';
/** On launcher pods, a readiness gate and its condition: whoever is sent traffic must be there to answer. */
export const UNPAUSED_CONDITION = 'kubevirt.io/virtual-machine-unpaused';
/** The node that a guest was given to. */
export const NODE_NAME_LABEL = 'kubevirt.io/nodeName';
/** The node that a guest moves to, while it does. */
export const TARGET_NODE_LABEL = 'kubevirt.io/migrationTargetNodeName';
/** UID of the migration that a launcher pod was made for. */
export const MIGRATION_UID_LABEL = 'kubevirt.io/migrationJobUID';
/** Name of that migration. */
export const MIGRATION_NAME_ANNOTATION = 'kubevirt.io/migrationJobName';
/** Nodes that can run guests. */
export const SCHEDULABLE_LABEL = 'kubevirt.io/schedulable';
/** On a node: when its agent last said that it is there. */
export const HEARTBEAT_ANNOTATION = 'kubevirt.io/heartbeat';

/** The machine's generation that a guest was made from. */
export const GENERATION_ANNOTATION = 'kubevirt.io/vm-generation';
/** Says of a guest that it comes from elsewhere. */
export const RECEIVER_ANNOTATION = 'kubevirt.io/create-migration-target';
/** The strategy of a machine once its guest has come from elsewhere. */
export const RESTORE_STRATEGY_ANNOTATION = 'kubevirt.io/restore-run-strategy';
/** On a machine that received a guest: the UID of the guest whose identity its template was given. */
export const IDENTITY_ANNOTATION = 'godwit.dev/identity-of';
/** Lets a guest move that is bridged to its pod's network. */
export const BRIDGE_MIGRATION_ANNOTATION = 'kubevirt.io/allow-pod-bridge-network-live-migration';
/** On a guest: what its machine's template was when it was made, in short. */
export const TEMPLATE_HASH_ANNOTATION = 'godwit.dev/template-hash';
/** On a guest: who wants it to leave, where that is not who empties the node. */
export const EVICTION_SOURCE_ANNOTATION = 'kubevirt.io/eviction-source';
/** On a migration: the node that it empties. */
export const EVACUATION_ANNOTATION = 'kubevirt.io/evacuationMigration';
/** On a migration: it gives its guest a newer launcher, or makes a change of the guest take effect. */
export const WORKLOAD_UPDATE_ANNOTATION = 'kubevirt.io/workloadUpdateMigration';
/** On a guest: its launcher is not the one that it would be started in now. */
export const OUTDATED_LAUNCHER_LABEL = 'kubevirt.io/outdatedLauncherImage';
/** On a migration: it carries a guest over to other volumes; the guest's name, or its UID where that is too long. */
export const VOLUME_UPDATE_LABEL = 'kubevirt.io/volume-update-migration';
/** On a launcher pod: for how many sockets of its guest it was made. */
export const SOCKETS_ANNOTATION = 'godwit.dev/sockets';
/** On a launcher pod: for how much memory of its guest it was made. */
export const MEMORY_ANNOTATION = 'godwit.dev/memory';
/** Says of a node which restoration of the API's data its agent has settled. */
export const HEARD_ANNOTATION = 'godwit.dev/heard';
