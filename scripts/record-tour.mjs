// Makes docs/tour.svg: a recording of `godwit tour` on a terminal, taken from a real run on the cluster that is up.
//
//   npm start            (in one terminal)
//   node scripts/record-tour.mjs [--data-dir DIR] [--out FILE]
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './setup.mjs';

const COLUMNS = 132;
const FONT = { width: 7.8, height: 18 };
/** Nobody wants to watch a guest boot for longer. */
const PAUSE_SECONDS_MAX = 0.8;
/** For how long the end is to be seen before it begins again. */
const END_SECONDS = 8;
const CLASSES = { 1: 'strong', 31: 'bad', 32: 'good' };

/** Runs it on a terminal of its own; answers what was written to it, and after how many seconds each piece was. */
function record(command) {
  const work = mkdtempSync(join(tmpdir(), 'godwit-tour-'));
  const [output, timing] = [join(work, 'output'), join(work, 'timing')];
  try {
    const run = `stty cols ${COLUMNS} rows 50; exec ${command}`;
    const { status } = spawnSync('script', ['-qefc', run, '--log-out', output, '--log-timing', timing], {
      stdio: ['ignore', 'inherit', 'inherit'],
      env: { ...process.env, TERM: 'xterm-256color', NO_COLOR: '' },
    });
    if (status !== 0) throw new Error(`the tour ended with ${status}`);
    const bytes = readFileSync(output);
    // The first line is a heading of the program that records.
    let at = bytes.indexOf('\n') + 1;
    const pieces = readFileSync(timing, 'utf8').trim().split('\n');
    return pieces.map((line) => {
      const [seconds, length] = line.split(' ').map(Number);
      const text = bytes.toString('utf8', at, at + length);
      at += length;
      return { seconds, text };
    });
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const escaped = (text) => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

/** As much of a terminal as the tour needs: lines, going up, clearing what is below, and three colours. */
class Screen {
  lines = [''];
  #row = 0;
  #class = '';

  write(text) {
    const [plain, ...coded] = text.split('\u001b');
    this.#say(plain);
    for (const each of coded) {
      const [, count, code, rest] = /^\[(\d*)([A-Za-z])([\s\S]*)$/.exec(each) ?? [];
      if (code === 'A') this.#row -= Number(count || 1);
      if (code === 'J') this.lines = [...this.lines.slice(0, this.#row), ''];
      if (code === 'm') this.#class = CLASSES[count] ?? '';
      this.#say(rest ?? '');
    }
  }

  #say(text) {
    for (const [index, line] of text.replaceAll('\r', '').split('\n').entries()) {
      if (index > 0) this.lines[++this.#row] ??= '';
      if (line !== '') this.#add(escaped(line));
    }
  }

  #add(text) {
    this.lines[this.#row] += this.#class === '' ? text : `<tspan class="${this.#class}">${text}</tspan>`;
  }
}

/** Every line that was ever to be seen, from when until when; those that are there at the end have none. */
function appearances(pieces) {
  const screen = new Screen();
  const shown = [];
  const all = [];
  let now = 0;
  for (const { seconds, text } of pieces) {
    now += Math.min(seconds, PAUSE_SECONDS_MAX);
    screen.write(text);
    for (let row = 0; row < Math.max(shown.length, screen.lines.length); row++) {
      const line = screen.lines[row] ?? '';
      if (shown[row]?.line === line) continue;
      if (shown[row]) shown[row].until = now;
      shown[row] = { row, line, from: now };
      if (line !== '') all.push(shown[row]);
    }
  }
  return { all: all.filter(({ from, until }) => until === undefined || until > from), seconds: now };
}

function svg({ all, seconds }) {
  const total = seconds + END_SECONDS;
  const percent = (time) => ((100 * time) / total).toFixed(2);
  const rows = Math.max(...all.map(({ row }) => row)) + 1;
  const [width, height] = [COLUMNS * FONT.width + 32, rows * FONT.height + 32];
  const rules = all.map(({ from, until }, index) => {
    const end = until === undefined ? '' : `${percent(until)}%{visibility:hidden}`;
    return `@keyframes k${index}{0%{visibility:hidden}${percent(from)}%{visibility:visible}${end}}`;
  });
  // Where nothing moves, what is there at the end is what is seen.
  const texts = all.map(({ row, line, until }, index) => {
    const style = `animation:k${index} ${total.toFixed(1)}s step-end infinite${until === undefined ? '' : ';visibility:hidden'}`;
    return `<text x="16" y="${16 + (row + 0.75) * FONT.height}" style="${style}">${line}</text>`;
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" xml:space="preserve" viewBox="0 0 ${Math.ceil(width)} ${height}" role="img" aria-label="A recording of godwit tour">
<style>text{font:13px ui-monospace,Menlo,Consolas,monospace;fill:#d8dee9;white-space:pre}.strong{font-weight:bold;fill:#fff}.good{fill:#8fce6b}.bad{fill:#ff6b6b}
${rules.join('\n')}</style>
<rect width="100%" height="100%" rx="8" fill="#1c2128"/>
${texts.join('\n')}
</svg>
`;
}

const { values } = parseArgs({
  options: {
    'data-dir': { type: 'string' },
    out: { type: 'string', default: join(root, 'docs', 'tour.svg') },
  },
});
const directory = values['data-dir'] === undefined ? '' : ` --data-dir '${values['data-dir']}'`;
const pieces = record(`'${process.execPath}' '${join(root, 'dist', 'cli', 'main.js')}' tour${directory}`);
writeFileSync(values.out, svg(appearances(pieces)));
