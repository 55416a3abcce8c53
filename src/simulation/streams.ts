import type { Random } from '../env/ports.ts';
import { seededRandom } from '../env/test.ts';

/**
 * Chance for a whole run from one seed, in streams that are known by name: what one component draws does not move what
 * another one does, so that a run from which something was left out stays alike in all the rest.
 */
export class Streams {
  readonly #seed: number;
  readonly #prefix: string;

  constructor(seed: number, prefix = '') {
    this.#seed = seed;
    this.#prefix = prefix;
  }

  /** Streams of one of several clusters; those of the only one have no other names. */
  within(cluster: string): Streams {
    return cluster === '' ? this : new Streams(this.#seed, `${cluster}/`);
  }

  /** The stream of this name, from its beginning. */
  of(name: string): Random {
    return seededRandom(hash(`${this.#seed}/${this.#prefix}${name}`));
  }
}

/** FNV-1a, and a mixing of its bits: names that differ by their last letter must not give like streams. */
function hash(text: string): number {
  let mixed = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) mixed = Math.imul(mixed ^ text.charCodeAt(index), 0x01000193);
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** One of them, each as likely; undefined where there are none. */
export function oneOf<T>(random: Random, items: readonly T[]): T | undefined {
  return items[Math.floor(random.number() * items.length)];
}

/** A number between the two, each as likely. */
export function between(random: Random, min: number, max: number): number {
  return min + random.number() * (max - min);
}

/** A number between the two, small ones as likely as large ones of the same ratio. */
export function betweenRatios(random: Random, min: number, max: number): number {
  return min * (max / min) ** random.number();
}
