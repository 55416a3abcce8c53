/** A heap from which any item can be taken out, and in which any item can change its rank; each at logarithmic cost. */
export class RankedHeap<T> {
  readonly #isBefore: (a: T, b: T) => boolean;
  readonly #items: T[] = [];
  readonly #positions = new Map<T, number>();

  constructor(isBefore: (a: T, b: T) => boolean) {
    this.#isBefore = isBefore;
  }

  get size(): number {
    return this.#items.length;
  }

  /** The item that comes before all others. */
  get first(): T | undefined {
    return this.#items[0];
  }

  /** Puts an item in, or where it belongs now if it is in already. */
  put(item: T): void {
    const position = this.#positions.get(item);
    this.#sift(item, position ?? this.#items.length);
  }

  /** Does nothing where the item is not in. */
  remove(item: T): void {
    const position = this.#positions.get(item);
    if (position === undefined) return;
    this.#positions.delete(item);
    const last = this.#items.pop() as T;
    if (last !== item) this.#sift(last, position);
  }

  #sift(item: T, gap: number): void {
    const risen = this.#rise(item, gap);
    const position = risen === gap ? this.#sink(item, gap) : risen;
    this.#set(item, position);
  }

  #rise(item: T, gap: number): number {
    while (gap > 0) {
      const parent = (gap - 1) >> 1;
      if (!this.#isBefore(item, this.#items[parent] as T)) break;
      this.#set(this.#items[parent] as T, gap);
      gap = parent;
    }
    return gap;
  }

  #sink(item: T, gap: number): number {
    for (;;) {
      const left = 2 * gap + 1;
      if (left >= this.#items.length) return gap;
      const right = left + 1;
      const isRight = right < this.#items.length && this.#isBefore(this.#items[right] as T, this.#items[left] as T);
      const child = isRight ? right : left;
      if (!this.#isBefore(this.#items[child] as T, item)) return gap;
      this.#set(this.#items[child] as T, gap);
      gap = child;
    }
  }

  #set(item: T, position: number): void {
    this.#items[position] = item;
    this.#positions.set(item, position);
  }
}
