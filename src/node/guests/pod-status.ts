import { UNPAUSED_CONDITION } from '../../api/kubevirt/well-known.ts';
import { formatTime } from '../../api/meta.ts';
import type { PodCondition } from '../../migration/fit/objects.ts';
import type { ContainerStatus, LauncherPod, LauncherPodStatus } from './launcher-pod.ts';

/** What a pod's status says, of all that its node's agent writes. Fields that are to be absent are undefined. */

/** Why something is as it is: a word for programs, and a sentence for people. */
export interface Cause {
  readonly reason: string;
  readonly message: string;
}

/** All that the pod needs is there: its guest can be handed over. One that is paused answers nobody. */
export function runningStatus(pod: LauncherPod, isPaused: boolean, nowMs: number): LauncherPodStatus {
  const startTime = pod.status?.startTime ?? formatTime(nowMs);
  return {
    phase: 'Running',
    reason: undefined,
    message: undefined,
    startTime,
    conditions: conditionsAfter(pod, { isReady: true, isPaused }, nowMs),
    containerStatuses: containers(pod, { running: { startedAt: formatTime(nowMs) } }, true),
  };
}

/** The pod waits for something. */
export function waitingStatus(pod: LauncherPod, cause: Cause, nowMs: number): LauncherPodStatus {
  return {
    phase: 'Pending',
    reason: undefined,
    message: undefined,
    startTime: pod.status?.startTime ?? formatTime(nowMs),
    conditions: conditionsAfter(pod, { isReady: false, cause }, nowMs),
    containerStatuses: containers(pod, { waiting: { reason: cause.reason, message: cause.message } }, false),
  };
}

/** Why a pod that is no launcher never runs here. */
export const NOT_A_LAUNCHER = {
  reason: 'NotALauncher',
  message: 'this node runs the launcher pods of virtual machines, and no others',
} as const satisfies Cause;

/** The pod will never run here. It stays Pending: whoever made it may want it elsewhere. */
export function foreignStatus(pod: LauncherPod, nowMs: number): LauncherPodStatus {
  return {
    phase: 'Pending',
    ...NOT_A_LAUNCHER,
    conditions: conditionsAfter(pod, { isReady: false, cause: NOT_A_LAUNCHER }, nowMs),
  };
}

/** The pod has ended. */
export function endedStatus(pod: LauncherPod, hasSucceeded: boolean, cause: Cause, nowMs: number): LauncherPodStatus {
  const { startedAt } = pod.status?.containerStatuses?.[0]?.state.running ?? {};
  const terminated = {
    exitCode: hasSucceeded ? 0 : 1,
    ...cause,
    ...(startedAt === undefined ? {} : { startedAt }),
    finishedAt: formatTime(nowMs),
  };
  const ready = { isReady: false, cause: { reason: hasSucceeded ? 'PodCompleted' : 'PodFailed', message: '' } };
  return {
    phase: hasSucceeded ? 'Succeeded' : 'Failed',
    ...(hasSucceeded ? { reason: undefined, message: undefined } : cause),
    conditions: conditionsAfter(pod, ready, nowMs),
    containerStatuses: containers(pod, { terminated }, false),
  };
}

function containers({ metadata, spec, status }: LauncherPod, state: ContainerStatus['state'], ready: boolean) {
  return (spec?.containers ?? []).map(({ name = '', image = '' }): ContainerStatus => {
    const old = status?.containerStatuses?.find((each) => each.name === name);
    // It has not begun to wait, or to run, anew.
    const isSame = state.running !== undefined && old?.state.running !== undefined;
    return {
      name,
      image,
      imageID: '',
      ready,
      restartCount: 0,
      started: ready,
      ...(state.waiting === undefined ? { containerID: `godwit://${metadata.uid ?? ''}` } : {}),
      state: isSame ? old.state : state,
    };
  });
}

interface Readiness {
  /** Whether the container is. */
  readonly isReady: boolean;
  readonly cause?: Cause;
  /** Whether its guest is paused, where there is one. */
  readonly isPaused?: boolean;
}

export const PAUSED: Cause = { reason: 'Paused', message: 'the virtual machine is paused' };
export const NOT_PAUSED: Cause = { reason: 'NotPaused', message: 'the virtual machine is not paused' };
const GATE_CLOSED: Cause = {
  reason: 'ReadinessGatesNotReady',
  message: `the condition of the readiness gate ${UNPAUSED_CONDITION} is not True`,
};

type Wanted = readonly [type: string, isTrue: boolean, cause?: Cause | undefined];

function conditionsAfter(pod: LauncherPod, { isReady, cause, isPaused }: Readiness, nowMs: number): PodCondition[] {
  const hasGate = pod.spec?.readinessGates?.some(({ conditionType }) => conditionType === UNPAUSED_CONDITION) === true;
  const isClosed = isReady && hasGate && isPaused === true;
  const wanted: Wanted[] = [
    ['PodReadyToStartContainers', isReady, cause],
    ['Initialized', true],
    ['ContainersReady', isReady, cause],
    ['Ready', isReady && !isClosed, isClosed ? GATE_CLOSED : cause],
  ];
  if (hasGate && isPaused !== undefined) wanted.push([UNPAUSED_CONDITION, !isPaused, isPaused ? PAUSED : NOT_PAUSED]);
  const conditions = [...(pod.status?.conditions ?? [])];
  for (const [type, isTrue, why] of wanted) {
    const index = conditions.findIndex((condition) => condition.type === type);
    const old = conditions[index];
    const next: PodCondition = {
      type,
      status: isTrue ? 'True' : 'False',
      lastTransitionTime: old?.status === (isTrue ? 'True' : 'False') ? old.lastTransitionTime : formatTime(nowMs),
      // Only of the gate is it told why it is open.
      ...((isTrue && why !== NOT_PAUSED) || why === undefined ? {} : why),
    };
    if (old) conditions[index] = next;
    else conditions.push(next);
  }
  return conditions;
}
