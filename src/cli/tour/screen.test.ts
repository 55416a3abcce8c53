import { describe, expect, it } from 'vitest';
import type { MachineRow } from '../drain/drained-machines.ts';
import { bar, findingLine, inkFor, LineScreen, moveLine, NO_INK, type Screen, TerminalScreen } from './screen.ts';

function row(state: MachineRow['state'], more: Partial<MachineRow> = {}): MachineRow {
  return { machine: 'default/guest', strategy: 'LiveMigrate', state, progress: '', detail: 'it moves', ...more };
}

describe('a bar', () => {
  it.each([
    [0, '[--------------------]   0%'],
    [42, '[########------------]  42%'],
    [100, '[####################] 100%'],
  ])('of %i percent', (percent, picture) => expect(bar(percent)).toBe(picture));

  it('says how far a machine is, and how long it takes', () => {
    const moving = row('Moving', { percent: 42, progress: '42%, 3s left (2s to 9s)', detail: 'it moves to node-2' });
    expect(moveLine(moving).line).toBe('   [########------------]  42%  it moves to node-2, 3s left (2s to 9s)');
    expect(moveLine(row('Waiting')).line).toContain(' 0%  it moves');
    expect(moveLine(row('Left', { detail: 'it runs on node-2' })).line).toContain('100%  it runs on node-2');
  });

  it('is news a few times only', () => {
    const news = Array.from({ length: 101 }, (_, percent) => moveLine(row('Moving', { percent })).news);
    expect(new Set(news).size).toBe(5);
  });
});

describe('a screen', () => {
  it('that is a pipe gets news, and no codes', () => {
    const lines: string[] = [];
    const screen = new LineScreen((line) => lines.push(line));
    screen.say('begin');
    screen.show('a, 1 s', 'a');
    screen.show('a, 2 s', 'a');
    screen.show('b', 'b');
    screen.say('end');
    expect(lines).toEqual(['begin', 'a, 1 s', 'b', 'end']);
    expect(inkFor({}, {})).toBe(NO_INK);
  });

  it('that is a terminal has a line that changes, and then stays', () => {
    let written = '';
    const screen: Screen = new TerminalScreen({ columns: 10, rows: 5, write: (text) => (written += text) });
    screen.show('one', '');
    screen.show('two is too long', '');
    screen.say('three');
    screen.show('four', '');
    expect(written).toBe('\u001b[Jone\n\u001b[1A\u001b[Jtwo is too\nthree\n\u001b[Jfour\n');
  });

  it('has colours where nobody minds', () => {
    const finding = { title: 'same boot', holds: true, text: 'yes\u001b[2J' };
    expect(findingLine(finding, NO_INK)).toBe('   ok  same boot       yes [2J');
    const { good } = inkFor({ isTTY: true }, { TERM: 'xterm' });
    expect(good('ok')).toBe('\u001b[32mok\u001b[0m');
    for (const environment of [{ NO_COLOR: '1' }, { TERM: 'dumb' }])
      expect(inkFor({ isTTY: true }, environment)).toBe(NO_INK);
    expect(findingLine({ ...finding, holds: false }, NO_INK)).toContain('NO');
  });
});
