import { describe, expect, it } from 'vitest';
import { TaintLine } from './taint-line.ts';

const SECOND_MS = 1000;

describe('a line', () => {
  it('serves one at a time, first come, first served', () => {
    const line = new TaintLine(0.1, 0);
    expect(['a', 'b', 'c'].map((node) => line.ask(node, 0))).toEqual([true, false, false]);
    expect(line.next()).toEqual({ node: 'b', atMs: 10 * SECOND_MS });
    expect(line.ask('c', 10 * SECOND_MS)).toBe(false);
    expect(line.ask('b', 10 * SECOND_MS)).toBe(true);
    expect(line.next()).toEqual({ node: 'c', atMs: 20 * SECOND_MS });
  });

  it('serves nobody twice, and takes no turn away', () => {
    const line = new TaintLine(0.1, 0);
    expect([line.ask('a', 0), line.ask('a', 1)]).toEqual([true, true]);
    line.leave('a');
    expect(line.ask('a', 2)).toBe(false);
    expect(line.ask('a', 10 * SECOND_MS)).toBe(true);
  });

  it('goes on without who leaves', () => {
    const line = new TaintLine(0.1, 0);
    for (const node of ['a', 'b', 'c']) line.ask(node, 0);
    line.leave('b');
    expect(line.next()).toEqual({ node: 'c', atMs: 10 * SECOND_MS });
    line.leave('c');
    expect(line.next()).toBeUndefined();
  });

  it('stands still at no rate, and begins with a wait', () => {
    const line = new TaintLine(0.1, 0);
    line.setRate(0, 0);
    expect([line.ask('a', 0), line.next()]).toEqual([false, undefined]);
    line.setRate(0.1, 60 * SECOND_MS);
    expect(line.next()).toEqual({ node: 'a', atMs: 70 * SECOND_MS });
  });

  it('changes its rate at once where nobody has just been served', () => {
    const idle = new TaintLine(0.1, 0);
    idle.setRate(0.01, SECOND_MS);
    expect(idle.ask('a', SECOND_MS)).toBe(true);
    expect(idle.ask('b', 20 * SECOND_MS)).toBe(false);
    idle.setRate(0.1, 20 * SECOND_MS);
    expect(idle.next()).toEqual({ node: 'b', atMs: 30 * SECOND_MS });
  });
});
