import type { JsonObject } from '../../../meta.ts';
import { addQuantities, compareQuantities, type Quantity } from '../../../quantity.ts';
import { amountsAt } from '../amounts.ts';
import { objectAt, objectsAt } from '../fields.ts';

export type QosClass = 'Guaranteed' | 'Burstable' | 'BestEffort';

const COMPUTE = ['cpu', 'memory'];

/**
 * Who suffers last when a node runs out: Guaranteed if every container has limits for cpu and memory and requests
 * just that, BestEffort if none says anything, Burstable otherwise. Resources of the pod as a whole count instead.
 */
export function qosClassOf(spec: JsonObject): QosClass {
  const wholePod = objectAt(spec, 'resources');
  const parts =
    wholePod === undefined
      ? [...objectsAt(spec, 'containers'), ...objectsAt(spec, 'initContainers')].map((each) =>
          objectAt(each, 'resources'),
        )
      : [wholePod];
  const requests = new Map<string, Quantity>();
  const limits = new Map<string, Quantity>();
  let allLimited = true;
  for (const resources of parts) {
    addPositive(requests, amountsAt(resources, 'requests'));
    if (addPositive(limits, amountsAt(resources, 'limits')) < COMPUTE.length) allLimited = false;
  }
  if (requests.size === 0 && limits.size === 0) return 'BestEffort';
  const isGuaranteed = allLimited && requests.size === limits.size && isEqual(requests, limits);
  return isGuaranteed ? 'Guaranteed' : 'Burstable';
}

/** Adds what counts, and tells how many resources did. */
function addPositive(total: Map<string, Quantity>, amounts: ReadonlyMap<string, Quantity>): number {
  let count = 0;
  for (const name of COMPUTE) {
    const quantity = amounts.get(name);
    if (quantity === undefined || quantity.amount <= 0n) continue;
    const present = total.get(name);
    total.set(name, present === undefined ? quantity : addQuantities(present, quantity));
    count++;
  }
  return count;
}

function isEqual(requests: ReadonlyMap<string, Quantity>, limits: ReadonlyMap<string, Quantity>): boolean {
  return [...requests].every(([name, quantity]) => {
    const limit = limits.get(name);
    return limit !== undefined && compareQuantities(limit, quantity) === 0;
  });
}
