import type { Volume } from '../api/kubevirt/volumes.ts';
import type { LauncherPod } from './resources.ts';

/** On which claims volumes are, and which of them are to be on others. */

/** Claims by the names of volumes. */
export type Claims = ReadonlyMap<string, string>;

/** A volume whose contents are on one claim, and are to be on another. */
export interface ClaimChange {
  readonly volumeName: string;
  readonly source: string;
  readonly destination: string;
}

/** The claims that volumes of a guest, or of a template, are on. What is thrown away with the guest is on none. */
export function claimsOfVolumes(volumes: readonly Volume[] = []): Claims {
  return new Map(
    volumes.flatMap(({ name, persistentVolumeClaim, dataVolume }) => {
      const claim = persistentVolumeClaim?.claimName ?? dataVolume?.name;
      return claim === undefined ? [] : [[name, claim] as const];
    }),
  );
}

/** The claims that a launcher pod has: those that the guest in it writes to. */
export function claimsOfPod({ spec }: LauncherPod): Claims {
  return new Map(
    (spec?.volumes ?? []).flatMap(({ name = '', persistentVolumeClaim }) =>
      persistentVolumeClaim ? [[name, persistentVolumeClaim.claimName] as const] : [],
    ),
  );
}

/** The volumes that are on different claims. */
export function claimChanges(from: Claims, to: Claims): readonly ClaimChange[] {
  return [...from].flatMap(([volumeName, source]) => {
    const destination = to.get(volumeName);
    return destination === undefined || destination === source ? [] : [{ volumeName, source, destination }];
  });
}
