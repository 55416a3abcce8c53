import { describe, expect, it } from 'vitest';
import { causesOf, isMarked, sourceAnnotation, withCause, withoutCauses } from './evacuation.ts';
import type { EvacuationCause } from './evacuation-cause.ts';
import type { VirtualMachineInstance, VirtualMachineInstanceStatus } from './virtual-machine-instance.ts';
import { EVICTION_SOURCE_ANNOTATION } from './well-known.ts';

const OLD = '2026-01-01T00:00:00Z';
const NEW = '2026-01-01T00:05:00Z';
const DRAIN: EvacuationCause = { cause: 'APIEviction', since: OLD, untilUncordon: true };
const PLAIN: EvacuationCause = { cause: 'APIEviction', since: OLD };
const TAINT: EvacuationCause = { cause: 'DrainTaint', since: OLD };

function guest(
  evacuationCauses?: EvacuationCause[],
  evacuationNodeName = 'a',
): { status: VirtualMachineInstanceStatus } {
  return { status: { nodeName: 'a', ...(evacuationCauses ? { evacuationNodeName, evacuationCauses } : {}) } };
}

describe('the mark of a guest that has to leave', () => {
  it.each<[string, VirtualMachineInstanceStatus | undefined, boolean]>([
    ['without a status', undefined, false],
    ['on no node', { evacuationNodeName: '' }, false],
    ['without a mark', { nodeName: 'a' }, false],
    ['that has left', { nodeName: 'b', evacuationNodeName: 'a' }, false],
    ['that is where it is marked for', { nodeName: 'a', evacuationNodeName: 'a' }, true],
  ])('of one %s', (_, status, expected) => {
    expect(isMarked(status ? { status } : {})).toBe(expected);
  });

  it('is made with its first cause, and keeps all of them', () => {
    expect(withCause(guest(), DRAIN)).toEqual({ evacuationNodeName: 'a', evacuationCauses: [DRAIN] });
    expect(withCause(guest([DRAIN]), TAINT).evacuationCauses).toEqual([DRAIN, TAINT]);
  });

  it('has none of the causes to leave another node', () => {
    const moved = guest([TAINT], 'b');
    expect(causesOf(moved)).toEqual([]);
    expect(withCause(moved, DRAIN)).toEqual({ evacuationNodeName: 'a', evacuationCauses: [DRAIN] });
    expect(withoutCauses(moved, () => false)).toEqual({ evacuationNodeName: undefined, evacuationCauses: undefined });
  });

  it.each<[string, EvacuationCause, EvacuationCause, EvacuationCause]>([
    ['a plain eviction after a drain outlasts the drain', DRAIN, { ...PLAIN, since: NEW }, PLAIN],
    ['a drain after a plain eviction changes nothing', PLAIN, { ...DRAIN, since: NEW }, PLAIN],
    ['a drain that asks again is as old as it was', DRAIN, { ...DRAIN, since: NEW }, DRAIN],
    [
      'a pod that is deleted anew has its own deadline',
      { cause: 'Preemption', since: OLD, podUID: '1', deadline: OLD },
      { cause: 'Preemption', since: NEW, podUID: '2', deadline: NEW },
      { cause: 'Preemption', since: OLD, podUID: '2', deadline: NEW },
    ],
  ])('%s', (_, before, again, after) => {
    expect(withCause(guest([before]), again).evacuationCauses).toEqual([after]);
  });

  it('is there for as long as one cause is', () => {
    const both = guest([DRAIN, TAINT]);
    expect(withoutCauses(both, () => false)).toEqual({ evacuationNodeName: 'a', evacuationCauses: [DRAIN, TAINT] });
    expect(withoutCauses(both, ({ untilUncordon }) => untilUncordon === true)).toEqual({
      evacuationNodeName: 'a',
      evacuationCauses: [TAINT],
    });
    expect(withoutCauses(both, () => true)).toEqual({ evacuationNodeName: undefined, evacuationCauses: undefined });
  });

  it('is not for guests that are nowhere', () => {
    expect(() => withCause({ status: {} }, DRAIN)).toThrow('on no node');
  });

  it.each<[string, EvacuationCause[], string | undefined, Record<string, string | null> | undefined]>([
    ['is said', [{ cause: 'Descheduler' }], undefined, { [EVICTION_SOURCE_ANNOTATION]: 'descheduler' }],
    ['was said already', [PLAIN, { cause: 'Descheduler' }], 'descheduler', undefined],
    ['is taken back', [PLAIN], 'descheduler', { [EVICTION_SOURCE_ANNOTATION]: null }],
    ['was never said', [PLAIN], undefined, undefined],
  ])('that the descheduler wants it %s', (_, causes, found, patch) => {
    const annotations = found === undefined ? {} : { [EVICTION_SOURCE_ANNOTATION]: found };
    const subject = { ...guest(causes), metadata: { annotations }, spec: {} } as unknown as VirtualMachineInstance;
    expect(sourceAnnotation(subject)).toEqual(patch);
  });
});
