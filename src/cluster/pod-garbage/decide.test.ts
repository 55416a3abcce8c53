import { describe, expect, it } from 'vitest';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { ending, isAsGoodAsGone, isGoneBefore, isOutOfService, isUnscheduledAndTerminating } from './decide.ts';

const NOW_MS = Date.UTC(2026, 2, 1, 12);
const NOW = '2026-03-01T12:00:00Z';

function pod(name: string, metadata: object = {}, status: Pod['status'] = { phase: 'Running' }, nodeName = 'n'): Pod {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec: { nodeName }, status };
}

function node(status: string | undefined, ...taints: string[]): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'n' },
    spec: { taints: taints.map((key) => ({ key, effect: 'NoExecute' })) },
    status: status === undefined ? {} : { conditions: [{ type: 'Ready', status }] },
  };
}

describe('what is garbage', () => {
  it.each<[string, Node, boolean]>([
    ['ready and tainted', node('True', 'node.kubernetes.io/out-of-service'), false],
    ['unknown and tainted', node('Unknown', 'other', 'node.kubernetes.io/out-of-service'), true],
    ['never ready and tainted', node(undefined, 'node.kubernetes.io/out-of-service'), true],
    ['not ready', node('False', 'node.kubernetes.io/unreachable'), false],
  ])('a node that is %s is out of service: %s', (_, given, expected) => {
    expect(isOutOfService(given)).toBe(expected);
  });

  it('what is going without a node', () => {
    const going = { deletionTimestamp: NOW };
    expect(isUnscheduledAndTerminating(pod('a', going, {}, ''))).toBe(true);
    expect(isUnscheduledAndTerminating(pod('a', going))).toBe(false);
    expect(isUnscheduledAndTerminating(pod('a', {}, {}, ''))).toBe(false);
  });

  it('goes evicted ones first, then by age and name', () => {
    const made = (name: string, creationTimestamp: string, status: Pod['status'] = { phase: 'Failed' }) =>
      pod(name, { creationTimestamp }, status);
    const all = [
      made('young', '2026-01-03T00:00:00Z'),
      made('b', '2026-01-01T00:00:00Z'),
      made('a', '2026-01-01T00:00:00Z'),
      made('evicted', '2026-01-04T00:00:00Z', { phase: 'Failed', reason: 'Evicted' }),
    ];
    expect(all.sort(isGoneBefore).map(({ metadata }) => metadata.name)).toEqual(['evicted', 'a', 'b', 'young']);
  });
});

describe('the end', () => {
  it('is told to pods that have not ended, on the version that was looked at', () => {
    const running = pod('a', { uid: 'u', resourceVersion: '7', generation: 2 });
    const metadata = { uid: 'u', resourceVersion: '7' };
    expect(ending(running, 'other', NOW_MS)).toEqual({ metadata, status: { phase: 'Failed', observedGeneration: 2 } });
    expect(ending(running, 'orphaned', NOW_MS)).toEqual({
      metadata,
      status: {
        phase: 'Failed',
        observedGeneration: 2,
        conditions: [
          {
            type: 'DisruptionTarget',
            status: 'True',
            reason: 'DeletionByPodGC',
            message: 'PodGC: node no longer exists',
            lastTransitionTime: NOW,
            observedGeneration: 2,
          },
        ],
      },
    });
    expect(ending(pod('a', {}, { phase: 'Succeeded' }), 'orphaned', NOW_MS)).toBeUndefined();
  });

  it('is done with once nothing but finalizers hold the pod', () => {
    const deleted = (seconds: number) => ({ deletionTimestamp: NOW, deletionGracePeriodSeconds: seconds });
    expect(isAsGoodAsGone(pod('a', deleted(0), { phase: 'Failed' }))).toBe(true);
    expect(isAsGoodAsGone(pod('a', deleted(30), { phase: 'Failed' }))).toBe(false);
    expect(isAsGoodAsGone(pod('a', deleted(0)))).toBe(false);
    expect(isAsGoodAsGone(pod('a', {}, { phase: 'Failed' }))).toBe(false);
  });
});
