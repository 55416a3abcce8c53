import { ApiError } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { statusPatch } from '../../kube/status-patch.ts';
import { isPodOver, type LauncherPod, launcherPods, type LauncherPodStatus } from './launcher-pod.ts';
import type { PodEnd, PodKeeper } from './pod-keeper.ts';
import { type Cause, endedStatus, foreignStatus, NOT_A_LAUNCHER, runningStatus, waitingStatus } from './pod-status.ts';

export interface OwnPodsOptions {
  readonly clock: Clock;
  readonly client: Client;
  readonly recorder: Pick<EventRecorder, 'event'>;
  /** Does something that writes a pod, by its UID. */
  readonly write: (podUID: string, write: () => Promise<LauncherPod>) => Promise<void>;
}

/** The pods of a node that has no kubelet: the agent writes all of their status. */
export class OwnPods implements PodKeeper {
  readonly #options: OwnPodsOptions;

  constructor(options: OwnPodsOptions) {
    this.#options = options;
  }

  async run(): Promise<void> {
    // All that happens to pods is in the API.
  }

  async endingMs(): Promise<undefined> {
    return undefined;
  }

  canRun(): boolean {
    return true;
  }

  isPending({ status }: LauncherPod): boolean {
    return status?.phase !== 'Running';
  }

  obstacleOf({ status }: LauncherPod): Cause | undefined {
    return status?.containerStatuses?.[0]?.state.waiting;
  }

  async tellWaiting(pod: LauncherPod, cause: Cause, signal: AbortSignal): Promise<void> {
    if (this.isPending(pod)) await this.#tell(pod, waitingStatus(pod, cause, this.#options.clock.now()), signal);
  }

  async tellRunning(pod: LauncherPod, isPaused: boolean, signal: AbortSignal): Promise<void> {
    const running = runningStatus(pod, isPaused, this.#options.clock.now());
    // Whoever takes the node for lost says that its pods are not ready; nobody but the node says that they are again.
    const isDoubted = pod.metadata.deletionTimestamp === undefined && isReady(pod.status) !== isReady(running);
    if (this.isPending(pod) || isDoubted) await this.#tell(pod, running, signal);
  }

  async tellEnded(pod: LauncherPod, { hasSucceeded, cause }: PodEnd, signal: AbortSignal): Promise<void> {
    await this.#tell(pod, endedStatus(pod, hasSucceeded, cause, this.#options.clock.now()), signal);
  }

  /** Says why it never runs, and lets it go when it is deleted. */
  async tellForeign(pod: LauncherPod, signal: AbortSignal): Promise<void> {
    if (pod.metadata.deletionTimestamp !== undefined) return this.letGo(pod, signal);
    if (isPodOver(pod) || pod.status?.reason === NOT_A_LAUNCHER.reason) return;
    const { reason, message } = NOT_A_LAUNCHER;
    this.#options.recorder.event(pod, 'Warning', reason, message);
    await this.#tell(pod, foreignStatus(pod, this.#options.clock.now()), signal);
  }

  async letGo({ metadata }: LauncherPod, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '' } = metadata;
    const options = { gracePeriodSeconds: 0, preconditions: { uid } };
    try {
      await this.#options.client.delete(launcherPods, namespace, name, signal, options);
    } catch (error) {
      // It is gone, or another one has its name: either way there is nothing left to let go of.
      if (!(error instanceof ApiError) || (error.code !== 404 && error.code !== 409)) throw error;
    }
  }

  async forget(): Promise<void> {
    // All that is known of a pod is in its status.
  }

  async #tell(pod: LauncherPod, status: LauncherPodStatus, signal: AbortSignal): Promise<void> {
    const body = statusPatch(pod, status);
    if (!body) return;
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const patch = { type: 'merge', body } as const;
    const { client, write } = this.#options;
    await write(uid, () => client.patch(launcherPods, namespace, name, patch, signal, { subresource: 'status' }));
  }
}

function isReady(status: LauncherPodStatus | undefined): boolean {
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
}
