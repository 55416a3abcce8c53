import type { Quantity } from '../../api/quantity.ts';
import { bucketOf } from '../../api/resource.ts';
import { qualified, type ResourceRef } from '../../api/status.ts';
import { addAmounts, type Amounts, amountsOf } from '../../machinery/pod-resources.ts';
import { quotaCovers, type ResourceQuota, trackedNames, usageOf } from '../../machinery/quota.ts';
import type { Registry } from '../registry/contract.ts';

const ZERO: Quantity = { amount: 0n, format: 'DecimalSI' };

/**
 * How much of a quota is used: what its status says, and for resources that its status does not name yet (a new quota,
 * or a new limit in an old one) a count of what is stored.
 */
export function usedOf(registry: Pick<Registry, 'view' | 'definitions'>, quota: ResourceQuota, nowMs: number): Amounts {
  const known = amountsOf(quota.status?.used);
  const names = [...amountsOf(quota.spec?.hard).keys()];
  const used: Amounts = new Map(names.map((name) => [name, known.get(name) ?? ZERO]));
  const unknown = names.filter((name) => !known.has(name));
  if (unknown.length === 0) return used;
  for (const resource of countedResources(registry, unknown)) {
    const tracked = new Set(trackedNames(resource, unknown));
    addAmounts(used, countStored(registry, quota, resource, tracked, nowMs));
  }
  return used;
}

/** The served resources, each once, of which the names count something. */
function countedResources(registry: Pick<Registry, 'definitions'>, names: readonly string[]): ResourceRef[] {
  const byBucket = new Map<string, ResourceRef>();
  for (const definition of registry.definitions()) {
    if (!definition.namespaced || definition.storage || trackedNames(definition, names).length === 0) continue;
    byBucket.set(bucketOf(definition), { group: definition.group, plural: definition.plural });
  }
  return [...byBucket.values()];
}

function countStored(
  registry: Pick<Registry, 'view'>,
  quota: ResourceQuota,
  resource: ResourceRef,
  tracked: ReadonlySet<string>,
  nowMs: number,
): Amounts {
  const total: Amounts = new Map();
  for (const object of registry.view(qualified(resource)).list(quota.metadata.namespace ?? '')) {
    if (!quotaCovers(quota, resource, object)) continue;
    const usage = usageOf(resource, object, nowMs);
    addAmounts(total, new Map([...usage].filter(([name]) => tracked.has(name))));
  }
  return total;
}
