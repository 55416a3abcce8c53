/** A line that went over a monitor. */
export interface TranscriptLine {
  readonly atMs: number;
  readonly direction: 'sent' | 'received';
  readonly text: string;
}

/** Enough to see what an answer was; whole answers can be megabytes. */
const TEXT_LENGTH_MAX = 2048;

/** The last lines of a conversation; older ones make room. */
export class Transcript {
  readonly #linesMax: number;
  readonly #lines: TranscriptLine[] = [];
  #oldest = 0;

  constructor(linesMax: number) {
    this.#linesMax = linesMax;
  }

  add(line: TranscriptLine): void {
    if (this.#linesMax === 0) return;
    const { text } = line;
    const short =
      text.length > TEXT_LENGTH_MAX ? `${text.slice(0, TEXT_LENGTH_MAX)}… (${text.length} characters in all)` : text;
    if (this.#lines.length < this.#linesMax) {
      this.#lines.push({ ...line, text: short });
      return;
    }
    this.#lines[this.#oldest] = { ...line, text: short };
    this.#oldest = (this.#oldest + 1) % this.#linesMax;
  }

  /** What is kept, oldest first. */
  lines(): TranscriptLine[] {
    return [...this.#lines.slice(this.#oldest), ...this.#lines.slice(0, this.#oldest)];
  }
}
