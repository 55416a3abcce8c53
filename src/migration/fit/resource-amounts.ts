import type { Json } from '../../api/meta.ts';
import type { Quantity } from '../../api/quantity.ts';
import { amountsOf, podRequests } from '../../machinery/pod-resources.ts';
import type { Container, Pod } from './objects.ts';

/**
 * Amounts as plain numbers, which are compared thousands of times for one pod: thousandths of cpu, and whole units of
 * everything else, rounded up as upstream does. A double holds them exactly up to nine petabytes.
 */
export interface ResourceAmounts {
  readonly cpu: number;
  readonly memory: number;
  /** What few pods ask for, by name; zeros are left out. */
  readonly others: ReadonlyMap<string, number>;
}

const UNIT = 1_000_000_000n;
const MILLI = 1_000_000n;

/** The amounts of a resource list. */
export function resourceAmounts(list: { readonly [name: string]: Json } | undefined): ResourceAmounts {
  return toNumbers(amountsOf(list));
}

/** What a pod asks of its node. */
export function requestedAmounts(pod: Pod): ResourceAmounts {
  return toNumbers(podRequests(pod));
}

function toNumbers(amounts: ReadonlyMap<string, Quantity>): ResourceAmounts {
  const others = new Map<string, number>();
  for (const [name, { amount }] of amounts) {
    if (amount > 0n && name !== 'cpu' && name !== 'memory') others.set(name, inUnits(amount, UNIT));
  }
  const cpu = inUnits(amounts.get('cpu')?.amount ?? 0n, MILLI);
  const memory = inUnits(amounts.get('memory')?.amount ?? 0n, UNIT);
  return { cpu, memory, others };
}

function inUnits(amount: bigint, unit: bigint): number {
  return amount > 0n ? Number((amount + unit - 1n) / unit) : 0;
}

/** A sum that amounts are added to and taken from. */
export class ResourceSum implements ResourceAmounts {
  cpu = 0;
  memory = 0;
  readonly others = new Map<string, number>();

  add({ cpu, memory, others }: ResourceAmounts, by: 1 | -1): void {
    this.cpu += by * cpu;
    this.memory += by * memory;
    for (const [name, amount] of others) this.others.set(name, (this.others.get(name) ?? 0) + by * amount);
  }
}

/** Nothing at all. */
export const NOTHING: ResourceAmounts = { cpu: 0, memory: 0, others: new Map() };

/** Whether the total has as much as is wanted beside what is used. What is not wanted may be short. */
export function hasEnough(wanted: ResourceAmounts, total: ResourceAmounts, used: ResourceAmounts): boolean {
  if (wanted.cpu > 0 && wanted.cpu > total.cpu - used.cpu) return false;
  if (wanted.memory > 0 && wanted.memory > total.memory - used.memory) return false;
  if (wanted.others.size === 0) return true;
  for (const [name, amount] of wanted.others) if (amount > left(name, total, used)) return false;
  return true;
}

/** The resources that are short, by name. */
export function shortages(wanted: ResourceAmounts, total: ResourceAmounts, used: ResourceAmounts): readonly string[] {
  const names: string[] = [];
  if (wanted.cpu > 0 && wanted.cpu > total.cpu - used.cpu) names.push('cpu');
  if (wanted.memory > 0 && wanted.memory > total.memory - used.memory) names.push('memory');
  for (const [name, amount] of wanted.others) if (amount > left(name, total, used)) names.push(name);
  return names;
}

function left(name: string, total: ResourceAmounts, used: ResourceAmounts): number {
  return (total.others.get(name) ?? 0) - (used.others.get(name) ?? 0);
}

/** Thousandths of cpu that a container without a request counts for when nodes are compared, as upstream. */
const CPU_DEFAULT = '100m';
/** Bytes of memory that it counts for. */
const MEMORY_DEFAULT = String(200 * 1024 * 1024);

/** What a pod counts for when nodes are compared: pods that ask for nothing still use something. */
export function weighedAmounts(
  pod: Pod,
  requested: ResourceAmounts,
): { readonly cpu: number; readonly memory: number } {
  const { containers = [], initContainers = [] } = pod.spec ?? {};
  const isComplete = [...containers, ...initContainers].every(
    ({ resources }) => resources?.requests?.cpu !== undefined && resources.requests.memory !== undefined,
  );
  const amounts = isComplete
    ? requested
    : toNumbers(
        podRequests({
          ...pod,
          spec: {
            ...pod.spec,
            containers: containers.map(withDefaults),
            initContainers: initContainers.map(withDefaults),
          },
        }),
      );
  return { cpu: amounts.cpu, memory: amounts.memory };
}

function withDefaults(container: Container): Container {
  const { resources } = container;
  return {
    ...container,
    resources: { ...resources, requests: { cpu: CPU_DEFAULT, memory: MEMORY_DEFAULT, ...resources?.requests } },
  };
}
