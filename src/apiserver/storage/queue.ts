/** Below this many spent slots, shifting the array is not worth the copy. */
const SPENT_SLOTS_MIN = 1024;

/** First in, first out, with access by position: an array that forgets its head cheaply. */
export class Queue<T> {
  #items: T[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  push(item: T): void {
    this.#items.push(item);
  }

  at(index: number): T | undefined {
    return this.#items[this.#head + index];
  }

  /** A copy of the items from `start` to before `end`. */
  slice(start: number, end?: number): T[] {
    return this.#items.slice(this.#head + start, end === undefined ? undefined : this.#head + end);
  }

  /** Removes the first `count` items. */
  drop(count: number): void {
    this.#head = Math.min(this.#head + count, this.#items.length);
    // Copying only when half is spent makes the copy free on average.
    if (this.#head >= SPENT_SLOTS_MIN && this.#head * 2 >= this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
  }
}
