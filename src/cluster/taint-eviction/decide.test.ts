import { describe, expect, it } from 'vitest';
import { makePod } from '../../migration/fit/cluster.fixture.ts';
import type { Taint, Toleration } from '../../migration/fit/objects.ts';
import { leavesAtMs } from './decide.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);
const SECOND_MS = 1000;
const time = (secondsFromNoon: number) => new Date(NOON_MS + secondsFromNoon * SECOND_MS).toISOString();

const taint = (key: string, timeAdded?: string): Taint => ({
  key,
  effect: 'NoExecute',
  ...(timeAdded === undefined ? {} : { timeAdded }),
});
const tolerating = (key: string, tolerationSeconds?: number): Toleration => ({
  key,
  operator: 'Exists',
  ...(tolerationSeconds === undefined ? {} : { tolerationSeconds }),
});

/** In seconds from the moment in which pod and taints are first seen together, which is noon. */
function leavesIn(taints: Taint[], tolerations: Toleration[], boundAt = time(-3600)): number {
  const conditions = [{ type: 'PodScheduled', status: 'True', lastTransitionTime: boundAt }];
  const pod = makePod('p', { tolerations }, { creationTimestamp: time(-7200) }, { conditions });
  return (leavesAtMs(pod, taints, () => NOON_MS) - NOON_MS) / SECOND_MS;
}

const NEVER = Number.POSITIVE_INFINITY;
const AT_ONCE = Number.NEGATIVE_INFINITY;

describe('a pod leaves', () => {
  const now = taint('k', time(0));
  it.each<[string, number, Taint[], Toleration[]]>([
    ['never where there is no taint', NEVER, [], []],
    ['at once where it does not tolerate one', AT_ONCE, [now], []],
    ['at once where it tolerates another', AT_ONCE, [now], [tolerating('other')]],
    ['at once where it tolerates only some', AT_ONCE, [now, taint('l')], [tolerating('k')]],
    ['never where it tolerates all', NEVER, [now, taint('l')], [tolerating('k'), tolerating('l')]],
    ['never where it tolerates everything', NEVER, [now, taint('l')], [{ operator: 'Exists' }]],
    ['after as long as it tolerates', 300, [now], [tolerating('k', 300)]],
    ['after the shortest time', 20, [now, taint('l')], [tolerating('k', 300), tolerating('l', 20)]],
    ['after the shortest time of any', 20, [now, taint('l')], [tolerating('k'), tolerating('l', 20)]],
    ['by the first toleration that covers a taint', 300, [now], [tolerating('k', 300), tolerating('k', 20)]],
    ['at once where it tolerates for no time', 0, [now], [tolerating('k', 0)]],
    ['at once where it tolerates for less than that', 0, [now], [tolerating('k', -1)]],
  ])('%s', (_, expected, taints, tolerations) => {
    expect(leavesIn(taints, tolerations)).toBe(expected);
  });
});

describe('time counts', () => {
  // Times are cut to whole seconds, and count as the end of theirs.
  it.each<[string, number, string | undefined, string, number]>([
    ['from when we saw it, where the taint has no time', 300, undefined, time(-100), 300],
    ['from when the taint was added, also while nobody looked', 201, time(-100), time(-3600), 300],
    ['from when the pod came, if that was later', 251, time(-100), time(-50), 300],
    ['from when we saw it, where clocks do not agree', 300, time(500), time(-3600), 300],
    ['so that nodes that come back with us can say so first', 50, time(-1000), time(-3600), 300],
    ['so that who tolerates less has what it asked for', 7, time(-1000), time(-3600), 7],
    ['from when we saw it, within the precision of times', 1, time(-0.9), time(-3600), 1],
  ])('%s', (_, expected, timeAdded, boundAt, tolerationSeconds) => {
    expect(leavesIn([taint('k', timeAdded)], [tolerating('k', tolerationSeconds)], boundAt)).toBe(expected);
  });

  it('from when the pod was made, where it came with its node', () => {
    const pod = makePod('p', { tolerations: [tolerating('k', 300)] }, { creationTimestamp: time(-100) });
    expect(leavesAtMs(pod, [taint('k', time(-200))], () => NOON_MS)).toBe(NOON_MS + 201 * SECOND_MS);
  });
});
