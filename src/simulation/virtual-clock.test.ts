import { describe, expect, it } from 'vitest';
import { ProcessClock, START_MS, TimeStandsStill, VirtualClock } from './virtual-clock.ts';

describe('the virtual clock', () => {
  it('fires timers by their due time, then in the order in which they were set', () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    for (const [name, delayMs] of [
      ['c', 20],
      ['a', 10],
      ['b', 10],
      ['now', 0],
    ] as const)
      clock.setTimer(() => fired.push(`${name} at ${clock.now() - START_MS}`), delayMs);
    while (clock.fireNext(100)) continue;
    expect(fired).toEqual(['now at 0', 'a at 10', 'b at 10', 'c at 20']);
    expect(clock.elapsedMs).toBe(100);
  });

  it('stops where it is told to, and leaves later timers alone', () => {
    const clock = new VirtualClock();
    let count = 0;
    clock.setTimer(() => count++, 11);
    expect(clock.fireNext(10)).toBe(false);
    expect([count, clock.elapsedMs]).toEqual([0, 10]);
    expect(clock.fireNext(11)).toBe(true);
    expect(count).toBe(1);
  });

  it('forgets timers that are cancelled, also twice, and after they have fired', () => {
    const clock = new VirtualClock();
    const never = clock.setTimer(() => expect.unreachable(), 1);
    const once = clock.setTimer(() => undefined, 2);
    never.cancel();
    never.cancel();
    while (clock.fireNext(5)) continue;
    once.cancel();
    expect(clock.elapsedMs).toBe(5);
  });

  it('fires a timer that is set while it fires another', () => {
    const clock = new VirtualClock();
    const fired: number[] = [];
    clock.setTimer(() => void clock.setTimer(() => fired.push(clock.elapsedMs), 5), 5);
    while (clock.fireNext(20)) continue;
    expect(fired).toEqual([10]);
  });

  it('says so when something asks for no time at all, forever', () => {
    const clock = new VirtualClock();
    const again = (): void => void clock.setTimer(again, 0);
    again();
    expect(() => {
      while (clock.fireNext(1)) continue;
    }).toThrow(TimeStandsStill);
  });
});

describe('the clock of a process', () => {
  it('is wrong by its offset, while its timers are right', () => {
    const clock = new VirtualClock();
    const process = new ProcessClock(clock, -5000);
    let firedMs = 0;
    process.setTimer(() => (firedMs = clock.elapsedMs), 100);
    expect(process.now()).toBe(clock.now() - 5000);
    while (clock.fireNext(200)) continue;
    expect(firedMs).toBe(100);
  });

  it('fires afterwards, in order, what was due while it stood still', () => {
    const clock = new VirtualClock();
    const process = new ProcessClock(clock);
    const fired: string[] = [];
    for (const delayMs of [30, 10, 200])
      process.setTimer(() => fired.push(`${delayMs} at ${clock.elapsedMs}`), delayMs);
    const cancelled = process.setTimer(() => fired.push('cancelled'), 20);
    process.pause(100);
    clock.setTimer(() => cancelled.cancel(), 50);
    while (clock.fireNext(1000)) continue;
    expect(fired).toEqual(['10 at 100', '30 at 100', '200 at 200']);
  });

  it('fires nothing when it has stopped', () => {
    const clock = new VirtualClock();
    const process = new ProcessClock(clock);
    process.setTimer(() => expect.unreachable(), 100);
    process.stop();
    while (clock.fireNext(200)) continue;
  });
});
