import type { KubeObject } from '../../api/meta.ts';
import { formatQuantity, type Quantity } from '../../api/quantity.ts';
import type { ResourceRef } from '../../api/status.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { addAmounts, type Amounts, amountsOf } from '../../machinery/pod-resources.ts';
import { quotaCovers, type ResourceQuota, trackedNames, usageOf } from '../../machinery/quota.ts';

/** What a quota's status should say, from what there is. */

const ZERO: Quantity = { amount: 0n, format: 'DecimalSI' };
const COUNT_PREFIX = 'count/';
/** Those of the core group that quotas count by other names than `count/`. */
const NAMED = [
  'pods',
  'services',
  'persistentvolumeclaims',
  'configmaps',
  'secrets',
  'resourcequotas',
  'replicationcontrollers',
];
/** Never counted, as in admission. */
const IGNORED: ReadonlySet<string> = new Set(['events.', 'events.events.k8s.io']);

/** The resources of which a quota counts something. */
export function countedBy(quota: ResourceQuota): readonly ResourceRef[] {
  const names = Object.keys(quota.spec?.hard ?? {});
  const found = new Map<string, ResourceRef>();
  const add = (each: ResourceRef): unknown => found.set(`${each.plural}.${each.group}`, each);
  for (const plural of NAMED) if (trackedNames({ group: '', plural }, names).length > 0) add({ group: '', plural });
  for (const name of names) {
    if (!name.startsWith(COUNT_PREFIX)) continue;
    const [plural = '', ...group] = name.slice(COUNT_PREFIX.length).split('.');
    add({ group: group.join('.'), plural });
  }
  return [...found].filter(([id]) => !IGNORED.has(id)).map(([, each]) => each);
}

/** What the objects of one resource come to. */
export interface Count {
  /** All that the quota counts of the resource, also where there is none. */
  readonly amounts: Amounts;
  /** When it will be less without anything being deleted. */
  readonly untilMs: number;
}

/** Counts the objects of a resource in the quota's namespace. */
export function countOf(
  quota: ResourceQuota,
  resource: ResourceRef,
  objects: Iterable<KubeObject>,
  nowMs: number,
): Count {
  const names = new Set(trackedNames(resource, Object.keys(quota.spec?.hard ?? {})));
  const amounts: Amounts = new Map([...names].map((name) => [name, ZERO]));
  let untilMs = Number.POSITIVE_INFINITY;
  for (const object of objects) {
    if (!quotaCovers(quota, resource, object)) continue;
    const usage = usageOf(resource, object, nowMs);
    addAmounts(amounts, new Map([...usage].filter(([name]) => names.has(name))));
    untilMs = Math.min(untilMs, overdueMs(object, nowMs));
  }
  return { amounts, untilMs };
}

export interface Decision {
  /** The very same as before where nothing changes. */
  readonly status: NonNullable<ResourceQuota['status']>;
  /** What there is less of than the status said. */
  readonly lowered: readonly string[];
}

/**
 * The status for what was counted; what could not be counted stays as it was. Where nothing may be lowered, more than
 * was counted stays in use.
 */
export function decide(quota: ResourceQuota, counted: Amounts, mayLower: boolean): Decision {
  const { status = {} } = quota;
  const hard = { ...quota.spec?.hard };
  const before = amountsOf(status.used);
  const used: { [name: string]: string } = {};
  const lowered: string[] = [];
  for (const name of Object.keys(hard)) {
    const [old, now] = [before.get(name), counted.get(name)];
    const isLess = old !== undefined && now !== undefined && now.amount < old.amount;
    if (isLess) lowered.push(name);
    const value = isLess && !mayLower ? old : (now ?? old);
    if (value) used[name] = formatQuantity(value);
  }
  const isSame = deepEqual(status.hard ?? {}, hard) && isEqual(before, amountsOf(used));
  return { status: isSame ? status : { ...status, hard, used }, lowered };
}

function isEqual(a: Amounts, b: Amounts): boolean {
  return a.size === b.size && [...a].every(([name, { amount }]) => b.get(name)?.amount === amount);
}

/** When a pod that is going stops to count even if it stays. */
function overdueMs({ metadata }: KubeObject, nowMs: number): number {
  const { deletionTimestamp, deletionGracePeriodSeconds } = metadata;
  if (deletionTimestamp === undefined || deletionGracePeriodSeconds === undefined) return Number.POSITIVE_INFINITY;
  const endMs = Date.parse(deletionTimestamp) + deletionGracePeriodSeconds * 1000 + 1;
  return endMs > nowMs ? endMs : Number.POSITIVE_INFINITY;
}
