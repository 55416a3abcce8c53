import { describe, expect, it } from 'vitest';
import { deschedulerChanges, followedAnnotations } from './descheduler.ts';
import { guestOf, podOf } from './vmi/guests.fixture.ts';

const EVICT = 'descheduler.alpha.kubernetes.io/evict';
const PREFER_NOT = 'descheduler.alpha.kubernetes.io/prefer-no-eviction';
const IN_PROGRESS = 'descheduler.alpha.kubernetes.io/eviction-in-progress';

describe('what the descheduler is told', () => {
  it.each([
    ['is passed on', { [EVICT]: 'true', [PREFER_NOT]: '' }, undefined, { [EVICT]: 'true', [PREFER_NOT]: '' }],
    ['is changed', { [EVICT]: 'false' }, { [EVICT]: 'true' }, { [EVICT]: 'false' }],
    ['is taken back', undefined, { [EVICT]: 'true', other: 'stays' }, { [EVICT]: null }],
    ['is as it should be', { [EVICT]: 'true', other: 'x' }, { [EVICT]: 'true' }, {}],
  ])('%s', (_, leader, follower, expected) => {
    expect(followedAnnotations(leader, follower)).toEqual(expected);
  });

  it('is that the guest of a pod is on its way out, while it is', () => {
    const marked = guestOf({}, { nodeName: 'node-a', evacuationNodeName: 'node-a' });
    const arrived = guestOf({}, { nodeName: 'node-b', evacuationNodeName: 'node-a' });
    const pod = podOf();
    const told = { ...pod, metadata: { ...pod.metadata, annotations: { [IN_PROGRESS]: 'true' } } };
    expect(deschedulerChanges(marked, pod)).toEqual({ [IN_PROGRESS]: 'true' });
    expect(deschedulerChanges(marked, told)).toEqual({});
    expect(deschedulerChanges(arrived, told)).toEqual({ [IN_PROGRESS]: null });
    expect(deschedulerChanges(guestOf(), pod)).toEqual({});
  });
});
