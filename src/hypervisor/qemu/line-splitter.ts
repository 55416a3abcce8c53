/** Puts lines together from pieces that are cut anywhere, and keeps no more than one line's worth of bytes. */
export class LineSplitter {
  readonly #lengthMax: number;
  readonly #decoder = new TextDecoder('utf-8', { fatal: true });
  #pieces: Uint8Array[] = [];
  #length = 0;

  constructor(lengthMax: number) {
    this.#lengthMax = lengthMax;
  }

  /** The lines that these bytes complete. Throws a RangeError for one that is too long, a TypeError for no UTF-8. */
  *take(bytes: Uint8Array): Generator<string> {
    let start = 0;
    for (let end = bytes.indexOf(0x0a); end >= 0; end = bytes.indexOf(0x0a, start)) {
      this.#keep(bytes.subarray(start, end));
      yield this.#line();
      start = end + 1;
    }
    // A copy: the piece may be a small part of a large buffer, which would be kept with it.
    if (start < bytes.length) this.#keep(bytes.slice(start));
  }

  #keep(piece: Uint8Array): void {
    this.#length += piece.length;
    if (this.#length > this.#lengthMax) throw new RangeError(`a line is longer than ${this.#lengthMax} bytes`);
    this.#pieces.push(piece);
  }

  #line(): string {
    const whole = this.#pieces.length === 1 ? this.#pieces[0] : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#length = 0;
    return this.#decoder.decode(whole);
  }
}
