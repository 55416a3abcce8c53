import { compareQuantities, parseQuantity } from '../../api/quantity.ts';
import { splitKey } from '../../kube/resource.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import { type ResourceQuota, resourceQuotas } from '../resources.ts';

/** Migrations whose target pods a quota refused. They are woken when a quota of their namespace has room again. */
export class QuotaWaiters {
  readonly #byNamespace = new Map<string, Set<string>>();
  #changeCount = 0;

  constructor(informers: SharedInformers, wake: (key: string) => void) {
    informers.of(resourceQuotas).onChange(({ type, object, old }) => {
      if (type === 'added' || (type === 'updated' && !hasMoreRoom(object, old))) return;
      const { namespace = '' } = object.metadata;
      this.#changeCount++;
      const waiting = this.#byNamespace.get(namespace);
      this.#byNamespace.delete(namespace);
      for (const key of waiting ?? []) wake(key);
    });
  }

  /** Grows whenever some quota has room again: who was refused meanwhile may have been refused too early. */
  get changeCount(): number {
    return this.#changeCount;
  }

  has(key: string): boolean {
    return this.#byNamespace.get(splitKey(key).namespace)?.has(key) === true;
  }

  add(key: string): void {
    const { namespace } = splitKey(key);
    const waiting = this.#byNamespace.get(namespace);
    if (waiting) waiting.add(key);
    else this.#byNamespace.set(namespace, new Set([key]));
  }

  delete(key: string): void {
    const { namespace } = splitKey(key);
    const waiting = this.#byNamespace.get(namespace);
    waiting?.delete(key);
    if (waiting?.size === 0) this.#byNamespace.delete(namespace);
  }
}

/** Whether a quota allows more of something than it did, or less of it is used. */
function hasMoreRoom(quota: ResourceQuota, old: ResourceQuota | undefined): boolean {
  const [hard, hardBefore] = [quota.spec?.hard ?? {}, old?.spec?.hard ?? {}];
  const [used, usedBefore] = [quota.status?.used ?? {}, old?.status?.used ?? {}];
  return (
    Object.entries(hardBefore).some(([name, amount]) => !Object.hasOwn(hard, name) || isMore(hard[name], amount)) ||
    Object.entries(used).some(([name, amount]) => Object.hasOwn(usedBefore, name) && isMore(usedBefore[name], amount))
  );
}

function isMore(left: string | undefined, right: string): boolean {
  const [a, b] = [parseQuantity(left), parseQuantity(right)];
  return a !== undefined && b !== undefined && compareQuantities(a, b) > 0;
}
