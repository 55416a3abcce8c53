import type { KubeObject } from '../../api/meta.ts';
import { formatQuantity } from '../../api/quantity.ts';
import type { Resource } from '../../kube/resource.ts';
import { addAmounts, type Amounts, amountsOf } from '../../machinery/pod-resources.ts';
import { quotaCovers, type ResourceQuota, trackedNames, usageOf } from '../../machinery/quota.ts';
import type { Obstacle } from './planned-objects.ts';

/** Whether quotas leave room for all that is to be made: each of it may fit by itself, and not with the rest. Pure. */

/** Something that is to be made. */
export interface Made {
  readonly resource: Resource;
  readonly object: KubeObject;
}

/** One obstacle for each quota of the namespace that all of it together would exceed. */
export function quotaObstacles(quotas: readonly ResourceQuota[], all: readonly Made[], nowMs: number): Obstacle[] {
  return quotas.flatMap((quota) => {
    const hard = amountsOf(quota.spec?.hard);
    const used = amountsOf(quota.status?.used);
    const exceeded = [...addedTo(quota, all, nowMs)].filter(
      ([name, { amount }]) => amount > 0n && amount + (used.get(name)?.amount ?? 0n) > (hard.get(name)?.amount ?? 0n),
    );
    if (exceeded.length === 0) return [];
    const text = ([name, quantity]: (typeof exceeded)[number]): string => {
      const [before, most] = [used.get(name), hard.get(name)];
      return `${name} (${formatQuantity(quantity)}, with ${before ? formatQuantity(before) : '0'} of ${most ? formatQuantity(most) : '0'} used)`;
    };
    const what = `the quota ${quota.metadata.name} has no room for all that is to be made: ${exceeded.map(text).join(', ')}`;
    return [{ what, fix: 'make room there, or ask for a larger quota' }];
  });
}

function addedTo(quota: ResourceQuota, all: readonly Made[], nowMs: number): Amounts {
  const added: Amounts = new Map();
  for (const { resource, object } of all) {
    if (!resource.namespaced || !quotaCovers(quota, resource, object)) continue;
    const names = new Set(trackedNames(resource, Object.keys(quota.spec?.hard ?? {})));
    const usage = usageOf(resource, object, nowMs);
    addAmounts(added, new Map([...usage].filter(([name]) => names.has(name))));
  }
  return added;
}
