import { describe, expect, it } from 'vitest';
import type {
  VirtualMachineInstance,
  VirtualMachineInstancePhase,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { LauncherPod } from '../resources.ts';
import { RECEIVER_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { guestOf, podOf } from './guests.fixture.ts';
import { isForgettable, needsPod, nextPhase } from './phase.ts';

const pending = podOf({ phase: 'Pending' });
const bound = podOf({ phase: 'Pending' }, 'node-a');
const ready = podOf({ phase: 'Running', containerStatuses: [{ name: 'compute', ready: true }] }, 'node-a');
const unready = podOf({ phase: 'Running', containerStatuses: [{ name: 'compute', ready: false }] }, 'node-a');
const over = podOf({ phase: 'Failed' }, 'node-a');
const going = podOf({ phase: 'Running' }, 'node-a');
going.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
const rightToRun = { epoch: 1, holder: { node: 'node-a', nodeUID: 'n', podUID: 'pod-1' } };

function deleted(guest: VirtualMachineInstance): VirtualMachineInstance {
  guest.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  return guest;
}

function receiver(guest: VirtualMachineInstance): VirtualMachineInstance {
  guest.metadata.annotations = { [RECEIVER_ANNOTATION]: 'true' };
  return guest;
}

describe('the phase that follows', () => {
  it.each<[string, VirtualMachineInstance, LauncherPod | undefined, VirtualMachineInstancePhase]>([
    ['nobody has looked at it', guestOf(), undefined, 'Pending'],
    ['it waits for its pod', guestOf({}, { phase: 'Pending' }), undefined, 'Pending'],
    ['it has a pod', guestOf({}, { phase: 'Pending' }), pending, 'Scheduling'],
    ['deleted before it had one', deleted(guestOf({}, { phase: 'Pending' })), undefined, 'Failed'],
    ['it comes from elsewhere', receiver(guestOf()), undefined, 'WaitingForSync'],
    ['its target pod is there', receiver(guestOf({}, { phase: 'WaitingForSync' })), pending, 'WaitingForSync'],
    ['the pod has a node', guestOf({}, { phase: 'Scheduling' }), bound, 'Scheduling'],
    ['the pod is not ready', guestOf({}, { phase: 'Scheduling' }), unready, 'Scheduling'],
    ['the pod is ready', guestOf({}, { phase: 'Scheduling' }), ready, 'Scheduled'],
    ['deleted just then', deleted(guestOf({}, { phase: 'Scheduling' })), ready, 'Scheduling'],
    ['the pod is gone', guestOf({}, { phase: 'Scheduling' }), undefined, 'Failed'],
    ['the pod goes', guestOf({}, { phase: 'Scheduling' }), going, 'Failed'],
    ['the pod failed', guestOf({}, { phase: 'Scheduling' }), over, 'Failed'],
    ['handed over', guestOf({}, { phase: 'Scheduled' }), ready, 'Scheduled'],
    ['handed over, and never taken', guestOf({}, { phase: 'Scheduled' }), undefined, 'Failed'],
    ['taken, whatever its pod does', guestOf({}, { phase: 'Scheduled', rightToRun }), undefined, 'Scheduled'],
    ['running without a pod', guestOf({}, { phase: 'Running', rightToRun }), undefined, 'Running'],
    ['ended', guestOf({}, { phase: 'Succeeded' }), ready, 'Succeeded'],
  ])('%s', (_, guest, pod, expected) => expect(nextPhase(guest, pod)).toBe(expected));
});

describe('a pod', () => {
  it.each<[string, VirtualMachineInstance, boolean]>([
    ['for a new guest', guestOf(), true],
    ['for one that waits', guestOf({}, { phase: 'Pending' }), true],
    ['not for one that is deleted', deleted(guestOf()), false],
    ['not for one that comes from elsewhere', receiver(guestOf()), false],
    ['not again', guestOf({}, { phase: 'Scheduling' }), false],
    ['not for one that was executed', guestOf({}, { phase: 'Pending', rightToRun }), false],
  ])('%s', (_, guest, expected) => expect(needsPod(guest, undefined)).toBe(expected));
});

describe('a guest may be forgotten', () => {
  it.each<[string, VirtualMachineInstance, number, boolean]>([
    ['when it ended and nobody holds it', guestOf({}, { phase: 'Succeeded', rightToRun: { epoch: 2 } }), 0, true],
    ['when it never began', guestOf({}, { phase: 'Failed' }), 0, true],
    ['not while somebody may execute it', guestOf({}, { phase: 'Failed', rightToRun }), 0, false],
    ['not while it has pods', guestOf({}, { phase: 'Failed' }), 1, false],
    ['not before it ended', guestOf({}, { phase: 'Scheduling' }), 0, false],
  ])('%s', (_, guest, podCount, expected) => expect(isForgettable(guest, podCount)).toBe(expected));
});
