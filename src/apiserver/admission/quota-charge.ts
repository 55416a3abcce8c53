import { formatQuantity, type Quantity } from '../../api/quantity.ts';
import { addAmounts, type Amounts, amountsOf } from '../../machinery/pod-resources.ts';
import { quotaCovers, type ResourceQuota, trackedNames, unstatedRequirements, usageOf } from '../../machinery/quota.ts';
import type { AdmissionAttributes } from '../registry/contract.ts';
import { isResource, refusal } from './attributes.ts';

/** What a request would add to quotas: measured once, checked against each. */
export interface Charge {
  readonly attributes: AdmissionAttributes;
  readonly usage: Amounts;
  /** What the object used before, for an update. */
  readonly previous: Amounts | undefined;
}

/** Measures a request. Throws 403 where an object asks for less than nothing, which would earn it quota. */
export function chargeOf(attributes: AdmissionAttributes, nowMs: number): Charge {
  const { object, oldObject, target } = attributes;
  const usage: Amounts = object ? usageOf(target.definition, object, nowMs) : new Map();
  const negative = [...usage].filter(([, quantity]) => quantity.amount < 0n).map(([name]) => name);
  if (negative.length > 0) {
    throw refusal(attributes, `quota usage is negative for resource(s): ${negative.sort().join(',')}`);
  }
  const previous =
    attributes.operation === 'UPDATE' && oldObject ? usageOf(target.definition, oldObject, nowMs) : undefined;
  return { attributes, usage, previous };
}

/** What the charge adds to a quota of which this much is used; empty when it adds nothing. Throws 403 where it does not fit. */
export function fit(quota: ResourceQuota, used: ReadonlyMap<string, Quantity>, charge: Charge): Amounts {
  const { attributes } = charge;
  const { object, target } = attributes;
  const nothing: Amounts = new Map();
  if (!object || !quotaCovers(quota, target.definition, object)) return nothing;
  const hard = amountsOf(quota.spec?.hard);
  const tracked = trackedNames(target.definition, hard.keys());
  const name = quota.metadata.name ?? '';
  if (isResource(attributes, '', 'pods')) {
    const unstated = unstatedRequirements(tracked, object);
    if (unstated !== undefined) throw refusal(attributes, `failed quota: ${name}: ${unstated}`);
  }
  const added = additions(quota, charge, tracked);
  const exceeded = [...added.keys()].filter(
    (each) => sum(used.get(each), added.get(each)) > (hard.get(each)?.amount ?? 0n),
  );
  if (exceeded.length === 0) return added;
  throw refusal(
    attributes,
    `exceeded quota: ${name}, requested: ${print(added, exceeded)}, used: ${print(used, exceeded)}, limited: ${print(hard, exceeded)}`,
  );
}

/** The growth of what the quota tracks; an object that was not under it before is charged whole. */
function additions(quota: ResourceQuota, charge: Charge, tracked: readonly string[]): Amounts {
  const { oldObject, target } = charge.attributes;
  const wasCovered = oldObject !== undefined && quotaCovers(quota, target.definition, oldObject);
  const added: Amounts = new Map();
  for (const name of tracked) {
    const quantity = charge.usage.get(name);
    if (!quantity) continue;
    const before = wasCovered ? (charge.previous?.get(name)?.amount ?? 0n) : 0n;
    if (quantity.amount > before) added.set(name, { ...quantity, amount: quantity.amount - before });
  }
  return added;
}

function sum(left: Quantity | undefined, right: Quantity | undefined): bigint {
  return (left?.amount ?? 0n) + (right?.amount ?? 0n);
}

function print(amounts: ReadonlyMap<string, Quantity>, names: readonly string[]): string {
  const zero: Quantity = { amount: 0n, format: 'DecimalSI' };
  return [...names]
    .sort()
    .map((name) => `${name}=${formatQuantity(amounts.get(name) ?? zero)}`)
    .join(',');
}

/** Amounts as a resource list of a status. */
export function resourceList(amounts: ReadonlyMap<string, Quantity>): { [name: string]: string } {
  return Object.fromEntries([...amounts].map(([name, quantity]) => [name, formatQuantity(quantity)]));
}

/** The sum of two lists of amounts. */
export function sumOf(left: ReadonlyMap<string, Quantity>, right: ReadonlyMap<string, Quantity>): Amounts {
  const total: Amounts = new Map(left);
  addAmounts(total, right);
  return total;
}
