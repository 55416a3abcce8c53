import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';

/** Guests that went to another object: of another namespace, or of another cluster. */

/** The reason of what is said of such a guest, or of its machine. */
export const GUEST_MOVED_AWAY = 'GuestMovedAway';

/** Where a guest went, as far as anybody said; for people. */
export function destinationOf({ status }: VirtualMachineInstance): string {
  const { domainNamespace: namespace = '', domainName = '' } = status?.migrationState?.targetState ?? {};
  const node = status?.rightToRun?.holder?.node ?? '';
  const name = domainName.startsWith(`${namespace}_`) ? domainName.slice(namespace.length + 1) : domainName;
  if (namespace === '' || name === '') return `node ${node} of another namespace or cluster`;
  return `${namespace}/${name} on node ${node}`;
}
