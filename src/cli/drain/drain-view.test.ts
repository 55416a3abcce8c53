import { describe, expect, it } from 'vitest';
import type { MachineRow } from './drained-machines.ts';
import { changedLines, type DrainPicture, LineView, summaryOf, tableLines, TerminalView } from './drain-view.ts';

const SIZE = { columns: 120, lines: 20 };

function row(machine: string, state: MachineRow['state'], more: Partial<MachineRow> = {}): MachineRow {
  return { machine, strategy: 'LiveMigrate', state, progress: '', detail: `it is ${state}`, ...more };
}

const picture = (...rows: readonly MachineRow[]): DrainPicture => ({ rows, pods: [] });

describe('the table', () => {
  it('has what needs attention first', () => {
    const moving = row('shop/web', 'Moving', { progress: '42%', detail: 'it moves to node-b' });
    const shown = picture(row('shop/a', 'Left'), moving, row('shop/db', 'Blocked'));
    expect(tableLines('node-a', shown, SIZE)).toEqual([
      'VIRTUAL MACHINE  STRATEGY     STATE    PROGRESS',
      'shop/db          LiveMigrate  Blocked            it is Blocked',
      'shop/web         LiveMigrate  Moving   42%       it moves to node-b',
      'shop/a           LiveMigrate  Left               it is Left',
      '2 of 3 virtual machines left on node-a, 1 blocked, 1 moving, 1 moved away',
    ]);
  });

  it('fits the terminal', () => {
    const rows = Array.from({ length: 50 }, (_, index) => row(`shop/vm-${index}`, 'Waiting'));
    const lines = tableLines('node-a', picture(...rows), { columns: 40, lines: 10 });
    expect(lines).toHaveLength(10);
    expect(lines.at(-2)).toBe('... and 43 more');
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(40);
  });

  it('obeys nobody whose words it shows', () => {
    const shown = picture(row('shop/web', 'Blocked', { detail: 'no\n\u001b[2Jall is\r well\u2028\u202e' }));
    const said = 'no [2Jall is  well ';
    expect(tableLines('node-a', shown, SIZE)[1]?.endsWith(said)).toBe(true);
    expect(changedLines(undefined, shown)).toEqual([`shop/web: Blocked, ${said}`]);
  });

  it('of a node without machines says what else there is', () => {
    const shown = { rows: [], pods: [{ pod: 'shop/web-1', refusal: 'not now' }] };
    expect(tableLines('node-a', shown, SIZE)).toEqual([
      'pod shop/web-1: not now',
      '0 of 0 virtual machines left on node-a, 1 other pods',
    ]);
    expect(summaryOf('node-a', picture(row('shop/a', 'Gone')))).toBe(
      '0 of 1 virtual machines left on node-a, 1 stopped',
    );
  });
});

describe('in a pipe', () => {
  it('each change is a line, and how far things are is none', () => {
    const lines: string[] = [];
    const view = new LineView((line) => lines.push(line));
    view.show(picture(row('shop/web', 'Waiting')));
    view.show(picture(row('shop/web', 'Moving', { progress: '1%' })));
    view.show(picture(row('shop/web', 'Moving', { progress: '50%' })));
    view.show(picture(row('shop/web', 'Left')));
    expect(lines).toEqual([
      'shop/web: Waiting, it is Waiting',
      'shop/web: Moving, it is Moving',
      'shop/web: Left, it is Left',
    ]);
  });

  it('pods come and go', () => {
    const before = { rows: [], pods: [{ pod: 'shop/a', refusal: undefined }] };
    const now = { rows: [], pods: [{ pod: 'shop/b', refusal: 'not now' }] };
    expect(changedLines(undefined, before)).toEqual(['pod shop/a: is being evicted']);
    expect(changedLines(before, now)).toEqual(['pod shop/b: not now', 'pod shop/a: has gone']);
    expect(changedLines(now, now)).toEqual([]);
  });
});

describe('on a terminal', () => {
  it('the same lines are written over, and only when they have changed', () => {
    const written: string[] = [];
    const view = new TerminalView('node-a', { columns: 80, rows: 24, write: (text) => written.push(text) });
    view.show(picture(row('shop/web', 'Waiting')));
    view.show(picture(row('shop/web', 'Waiting')));
    view.show(picture(row('shop/web', 'Moving')));
    expect(written).toHaveLength(2);
    expect(written[0]?.startsWith('\u001b[J')).toBe(true);
    expect(written[1]?.startsWith('\u001b[3A\u001b[J')).toBe(true);
  });

  it('that does not know its size something is shown, too', () => {
    const written: string[] = [];
    const view = new TerminalView('node-a', { columns: 0, rows: 0, write: (text) => written.push(text) });
    view.show(picture(row('shop/web', 'Waiting')));
    expect(written.join('')).toContain('1 of 1 virtual machines left on node-a');
  });
});
