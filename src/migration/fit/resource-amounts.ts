import type { Json } from '../../api/meta.ts';
import type { Quantity } from '../../api/quantity.ts';
import { amountsOf, podRequests } from '../../machinery/pod-resources.ts';
import type { Container, Pod } from './objects.ts';

/**
 * Amounts as plain numbers, which are compared thousands of times for one pod: thousandths of cpu, and whole units of
 * everything else, rounded up as upstream does. A double holds them exactly up to nine petabytes.
 */
export type ResourceAmounts = ReadonlyMap<string, number>;

const UNIT = 1_000_000_000n;
const MILLI = 1_000_000n;

/** The amounts of a resource list. */
export function resourceAmounts(list: { readonly [name: string]: Json } | undefined): ResourceAmounts {
  return toNumbers(amountsOf(list));
}

/** What a pod asks of its node, zeros left out. */
export function requestedAmounts(pod: Pod): ResourceAmounts {
  return toNumbers(podRequests(pod));
}

function toNumbers(amounts: ReadonlyMap<string, Quantity>): ResourceAmounts {
  const numbers = new Map<string, number>();
  for (const [name, { amount }] of amounts) {
    const divisor = name === 'cpu' ? MILLI : UNIT;
    if (amount > 0n) numbers.set(name, Number((amount + divisor - 1n) / divisor));
  }
  return numbers;
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
  return { cpu: amounts.get('cpu') ?? 0, memory: amounts.get('memory') ?? 0 };
}

function withDefaults(container: Container): Container {
  const { resources } = container;
  return {
    ...container,
    resources: { ...resources, requests: { cpu: CPU_DEFAULT, memory: MEMORY_DEFAULT, ...resources?.requests } },
  };
}
