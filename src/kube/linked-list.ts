/** What a list holds. The links belong to the list; an item is in one list at a time. */
export interface ListItem {
  previous: ListItem | undefined;
  next: ListItem | undefined;
}

/** Items in the order in which they came, any of which can be taken out at once. The caller knows which are in it. */
export class LinkedList<T extends ListItem> {
  #head: ListItem | undefined;
  #tail: ListItem | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The oldest item. */
  get first(): T | undefined {
    // Only items of this type are ever appended.
    return this.#head as T | undefined;
  }

  /** The newest item. */
  get last(): T | undefined {
    return this.#tail as T | undefined;
  }

  append(item: T): void {
    item.previous = this.#tail;
    if (this.#tail) this.#tail.next = item;
    else this.#head = item;
    this.#tail = item;
    this.#size++;
  }

  remove(item: T): void {
    if (item.previous) item.previous.next = item.next;
    else this.#head = item.next;
    if (item.next) item.next.previous = item.previous;
    else this.#tail = item.previous;
    item.previous = undefined;
    item.next = undefined;
    this.#size--;
  }
}
