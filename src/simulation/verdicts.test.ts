import { describe, expect, it } from 'vitest';
import { MIGRATIONS } from './buckets.ts';
import type { Observation } from './observer.ts';
import { NO_VERDICTS, withVerdict } from './verdicts.ts';

/** A migration that goes from one phase to another, in the bucket of migrations unless another is named. */
function change(before: string | undefined, after: string | undefined, bucket = MIGRATIONS): Observation {
  const inPhase = (phase: string | undefined) =>
    phase === undefined ? undefined : { metadata: {}, status: { phase } };
  return { bucket, object: inPhase(after), previous: inPhase(before) } as unknown as Observation;
}

describe('verdicts', () => {
  it.each([
    ['one that succeeds', change('Running', 'Succeeded'), { succeeded: 1, failed: 0 }],
    ['one that fails', change('Pending', 'Failed'), { succeeded: 0, failed: 1 }],
    ['one that was found so', change(undefined, 'Failed'), { succeeded: 0, failed: 1 }],
    ['one that is under way: not', change('Pending', 'Running'), NO_VERDICTS],
    ['one that was over: not again', change('Succeeded', 'Succeeded'), NO_VERDICTS],
    ['one that goes: not again', change('Succeeded', undefined), NO_VERDICTS],
    ['a pod that succeeds: not', change('Running', 'Succeeded', 'pods'), NO_VERDICTS],
  ])('count %s', (_what, observation, expected) => {
    expect(withVerdict(NO_VERDICTS, observation)).toEqual(expected);
  });
});
