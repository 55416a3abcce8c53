/** Counts by the values of one label of nodes, empty domains included, and the least of them at little cost. */
export class DomainCounts {
  readonly #counts = new Map<string, number>();
  /** How many domains have a count; there are far fewer counts than domains. */
  readonly #domains = new Map<number, number>();
  #least: number | undefined;

  /** How many domains there are. */
  get size(): number {
    return this.#counts.size;
  }

  /** The smallest count of any domain; zero where there is none. */
  get least(): number {
    return (this.#least ??= this.#domains.size === 0 ? 0 : Math.min(...this.#domains.keys()));
  }

  get(domain: string): number {
    return this.#counts.get(domain) ?? 0;
  }

  has(domain: string): boolean {
    return this.#counts.has(domain);
  }

  /** Adds to a domain; by zero to make it known. */
  add(domain: string, by: number): void {
    const before = this.#counts.get(domain);
    const after = (before ?? 0) + by;
    if (before === after) return;
    this.#counts.set(domain, after);
    if (before !== undefined) {
      const left = (this.#domains.get(before) ?? 0) - 1;
      if (left > 0) this.#domains.set(before, left);
      else this.#domains.delete(before);
    }
    this.#domains.set(after, (this.#domains.get(after) ?? 0) + 1);
    this.#least = undefined;
  }
}
