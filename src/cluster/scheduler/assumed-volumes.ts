import type { KubeObject } from '../../api/meta.ts';
import { SELECTED_NODE } from '../../api/storage.ts';
import { keyOf } from '../../kube/resource.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { isBound, type VolumePlan } from '../../migration/fit/volume-plan.ts';
import { reservation } from '../volumes/reservation.ts';

interface Assumption<T> {
  readonly object: T;
  /** UIDs of the pods on whose account it is assumed. */
  readonly holders: Set<string>;
}

/**
 * Claims and volumes as they will be once what was decided has been written and heard of. Without it two pods could be
 * given the same volume, or one claim be sent to two nodes.
 */
export class AssumedVolumes {
  readonly #claims = new Map<string, Assumption<PersistentVolumeClaim>>();
  readonly #volumes = new Map<string, Assumption<PersistentVolume>>();

  assume(podUid: string, node: string, { bindings, provisions }: VolumePlan): void {
    for (const claim of provisions) {
      const { annotations } = claim.metadata;
      const metadata = { ...claim.metadata, annotations: { ...annotations, [SELECTED_NODE]: node } };
      hold(this.#claims, { ...claim, metadata }, podUid);
    }
    for (const { claim, volume } of bindings) hold(this.#volumes, reservation(volume, claim), podUid);
  }

  /** Ends what was assumed on a pod's account, since it has come true or will not. */
  release(podUid: string): void {
    letGo(this.#claims, podUid);
    letGo(this.#volumes, podUid);
  }

  /** The claim as it will be, given how it is. */
  claim(actual: PersistentVolumeClaim | undefined): PersistentVolumeClaim | undefined {
    return actual && !isBound(actual) ? assumed(this.#claims, actual) : actual;
  }

  /** The volume as it will be, given how it is. */
  volume<T extends PersistentVolume | undefined>(actual: T): T | PersistentVolume {
    return actual && actual.spec?.claimRef === undefined ? assumed(this.#volumes, actual) : actual;
  }
}

function hold<T extends KubeObject>(assumptions: Map<string, Assumption<T>>, object: T, podUid: string): void {
  const key = keyOf(object);
  const known = assumptions.get(key);
  if (known?.object.metadata.uid === object.metadata.uid) known?.holders.add(podUid);
  else assumptions.set(key, { object, holders: new Set([podUid]) });
}

function letGo<T>(assumptions: Map<string, Assumption<T>>, podUid: string): void {
  for (const [key, { holders }] of assumptions)
    if (holders.delete(podUid) && holders.size === 0) assumptions.delete(key);
}

function assumed<T extends KubeObject>(assumptions: Map<string, Assumption<T>>, actual: T): T {
  const object = assumptions.get(keyOf(actual))?.object;
  return object?.metadata.uid === actual.metadata.uid ? (object ?? actual) : actual;
}
