/** Counts by topology: for each label of nodes, by its values. What falls to zero is forgotten. */

type Labels = { readonly [key: string]: string };

/** The value of a node's label; undefined where it has none. */
export function labelOf(labels: Labels, key: string): string | undefined {
  return Object.hasOwn(labels, key) ? labels[key] : undefined;
}

export class TopologyCounts {
  readonly #counts = new Map<string, Map<string, number>>();

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  /** The labels of nodes that anything is counted by. */
  keys(): Iterable<string> {
    return this.#counts.keys();
  }

  /** Counts in the domain of a node with these labels; a node without the label is in none. */
  add(labels: Labels, key: string, by: number): void {
    const value = labelOf(labels, key);
    if (value === undefined || by === 0) return;
    let domains = this.#counts.get(key);
    if (!domains) this.#counts.set(key, (domains = new Map()));
    const count = (domains.get(value) ?? 0) + by;
    if (count !== 0) domains.set(value, count);
    else if (domains.delete(value) && domains.size === 0) this.#counts.delete(key);
  }

  /** What is counted in the domain of a node with these labels. */
  get(labels: Labels, key: string): number {
    const value = labelOf(labels, key);
    return value === undefined ? 0 : (this.#counts.get(key)?.get(value) ?? 0);
  }
}
