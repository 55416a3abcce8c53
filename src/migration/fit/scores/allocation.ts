import type { NodeState } from '../node-state.ts';
import type { PodInfo } from '../pod-info.ts';
import { SCORE_MAX } from '../score-range.ts';

/** Scores by what would be left on a node: much, and of cpu and memory alike. */

/** The more of its cpu and memory is free, the better. What a node does not have is not asked about. */
export function leastAllocatedScore(pod: PodInfo, node: NodeState): number {
  const { allocatable } = node.info;
  const cpu = freeScore(node.weighedCpu + pod.weighed.cpu, allocatable.cpu);
  const memory = freeScore(node.weighedMemory + pod.weighed.memory, allocatable.memory);
  if (cpu === undefined) return memory ?? 0;
  return memory === undefined ? cpu : Math.floor((cpu + memory) / 2);
}

function freeScore(used: number, capacity: number): number | undefined {
  if (capacity === 0) return undefined;
  return used > capacity ? 0 : Math.floor(((capacity - used) * SCORE_MAX) / capacity);
}

/** The closer the used shares of cpu and memory are to each other, the better. Pods that request neither leave it as it is. */
export function balancedAllocationScore(pod: PodInfo, node: NodeState): number {
  const { allocatable } = node.info;
  const { cpu, memory } = pod.requests;
  if (cpu === 0 && memory === 0) return 0;
  const cpuShare = usedShare(node.requested.cpu + cpu, allocatable.cpu);
  const memoryShare = usedShare(node.requested.memory + memory, allocatable.memory);
  if (cpuShare === undefined || memoryShare === undefined) return SCORE_MAX;
  return Math.floor((1 - Math.abs(cpuShare - memoryShare) / 2) * SCORE_MAX);
}

function usedShare(used: number, capacity: number): number | undefined {
  return capacity === 0 ? undefined : Math.min(1, used / capacity);
}
