import { oneLine, RedrawnLines, type Terminal } from '../redrawn-lines.ts';
import { table } from '../table.ts';
import type { SideRow } from './verdict.ts';

/** What people see of a move: both sides, drawn anew on a terminal, and what has changed, line by line, elsewhere. */

export interface MoveView {
  show(rows: readonly SideRow[]): void;
}

const HEAD = ['', 'VIRTUAL MACHINE', 'PHASE', 'NODE', 'PROGRESS', ''];

/** The table of both sides. */
export function moveLines(rows: readonly SideRow[], columns: number): string[] {
  const cells = rows.map(({ side, machine, phase, node, progress, trouble }) =>
    [side, machine, phase, node, progress, trouble].map(oneLine),
  );
  return table([HEAD, ...cells]).map((line) => line.slice(0, columns));
}

/** What has changed: nothing of how far the copy is, which changes all the time. */
export function changedLines(before: readonly SideRow[] | undefined, now: readonly SideRow[]): string[] {
  return now
    .filter((row, index) => {
      const old = before?.[index];
      return old?.phase !== row.phase || old.trouble !== row.trouble;
    })
    .map(({ side, machine, phase, node, trouble }) =>
      oneLine(`${side} ${machine}: ${phase}${node === '' ? '' : ` on ${node}`}${trouble === '' ? '' : `, ${trouble}`}`),
    );
}

/** For pipes and files. */
export class LineView implements MoveView {
  readonly #print: (line: string) => void;
  #shown: readonly SideRow[] | undefined;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  show(rows: readonly SideRow[]): void {
    for (const line of changedLines(this.#shown, rows)) this.#print(line);
    this.#shown = rows;
  }
}

/** For terminals. */
export class TerminalView implements MoveView {
  readonly #lines: RedrawnLines;

  constructor(terminal: Terminal) {
    this.#lines = new RedrawnLines(terminal);
  }

  show(rows: readonly SideRow[]): void {
    this.#lines.draw(({ columns }) => moveLines(rows, columns));
  }
}
