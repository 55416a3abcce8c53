import { ClusterState, type Lookups } from '../../migration/fit/cluster-state.ts';
import { nodeInfoOf } from '../../migration/fit/node-state.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { type PodInfo, podInfoOf } from '../../migration/fit/pod-info.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { Budgets } from './budgets.ts';
import type { SchedulerView } from './decide.ts';
import { Nominations } from './nominations.ts';
import type { ClusterEvent } from './waiting.ts';

/**
 * What the scheduler knows: what it was told, and what it has decided itself and not been told yet. A pod whose binding
 * is under way is assumed to be on its node, or two pods would be given the same room.
 */
export class SchedulerState implements SchedulerView {
  readonly cluster: ClusterState;
  readonly nominations = new Nominations();
  readonly budgets = new Budgets();
  /** By UID, with when the server accepted the binding; undefined while that is not known. */
  readonly #assumed = new Map<string, { readonly pod: PodInfo; boundAtMs: number | undefined }>();

  constructor(lookups: Lookups) {
    this.cluster = new ClusterState(lookups);
  }

  /** Takes a node as it is now. Answers what that may change for waiting pods. */
  setNode(node: Node, old: Node | undefined): readonly ClusterEvent[] {
    if (old && this.cluster.nodes.has(node.metadata.name ?? '') && !isNodeChanged(node, old)) return [];
    const info = nodeInfoOf(node);
    this.cluster.setNode(info);
    return [{ type: 'node-changed', node: info.name }];
  }

  removeNode(name: string): readonly ClusterEvent[] {
    this.cluster.removeNode(name);
    return [{ type: 'node-removed' }];
  }

  /** Takes a pod as it is now. Answers what that may change for waiting pods. */
  setPod(pod: Pod, old: Pod | undefined): readonly ClusterEvent[] {
    const { uid = '' } = pod.metadata;
    if (old && old.metadata.uid !== uid) return [...this.removePod(old), ...this.setPod(pod, undefined)];
    if (isFinished(pod)) return this.removePod(pod);
    const info = podInfoOf(pod);
    if (info.nodeName !== '') return this.#place(info, old);
    if (!this.#assumed.has(uid)) return this.#nominate(info, old);
    return [];
  }

  /** Forgets a pod that is gone, or that uses nothing any more. */
  removePod({ metadata: { uid = '' } }: Pod): readonly ClusterEvent[] {
    this.#assumed.delete(uid);
    return [...this.#free(uid), ...this.denominate(uid)];
  }

  /** Takes a pod for bound, although nobody has confirmed it. */
  assume(pod: PodInfo, node: string): void {
    this.#assumed.set(pod.uid, { pod, boundAtMs: undefined });
    this.cluster.addPod(pod, node);
  }

  isAssumed(uid: string): boolean {
    return this.#assumed.has(uid);
  }

  /** Notes that the server has accepted the binding of an assumed pod. */
  confirm(uid: string, nowMs: number): void {
    const assumed = this.#assumed.get(uid);
    if (assumed) assumed.boundAtMs = nowMs;
  }

  /** Takes an assumption back. */
  forget(uid: string): readonly ClusterEvent[] {
    return this.#assumed.delete(uid) ? this.#free(uid) : [];
  }

  /** Assumed pods whose binding was accepted before this, and that have not been seen with their node since. */
  overdue(beforeMs: number): readonly PodInfo[] {
    return [...this.#assumed.values()].flatMap(({ pod, boundAtMs = beforeMs }) => (boundAtMs < beforeMs ? [pod] : []));
  }

  /** Ends a nomination, and answers what that may change for others. */
  denominate(uid: string): readonly ClusterEvent[] {
    const node = this.nominations.delete(uid);
    return node === undefined ? [] : [{ type: 'room-freed', node }];
  }

  #place(info: PodInfo, old: Pod | undefined): readonly ClusterEvent[] {
    const { uid, nodeName: node, pod } = info;
    const before = this.cluster.nodeOf(uid);
    this.#assumed.delete(uid);
    const moved = before !== undefined && before !== node ? this.#free(uid) : [];
    this.cluster.addPod(info, node);
    const isExpected = this.nominations.nodeOf(uid) === node;
    const released = this.denominate(uid);
    const events = [...moved, ...(isExpected ? [] : released)];
    if (before !== node || (old?.spec?.nodeName ?? '') === '') return [...events, { type: 'pod-placed', pod: info }];
    if (!deepEqual(pod.metadata.labels, old?.metadata.labels)) events.push({ type: 'pod-relabelled', pod: info });
    if (pod.metadata.deletionTimestamp !== old?.metadata.deletionTimestamp)
      events.push({ type: 'pod-leaving', pod: info });
    // A pod that is resized in place may ask for less than before.
    if (!deepEqual(pod.spec, old?.spec)) events.push({ type: 'room-freed', node });
    return events;
  }

  #free(uid: string): readonly ClusterEvent[] {
    const node = this.cluster.nodeOf(uid) ?? '';
    const pod = this.cluster.removePod(uid);
    return pod ? [{ type: 'pod-removed', node, pod }] : [];
  }

  /** What was nominated here and not yet written is not undone by news from before it was. */
  #nominate(info: PodInfo, old: Pod | undefined): readonly ClusterEvent[] {
    const told = info.pod.status?.nominatedNodeName ?? '';
    const known = this.nominations.nodeOf(info.uid) ?? '';
    const isNews = !old || (old.status?.nominatedNodeName ?? '') !== told;
    const node = isNews ? told : known;
    if (node === '') return this.denominate(info.uid);
    this.nominations.set(info, node);
    return known === '' || known === node ? [] : [{ type: 'room-freed', node: known }];
  }
}

/** Whether a pod has come to its end; it uses nothing any more. */
export function isFinished({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

function isNodeChanged(node: Node, old: Node): boolean {
  return !(
    deepEqual(node.metadata.labels, old.metadata.labels) &&
    deepEqual(node.spec, old.spec) &&
    deepEqual(node.status?.allocatable, old.status?.allocatable)
  );
}
