import { oneLine, RedrawnLines, type Terminal } from '../redrawn-lines.ts';
import { isThere, type MachineRow, type MachineState } from './drained-machines.ts';

/** What people see of a drain: a table that is drawn anew on a terminal, and what has changed, line by line, elsewhere. */

/** What is left to do on a node. */
export interface DrainPicture {
  readonly rows: readonly MachineRow[];
  /** Other pods that have to go, by namespace and name, with what was answered to whoever wanted them gone. */
  readonly pods: readonly { readonly pod: string; readonly refusal: string | undefined }[];
}

export interface DrainView {
  show(picture: DrainPicture): void;
}

/** What wants somebody's attention stands first. */
const ORDER: readonly MachineState[] = ['Blocked', 'Moving', 'Preparing', 'Waiting', 'Stopping', 'Left', 'Gone'];
const HEAD = ['VIRTUAL MACHINE', 'STRATEGY', 'STATE', 'PROGRESS', ''];

/** One sentence for all of it. */
export function summaryOf(node: string, { rows, pods }: DrainPicture): string {
  const there = rows.filter(isThere);
  const of = (state: MachineState): number => rows.filter((row) => row.state === state).length;
  const parts = [
    `${there.length} of ${rows.length} virtual machines left on ${node}`,
    ...ORDER.filter((state) => state !== 'Gone' && of(state) > 0).map((state) => `${of(state)} ${WORDS[state]}`),
    ...(of('Gone') > 0 ? [`${of('Gone')} ${WORDS.Gone}`] : []),
    ...(pods.length > 0 ? [`${pods.length} other pods`] : []),
  ];
  return parts.join(', ');
}

const WORDS: Readonly<Record<MachineState, string>> = {
  Blocked: 'blocked',
  Moving: 'moving',
  Preparing: 'about to move',
  Waiting: 'waiting',
  Stopping: 'stopping',
  Left: 'moved away',
  Gone: 'stopped',
};

/** The table, in so many lines at most, each of so many characters at most. */
export function tableLines(node: string, picture: DrainPicture, size: { columns: number; lines: number }): string[] {
  const rows = picture.rows.toSorted(
    (a, b) => ORDER.indexOf(a.state) - ORDER.indexOf(b.state) || (a.machine < b.machine ? -1 : 1),
  );
  const cells = rows.map(({ machine, strategy, state, progress, detail }) => [
    machine,
    strategy,
    state,
    progress,
    detail,
  ]);
  const others = picture.pods.map(({ pod, refusal }) => `pod ${pod}: ${refusal ?? 'is being evicted'}`);
  const all = [...aligned(cells), ...others];
  // The head, the summary, and a line for what is left out.
  const roomFor = Math.max(1, size.lines - 3);
  const shown =
    all.length > roomFor + 1 ? [...all.slice(0, roomFor + 1), `... and ${all.length - roomFor - 1} more`] : all;
  return [...shown, summaryOf(node, picture)].map((line) => oneLine(line).slice(0, size.columns));
}

function aligned(cells: readonly (readonly string[])[]): string[] {
  if (cells.length === 0) return [];
  const table = [HEAD, ...cells];
  const widths = HEAD.map((_, column) => Math.max(...table.map((row) => (row[column] ?? '').length)));
  return table.map((row) =>
    row
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd(),
  );
}

/** What has changed: nothing of how far machines are, which changes all the time. */
export function changedLines(before: DrainPicture | undefined, now: DrainPicture): string[] {
  const known = new Map(before?.rows.map((row) => [row.machine, row]));
  const lines = now.rows
    .filter((row) => {
      const old = known.get(row.machine);
      return old?.state !== row.state || old.detail !== row.detail;
    })
    .map(({ machine, state, detail }) => `${machine}: ${state}, ${detail}`);
  const knownPods = new Map(before?.pods.map(({ pod, refusal }) => [pod, refusal ?? '']));
  const left = new Set(now.pods.map(({ pod }) => pod));
  return [
    ...lines,
    ...now.pods
      .filter(({ pod, refusal }) => knownPods.get(pod) !== (refusal ?? ''))
      .map(({ pod, refusal }) => `pod ${pod}: ${refusal ?? 'is being evicted'}`),
    ...[...knownPods.keys()].filter((pod) => !left.has(pod)).map((pod) => `pod ${pod}: has gone`),
  ].map(oneLine);
}

/** For pipes and files. */
export class LineView implements DrainView {
  readonly #print: (line: string) => void;
  #shown: DrainPicture | undefined;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  show(picture: DrainPicture): void {
    for (const line of changedLines(this.#shown, picture)) this.#print(line);
    this.#shown = picture;
  }
}

/** For terminals: the same lines are written over each time. */
export class TerminalView implements DrainView {
  readonly #node: string;
  readonly #lines: RedrawnLines;

  constructor(node: string, terminal: Terminal) {
    this.#node = node;
    this.#lines = new RedrawnLines(terminal);
  }

  show(picture: DrainPicture): void {
    this.#lines.draw((size) => tableLines(this.#node, picture, size));
  }
}
