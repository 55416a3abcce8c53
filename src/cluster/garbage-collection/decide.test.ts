import { describe, expect, it } from 'vitest';
import type { OwnerReference } from '../../api/meta.ts';
import { decide, type Judged, type Verdict } from './decide.ts';

const owner = (verdict: Verdict, name: string = verdict, blockOwnerDeletion?: boolean): Judged => {
  const reference: OwnerReference = { apiVersion: 'v1', kind: 'Owner', name, uid: name };
  return { verdict, reference: blockOwnerDeletion === undefined ? reference : { ...reference, blockOwnerDeletion } };
};
const NONE = { hasAny: false, isAnyWaiting: false };
const SOME = { hasAny: true, isAnyWaiting: false };
const CIRCLE = { hasAny: true, isAnyWaiting: true };

describe('an object is kept', () => {
  it('where it has no owner', () => expect(decide({}, [], NONE)).toEqual({ kind: 'keep' }));
  it('where all its owners live', () =>
    expect(decide({}, [owner('solid', 'a'), owner('solid', 'b')], CIRCLE)).toEqual({ kind: 'keep' }));

  it('where one of its owners lives, without the others', () =>
    expect(decide({}, [owner('dangling'), owner('solid', 'a'), owner('waiting'), owner('solid', 'b')], SOME)).toEqual({
      kind: 'keepReferences',
      references: [owner('solid', 'a').reference, owner('solid', 'b').reference],
    }));

  it('by the very reference that holds, not by another to the same UID', () => {
    const wrong: Judged = { verdict: 'dangling', reference: { ...owner('solid', 'a').reference, name: 'wrong' } };
    expect(decide({}, [wrong, owner('solid', 'a')], NONE)).toEqual({
      kind: 'keepReferences',
      references: [owner('solid', 'a').reference],
    });
  });
});

describe('an object is deleted', () => {
  it.each<[string, readonly string[], string]>([
    ['in the background', [], 'Background'],
    ['in the background, whatever else holds it', ['example.com/hold'], 'Background'],
    ['in the foreground where it asks for that', ['foregroundDeletion'], 'Foreground'],
    ['and its dependents let go where it asks for that', ['example.com/hold', 'orphan'], 'Orphan'],
  ])('%s, when its last owner is gone', (_how, finalizers, propagationPolicy) => {
    const metadata = { finalizers: [...finalizers] };
    expect(decide(metadata, [owner('dangling')], SOME)).toEqual({ kind: 'delete', propagationPolicy });
    expect(decide(metadata, [owner('waiting'), owner('dangling')], NONE)).toEqual({
      kind: 'delete',
      propagationPolicy,
    });
  });

  it('in the foreground when its owner waits for it, and it has dependents itself', () =>
    expect(decide({}, [owner('waiting', 'o', true)], SOME)).toEqual({
      kind: 'delete',
      propagationPolicy: 'Foreground',
    }));

  it('without blocking its owner when it may be part of a circle', () => {
    expect(decide({}, [owner('waiting', 'o', true), owner('dangling', 'p')], CIRCLE)).toEqual({
      kind: 'delete',
      propagationPolicy: 'Foreground',
      references: [owner('waiting', 'o', false).reference, owner('dangling', 'p').reference],
    });
    expect(decide({}, [owner('waiting', 'o', false)], CIRCLE)).toEqual({
      kind: 'delete',
      propagationPolicy: 'Foreground',
    });
  });
});
