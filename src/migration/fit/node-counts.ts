/** Counts by name of node; what falls to zero is forgotten. */
export class NodeCounts {
  readonly #counts = new Map<string, number>();

  add(node: string, by: number): void {
    const count = (this.#counts.get(node) ?? 0) + by;
    if (count === 0) this.#counts.delete(node);
    else this.#counts.set(node, count);
  }

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }

  [Symbol.iterator](): IterableIterator<[string, number]> {
    return this.#counts[Symbol.iterator]();
  }
}
