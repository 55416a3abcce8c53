import { describe, expect, it } from 'vitest';
import { Trace } from './trace.ts';

describe('a trace', () => {
  const filled = (count: number, last: string): Trace => {
    const trace = new Trace({ elapsedMs: () => 1500 });
    for (let index = 0; index < count; index++) trace.add('somebody', `line ${index}`);
    trace.add('somebody', last);
    return trace;
  };

  it('keeps the last lines, with time and component', () => {
    const trace = filled(20_000, 'the end');
    expect(trace.count).toBe(20_001);
    expect(trace.last(1)).toEqual(['     1.500  somebody         the end']);
    expect(trace.last().length).toBeLessThan(10_000);
  });

  it('has a digest of all lines, also of those that it no longer keeps', () => {
    expect(filled(20_000, 'x').digest()).toBe(filled(20_000, 'x').digest());
    expect(filled(20_000, 'x').digest()).not.toBe(filled(20_000, 'y').digest());
    const [one, other] = [new Trace({ elapsedMs: () => 0 }), new Trace({ elapsedMs: () => 1 })];
    for (const trace of [one, other]) trace.add('somebody', 'said something');
    expect(one.digest()).not.toBe(other.digest());
  });

  it('can be asked for its digest at any time', () => {
    const [asked, unasked] = [new Trace({ elapsedMs: () => 0 }), new Trace({ elapsedMs: () => 0 })];
    for (let index = 0; index < 3000; index++) {
      for (const trace of [asked, unasked]) trace.add('somebody', String(index));
      if (index % 7 === 0) asked.digest();
    }
    expect(asked.digest()).toBe(unasked.digest());
  });

  it('tells every line to whoever wants the whole', () => {
    const lines: string[] = [];
    const trace = new Trace({ elapsedMs: () => 0, onLine: (line) => lines.push(line) });
    for (let index = 0; index < 10_000; index++) trace.add('somebody', String(index));
    expect(lines).toHaveLength(10_000);
  });
});
