import { parseQuantity, quantityToNumber } from '../../api/quantity.ts';
import { DIRECTORY_PROVISIONER, PROVISIONED_BY } from '../../api/storage.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import type { DiskSource } from './disk-source.ts';
import { VolumeError } from './guest-volumes.ts';

/** Where in a file system the disk is, as KubeVirt has it. */
export const DISK_NAME = 'disk.img';

/** The claim has its volume, as far as both of them say. Throws a VolumeError otherwise. */
export function boundVolumeName(volume: string, { metadata, spec, status }: PersistentVolumeClaim): string {
  const name = metadata.name ?? '';
  if (status?.phase === 'Lost')
    throw new VolumeError(volume, 'ClaimLost', `claim ${name} has lost its PersistentVolume`);
  if (status?.phase !== 'Bound' || !spec?.volumeName)
    throw new VolumeError(volume, 'ClaimNotBound', `claim ${name} is not bound to a PersistentVolume yet`);
  return spec.volumeName;
}

/** The disk of a claim. Throws a VolumeError for what a node cannot reach, or belongs to somebody else. */
export function claimSource(
  volume: string,
  claim: PersistentVolumeClaim,
  persistentVolume: PersistentVolume,
  isReadOnly: boolean,
): DiskSource & { kind: 'file' | 'device' } {
  const refuse = (message: string): VolumeError => new VolumeError(volume, 'ClaimUnusable', message);
  const { name = '', uid = '' } = claim.metadata;
  const { claimRef, hostPath, local } = persistentVolume.spec ?? {};
  const named = `PersistentVolume ${persistentVolume.metadata.name ?? ''}`;
  if (claimRef?.uid !== uid) throw refuse(`${named} is not that of claim ${name}, but of another one`);
  const path = (hostPath?.path ?? local?.path ?? '').replace(/\/+$/, '');
  if (path === '') throw refuse(`${named} is neither a path of the host nor local: such storage cannot be used here`);
  if (!path.startsWith('/') || path.split('/').includes('..')) throw refuse(`${named} has no sound path: ${path}`);
  const origin = { name, uid };
  if (claim.spec?.volumeMode === 'Block') return { kind: 'device', path, isReadOnly, claim: origin };
  const disk = { kind: 'file', path: `${path}/${DISK_NAME}`, isGiven: true, isReadOnly, claim: origin } as const;
  if (isReadOnly) return disk;
  const isOurs = persistentVolume.metadata.annotations?.[PROVISIONED_BY] === DIRECTORY_PROVISIONER;
  const directory = isOurs || hostPath?.type === 'DirectoryOrCreate';
  return { ...disk, makes: { directory, sizeBytes: sizeOf(volume, claim) } };
}

/** What was asked for: a volume may be larger, and a guest that moves to another one must find the same disk. */
function sizeOf(volume: string, { metadata, spec, status }: PersistentVolumeClaim): number {
  const storage = spec?.resources?.requests?.['storage'] ?? status?.capacity?.['storage'];
  const quantity = parseQuantity(storage);
  const bytes = quantity ? Math.floor(quantityToNumber(quantity)) : 0;
  if (bytes > 0) return bytes;
  throw new VolumeError(volume, 'ClaimUnusable', `claim ${metadata.name ?? ''} says no size`);
}
