import type { NodeState } from '../node-state.ts';
import type { PodInfo } from '../pod-info.ts';
import { SCORE_MAX } from '../score-range.ts';

/** Scores by what would be left on a node: much, and of cpu and memory alike. */

/** The more of its cpu and memory is free, the better. */
export function leastAllocatedScore(pod: PodInfo, node: NodeState): number {
  const { allocatable } = node.info;
  const cpu = freeShare(node.weighedCpu + pod.weighed.cpu, allocatable.get('cpu') ?? 0);
  const memory = freeShare(node.weighedMemory + pod.weighed.memory, allocatable.get('memory') ?? 0);
  const known = [cpu, memory].flatMap((share) => share ?? []);
  if (known.length === 0) return 0;
  return Math.floor(known.reduce((sum, share) => sum + Math.floor(share * SCORE_MAX), 0) / known.length);
}

function freeShare(used: number, capacity: number): number | undefined {
  if (capacity === 0) return undefined;
  return used > capacity ? 0 : (capacity - used) / capacity;
}

/** The closer the used shares of cpu and memory are to each other, the better. Pods that request neither leave it as it is. */
export function balancedAllocationScore(pod: PodInfo, node: NodeState): number {
  const { allocatable } = node.info;
  const cpu = pod.requests.get('cpu') ?? 0;
  const memory = pod.requests.get('memory') ?? 0;
  if (cpu === 0 && memory === 0) return 0;
  const cpuShare = usedShare((node.requested.get('cpu') ?? 0) + cpu, allocatable.get('cpu') ?? 0);
  const memoryShare = usedShare((node.requested.get('memory') ?? 0) + memory, allocatable.get('memory') ?? 0);
  if (cpuShare === undefined || memoryShare === undefined) return SCORE_MAX;
  return Math.floor((1 - Math.abs(cpuShare - memoryShare) / 2) * SCORE_MAX);
}

function usedShare(used: number, capacity: number): number | undefined {
  return capacity === 0 ? undefined : Math.min(1, used / capacity);
}
