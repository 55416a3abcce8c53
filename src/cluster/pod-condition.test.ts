import { describe, expect, it } from 'vitest';
import { makePod } from '../migration/fit/cluster.fixture.ts';
import type { Pod, PodCondition } from '../migration/fit/objects.ts';
import { podConditionPatch } from './pod-condition.ts';

const NOON_MS = Date.UTC(2026, 0, 1, 12);
const NOON = '2026-01-01T12:00:00Z';
const CHANGE = { type: 'T', status: 'True', reason: 'R', message: 'm' } as const;

const pod = (...conditions: PodCondition[]): Pod =>
  makePod('p', {}, { uid: 'u', resourceVersion: '7', generation: 3 }, { conditions });

describe('a condition', () => {
  const cases: [string, PodCondition[], object | undefined][] = [
    ['that is not there is new', [], { ...CHANGE, lastTransitionTime: NOON, observedGeneration: 3 }],
    [
      'that turns has turned now',
      [{ ...CHANGE, status: 'False' }],
      { ...CHANGE, lastTransitionTime: NOON, observedGeneration: 3 },
    ],
    ['that has another reason has not turned', [{ ...CHANGE, reason: 'Q' }], { ...CHANGE, observedGeneration: 3 }],
    ['that says so already stays', [{ ...CHANGE, lastTransitionTime: '2026-01-01T00:00:00Z' }], undefined],
    [
      'is found by its type',
      [{ ...CHANGE, type: 'U' }],
      { ...CHANGE, lastTransitionTime: NOON, observedGeneration: 3 },
    ],
  ];
  it.each(cases)('%s', (_, conditions, expected) => {
    const patch = podConditionPatch(pod(...conditions), CHANGE, NOON_MS);
    expect(patch).toEqual(
      expected && { metadata: { uid: 'u', resourceVersion: '7' }, status: { conditions: [expected] } },
    );
  });

  it('keeps what the change does not mention', () => {
    const change = { type: 'T', status: 'True' } as const;
    expect(podConditionPatch(pod(CHANGE), change, NOON_MS)).toBeUndefined();
    expect(podConditionPatch(makePod('p'), change, NOON_MS)).toMatchObject({
      status: { conditions: [{ type: 'T', status: 'True', lastTransitionTime: NOON }] },
    });
  });
});
