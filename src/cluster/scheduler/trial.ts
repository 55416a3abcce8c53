import type { Demand } from '../../migration/fit/fit.ts';
import type { NodeState } from '../../migration/fit/node-state.ts';
import type { PodInfo } from '../../migration/fit/pod-info.ts';
import type { Reason } from '../../migration/fit/reason.ts';
import type { Nominations } from './nominations.ts';

/** A node to try things out on: what is imagined there is undone by `end`. */
export class Trial {
  readonly node: NodeState;
  readonly #demand: Demand;
  readonly #changes = new Map<PodInfo, 1 | -1>();

  constructor(demand: Demand, node: NodeState) {
    this.#demand = demand;
    this.node = node.copy();
  }

  add(pod: PodInfo): void {
    this.node.add(pod);
    this.#imagine(pod, 1);
  }

  remove(pod: PodInfo): void {
    this.node.remove(pod.uid);
    this.#imagine(pod, -1);
  }

  end(): void {
    for (const [pod, by] of this.#changes) this.#imagine(pod, by === 1 ? -1 : 1);
  }

  #imagine(pod: PodInfo, by: 1 | -1): void {
    this.#demand.imagine(pod, this.node, by);
    // Added and removed again, or the other way round, is nothing to undo.
    if (this.#changes.get(pod) === -by) this.#changes.delete(pod);
    else this.#changes.set(pod, by);
  }
}

/**
 * Why a node does not do, given the pods that wait for it. It must do with those of no lower priority that wait for it,
 * and without them: they may still go elsewhere, and the pod may need their company.
 */
export function reasonsBesideNominated(demand: Demand, node: NodeState, nominations: Nominations): readonly Reason[] {
  // Asked for every node of the cluster, and hardly ever is anybody nominated.
  if (nominations.isEmpty) return demand.reasons(node);
  const { pod } = demand;
  const expected = [...nominations.on(node.name)].filter(
    ({ uid, priority }) => uid !== pod.uid && priority >= pod.priority,
  );
  if (expected.length === 0) return demand.reasons(node);
  const trial = new Trial(demand, node);
  for (const other of expected) trial.add(other);
  const reasons = demand.reasons(trial.node);
  trial.end();
  return reasons.length > 0 ? reasons : demand.reasons(node);
}
