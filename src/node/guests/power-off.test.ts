import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { ObjectMeta } from '../../api/meta.ts';
import { formatTime } from '../../api/meta.ts';
import type { LauncherPod } from './launcher-pod.ts';
import { deadlineMs, powerOff } from './power-off.ts';

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
    expect(deadlineMs(guest, pod, NOW)).toBe(seconds === undefined ? undefined : NOW + seconds * 1000);
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
