import type { Volume } from '../api/kubevirt/volumes.ts';

/** The claim that a volume needs before its guest can start; undefined for volumes without one. */
export function claimNameOf({ persistentVolumeClaim, dataVolume, ephemeral, memoryDump }: Volume): string | undefined {
  return (
    persistentVolumeClaim?.claimName ??
    dataVolume?.name ??
    ephemeral?.persistentVolumeClaim?.claimName ??
    memoryDump?.claimName
  );
}
