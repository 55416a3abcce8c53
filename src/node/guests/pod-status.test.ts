import { describe, expect, it } from 'vitest';
import type { LauncherPod, LauncherPodStatus } from './launcher-pod.ts';
import { endedStatus, foreignStatus, runningStatus, waitingStatus } from './pod-status.ts';

const GATE = 'kubevirt.io/virtual-machine-unpaused';
const NOW = Date.UTC(2026, 0, 1);
const LATER = NOW + 60_000;
const CAUSE = { reason: 'ImageNotFound', message: 'volume root: no such image' };

const pod = (status: LauncherPodStatus = {}): LauncherPod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { uid: 'p' },
  spec: { containers: [{ name: 'compute', image: 'launcher:1' }] },
  status: { conditions: [{ type: 'PodScheduled', status: 'True' }], ...status },
});
const conditions = ({ conditions = [] }: LauncherPodStatus): string[] =>
  conditions.map(({ type, status, reason }) => `${type} ${status}${reason === undefined ? '' : ` ${reason}`}`);

describe("a pod's status", () => {
  it('while it waits names the cause, and says the same again in the same words', () => {
    const status = waitingStatus(pod(), CAUSE, NOW);
    expect(conditions(status)).toEqual([
      'PodScheduled True',
      'PodReadyToStartContainers False ImageNotFound',
      'Initialized True',
      'ContainersReady False ImageNotFound',
      'Ready False ImageNotFound',
    ]);
    expect(status.containerStatuses).toEqual([expect.objectContaining({ ready: false, state: { waiting: CAUSE } })]);
    expect(waitingStatus(pod(status), CAUSE, LATER)).toEqual(status);
  });
  it('when it runs has no reason left, and keeps its times', () => {
    const waiting = waitingStatus(pod(), CAUSE, NOW);
    const status = runningStatus(pod(waiting), false, LATER);
    expect(status).toMatchObject({ phase: 'Running', startTime: '2026-01-01T00:00:00Z', reason: undefined });
    expect(conditions(status)).toEqual([
      'PodScheduled True',
      'PodReadyToStartContainers True',
      'Initialized True',
      'ContainersReady True',
      'Ready True',
    ]);
    expect(status.conditions?.map(({ lastTransitionTime }) => lastTransitionTime)).toEqual([
      undefined,
      '2026-01-01T00:01:00Z',
      '2026-01-01T00:00:00Z',
      '2026-01-01T00:01:00Z',
      '2026-01-01T00:01:00Z',
    ]);
    expect(runningStatus(pod(status), false, LATER + 60_000)).toEqual(status);
  });
  it('follows its guest through the gate, where there is one', () => {
    const gated = (status: LauncherPodStatus = {}): LauncherPod => {
      const given = pod(status);
      return { ...given, spec: { ...given.spec, readinessGates: [{ conditionType: GATE }] } };
    };
    const running = runningStatus(gated(), false, NOW);
    expect(conditions(running).slice(-2)).toEqual(['Ready True', `${GATE} True NotPaused`]);
    const held = runningStatus(gated(running), true, LATER);
    expect(conditions(held).slice(-3)).toEqual([
      'ContainersReady True',
      'Ready False ReadinessGatesNotReady',
      `${GATE} False Paused`,
    ]);
    expect(runningStatus(gated(held), true, LATER + 60_000)).toEqual(held);
    expect(conditions(runningStatus(gated(held), false, LATER))).toEqual(conditions(running));
    expect(conditions(runningStatus(pod(), true, NOW))).not.toContain(`${GATE} False Paused`);
    expect(conditions(runningStatus(pod(), true, NOW))).toContain('Ready True');
  });
  it.each([true, false])('when it has ended says how: success %s', (hasSucceeded) => {
    const running = runningStatus(pod(), false, NOW);
    const status = endedStatus(pod(running), hasSucceeded, { reason: 'Killed', message: 'by SIGKILL' }, LATER);
    expect(status.phase).toBe(hasSucceeded ? 'Succeeded' : 'Failed');
    expect(status.reason).toBe(hasSucceeded ? undefined : 'Killed');
    expect(status.containerStatuses?.[0]?.state).toEqual({
      terminated: {
        exitCode: hasSucceeded ? 0 : 1,
        reason: 'Killed',
        message: 'by SIGKILL',
        startedAt: '2026-01-01T00:00:00Z',
        finishedAt: '2026-01-01T00:01:00Z',
      },
    });
    expect(conditions(status)).toContain(`Ready False ${hasSucceeded ? 'PodCompleted' : 'PodFailed'}`);
  });
  it('of another kind of pod says why it never runs', () => {
    expect(foreignStatus(pod(), NOW)).toMatchObject({ phase: 'Pending', reason: 'NotALauncher' });
  });
});
