import { describe, expect, it } from 'vitest';
import { disruptionOf } from './disruption.ts';
import { disruptedPod, taintedNode } from './disruption.fixture.ts';

const NODE = taintedNode([]);
const CRITICAL = { key: 'CriticalAddonsOnly', value: 'true', effect: 'NoExecute' } as const;
const UNREACHABLE = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' } as const;
const NOT_READY = { key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' } as const;
const OUT_OF_SERVICE = { key: 'node.kubernetes.io/out-of-service', effect: 'NoExecute' } as const;

describe('a pod that is being deleted', () => {
  it.each([
    ['was preempted', {}, 'Preemption'],
    ['was tainted away', { reason: 'DeletionByTaintManager' }, 'NoExecuteTaint'],
    ['was not deleted at all', { isDeleted: false }, undefined],
    ['was told that it is safe again', { status: 'False' }, undefined],
    [
      'was evicted by the API, which signs nothing',
      { reason: 'EvictionByEvictionAPI', writtenAt: undefined },
      undefined,
    ],
    ['was preempted, and evicted besides', { reason: 'EvictionByEvictionAPI' }, 'Preemption'],
    ['was evicted long after it was to be preempted', { reason: 'EvictionByEvictionAPI', writtenAt: -200 }, undefined],
    ['is pressed out by its kubelet', { reason: 'TerminationByKubelet' }, undefined],
    ['is garbage', { reason: 'DeletionByPodGC' }, undefined],
    ['was given a reason that everything has', { reason: 'constructor' }, undefined],
  ] as const)('%s', (_, options, cause) => {
    expect(disruptionOf(disruptedPod(options), NODE)).toBe(cause);
  });

  it.each([
    ['just before', { writtenAt: 0, trueAt: 0 }, true],
    ['two minutes before', { writtenAt: -120, trueAt: -120 }, true],
    ['longer before: the deletion is another matter', { writtenAt: -121, trueAt: -121 }, false],
    ['just before, by a condition that was true for long for another reason', { writtenAt: -1, trueAt: -3600 }, true],
    ['by somebody whose clock is ahead', { writtenAt: 0, trueAt: 40 }, true],
    ['long ago, by somebody whose clock is ahead', { writtenAt: -600, trueAt: -10 }, false],
    ['after the deletion', { writtenAt: 20, trueAt: 20 }, false],
    ['just before, by a server whose clock is a little ahead of the next', { writtenAt: 1, trueAt: 1 }, true],
    ['before, by somebody who has written again since', { writtenAt: 20, trueAt: -1 }, true],
    ['who knows when: only the condition says', { writtenAt: undefined, trueAt: -30 }, true],
    ['who knows when, and the condition is old', { writtenAt: undefined, trueAt: -300 }, false],
    ['who knows when', { writtenAt: undefined, trueAt: undefined }, true],
    ['who knows when, by somebody who has written since', { writtenAt: 20, trueAt: undefined }, true],
    ['by somebody, long ago', { writtenAt: -300, trueAt: undefined }, false],
  ] as const)('was told why %s', (_, options, isDisrupted) => {
    expect(disruptionOf(disruptedPod(options), NODE)).toBe(isDisrupted ? 'Preemption' : undefined);
  });
});

describe('a pod that a taint manager deleted', () => {
  it('is known as such also where it is evicted besides', () => {
    const pod = disruptedPod({ reason: 'EvictionByEvictionAPI' });
    expect(disruptionOf(pod, taintedNode([CRITICAL]))).toBe('NoExecuteTaint');
    expect(disruptionOf(pod, taintedNode([UNREACHABLE]))).toBeUndefined();
  });

  const forAWhile = [
    { key: UNREACHABLE.key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: 300 },
  ] as const;
  const forEver = [{ key: CRITICAL.key, operator: 'Exists' }] as const;
  it.each([
    ['an admin wants its node free', taintedNode([CRITICAL]), undefined, true],
    ['its node is unreachable', taintedNode([UNREACHABLE], 60, false), undefined, false],
    ['its node was unreachable for too long', taintedNode([UNREACHABLE], 60, false), forAWhile, false],
    ['its node is not ready', taintedNode([NOT_READY], 60, false), undefined, false],
    ['its node is given up', taintedNode([OUT_OF_SERVICE]), undefined, false],
    ['its node is both', taintedNode([NOT_READY, CRITICAL], 60, false), undefined, true],
    ['its node is unreachable, and it minds nothing else', taintedNode([UNREACHABLE, CRITICAL]), forEver, false],
    [
      'taints that only keep others away are no reason',
      taintedNode([{ ...CRITICAL, effect: 'NoSchedule' }]),
      undefined,
      true,
    ],
    ['the taint is gone', taintedNode([]), undefined, true],
    ['the taint is gone, and so is the time in which the node was not heard of', taintedNode([], 30), undefined, false],
    ['the taint is gone, and the node was heard of again in the very second', taintedNode([], 0), undefined, false],
    ['the node is not ready, and does not say so by a taint yet', taintedNode([], 30, false), undefined, false],
    ['nobody knows the node', undefined, undefined, true],
  ] as const)('%s', (_, node, tolerations, isDrivenAway) => {
    const pod = disruptedPod({ reason: 'DeletionByTaintManager', ...(tolerations ? { tolerations } : {}) });
    expect(disruptionOf(pod, node)).toBe(isDrivenAway ? 'NoExecuteTaint' : undefined);
  });
});
