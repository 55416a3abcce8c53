import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { ObjectMeta } from '../../api/meta.ts';
import { formatTime } from '../../api/meta.ts';
import type { LauncherPod } from './launcher-pod.ts';
import { disruptedPod, DELETED_MS } from '../../migration/disruption/disruption.fixture.ts';
import { powerOff, shutdownTimes } from './power-off.ts';

const NOW = Date.UTC(2026, 0, 1);
const at = (seconds: number): string => formatTime(NOW + seconds * 1000);
const guest = (seconds?: number, metadata: ObjectMeta = {}): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata,
  spec: { domain: { devices: {} }, ...(seconds === undefined ? {} : { terminationGracePeriodSeconds: seconds }) },
});
const pod = (metadata: ObjectMeta = {}): LauncherPod => ({ apiVersion: 'v1', kind: 'Pod', metadata });

describe('the time that a guest has to end', () => {
  it.each([
    ['nobody wants it gone', guest(), pod(), undefined],
    ['the guest is deleted', guest(undefined, { deletionTimestamp: at(-10) }), pod(), 20],
    ['it has its own time', guest(100, { deletionTimestamp: at(-10) }), pod(), 90],
    ['it wants none', guest(0, { deletionTimestamp: at(-1) }), pod(), -1],
    ['the pod is deleted', guest(), pod({ deletionTimestamp: at(45), deletionGracePeriodSeconds: 45 }), 30],
    ['the pod is in a hurry', guest(), pod({ deletionTimestamp: at(5), deletionGracePeriodSeconds: 5 }), 5],
    ['the pod was deleted by force', guest(), undefined, 0],
    [
      'both are deleted',
      guest(undefined, { deletionTimestamp: at(-2) }),
      pod({ deletionTimestamp: at(44), deletionGracePeriodSeconds: 45 }),
      28,
    ],
    ['the guest is gone', undefined, pod({ deletionTimestamp: at(45), deletionGracePeriodSeconds: 45 }), 30],
  ] as const)('%s', (_, guest, pod, seconds) => {
    const times = shutdownTimes({ guest, pod }, NOW);
    expect(times?.byMs).toBe(seconds === undefined ? undefined : NOW + seconds * 1000);
    expect(times === undefined || times.fromMs <= NOW).toBe(true);
  });

  describe('whose pod was preempted', () => {
    const preempted = (deletedWithSeconds = 345): LauncherPod => ({
      apiVersion: 'v1',
      kind: 'Pod',
      ...disruptedPod({ deletedWithSeconds }),
    });
    const hold = {
      cause: 'Preemption',
      untilMs: DELETED_MS + 300_000,
      deadlineMs: DELETED_MS + 345_000,
      mover: 'Us',
    } as const;
    const seconds = (times: ReturnType<typeof shutdownTimes>) =>
      times && [(times.fromMs - DELETED_MS) / 1000, (times.byMs - DELETED_MS) / 1000];
    const after = (secondsAfter: number): number => DELETED_MS + secondsAfter * 1000;

    it('begins when the hold ends', () => {
      expect(seconds(shutdownTimes({ guest: guest(), pod: preempted(), hold }, after(1)))).toEqual([300, 335]);
      expect(seconds(shutdownTimes({ guest: guest(100), pod: preempted(), hold }, after(1)))).toEqual([300, 345]);
    });
    it('begins at once where its owner wants that, the node is left, or its kubelet ends the pod by itself', () => {
      const deleted = guest(undefined, { deletionTimestamp: formatTime(after(50)) });
      expect(seconds(shutdownTimes({ guest: deleted, pod: preempted(), hold }, after(60)))).toEqual([50, 80]);
      const leavingMs = after(20);
      expect(seconds(shutdownTimes({ guest: guest(), pod: preempted(), hold, leavingMs }, after(60)))).toEqual([
        20, 50,
      ]);
      expect(
        seconds(shutdownTimes({ guest: guest(), pod: preempted(), hold, endingMs: after(20) }, after(60))),
      ).toEqual([20, 50]);
    });
    it('is the whole of its grace when it is held no longer', () => {
      expect(seconds(shutdownTimes({ guest: guest(), pod: preempted() }, after(100)))).toEqual([0, 130]);
      const asked = { guest: guest(), pod: preempted(), askedMs: after(100) };
      expect(seconds(shutdownTimes(asked, after(120)))).toEqual([0, 130]);
    });
    it('is never longer than that of its pod', () => {
      expect(seconds(shutdownTimes({ guest: guest(), pod: preempted(110) }, after(100)))).toEqual([0, 110]);
    });
  });
});

describe('powering off', () => {
  const ask = (deadlineSeconds: number, pressedSeconds?: number, status: 'running' | 'paused' = 'running') =>
    powerOff({
      deadlineMs: NOW + deadlineSeconds * 1000,
      nowMs: NOW,
      status,
      pressedMs: pressedSeconds === undefined ? undefined : NOW + pressedSeconds * 1000,
    });
  it('presses the button, and presses it again', () => {
    expect(ask(30)).toEqual({ kind: 'press', lookAgainAfterMs: 5000 });
    expect(ask(30, -2)).toEqual({ kind: 'wait', lookAgainAfterMs: 3000 });
    expect(ask(30, -5)).toEqual({ kind: 'press', lookAgainAfterMs: 5000 });
    expect(ask(1, -2)).toEqual({ kind: 'wait', lookAgainAfterMs: 1000 });
  });
  it('ends the machine when the time is over, and one that cannot hear at once', () => {
    expect(ask(0, -2)).toEqual({ kind: 'quit' });
    expect(ask(-100)).toEqual({ kind: 'quit' });
    expect(ask(30, undefined, 'paused')).toEqual({ kind: 'quit' });
  });
});
