/** Where what scenarios of machines are about is kept. */

export const VMS = 'virtualmachines.kubevirt.io';
export const VMIS = 'virtualmachineinstances.kubevirt.io';
export const MIGRATIONS = 'virtualmachineinstancemigrations.kubevirt.io';
export const CONFIGURATIONS = 'kubevirts.kubevirt.io';
