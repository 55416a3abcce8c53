import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { derivedSuffix } from '../../machinery/derived-identity.ts';

/** Long, since the guest's name is not in it: thousands may move at once, and no two may get the same. */
const SUFFIX_LENGTH = 10;

/**
 * The name of the cluster's next try to move a guest for a purpose. It follows from the guest, the purpose and the try
 * before, so that there is one migration for each try, whoever creates it, and those that are over are never in the way.
 */
export function nextTryName(
  prefix: string,
  guest: VirtualMachineInstance,
  purpose: string,
  all: readonly VirtualMachineInstanceMigration[],
): string {
  const byName = new Map(all.map((each) => [each.metadata.name, each]));
  for (let before = ''; ; ) {
    const name = prefix + derivedSuffix(guest.metadata.uid ?? '', [purpose, before].join('\n'), SUFFIX_LENGTH);
    const known = byName.get(name);
    if (!known) return name;
    byName.delete(name);
    before = known.metadata.uid ?? '';
  }
}
