import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { LauncherPod } from '../resources.ts';
import { guestOf, podOf } from './guests.fixture.ts';
import { statusAfter } from './status.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');

function after(
  status: VirtualMachineInstanceStatus,
  pod?: LauncherPod,
  more: { readonly pods?: readonly LauncherPod[]; readonly failure?: { reason: string; message: string } } = {},
): VirtualMachineInstanceStatus {
  const { pods = pod ? [pod] : [], failure } = more;
  return statusAfter({ guest: guestOf({}, status), pod, pods, claimOf: () => undefined, nodeLabels: {}, failure }, NOW);
}

const ofType = (status: VirtualMachineInstanceStatus, type: string) =>
  status.conditions?.find((condition) => condition.type === type);

describe('that a guest has to leave its node', () => {
  const marked: VirtualMachineInstanceStatus = { phase: 'Running', nodeName: 'node-a', evacuationNodeName: 'node-a' };
  it('is said while it is marked for that', () => {
    const told = after(marked);
    expect(ofType(told, 'EvictionRequested')).toMatchObject({ status: 'True', reason: 'EvictionRequested' });
    const { evacuationNodeName: _, ...unmarked } = { ...marked, ...told };
    expect(ofType(after(unmarked), 'EvictionRequested')).toBeUndefined();
  });
  it.each<[string, VirtualMachineInstanceStatus]>([
    ['has left', { ...marked, nodeName: 'node-b' }],
    ['has ended', { ...marked, phase: 'Failed' }],
  ])('is not said of one that %s', (_, status) => {
    expect(ofType(after(status), 'EvictionRequested')).toBeUndefined();
  });
});

describe('readiness', () => {
  const going = podOf({ phase: 'Running' });
  going.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  const podIs = (status: string, reason?: string) =>
    podOf({ phase: 'Running', conditions: [{ type: 'Ready', status, ...(reason ? { reason } : {}) }] }, 'node-a');
  it.each<[string, VirtualMachineInstanceStatus, LauncherPod | undefined, string, string | undefined]>([
    ['without a pod', { phase: 'Pending' }, undefined, 'False', 'PodNotExists'],
    ['with a pod that goes', { phase: 'Running' }, going, 'False', 'PodTerminating'],
    ['before it runs', { phase: 'Scheduled' }, podIs('True'), 'False', 'GuestNotRunning'],
    ['with a pod that does not say', { phase: 'Running' }, podOf({ phase: 'Running' }), 'False', 'PodConditionMissing'],
    [
      'with a pod that is not',
      { phase: 'Running' },
      podIs('False', 'ContainersNotReady'),
      'False',
      'ContainersNotReady',
    ],
    ['with a pod that is', { phase: 'Running' }, podIs('True'), 'True', undefined],
    [
      'while it is paused',
      { phase: 'Running', conditions: [{ type: 'Paused', status: 'True' }] },
      podIs('True'),
      'False',
      'GuestPaused',
    ],
  ])('%s', (_, status, pod, expected, reason) => {
    const ready = ofType(after(status, pod), 'Ready');
    expect(ready?.status).toBe(expected);
    expect(ready?.reason).toBe(reason);
  });
  it('forgets why it was not, and tells since when it is', () => {
    const conditions = [{ type: 'Ready', status: 'False' as const, reason: 'GuestNotRunning', message: 'no' }];
    expect(ofType(after({ phase: 'Running', conditions }, podIs('True')), 'Ready')).toEqual({
      type: 'Ready',
      status: 'True',
      lastTransitionTime: '2026-01-01T00:00:00Z',
    });
  });
});

describe('what is not ours', () => {
  it('stays as it is', () => {
    const paused = { type: 'Paused', status: 'True' as const };
    const pod = podOf({ phase: 'Running' }, 'node-b');
    const next = after({ phase: 'Running', nodeName: 'node-a', conditions: [paused] }, pod);
    expect(next.conditions).toContainEqual(paused);
    expect(next.phase).toBe('Running');
    expect(next).not.toHaveProperty('nodeName');
    expect(next.phaseTransitionTimestamps).toBeUndefined();
  });
});

describe('pods', () => {
  it('that have a node and have not ended are active', () => {
    const over = podOf({ phase: 'Succeeded' }, 'node-a');
    const target = { ...podOf({ phase: 'Pending' }, 'node-b'), metadata: { uid: 'pod-2' } };
    const waiting = { ...podOf({ phase: 'Pending' }), metadata: { uid: 'pod-3' } };
    expect(after({ phase: 'Running' }, over, { pods: [over, target, waiting] }).activePods).toEqual({
      'pod-2': 'node-b',
    });
    expect(after({ phase: 'Succeeded', activePods: { 'pod-1': 'node-a' } }, over).activePods).toBeUndefined();
  });
});

describe('failures', () => {
  const endedPod = (reason: string, message: string): LauncherPod => {
    const status = { phase: 'Failed', reason, message };
    return podOf(status, 'node-a');
  };
  it('are told, a missing claim as what keeps the pod from a node too', () => {
    const failure = { reason: 'FailedPvcNotFound', message: 'PVC shop/disk does not exist' };
    const next = after({ phase: 'Pending' }, undefined, { failure });
    expect(ofType(next, 'Synchronized')).toMatchObject({ status: 'False', ...failure });
    expect(ofType(next, 'PodScheduled')).toMatchObject({ reason: 'Unschedulable', message: failure.message });
  });
  it('of a guest that ended are told as its launcher tells them, and stay told', () => {
    const cause = { reason: 'Failed', message: 'QEMU ended with exit code 1' };
    const pod = endedPod(cause.reason, cause.message);
    const rightToRun = { epoch: 1 };
    const next = after({ phase: 'Failed', rightToRun }, pod);
    expect(ofType(next, 'Synchronized')).toMatchObject({ status: 'False', ...cause });
    const later = after({ phase: 'Failed', rightToRun, conditions: next.conditions ?? [] }, undefined);
    expect(ofType(later, 'Synchronized')).toMatchObject({ status: 'False', ...cause });
    expect(ofType(after({ phase: 'Running', rightToRun }, pod), 'Synchronized')).toBeUndefined();
    const told = endedPod('Quit', 'QEMU was told to quit');
    expect(ofType(after({ phase: 'Failed', rightToRun }, told), 'Synchronized')).toBeUndefined();
  });
  it('before a guest was handed over are told at once', () => {
    const pod = endedPod('NotSupported', 'spec.domain.x: no');
    const next = after({ phase: 'Scheduling' }, pod);
    expect(next.phase).toBe('Failed');
    expect(ofType(next, 'Synchronized')).toMatchObject({ reason: 'NotSupported', message: 'spec.domain.x: no' });
  });
  it('are forgotten when they are over', () => {
    const conditions = [{ type: 'Synchronized', status: 'False' as const, reason: 'FailedCreate' }];
    expect(ofType(after({ phase: 'Pending', conditions }, podOf()), 'Synchronized')).toBeUndefined();
  });
});

describe('processors that a guest is to get', () => {
  const podFor = (sockets?: string): LauncherPod => {
    const pod = podOf({ phase: 'Running' }, 'node-a');
    return { ...pod, metadata: { ...pod.metadata, annotations: sockets ? { 'godwit.dev/sockets': sockets } : {} } };
  };
  const RUNNING: VirtualMachineInstanceStatus = { phase: 'Running', currentCPUTopology: { sockets: 2 }, memory: {} };

  it.each<readonly [string, VirtualMachineInstanceStatus, string | undefined, string | undefined]>([
    ['need a move where the pod was made for less', RUNNING, '2', 'True'],
    ['need a move where the pod does not say what it was made for', RUNNING, undefined, 'True'],
    ['need none where the pod was made for them', RUNNING, '4', 'False'],
    ['are nobody’s concern once they are there', { ...RUNNING, currentCPUTopology: { sockets: 4 } }, '4', undefined],
    ['are nobody’s concern before the guest runs', { ...RUNNING, phase: 'Scheduled' }, '2', undefined],
  ])('%s', (_what, status, room, expected) => {
    const guest = guestOf({ domain: { devices: {}, cpu: { sockets: 4 } } }, status);
    const pod = podFor(room);
    const observed = { guest, pod, pods: [pod], claimOf: () => undefined, nodeLabels: {}, failure: undefined };
    expect(ofType(statusAfter(observed, NOW), 'HotVCPUChange')?.status).toBe(expected);
  });
});

describe('memory that a guest is to get', () => {
  const memoryOf = (room: string | undefined, guestCurrent: string): string | undefined => {
    const pod = podOf({ phase: 'Running' }, 'node-a');
    const annotations: Record<string, string> = room ? { 'godwit.dev/memory': room } : {};
    const launcher = { ...pod, metadata: { ...pod.metadata, annotations } };
    const guest = guestOf(
      { domain: { devices: {}, memory: { guest: '2Gi' } } },
      { phase: 'Running', memory: { guestAtBoot: '1Gi', guestCurrent } },
    );
    const observed = {
      guest,
      pod: launcher,
      pods: [launcher],
      claimOf: () => undefined,
      nodeLabels: {},
      failure: undefined,
    };
    return ofType(statusAfter(observed, NOW), 'HotMemoryChange')?.status;
  };

  it('needs a move, unless the pod was made for it, or it is there', () => {
    expect(memoryOf('1Gi', '1Gi')).toBe('True');
    expect(memoryOf(undefined, '1Gi')).toBe('True');
    expect(memoryOf('2Gi', '1Gi')).toBe('False');
    expect(memoryOf('2Gi', '2048Mi')).toBeUndefined();
  });
});
