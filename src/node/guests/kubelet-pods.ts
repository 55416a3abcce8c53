import { UNPAUSED_CONDITION } from '../../api/kubevirt/well-known.ts';
import { formatTime } from '../../api/meta.ts';
import type { Clock } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { PodCondition } from '../../migration/fit/objects.ts';
import { type LauncherPod, launcherPods } from './launcher-pod.ts';
import type { Launchers } from './launchers.ts';
import type { PodEnd, PodKeeper } from './pod-keeper.ts';
import { type Cause, NOT_PAUSED, PAUSED } from './pod-status.ts';

export interface KubeletPodsOptions {
  readonly clock: Clock;
  readonly client: Client;
  readonly launchers: Pick<Launchers, 'end' | 'forget'>;
  /** Does something that writes a pod, by its UID. */
  readonly write: (podUID: string, write: () => Promise<LauncherPod>) => Promise<void>;
}

/**
 * The pods of a kubelet, which runs their launchers and says how they are. The agent says by the readiness gate alone whether the
 * guest answers, and why not; and it has launchers end whose work is done, so that their pods end like that.
 */
export class KubeletPods implements PodKeeper {
  readonly #options: KubeletPodsOptions;
  /** Pods whose launchers were told to end: their kubelet says so a little later. */
  readonly #ended = new Set<string>();

  constructor(options: KubeletPodsOptions) {
    this.#options = options;
  }

  canRun({ status }: LauncherPod): boolean {
    return status?.phase === 'Running';
  }

  isPending(pod: LauncherPod): boolean {
    const gate = gateOf(pod);
    return gate === undefined || this.obstacleOf(pod) !== undefined;
  }

  obstacleOf(pod: LauncherPod): Cause | undefined {
    const { status, reason = '', message = '' } = gateOf(pod) ?? {};
    return status === 'False' && reason !== PAUSED.reason ? { reason, message } : undefined;
  }

  async tellWaiting(pod: LauncherPod, cause: Cause, signal: AbortSignal): Promise<void> {
    await this.#tell(pod, false, cause, signal);
  }

  async tellRunning(pod: LauncherPod, isPaused: boolean, signal: AbortSignal): Promise<void> {
    await this.#tell(pod, !isPaused, isPaused ? PAUSED : NOT_PAUSED, signal);
  }

  async tellEnded(pod: LauncherPod, { hasSucceeded, cause }: PodEnd): Promise<void> {
    await this.#end(pod, hasSucceeded ? 0 : 1, `${cause.reason}: ${cause.message}`);
  }

  async tellForeign(): Promise<void> {
    // It is the kubelet's business alone.
  }

  async letGo(pod: LauncherPod): Promise<void> {
    await this.#end(pod, 0, 'the pod was deleted');
  }

  async forget(podUID: string): Promise<void> {
    this.#ended.delete(podUID);
    await this.#options.launchers.forget(podUID);
  }

  /** A container that has not started yet is looked at again when it has; of one that never does, the kubelet lets go. */
  async #end(pod: LauncherPod, exitCode: number, message: string): Promise<void> {
    const { uid = '' } = pod.metadata;
    if (!this.canRun(pod) || this.#ended.has(uid)) return;
    await this.#options.launchers.end(uid, { exitCode, message });
    this.#ended.add(uid);
  }

  async #tell(pod: LauncherPod, isOpen: boolean, cause: Cause, signal: AbortSignal): Promise<void> {
    const old = gateOf(pod);
    const status = isOpen ? 'True' : 'False';
    if (old?.status === status && old.reason === cause.reason && old.message === cause.message) return;
    const { clock, client, write } = this.#options;
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const since = old?.status === status ? old.lastTransitionTime : undefined;
    const gate = { type: UNPAUSED_CONDITION, status, lastTransitionTime: since ?? formatTime(clock.now()), ...cause };
    // The other conditions are the kubelet's, which may be writing them just now.
    const body = { metadata: { uid }, status: { conditions: [gate] } };
    const options = { subresource: 'status' };
    await write(uid, () => client.patch(launcherPods, namespace, name, { type: 'strategic', body }, signal, options));
  }
}

function gateOf({ status }: LauncherPod): PodCondition | undefined {
  return status?.conditions?.find(({ type }) => type === UNPAUSED_CONDITION);
}
