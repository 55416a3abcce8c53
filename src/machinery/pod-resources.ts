import { containersTotal, isPodLevelResource } from '../api/kinds/core/pod/pod-resources.ts';
import { qosClassOf } from '../api/kinds/core/pod/qos.ts';
import type { Json, JsonObject, KubeObject } from '../api/meta.ts';
import { addQuantities, parseQuantity, type Quantity } from '../api/quantity.ts';

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
  const total = statedTotal(pod, 'requests');
  addAmounts(total, amountsOf(pod.spec?.overhead));
  return total;
}

/** What the pod may use at most; overhead is added only to what is limited at all. */
export function podLimits(pod: PodWithResources): Amounts {
  const total = statedTotal(pod, 'limits');
  for (const [name, overhead] of amountsOf(pod.spec?.overhead)) {
    const limit = total.get(name);
    if (limit && limit.amount !== 0n) total.set(name, addQuantities(limit, overhead));
  }
  return total;
}

/** Whether the pod states resources for itself as a whole. */
export function hasPodLevelResources(pod: PodWithResources): boolean {
  const { requests, limits } = pod.spec?.resources ?? {};
  return [...Object.keys(requests ?? {}), ...Object.keys(limits ?? {})].some(isPodLevelResource);
}

/** True where no container asks for any cpu or memory: the first pods to go when a node runs short. */
export function isBestEffort(pod: PodWithResources): boolean {
  return qosClassOf(specOf(pod)) === 'BestEffort';
}

/** What the containers need together, with what the pod states for itself instead where it does. */
function statedTotal(pod: PodWithResources, side: 'requests' | 'limits'): Amounts {
  const total: Amounts = new Map(containersTotal(specOf(pod), side));
  for (const [name, quantity] of amountsOf(pod.spec?.resources?.[side])) {
    if (isPodLevelResource(name)) total.set(name, quantity);
  }
  return total;
}

function specOf(pod: PodWithResources): JsonObject {
  return (pod.spec ?? {}) as unknown as JsonObject;
}
