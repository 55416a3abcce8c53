import { errorMessage } from '../../api/error-message.ts';
import { UNPAUSED_CONDITION } from '../../api/kubevirt/well-known.ts';
import { formatTime } from '../../api/meta.ts';
import { type Clock, type Logger, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { PodCondition } from '../../migration/fit/objects.ts';
import { type LauncherPod, launcherPods } from './launcher-pod.ts';
import type { Launchers } from './launchers.ts';
import type { PodEnd, PodKeeper } from './pod-keeper.ts';
import { type Cause, NOT_PAUSED, PAUSED } from './pod-status.ts';

export interface KubeletPodsOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly client: Client;
  readonly launchers: Pick<Launchers, 'end' | 'ending' | 'forget'>;
  /** Called with the UID of a pod of which something is new that the API does not tell. */
  readonly onNews: (podUID: string) => void;
}

/** How often it is looked whether kubelets end pods: guests have half a minute then, as a rule. */
const LOOK_MS = 1000;

/**
 * The pods of a kubelet, which runs their launchers and says how they are. The agent says by the readiness gate alone whether the
 * guest answers, and why not; and it has launchers end whose work is done, so that their pods end like that.
 */
export class KubeletPods implements PodKeeper {
  readonly #options: KubeletPodsOptions;
  /** Pods whose launchers were told to end: their kubelet says so a little later. */
  readonly #ended = new Set<string>();
  /** Pods whose kubelet has told their launchers to end, with the time since when it is known that nobody has deleted them. */
  readonly #ending = new Map<string, number | undefined>();

  constructor(options: KubeletPodsOptions) {
    this.#options = options;
  }

  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, launchers, onNews } = this.#options;
    while (!signal.aborted) {
      try {
        for (const podUID of await launchers.ending()) {
          if (this.#ending.has(podUID)) continue;
          this.#ending.set(podUID, undefined);
          onNews(podUID);
        }
      } catch (error) {
        log.warn('nobody says which pods the kubelet ends', { error: errorMessage(error) });
      }
      await sleep(clock, LOOK_MS, signal);
    }
  }

  /** A kubelet tells nobody but the container that it ends a pod under pressure, or before its node shuts down. */
  async endingMs({ metadata }: LauncherPod, signal: AbortSignal): Promise<number | undefined> {
    const { namespace = '', name = '', uid = '', deletionTimestamp } = metadata;
    const knownMs = this.#ending.get(uid);
    if (knownMs !== undefined || deletionTimestamp !== undefined || !this.#ending.has(uid)) return knownMs;
    const { client, clock } = this.#options;
    // That it was deleted may have been heard by its kubelet alone.
    const pod = await client.find(launcherPods, namespace, name, signal);
    if (pod?.metadata.uid !== uid || pod.metadata.deletionTimestamp !== undefined) return undefined;
    this.#ending.set(uid, clock.now());
    return clock.now();
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
    this.#ending.delete(podUID);
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
    const { clock, client } = this.#options;
    const { namespace = '', name = '', uid = '' } = pod.metadata;
    const since = old?.status === status ? old.lastTransitionTime : undefined;
    const gate = { type: UNPAUSED_CONDITION, status, lastTransitionTime: since ?? formatTime(clock.now()), ...cause };
    // The other conditions are the kubelet's, which may be writing them just now.
    const body = { metadata: { uid }, status: { conditions: [gate] } };
    const options = { subresource: 'status' };
    // The echo is heard as anybody's: it may bring what the kubelet has written, too.
    await client.patch(launcherPods, namespace, name, { type: 'strategic', body }, signal, options);
  }
}

function gateOf({ status }: LauncherPod): PodCondition | undefined {
  return status?.conditions?.find(({ type }) => type === UNPAUSED_CONDITION);
}
