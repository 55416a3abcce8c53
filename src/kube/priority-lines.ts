import { type Before, type HeapItem, IndexedHeap } from './indexed-heap.ts';
import { LinkedList, type ListItem } from './linked-list.ts';

/**
 * Items by priority, largest first, then by number, smallest first.
 *
 * One line per priority, and a heap of the priorities. Numbers are given out in order, so that an item nearly always
 * goes to the end of its line: a linked list, where it costs the same however long the line is. Only an item whose
 * priority changed while it waited must go somewhere in the middle; those are kept in a heap beside the line. So
 * everything costs O(log n) at worst, were every item to have a priority of its own, and O(1) as a rule. One heap of
 * all items would do, but at a million of them each item taken out moves ten others, none of them in the cache.
 */

/** What a line holds. The numbers must not change while it does, and no two items have the same sequence. */
export interface LineItem extends HeapItem, ListItem {
  priority: number;
  sequence: number;
}

interface Line<T extends LineItem> extends HeapItem {
  readonly priority: number;
  readonly items: LinkedList<T>;
  /** Items that came out of order. */
  late: IndexedHeap<T> | undefined;
}

export class PriorityLines<T extends LineItem> {
  readonly #isBefore: Before | undefined;
  readonly #lines = new Map<number, Line<T>>();
  readonly #order: IndexedHeap<Line<T>>;
  #size = 0;

  constructor(isBefore?: Before) {
    this.#isBefore = isBefore;
    this.#order = new IndexedHeap(isBefore);
  }

  get size(): number {
    return this.#size;
  }

  push(item: T): void {
    const line = this.#lines.get(item.priority) ?? this.#newLine(item.priority);
    const { last } = line.items;
    if (last && last.sequence > item.sequence) {
      line.late ??= new IndexedHeap(this.#isBefore);
      line.late.push(item, item.sequence, 0);
    } else line.items.append(item);
    this.#size++;
  }

  /** Takes the first item out. */
  pop(): T | undefined {
    const line = this.#order.first;
    const item = line && firstOf(line);
    if (item) this.remove(item);
    return item;
  }

  remove(item: T): void {
    const line = this.#lines.get(item.priority);
    if (!line) throw new Error('the item is in no line');
    if (item.position === -1) line.items.remove(item);
    else line.late?.remove(item);
    this.#size--;
    if (firstOf(line)) return;
    this.#lines.delete(line.priority);
    this.#order.remove(line);
  }

  #newLine(priority: number): Line<T> {
    const line: Line<T> = { priority, items: new LinkedList(), late: undefined, position: -1 };
    this.#lines.set(priority, line);
    this.#order.push(line, -priority, 0);
    return line;
  }
}

function firstOf<T extends LineItem>(line: Line<T>): T | undefined {
  const first = line.items.first;
  const late = line.late?.first;
  return first && late ? (first.sequence < late.sequence ? first : late) : (first ?? late);
}
