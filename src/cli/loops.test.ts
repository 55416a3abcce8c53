import { describe, expect, it } from 'vitest';
import { testEnv } from '../env/test.ts';
import type { Service } from '../kube/service.ts';
import { Loops } from './loops.ts';

function untilStopped(log: string[], name: string): Service {
  return {
    name,
    run: (signal) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          log.push(`${name} ended`);
          resolve();
        });
      }),
  };
}

describe('the loops of a process', () => {
  it('have ended when they are stopped', async () => {
    const log: string[] = [];
    const loops = new Loops(testEnv(), [untilStopped(log, 'a'), untilStopped(log, 'b')]);
    await new Promise((resolve) => setImmediate(resolve));
    await loops.stop();
    expect(log.toSorted()).toEqual(['a ended', 'b ended']);
  });

  it('all end when one fails, and say why', async () => {
    const log: string[] = [];
    const failing: Service = { name: 'c', run: () => Promise.reject(new Error('no more')) };
    const loops = new Loops(testEnv(), [untilStopped(log, 'a'), failing]);
    expect((await loops.failed).message).toBe("the control plane's loops have failed (c failed: Error: no more)");
    expect(log).toEqual(['a ended']);
    await loops.stop();
  });
});
