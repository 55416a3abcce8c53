import type { Json, KubeObject } from '../api/meta.ts';
import { addQuantities, compareQuantities, parseQuantity, type Quantity } from '../api/quantity.ts';

/** What a pod asks of a node, summed as Kubernetes sums it: schedulers and quotas must agree to the last byte. */

/** Amounts by resource name. */
export type Amounts = Map<string, Quantity>;

interface Requirements {
  readonly requests?: { readonly [name: string]: Json };
  readonly limits?: { readonly [name: string]: Json };
}

interface Container {
  readonly name?: string;
  readonly restartPolicy?: string;
  readonly resources?: Requirements;
}

/** The parts of a pod that its resources depend on. */
export interface PodWithResources extends KubeObject {
  spec?: {
    readonly containers?: readonly Container[];
    readonly initContainers?: readonly Container[];
    readonly overhead?: { readonly [name: string]: Json };
    readonly resources?: Requirements;
  };
}

type Side = 'requests' | 'limits';

/** Reads a resource list; what is no quantity was refused by validation and is left out here. */
export function amountsOf(list: { readonly [name: string]: Json } | undefined): Amounts {
  const amounts: Amounts = new Map();
  for (const [name, value] of Object.entries(list ?? {})) {
    const quantity = parseQuantity(value);
    if (quantity) amounts.set(name, quantity);
  }
  return amounts;
}

/** Adds `more` to `total` in place. */
export function addAmounts(total: Amounts, more: ReadonlyMap<string, Quantity>): void {
  for (const [name, quantity] of more) {
    const present = total.get(name);
    total.set(name, present ? addQuantities(present, quantity) : quantity);
  }
}

/** What the pod requests as a whole, overhead included. */
export function podRequests(pod: PodWithResources): Amounts {
  const total = containersTotal(pod, 'requests');
  setPodLevel(total, pod, 'requests');
  addAmounts(total, amountsOf(pod.spec?.overhead));
  return total;
}

/** What the pod may use at most; overhead is added only to what is limited at all. */
export function podLimits(pod: PodWithResources): Amounts {
  const total = containersTotal(pod, 'limits');
  setPodLevel(total, pod, 'limits');
  for (const [name, overhead] of amountsOf(pod.spec?.overhead)) {
    const limit = total.get(name);
    if (limit && limit.amount !== 0n) total.set(name, addQuantities(limit, overhead));
  }
  return total;
}

/** Whether the pod states resources for itself as a whole. */
export function hasPodLevelResources(pod: PodWithResources): boolean {
  const { requests, limits } = pod.spec?.resources ?? {};
  return [...Object.keys(requests ?? {}), ...Object.keys(limits ?? {})].some(isPodLevel);
}

/** True where no container asks for any cpu or memory: the first pods to go when a node runs short. */
export function isBestEffort(pod: PodWithResources): boolean {
  const own = pod.spec?.resources;
  const all = hasPodLevelResources(pod) ? [own] : containersOf(pod).map((container) => container.resources);
  return !all.some((each) => asksForCompute(each?.requests) || asksForCompute(each?.limits));
}

function asksForCompute(list: { readonly [name: string]: Json } | undefined): boolean {
  const amounts = amountsOf(list);
  return ['cpu', 'memory'].some((name) => (amounts.get(name)?.amount ?? 0n) > 0n);
}

function containersOf({ spec }: PodWithResources): readonly Container[] {
  return [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])];
}

/**
 * Containers run together, so they add up; init containers run before them and one by one, so only the largest
 * counts; sidecars (init containers that restart always) run beside everything that comes after them.
 */
function containersTotal({ spec }: PodWithResources, side: Side): Amounts {
  const total: Amounts = new Map();
  for (const container of spec?.containers ?? []) addAmounts(total, amountsOf(container.resources?.[side]));
  const sidecars: Amounts = new Map();
  const largest: Amounts = new Map();
  for (const container of spec?.initContainers ?? []) {
    const own = amountsOf(container.resources?.[side]);
    if (container.restartPolicy === 'Always') {
      addAmounts(total, own);
      addAmounts(sidecars, own);
      raise(largest, sidecars);
    } else {
      addAmounts(own, sidecars);
      raise(largest, own);
    }
  }
  raise(total, largest);
  return total;
}

function raise(total: Amounts, floor: ReadonlyMap<string, Quantity>): void {
  for (const [name, quantity] of floor) {
    const present = total.get(name);
    if (!present || compareQuantities(present, quantity) < 0) total.set(name, quantity);
  }
}

function setPodLevel(total: Amounts, pod: PodWithResources, side: Side): void {
  for (const [name, quantity] of amountsOf(pod.spec?.resources?.[side])) {
    if (isPodLevel(name)) total.set(name, quantity);
  }
}

/** The resources that may be stated for a pod as a whole. */
function isPodLevel(name: string): boolean {
  return name === 'cpu' || name === 'memory' || name.startsWith('hugepages-');
}
