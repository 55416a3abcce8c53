import { type AffinityTerm, type LabelledPod, type NamespaceLabels, termMatches } from './affinity-term.ts';
import { NodeCounts } from './node-counts.ts';
import { SelectorIndex } from './selector-index.ts';

/** A term that placed pods have, with how many of them have it on each node. */
export interface TermUse {
  readonly term: AffinityTerm;
  readonly weight: number;
  readonly counts: NodeCounts;
}

/** The terms of placed pods, found by the pods that they mean. */
export class TermUses {
  readonly #uses = new Map<string, TermUse>();
  readonly #index = new SelectorIndex<TermUse>();

  add(term: AffinityTerm, weight: number, node: string): void {
    const key = `${weight} ${term.key}`;
    let use = this.#uses.get(key);
    if (!use) {
      use = { term, weight, counts: new NodeCounts() };
      this.#uses.set(key, use);
      this.#index.add(term.selector, use);
    }
    use.counts.add(node, 1);
  }

  remove(term: AffinityTerm, weight: number, node: string): void {
    const key = `${weight} ${term.key}`;
    const use = this.#uses.get(key);
    use?.counts.add(node, -1);
    if (!use?.counts.isEmpty) return;
    this.#uses.delete(key);
    this.#index.delete(use.term.selector, use);
  }

  /** The terms that mean this pod. */
  *matching(pod: LabelledPod, labelsOf: NamespaceLabels): Generator<TermUse> {
    for (const use of this.#index.candidates(pod.labels)) {
      if (termMatches(use.term, pod, labelsOf)) yield use;
    }
  }
}
