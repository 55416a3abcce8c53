import { HostPortUse } from './host-ports.ts';
import type { SelectableNode } from './node-selector.ts';
import type { Node, Taint } from './objects.ts';
import type { PodInfo } from './pod-info.ts';
import { hasEnough, type ResourceAmounts, resourceAmounts, ResourceSum } from './resource-amounts.ts';

/** What a node says about itself. */
export interface NodeInfo extends SelectableNode {
  readonly taints: readonly Taint[];
  readonly isUnschedulable: boolean;
  readonly allocatable: ResourceAmounts;
  readonly podCountMax: number;
}

/** Reads a node. */
export function nodeInfoOf(node: Node): NodeInfo {
  const allocatable = resourceAmounts(node.status?.allocatable);
  return {
    name: node.metadata.name ?? '',
    labels: node.metadata.labels ?? {},
    taints: node.spec?.taints ?? [],
    isUnschedulable: node.spec?.unschedulable === true,
    allocatable,
    podCountMax: allocatable.others.get('pods') ?? 0,
  };
}

/** A node with the pods on it, summed up. */
export class NodeState {
  readonly info: NodeInfo;
  readonly #pods = new Map<string, PodInfo>();
  readonly #requested = new ResourceSum();
  readonly #hostPorts = new HostPortUse();
  #weighedCpu = 0;
  #weighedMemory = 0;

  constructor(info: NodeInfo, pods: Iterable<PodInfo> = []) {
    this.info = info;
    for (const pod of pods) this.add(pod);
  }

  get name(): string {
    return this.info.name;
  }

  /** The pods on it, by UID. */
  get pods(): ReadonlyMap<string, PodInfo> {
    return this.#pods;
  }

  /** What its pods ask for together. */
  get requested(): ResourceAmounts {
    return this.#requested;
  }

  get hostPorts(): Pick<HostPortUse, 'isTaken'> {
    return this.#hostPorts;
  }

  /** What its pods count for when nodes are compared. */
  get weighedCpu(): number {
    return this.#weighedCpu;
  }

  get weighedMemory(): number {
    return this.#weighedMemory;
  }

  /** Whether what the pod requests fits beside what the pods that are there request. */
  hasRoomFor({ requests }: PodInfo): boolean {
    const { allocatable, podCountMax } = this.info;
    return this.#pods.size < podCountMax && hasEnough(requests, allocatable, this.#requested);
  }

  /** Puts a pod on it; one that is there already is replaced. */
  add(pod: PodInfo): void {
    this.remove(pod.uid);
    this.#pods.set(pod.uid, pod);
    this.#count(pod, 1);
    this.#hostPorts.add(pod.hostPorts);
  }

  /** Takes a pod off, and answers it as it was put there. */
  remove(uid: string): PodInfo | undefined {
    const pod = this.#pods.get(uid);
    if (!pod) return undefined;
    this.#pods.delete(uid);
    this.#count(pod, -1);
    this.#hostPorts.remove(pod.hostPorts);
    return pod;
  }

  /** The same, to try things out on. */
  copy(): NodeState {
    return new NodeState(this.info, this.#pods.values());
  }

  #count(pod: PodInfo, by: 1 | -1): void {
    this.#requested.add(pod.requests, by);
    this.#weighedCpu += by * pod.weighed.cpu;
    this.#weighedMemory += by * pod.weighed.memory;
  }
}
