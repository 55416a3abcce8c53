/** Lines on a terminal that are written over each time they change. */

export interface Terminal {
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

const DEFAULT_SIZE = { columns: 80, rows: 24 };

export class RedrawnLines {
  readonly #terminal: Terminal;
  #lines: readonly string[] = [];

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  /** Draws the lines that are made for the terminal as large as it is. */
  draw(linesFor: (size: { readonly columns: number; readonly lines: number }) => readonly string[]): void {
    // Some terminals do not know how large they are, and say 0.
    const columns = this.#terminal.columns || DEFAULT_SIZE.columns;
    const rows = this.#terminal.rows || DEFAULT_SIZE.rows;
    const lines = linesFor({ columns, lines: rows - 1 });
    if (lines.join('\n') === this.#lines.join('\n')) return;
    const back = this.#lines.length > 0 ? `\u001b[${this.#lines.length}A` : '';
    this.#terminal.write(`${back}\u001b[J${lines.map((line) => `${line}\n`).join('')}`);
    this.#lines = lines;
  }
}

/** What others have said, and a terminal obeys nobody but us: it stays one line, of what can be read. */
export function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ');
}
