/** Counts what all bodies under way take together, and says when that is enough. */
export class BodyMemory {
  readonly #bytesMax: number;
  #bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** Takes room for so many bytes, or answers false where there is none. */
  take(bytes: number): boolean {
    if (this.#bytes + bytes > this.#bytesMax) return false;
    this.#bytes += bytes;
    return true;
  }

  /** Gives back what was taken. */
  release(bytes: number): void {
    this.#bytes -= bytes;
  }
}
