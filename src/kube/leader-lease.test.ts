import { describe, expect, it } from 'vitest';
import {
  claimedLease,
  durationMsOf,
  heartbeatOf,
  holderOf,
  type Lease,
  newLease,
  releasedLease,
} from './leader-lease.ts';

const claim = { identity: 'me', durationMs: 15_000 };
const earlierMs = Date.UTC(2026, 0, 1);
const nowMs = earlierMs + 60_000;
const earlier = '2026-01-01T00:00:00.000000Z';
const now = '2026-01-01T00:01:00.000000Z';
const mine = newLease('kube-system', 'lease', claim, earlierMs);
const theirs: Lease = {
  ...mine,
  spec: { ...mine.spec, holderIdentity: 'you', leaseTransitions: 4, strategy: 'OldestEmulationVersion' },
};

describe('a lease', () => {
  it.each<[string, Lease, object]>([
    [
      'created',
      mine,
      { holderIdentity: 'me', leaseDurationSeconds: 15, acquireTime: earlier, renewTime: earlier, leaseTransitions: 0 },
    ],
    [
      'renewed',
      claimedLease(mine, claim, nowMs),
      { holderIdentity: 'me', leaseDurationSeconds: 15, acquireTime: earlier, renewTime: now, leaseTransitions: 0 },
    ],
    [
      'taken over',
      claimedLease(theirs, claim, nowMs),
      {
        holderIdentity: 'me',
        leaseDurationSeconds: 15,
        acquireTime: now,
        renewTime: now,
        leaseTransitions: 5,
        strategy: 'OldestEmulationVersion',
      },
    ],
    [
      'taken over from nobody',
      claimedLease({ ...mine, spec: undefined }, claim, nowMs),
      { holderIdentity: 'me', leaseDurationSeconds: 15, acquireTime: now, renewTime: now, leaseTransitions: 1 },
    ],
    [
      'released',
      releasedLease(mine, nowMs),
      { holderIdentity: '', leaseDurationSeconds: 1, acquireTime: now, renewTime: now, leaseTransitions: 0 },
    ],
  ])('that is %s', (_name, lease, spec) => expect(lease.spec).toEqual(spec));

  it('lasts whole seconds, never fewer than were asked for', () => {
    expect(newLease('a', 'b', { identity: 'me', durationMs: 1500 }, nowMs).spec?.leaseDurationSeconds).toBe(2);
    expect(durationMsOf(mine, 1)).toBe(15_000);
    expect(durationMsOf({ ...mine, spec: {} }, 7000)).toBe(7000);
    expect(durationMsOf({ ...mine, spec: { leaseDurationSeconds: 0 } }, 7000)).toBe(7000);
  });

  it('shows a sign of life when it is renewed, and not when something else changes', () => {
    expect(heartbeatOf(claimedLease(mine, claim, nowMs))).not.toBe(heartbeatOf(mine));
    expect(heartbeatOf({ ...mine, metadata: { ...mine.metadata, resourceVersion: '7', labels: { a: 'b' } } })).toBe(
      heartbeatOf(mine),
    );
    expect(holderOf({ ...mine, spec: undefined })).toBe('');
  });
});
