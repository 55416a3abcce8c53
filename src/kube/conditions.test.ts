import { describe, expect, it } from 'vitest';
import type { Condition } from '../api/meta.ts';
import { findCondition, isConditionTrue, removeCondition, setCondition } from './conditions.ts';

const noon = '2026-01-01T12:00:00Z';
const onePm = '2026-01-01T13:00:00Z';
const onePmMs = Date.parse(onePm);
const ready: Condition = { type: 'Ready', status: 'True', reason: 'Up', message: 'runs', lastTransitionTime: noon };
const other: Condition = { type: 'Paused', status: 'False', lastTransitionTime: noon };

describe('setting a condition', () => {
  // The cases of apimachinery's meta.SetStatusCondition.
  it.each<[string, Condition[] | undefined, Condition, Condition[]]>([
    [
      'into nothing',
      undefined,
      { type: 'Ready', status: 'True' },
      [{ type: 'Ready', status: 'True', lastTransitionTime: onePm }],
    ],
    [
      'that is new',
      [other],
      { type: 'Ready', status: 'True' },
      [other, { type: 'Ready', status: 'True', lastTransitionTime: onePm }],
    ],
    [
      'with another status',
      [ready, other],
      { type: 'Ready', status: 'False', reason: 'Down', message: 'fell' },
      [{ type: 'Ready', status: 'False', reason: 'Down', message: 'fell', lastTransitionTime: onePm }, other],
    ],
    [
      'with another reason only',
      [ready],
      { ...ready, reason: 'Still', lastTransitionTime: onePm },
      [{ ...ready, reason: 'Still' }],
    ],
    [
      'with a time of its own',
      [ready],
      { ...ready, status: 'Unknown', lastTransitionTime: '2026-01-01T12:30:00Z' },
      [{ ...ready, status: 'Unknown', lastTransitionTime: '2026-01-01T12:30:00Z' }],
    ],
    [
      'that forgot its time',
      [{ type: 'Ready', status: 'True' }],
      { type: 'Ready', status: 'True' },
      [{ type: 'Ready', status: 'True' }],
    ],
    [
      'for another generation',
      [ready],
      { type: 'Ready', status: 'True', observedGeneration: 2 },
      [{ ...ready, observedGeneration: 2 }],
    ],
  ])('%s', (_name, before, change, after) => {
    const copy = JSON.stringify(before);
    expect(setCondition(before, change, onePmMs)).toEqual(after);
    expect(JSON.stringify(before)).toBe(copy);
  });

  it('answers the same list where nothing changes, so that callers see that there is nothing to write', () => {
    const before = [ready, other];
    expect(setCondition(before, { type: 'Ready', status: 'True', reason: 'Up' }, onePmMs)).toBe(before);
    expect(setCondition(before, { ...ready, message: 'else' }, onePmMs)).not.toBe(before);
  });

  it('keeps fields that it does not know', () => {
    const probed = { ...ready, lastProbeTime: noon };
    expect(setCondition([probed], { ...ready, status: 'False', lastProbeTime: onePm }, onePmMs)[0]).toMatchObject({
      status: 'False',
      lastProbeTime: onePm,
    });
    expect(setCondition<Condition>([probed], { type: 'Ready', status: 'False' }, onePmMs)[0]).toMatchObject({
      lastProbeTime: noon,
    });
  });
});

describe('looking at conditions', () => {
  it('finds one by its type', () => {
    expect(findCondition([ready, other], 'Paused')).toBe(other);
    expect(findCondition([ready], 'Gone')).toBeUndefined();
    expect(findCondition(undefined, 'Ready')).toBeUndefined();
  });
  it.each<[Condition['status'] | undefined, boolean]>([
    ['True', true],
    ['False', false],
    ['Unknown', false],
    [undefined, false],
  ])('takes %s for %s', (status, expected) => {
    expect(isConditionTrue(status && [{ type: 'Ready', status }], 'Ready')).toBe(expected);
  });
  it('removes one, and answers the same list where it is not there', () => {
    const before = [ready, other];
    expect(removeCondition(before, 'Ready')).toEqual([other]);
    expect(removeCondition(before, 'Gone')).toBe(before);
    expect(removeCondition(undefined, 'Gone')).toEqual([]);
  });
});
