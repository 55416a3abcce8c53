import type { Stored } from './model.ts';

/** Long enough that the list of chunks stays short, short enough that an insert moves little memory. */
const CHUNK_LENGTH_MAX = 512;

/**
 * The live objects of one bucket in order of their keys (by UTF-16 unit, which for names is etcd's byte order).
 *
 * A sorted array cut into chunks: finding is a binary search over the chunks and one within, an insert moves at
 * most a chunk, and nothing is ever sorted. A tree would find no faster here and cost a node per object; a map
 * beside the array would be a second truth to keep in step.
 */
export class Bucket {
  readonly name: string;
  readonly #chunks: Stored[][] = [];
  #size = 0;

  constructor(name: string) {
    this.name = name;
  }

  get size(): number {
    return this.#size;
  }

  get(key: string): Stored | undefined {
    const chunk = this.#chunks[this.#chunkOf(key)];
    if (chunk === undefined) return undefined;
    const found = chunk[lowerBound(chunk, key)];
    return found?.key === key ? found : undefined;
  }

  /** Inserts or replaces; answers what was replaced. */
  set(item: Stored): Stored | undefined {
    const index = this.#chunkOf(item.key);
    const chunk = this.#chunks[index];
    if (chunk === undefined) {
      this.#chunks.push([item]);
      this.#size++;
      return undefined;
    }
    const offset = lowerBound(chunk, item.key);
    const found = chunk[offset];
    if (found?.key === item.key) {
      chunk[offset] = item;
      return found;
    }
    this.#size++;
    if (chunk.length < CHUNK_LENGTH_MAX) {
      insert(chunk, offset, item);
    } else if (offset === chunk.length && index === this.#chunks.length - 1) {
      // Keys often come in ascending order: leaving full chunks behind keeps them full.
      this.#chunks.push([item]);
    } else {
      const right = chunk.splice(CHUNK_LENGTH_MAX / 2);
      this.#chunks.splice(index + 1, 0, right);
      if (offset <= chunk.length) insert(chunk, offset, item);
      else insert(right, offset - chunk.length, item);
    }
    return undefined;
  }

  /** Removes and answers what was there. */
  delete(key: string): Stored | undefined {
    const index = this.#chunkOf(key);
    const chunk = this.#chunks[index];
    if (chunk === undefined) return undefined;
    const offset = lowerBound(chunk, key);
    const found = chunk[offset];
    if (found?.key !== key) return undefined;
    chunk.splice(offset, 1);
    if (chunk.length === 0) this.#chunks.splice(index, 1);
    this.#size--;
    return found;
  }

  /** How many keys are less than this one, which need not exist: the position of a key in the order. */
  rank(key: string): number {
    const index = this.#chunkOf(key);
    const chunk = this.#chunks[index];
    if (chunk === undefined) return 0;
    let before = 0;
    for (let each = 0; each < index; each++) before += (this.#chunks[each] as Stored[]).length;
    return before + lowerBound(chunk, key);
  }

  /** The positions of the keys that begin with a prefix; an empty prefix means all. */
  range(prefix: string): { start: number; end: number } {
    if (prefix === '') return { start: 0, end: this.#size };
    return { start: this.rank(prefix), end: this.rank(prefixEnd(prefix)) };
  }

  /** The objects at positions `start` to before `end`, in order. */
  *between(start: number, end: number): Generator<Stored> {
    let position = 0;
    for (const chunk of this.#chunks) {
      if (position >= end) return;
      if (position + chunk.length > start) {
        const last = Math.min(chunk.length, end - position);
        for (let offset = Math.max(0, start - position); offset < last; offset++) yield chunk[offset] as Stored;
      }
      position += chunk.length;
    }
  }

  /** The chunk where a key is or would be: the last that does not begin after it. */
  #chunkOf(key: string): number {
    let low = 0;
    let high = this.#chunks.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const [first] = this.#chunks[middle] as Stored[];
      if ((first as Stored).key <= key) low = middle + 1;
      else high = middle;
    }
    return Math.max(0, low - 1);
  }
}

/** The least string that sorts after every key with this prefix. */
export function prefixEnd(prefix: string): string {
  return prefix.slice(0, -1) + String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1);
}

/** The least string that sorts after this key. */
export function keyAfter(key: string): string {
  return `${key}\u0000`;
}

function lowerBound(chunk: readonly Stored[], key: string): number {
  let low = 0;
  let high = chunk.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((chunk[middle] as Stored).key < key) low = middle + 1;
    else high = middle;
  }
  return low;
}

function insert(chunk: Stored[], offset: number, item: Stored): void {
  if (offset === chunk.length) chunk.push(item);
  else chunk.splice(offset, 0, item);
}
