/** Types of machines: those that guests can have here, and those that they can have elsewhere. */

const KNOWN = /^(q35|pc|microvm|pc-(q35|i440fx)-\d+\.\d+)$/;

/** What KubeVirt takes on the architectures that it knows: its own versions, and those of distributions. */
const KNOWN_ELSEWHERE = /^(q35|pc-q35|virt|s390-ccw-virtio)/;

/** What to name to whoever named another. */
export const MACHINE_TYPES = ['q35', 'pc', 'microvm', 'pc-q35-<version>', 'pc-i440fx-<version>'] as const;

/** `here` can be started, `elsewhere` is taken by KubeVirt and cannot, `nowhere` is no machine. */
export function whereMachineTypeIsKnown(type: string): 'here' | 'elsewhere' | 'nowhere' {
  if (KNOWN.test(type)) return 'here';
  return KNOWN_ELSEWHERE.test(type) ? 'elsewhere' : 'nowhere';
}
