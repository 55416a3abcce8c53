import type { PodInfo } from '../../migration/fit/pod-info.ts';

/**
 * Which pods wait for a node where others make way for them. The room that is made belongs to them: pods of lower
 * priority are placed as if they were there already.
 */
export class Nominations {
  readonly #byPod = new Map<string, { readonly pod: PodInfo; readonly node: string }>();
  readonly #byNode = new Map<string, Map<string, PodInfo>>();

  /** The node that a pod waits for, by its UID. */
  nodeOf(uid: string): string | undefined {
    return this.#byPod.get(uid)?.node;
  }

  get isEmpty(): boolean {
    return this.#byPod.size === 0;
  }

  /** The pods that wait for a node. */
  on(node: string): Iterable<PodInfo> {
    return this.#byNode.get(node)?.values() ?? [];
  }

  set(pod: PodInfo, node: string): void {
    this.delete(pod.uid);
    this.#byPod.set(pod.uid, { pod, node });
    const pods = this.#byNode.get(node);
    if (pods) pods.set(pod.uid, pod);
    else this.#byNode.set(node, new Map([[pod.uid, pod]]));
  }

  /** Ends a nomination, and answers the node that it was for. */
  delete(uid: string): string | undefined {
    const node = this.nodeOf(uid);
    if (node === undefined) return undefined;
    this.#byPod.delete(uid);
    const pods = this.#byNode.get(node);
    pods?.delete(uid);
    if (pods?.size === 0) this.#byNode.delete(node);
    return node;
  }
}
