/** What runs guests, for agents as for launchers. */
export const QEMU_PROGRAM = 'qemu-system-x86_64';
