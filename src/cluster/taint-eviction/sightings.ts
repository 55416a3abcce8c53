import type { Pod, Taint } from '../../migration/fit/objects.ts';
import type { SeenAtMs } from './decide.ts';

interface Sighting {
  readonly uid: string | undefined;
  readonly seenAtMs: Map<string, number>;
}

/** Remembers since when pods and taints have been seen together; for pods that tolerate theirs for a while. */
export class Sightings {
  readonly #byPod = new Map<string, Sighting>();

  /** Since when each taint has been seen with the pod; from now on for one that is new. */
  of(key: string, pod: Pod, nowMs: number): SeenAtMs {
    const { seenAtMs } = this.#sightingOf(key, pod);
    return (taint) => {
      const id = idOf(taint);
      const knownMs = seenAtMs.get(id);
      if (knownMs === undefined) seenAtMs.set(id, nowMs);
      return knownMs ?? nowMs;
    };
  }

  /** A taint that goes and comes back is a new one. */
  keepOnly(key: string, taints: readonly Taint[]): void {
    const sighting = this.#byPod.get(key);
    if (!sighting) return;
    const present = new Set(taints.map(idOf));
    for (const id of sighting.seenAtMs.keys()) if (!present.has(id)) sighting.seenAtMs.delete(id);
  }

  has(key: string): boolean {
    return this.#byPod.has(key);
  }

  forget(key: string): void {
    this.#byPod.delete(key);
  }

  #sightingOf(key: string, pod: Pod): Sighting {
    const { uid } = pod.metadata;
    const known = this.#byPod.get(key);
    if (known && known.uid === uid) return known;
    const made: Sighting = { uid, seenAtMs: new Map() };
    this.#byPod.set(key, made);
    return made;
  }
}

/** A taint whose value changes is another one for tolerations, and so is one that was put on anew. */
function idOf({ key, value = '', timeAdded = '' }: Taint): string {
  return `${key}\n${value}\n${timeAdded}`;
}
