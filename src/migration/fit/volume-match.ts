import { BETA_STORAGE_CLASS, BIND_COMPLETED } from '../../api/storage.ts';
import { compareQuantities, parseQuantity, type Quantity } from '../../api/quantity.ts';
import type { KubeObject } from '../../api/meta.ts';
import { selectorFrom } from '../../machinery/selectors.ts';
import type { PersistentVolume, PersistentVolumeClaim } from './objects.ts';

/** Which volume does for which claim, as the binder and the scheduler both see it. */

const NOTHING: Quantity = { amount: 0n, format: 'BinarySI' };

/** The storage class of a claim or a volume; empty for none. */
export function storageClassNameOf(object: KubeObject & { spec?: { readonly storageClassName?: string } }): string {
  const annotations = object.metadata.annotations ?? {};
  if (Object.hasOwn(annotations, BETA_STORAGE_CLASS)) return annotations[BETA_STORAGE_CLASS] ?? '';
  return object.spec?.storageClassName ?? '';
}

export function requestedStorage({ spec }: PersistentVolumeClaim): Quantity {
  return parseQuantity(spec?.resources?.requests?.['storage']) ?? NOTHING;
}

function capacityOf({ spec }: PersistentVolume): Quantity {
  return parseQuantity(spec?.capacity?.['storage']) ?? NOTHING;
}

/** Whether the link between a claim and its volume has been made, whatever has become of the volume since. */
export function isBindCompleted({ metadata }: PersistentVolumeClaim): boolean {
  return Object.hasOwn(metadata.annotations ?? {}, BIND_COMPLETED);
}

/** Whether a volume is set aside for this claim. */
export function isReservedFor({ spec }: PersistentVolume, { metadata }: PersistentVolumeClaim): boolean {
  const reference = spec?.claimRef;
  if (!reference || reference.name !== metadata.name || reference.namespace !== metadata.namespace) return false;
  return (reference.uid ?? '') === '' || reference.uid === metadata.uid;
}

/** Why a volume does not do for a claim that names it; undefined where it does. */
export function mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim): string | undefined {
  if (compareQuantities(capacityOf(volume), requestedStorage(claim)) < 0) return 'requested PV is too small';
  if (storageClassNameOf(volume) !== storageClassNameOf(claim)) return 'storageClassName does not match';
  if (modeOf(volume) !== modeOf(claim)) return 'incompatible volumeMode';
  return hasAccessModes(volume, claim) ? undefined : 'incompatible accessMode';
}

/** The smallest of the volumes that nobody has and that do for the claim. */
export function bestVolume(
  claim: PersistentVolumeClaim,
  volumes: Iterable<PersistentVolume>,
): PersistentVolume | undefined {
  const [best] = fittingVolumes(claim, volumes);
  return best;
}

/** All volumes that nobody has and that do for the claim, the smallest first; of equals the first by name. */
export function fittingVolumes(claim: PersistentVolumeClaim, volumes: Iterable<PersistentVolume>): PersistentVolume[] {
  const { selector } = claim.spec ?? {};
  const labels = selector ? selectorFrom(selector) : undefined;
  const fitting: PersistentVolume[] = [];
  for (const volume of volumes) {
    const { metadata, spec, status } = volume;
    const isFree = spec?.claimRef === undefined && status?.phase === 'Available' && !metadata.deletionTimestamp;
    if (!isFree || mismatch(volume, claim) !== undefined) continue;
    if (labels === undefined || labels.matches(metadata.labels ?? {})) fitting.push(volume);
  }
  return fitting.sort((a, b) => compareQuantities(capacityOf(a), capacityOf(b)) || (nameOf(a) < nameOf(b) ? -1 : 1));
}

function nameOf({ metadata }: KubeObject): string {
  return metadata.name ?? '';
}

function modeOf({ spec }: PersistentVolume | PersistentVolumeClaim): string {
  return spec?.volumeMode ?? 'Filesystem';
}

function hasAccessModes({ spec }: PersistentVolume, claim: PersistentVolumeClaim): boolean {
  const offered = new Set(spec?.accessModes);
  return (claim.spec?.accessModes ?? []).every((mode) => offered.has(mode));
}
