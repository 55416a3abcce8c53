import type { PersistentVolume } from '../../migration/fit/objects.ts';
import { storageClassNameOf } from '../../migration/fit/volume-match.ts';

/** The volumes that no claim has, by storage class: few, where volumes are made when they are asked for. */
export class UnboundVolumes {
  readonly #byClass = new Map<string, Map<string, PersistentVolume>>();

  of(storageClass: string): Iterable<PersistentVolume> {
    return this.#byClass.get(storageClass)?.values() ?? [];
  }

  /** Takes a volume as it is now, and as it was; undefined for one that is not there. */
  change(volume: PersistentVolume | undefined, old: PersistentVolume | undefined): void {
    if (old) this.#remove(old);
    if (!volume || volume.status?.phase === 'Bound') return;
    const storageClass = storageClassNameOf(volume);
    const volumes = this.#byClass.get(storageClass);
    if (volumes) volumes.set(volume.metadata.name ?? '', volume);
    else this.#byClass.set(storageClass, new Map([[volume.metadata.name ?? '', volume]]));
  }

  #remove(volume: PersistentVolume): void {
    const storageClass = storageClassNameOf(volume);
    const volumes = this.#byClass.get(storageClass);
    volumes?.delete(volume.metadata.name ?? '');
    if (volumes?.size === 0) this.#byClass.delete(storageClass);
  }
}
