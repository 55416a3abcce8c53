/** Names that users, agents and tools of KubeVirt know. */

/** Keeps a machine until its guest is gone, and a guest until its machine has taken note of how it ended. */
export const MACHINE_FINALIZER = 'kubevirt.io/virtualMachineControllerFinalize';

/** Name of the guest that a launcher pod is for, and of the machine that a guest is of. */
export const MACHINE_NAME_LABEL = 'vm.kubevirt.io/name';

/** The machine's generation that a guest was made from. */
export const GENERATION_ANNOTATION = 'kubevirt.io/vm-generation';
/** Says of a guest that it comes from elsewhere. */
export const RECEIVER_ANNOTATION = 'kubevirt.io/create-migration-target';
/** The strategy of a machine once its guest has come from elsewhere. */
export const RESTORE_STRATEGY_ANNOTATION = 'kubevirt.io/restore-run-strategy';
