import { oneLine, RedrawnLines, type Terminal } from '../redrawn-lines.ts';
import { bar, byteCount, sparkline } from '../seen/bar.ts';
import { historyAfter, NO_HISTORY, type SpeedHistory, type WatchedMove } from './watched-move.ts';

/** What people see of a migration that they watch: redrawn on a terminal, line by line elsewhere. */

export interface WatchView {
  show(move: WatchedMove): void;
}

const BAR_WIDTH_MAX = 40;
const SPARK_WIDTH_MAX = 30;

/** The migration on a terminal. */
export function moveLines(move: WatchedMove, history: SpeedHistory, columns: number): string[] {
  const { machine, phase, sourceNode = '?', targetNode, progress, summary, decision, trouble } = move;
  const pass = progress?.iteration ? `, pass ${progress.iteration}` : '';
  const head = `${machine}   ${sourceNode} → ${targetNode ?? '?'}   ${phase}${pass}`;
  const room = Math.max(10, columns - 50);
  const lines = progress
    ? [
        `${bar(progress.percent, Math.min(BAR_WIDTH_MAX, room))}  ${summary}`,
        `sent    ${amounts(progress.transferredBytes, progress.totalBytes).padEnd(24)}${speed(progress.throughputBytesPerSecond)}  ${spark(history.throughput, room)}`,
        `dirtied ${`${byteCount(progress.remainingBytes ?? 0)} left`.padEnd(24)}${speed(progress.dirtyRateBytesPerSecond)}  ${spark(history.dirtyRate, room)}`,
      ]
    : [];
  return [head, ...lines, ...(decision === '' ? [] : [decision]), ...(trouble === '' ? [] : [trouble])].map((line) =>
    oneLine(line).slice(0, columns).trimEnd(),
  );
}

function spark(values: readonly number[], room: number): string {
  return sparkline(values, Math.min(SPARK_WIDTH_MAX, room));
}

/** What a guest writes again is sent again: it may be more than there is. */
function amounts(sent = 0, all = 0): string {
  return `${byteCount(sent)} ${sent > all ? 'for' : 'of'} ${byteCount(all)}`;
}

function speed(bytesPerSecond: number | undefined): string {
  return `${byteCount(bytesPerSecond ?? 0)}/s`.padEnd(12);
}

/** How much further it must be before that is another line. */
const STEP_PERCENT = 10;

/** What is new since a line was printed last: another phase, another decision, or a good deal more done. */
export function changedLine(before: WatchedMove | undefined, now: WatchedMove): string | undefined {
  const { machine, phase, progress, summary, decision, trouble } = now;
  const isFurther = stepOf(now) !== (before ? stepOf(before) : undefined);
  const isSame =
    before?.phase === phase && before.decision === decision && before.trouble === trouble && !(progress && isFurther);
  if (isSame) return undefined;
  const from =
    now.sourceNode === undefined || now.targetNode === undefined ? '' : `${now.sourceNode} → ${now.targetNode}`;
  const rates = progress
    ? `${byteCount(progress.throughputBytesPerSecond ?? 0)}/s, dirtied ${byteCount(progress.dirtyRateBytesPerSecond ?? 0)}/s`
    : '';
  const parts = [phase, from, summary, rates, decision === before?.decision ? '' : decision, trouble];
  return oneLine(`${machine}: ${parts.filter((part) => part !== '').join(', ')}`);
}

function stepOf({ progress }: WatchedMove): number | undefined {
  return progress && Math.floor(progress.percent / STEP_PERCENT);
}

/** For pipes and files. */
export class LineView implements WatchView {
  readonly #print: (line: string) => void;
  #shown: WatchedMove | undefined;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  show(move: WatchedMove): void {
    const line = changedLine(this.#shown, move);
    if (line === undefined) return;
    this.#print(line);
    this.#shown = move;
  }
}

/** For terminals. */
export class TerminalView implements WatchView {
  readonly #lines: RedrawnLines;
  #history: SpeedHistory = NO_HISTORY;

  constructor(terminal: Terminal) {
    this.#lines = new RedrawnLines(terminal);
  }

  show(move: WatchedMove): void {
    this.#history = historyAfter(this.#history, move.progress);
    this.#lines.draw(({ columns }) => moveLines(move, this.#history, columns));
  }
}
