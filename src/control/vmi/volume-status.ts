import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { claimNameOf } from '../volume-claims.ts';

type VolumeStatus = NonNullable<VirtualMachineInstanceStatus['volumeStatus']>[number];
type ClaimInfo = NonNullable<VolumeStatus['persistentVolumeClaimInfo']>;

/**
 * What the status says of a guest's volumes, by name: of those on claims, what is known of the claim. What others have
 * said of a volume, such as which device it is, stays; so does what is known of a claim that is gone, since the guest
 * still has its disk.
 */
export function volumeStatusOf(
  { spec, status }: VirtualMachineInstance,
  claimOf: (claimName: string) => PersistentVolumeClaim | undefined,
): VolumeStatus[] | undefined {
  const known = new Map(status?.volumeStatus?.map((each) => [each.name, each]));
  const all = (spec.volumes ?? []).map((volume): VolumeStatus => {
    const claimName = claimNameOf(volume);
    const claim = claimName === undefined ? undefined : claimOf(claimName);
    return {
      target: '',
      ...known.get(volume.name),
      name: volume.name,
      ...(claim ? { persistentVolumeClaimInfo: infoOf(claim) } : {}),
    };
  });
  return all.length === 0 ? undefined : all.sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** What is told of a claim. */
export function infoOf({ metadata, spec = {}, status = {} }: PersistentVolumeClaim): ClaimInfo {
  const requests = spec.resources?.requests;
  return {
    claimName: metadata.name ?? '',
    accessModes: spec.accessModes as ClaimInfo['accessModes'],
    volumeMode: (spec.volumeMode ?? 'Filesystem') as ClaimInfo['volumeMode'],
    ...(requests ? { requests: amounts(requests) } : {}),
    ...(status.capacity ? { capacity: amounts(status.capacity) } : {}),
  };
}

/** Servers write quantities as texts. */
function amounts(list: Readonly<Record<string, unknown>>): Record<string, string> {
  return Object.fromEntries(Object.entries(list).map(([name, amount]) => [name, String(amount)]));
}
