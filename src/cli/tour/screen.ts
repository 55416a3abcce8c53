import type { MachineRow } from '../drain/drained-machines.ts';
import { oneLine, RedrawnLines, type Terminal } from '../redrawn-lines.ts';
import type { Finding } from './proof.ts';

/** What people see of a tour. On a terminal a line can change while they look; elsewhere each piece of news is a line. */

export interface Screen {
  /** A line that stays. */
  say(line: string): void;
  /** A line that changes; elsewhere than on a terminal it is said whenever its news are others. */
  show(line: string, news: string): void;
}

/** What makes words stand out. */
export interface Ink {
  readonly strong: (text: string) => string;
  readonly good: (text: string) => string;
  readonly bad: (text: string) => string;
}

const plain = (text: string): string => text;
export const NO_INK: Ink = { strong: plain, good: plain, bad: plain };
const paint =
  (code: number) =>
  (text: string): string =>
    `\u001b[${code}m${text}\u001b[0m`;
const INK: Ink = { strong: paint(1), good: paint(32), bad: paint(31) };

/** Colours only where they can be seen, and where nobody has asked for none. */
export function inkFor(output: { readonly isTTY?: boolean }, environment: NodeJS.ProcessEnv): Ink {
  const isPlain = Boolean(environment['NO_COLOR']) || environment['TERM'] === 'dumb';
  return output.isTTY === true && !isPlain ? INK : NO_INK;
}

/** For pipes and files. */
export class LineScreen implements Screen {
  readonly #print: (line: string) => void;
  #news: string | undefined;

  constructor(print: (line: string) => void) {
    this.#print = print;
  }

  say(line: string): void {
    this.#news = undefined;
    this.#print(line);
  }

  show(line: string, news: string): void {
    if (news === this.#news) return;
    this.#news = news;
    this.#print(line);
  }
}

/** For terminals. */
export class TerminalScreen implements Screen {
  readonly #terminal: Terminal;
  #shown: RedrawnLines | undefined;

  constructor(terminal: Terminal) {
    this.#terminal = terminal;
  }

  say(line: string): void {
    this.#shown = undefined;
    this.#terminal.write(`${line}\n`);
  }

  show(line: string): void {
    this.#shown ??= new RedrawnLines(this.#terminal);
    this.#shown.draw(({ columns }) => [line.slice(0, columns)]);
  }
}

const BAR_WIDTH = 20;
/** How much further a copy is when that is news. */
const NEWS_PERCENT = 25;

/** How far something is, as a picture. */
export function bar(percent: number): string {
  const done = Math.round((BAR_WIDTH * Math.min(100, Math.max(0, percent))) / 100);
  return `[${'#'.repeat(done)}${'-'.repeat(BAR_WIDTH - done)}] ${String(Math.round(percent)).padStart(3)}%`;
}

/** How a machine leaves its node. */
export function moveLine({ state, percent = 0, progress, detail }: MachineRow): {
  readonly line: string;
  readonly news: string;
} {
  const done = state === 'Left' ? 100 : percent;
  const left = /, (.*)$/.exec(progress)?.[1];
  const line = `${bar(done)}  ${detail}${left === undefined ? '' : `, ${left}`}`;
  return { line: `   ${oneLine(line)}`, news: `${state} ${detail} ${Math.floor(done / NEWS_PERCENT)}` };
}

const TITLE_WIDTH = 14;

/** Something that was to hold, and whether it does. */
export function findingLine({ title, holds, text }: Finding, { good, bad }: Ink): string {
  return `   ${holds ? good('ok') : bad('NO')}  ${title.padEnd(TITLE_WIDTH)}  ${oneLine(text)}`;
}
