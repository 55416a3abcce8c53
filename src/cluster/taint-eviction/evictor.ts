import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { podConditionPatch } from '../pod-condition.ts';
import { nodes, pods } from '../resources.ts';

export interface EvictorOptions {
  readonly env: Pick<Env, 'clock'>;
  readonly client: Client;
  readonly recorder: Pick<EventRecorder, 'event'>;
}

/** Attempts on a pod that others keep changing. */
const ATTEMPTS_MAX = 5;

const DISRUPTION = {
  type: 'DisruptionTarget',
  status: 'True',
  reason: 'DeletionByTaintManager',
  message: 'Taint manager: deleting due to NoExecute taint',
} as const;

/** Makes pods leave: tells them why, then deletes them with the grace that they ask for. */
export class Evictor {
  readonly #env: EvictorOptions['env'];
  readonly #client: Client;
  readonly #recorder: EvictorOptions['recorder'];

  constructor(options: EvictorOptions) {
    this.#env = options.env;
    this.#client = options.client;
    this.#recorder = options.recorder;
  }

  /**
   * Evicts the pod if it still has to go, by what pod and node are now and not by what somebody has heard of them. Each
   * write is for the version that was looked at. False where the pod may stay.
   */
  async evict(pod: Pod, hasToGo: (pod: Pod, node: Node) => boolean, signal: AbortSignal): Promise<boolean> {
    const { namespace = '', name = '', uid } = pod.metadata;
    for (let attempt = 1; ; attempt++) {
      const current = await this.#client.find(pods, namespace, name, signal);
      if (!current || current.metadata.uid !== uid) return true;
      const node = await this.#client.find(nodes, '', current.spec?.nodeName ?? '', signal);
      if (!node || !hasToGo(current, node)) return false;
      try {
        await this.#evict(current, attempt === 1, signal);
        return true;
      } catch (error) {
        const { code = 0 } = error instanceof ApiError ? error : {};
        if (code === 404) return true;
        if (code !== 409 || attempt === ATTEMPTS_MAX) throw error;
      }
    }
  }

  async #evict(pod: Pod, isFirst: boolean, signal: AbortSignal): Promise<void> {
    const { namespace = '', name = '', uid = '', deletionTimestamp } = pod.metadata;
    const body = podConditionPatch(pod, DISRUPTION, this.#env.clock.now());
    if (!body && deletionTimestamp !== undefined) return;
    if (isFirst) {
      const message = `Marking for deletion Pod ${namespace}/${name}`;
      this.#recorder.event(pod, 'Normal', 'TaintManagerEviction', message);
    }
    const patch = body && ({ type: 'strategic', body } as const);
    const told = patch
      ? await this.#client.patch(pods, namespace, name, patch, signal, { subresource: 'status' })
      : pod;
    if (deletionTimestamp !== undefined) return;
    const { resourceVersion } = told.metadata;
    await this.#client.delete(pods, namespace, name, signal, {
      preconditions: {
        ...(uid === undefined ? {} : { uid }),
        ...(resourceVersion === undefined ? {} : { resourceVersion }),
      },
    });
  }
}
