import { keyOf } from '../../kube/resource.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { ResourceQuota } from '../../machinery/quota.ts';

/**
 * When quotas were last charged. Admission charges a quota just before it stores the object: whoever counts in between
 * finds one object too few, and would take the charge back. So nothing is lowered until a charge is old enough for its
 * object to be there. What is not remembered, after a restart, is taken for charged right then.
 */

/** Longer than any object takes from being charged to being stored and told of. */
export const SETTLED_AFTER_MS = 1000;

interface Charge {
  readonly atMs: number;
  readonly version: string;
}

interface Known {
  used: Used;
  charge: Charge | undefined;
  /** The one before that. */
  earlier: Charge | undefined;
  /** The version that was written here last, which is no charge. */
  ownVersion: string | undefined;
}

type Used = NonNullable<ResourceQuota['status']>['used'];

export class Charges {
  readonly #known = new Map<string, Known>();

  /** Hears of a quota as it is now. `isNew` where it was created just now. */
  observe(quota: ResourceQuota, nowMs: number, isNew: boolean): void {
    const key = keyOf(quota);
    const used = quota.status?.used;
    const known = this.#known.get(key);
    const charge = { atMs: nowMs, version: quota.metadata.resourceVersion ?? '' };
    if (!known) {
      const first = isNew && used === undefined ? undefined : charge;
      this.#known.set(key, { used, charge: first, earlier: undefined, ownVersion: undefined });
      return;
    }
    if (charge.version !== known.ownVersion && !deepEqual(used, known.used)) {
      known.earlier = known.charge;
      known.charge = charge;
    }
    known.used = used;
  }

  /**
   * Says which version was written here, though it may have been heard of before. Not known by what it says: a charge may come
   * to the same, and the write be refused. One whose answer is lost counts as a charge.
   */
  wrote(key: string, version: string | undefined): void {
    const known = this.#known.get(key);
    if (!known) return;
    known.ownVersion = version;
    if (known.charge?.version === version) known.charge = known.earlier;
  }

  forget(key: string): void {
    this.#known.delete(key);
  }

  /** How long until the quota's last charge can be seen in what is stored; nought or less where it can. */
  settlesInMs(key: string, nowMs: number): number {
    const atMs = this.#known.get(key)?.charge?.atMs ?? Number.NEGATIVE_INFINITY;
    return atMs + SETTLED_AFTER_MS - nowMs;
  }
}
