import type { LauncherPod } from './launcher-pod.ts';
import type { Cause } from './pod-status.ts';

/**
 * Who keeps the launcher pods of a node, and says how they are: the agent itself, or the kubelet of its machine. Whatever is said
 * may be said again.
 */
export interface PodKeeper {
  /** Looks after pods until the signal aborts. */
  run(signal: AbortSignal): Promise<void>;
  /** Since when the pod is ended though nobody has deleted it; undefined where it is not. */
  endingMs(pod: LauncherPod, signal: AbortSignal): Promise<number | undefined>;
  /** Whether there is something by now that a machine of the pod can be started in. */
  canRun(pod: LauncherPod): boolean;
  /** Whether it has not been said yet that the pod has all that it needs. */
  isPending(pod: LauncherPod): boolean;
  /** What the pod is said to wait for; undefined where it is not. */
  obstacleOf(pod: LauncherPod): Cause | undefined;
  /** The pod waits for something. */
  tellWaiting(pod: LauncherPod, cause: Cause, signal: AbortSignal): Promise<void>;
  /** All that the pod needs is there: its guest can be handed over. One that is paused answers nobody. */
  tellRunning(pod: LauncherPod, isPaused: boolean, signal: AbortSignal): Promise<void>;
  /** Nothing of the pod runs any more, nor will. */
  tellEnded(pod: LauncherPod, end: PodEnd, signal: AbortSignal): Promise<void>;
  /** The pod is for no guest. */
  tellForeign(pod: LauncherPod, signal: AbortSignal): Promise<void>;
  /** Lets go of a pod that is being deleted, and of which nothing runs. */
  letGo(pod: LauncherPod, signal: AbortSignal): Promise<void>;
  /** Forgets a pod that is gone. */
  forget(podUID: string): Promise<void>;
}

/** How a pod has ended. */
export interface PodEnd {
  readonly hasSucceeded: boolean;
  readonly cause: Cause;
}
