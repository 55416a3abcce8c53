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

type Amounts = Readonly<Record<string, string>>;

/**
 * Whether a quota allows more of something than it did, or less of it is used. What it allows is asked for in the spec, and
 * holds once it is in the status: Kubernetes admits pods by that, and copies it there a while later.
 */
function hasMoreRoom({ spec, status }: ResourceQuota, old: ResourceQuota | undefined): boolean {
  return (
    isRaised(spec?.hard, old?.spec?.hard) ||
    isRaised(status?.hard, old?.status?.hard) ||
    Object.entries(status?.used ?? {}).some(([name, amount]) => isMore(amountOf(old?.status?.used, name), amount))
  );
}

/** Whether limits leave something out that they limited, or allow more of it. */
function isRaised(limits: Amounts = {}, before: Amounts = {}): boolean {
  return Object.entries(before).some(([name, amount]) => {
    const limit = amountOf(limits, name);
    return limit === undefined || isMore(limit, amount);
  });
}

function amountOf(amounts: Amounts = {}, name: string): string | undefined {
  return Object.hasOwn(amounts, name) ? amounts[name] : undefined;
}

function isMore(left: string | undefined, right: string): boolean {
  const [a, b] = [parseQuantity(left), parseQuantity(right)];
  return a !== undefined && b !== undefined && compareQuantities(a, b) > 0;
}
