import type { EventReason } from '../../api/event-reasons.ts';
import { formatTime, type JsonObject, type KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Pod, PodCondition } from '../../migration/fit/objects.ts';
import type { PodInfo } from '../../migration/fit/pod-info.ts';
import { eventMessage } from './fit-error.ts';

/** What the scheduler does to the world: every write, and what it means when one fails. */

const podResource: Resource<Pod> = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };

/** Says what happened, for people. */
export interface Recorder {
  event(object: KubeObject, type: 'Normal' | 'Warning', reason: EventReason, message: string): void;
}

/** Attempts to bind a pod before another node is looked for. */
const BIND_ATTEMPTS_MAX = 5;
const RETRY_MS = 500;
const RETRY_MS_MAX = 10_000;
/** Attempts to write a status that others keep changing. */
const STATUS_ATTEMPTS_MAX = 5;
/** Pods that are listed at once. */
const PAGE_LIMIT = 500;

/** What a pod without a node is told. */
export interface Mark {
  readonly reason: 'Unschedulable' | 'SchedulerError';
  readonly message: string;
  /** The node that it waits for: empty for none, undefined to leave it as it is. */
  readonly nominatedNode: string | undefined;
}

interface StatusChange {
  readonly condition?: PodCondition;
  readonly nominatedNode?: string | undefined;
}

export class Actions {
  readonly #env: Env;
  readonly #client: Client;
  readonly #recorder: Recorder;

  constructor(options: { readonly env: Env; readonly client: Client; readonly recorder: Recorder }) {
    this.#env = options.env;
    this.#client = options.client;
    this.#recorder = options.recorder;
  }

  /**
   * Binds a pod. Answers undefined once it is bound, else why it is not: where the answer got lost, the pod itself is
   * asked, since the room of a pod that is bound and not known to be would be given away twice.
   */
  async bind(pod: PodInfo, node: string, signal: AbortSignal): Promise<string | undefined> {
    for (let attempt = 1; ; attempt++) {
      const error = await this.#tryBind(pod, node, signal);
      const actual = error === undefined ? node : await this.nodeOf(pod, signal);
      if (actual === node) break;
      if (actual !== '' || isDefinite(error) || attempt === BIND_ATTEMPTS_MAX) return messageOf(error);
      await sleep(this.#env.clock, RETRY_MS * attempt, signal);
    }
    this.#recorder.event(pod.pod, 'Normal', 'Scheduled', `Successfully assigned ${pod.key} to ${node}`);
    return undefined;
  }

  /** The node that a pod has right now, empty for none; undefined where the pod is gone. Asks until it is answered. */
  async nodeOf(pod: PodInfo, signal: AbortSignal): Promise<string | undefined> {
    for (let delayMs = RETRY_MS; ; delayMs = Math.min(2 * delayMs, RETRY_MS_MAX)) {
      try {
        const actual = await this.#read(pod, signal);
        return actual && (actual.spec?.nodeName ?? '');
      } catch (error) {
        if (signal.aborted) throw error;
        this.#env.log.debug('cannot read a pod; trying again', { pod: pod.key, error: messageOf(error) });
      }
      await sleep(this.#env.clock, delayMs, signal);
    }
  }

  /** All pods that have a node right now. Asks until it is answered. */
  async placedPods(signal: AbortSignal): Promise<readonly Pod[]> {
    for (let delayMs = RETRY_MS; ; delayMs = Math.min(2 * delayMs, RETRY_MS_MAX)) {
      try {
        return await this.#listPlaced(signal);
      } catch (error) {
        if (signal.aborted) throw error;
        this.#env.log.warn('cannot list the pods that have nodes; trying again', { error: messageOf(error) });
      }
      await sleep(this.#env.clock, delayMs, signal);
    }
  }

  /** Tells a pod why it has no node. False where the pod is gone, or has one by now and is told nothing. */
  async mark(pod: PodInfo, mark: Mark, signal: AbortSignal): Promise<boolean> {
    const { reason, message, nominatedNode } = mark;
    this.#recorder.event(pod.pod, 'Warning', 'FailedScheduling', eventMessage(message));
    const condition = { type: 'PodScheduled', status: 'False', reason, message };
    const isWaiting = ({ spec }: Pod): boolean => (spec?.nodeName ?? '') === '';
    return this.#writeStatus(pod, { condition, nominatedNode }, signal, isWaiting);
  }

  /** Tells a pod that it waits for no node any more. */
  async clearNomination(pod: PodInfo, signal: AbortSignal): Promise<void> {
    await this.#writeStatus(pod, { nominatedNode: '' }, signal, ({ spec }) => (spec?.nodeName ?? '') === '');
  }

  /**
   * Pushes a pod out: first it is told why, then deleted with the grace that it asks for. False where it was gone, or
   * where its binding came out otherwise than was assumed, and it is in nobody's way on another node.
   */
  async evict(victim: PodInfo, preemptor: PodInfo, node: string, signal: AbortSignal): Promise<boolean> {
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: `${preemptor.pod.spec?.schedulerName ?? ''}: preempting to accommodate a higher priority pod`,
    };
    const isInTheWay = ({ spec }: Pod): boolean => ['', node].includes(spec?.nodeName ?? '');
    if (!(await this.#writeStatus(victim, { condition }, signal, isInTheWay))) return false;
    const { namespace = '', name = '', uid } = victim.pod.metadata;
    try {
      await this.#client.delete(podResource, namespace, name, signal, { preconditions: { uid } });
    } catch (error) {
      // A pod of the same name that is another one is as good as none.
      if (codeOf(error) === 404 || codeOf(error) === 409) return false;
      throw error;
    }
    this.#recorder.event(victim.pod, 'Normal', 'Preempted', `Preempted by pod ${preemptor.uid} on node ${node}`);
    return true;
  }

  async #tryBind(pod: PodInfo, node: string, signal: AbortSignal): Promise<unknown> {
    const { namespace = '', name = '', uid } = pod.pod.metadata;
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name, namespace, uid },
      target: { apiVersion: 'v1', kind: 'Node', name: node },
    };
    try {
      await this.#client.post(podResource, namespace, name, 'binding', binding, signal);
      return undefined;
    } catch (error) {
      if (signal.aborted) throw error;
      return error;
    }
  }

  async #listPlaced(signal: AbortSignal): Promise<readonly Pod[]> {
    const placed: Pod[] = [];
    let token: string | undefined;
    do {
      const options = { fieldSelector: 'spec.nodeName!=', limit: PAGE_LIMIT, ...(token ? { continue: token } : {}) };
      const { items, metadata } = await this.#client.list(podResource, options, signal);
      for (const item of items) placed.push(item);
      token = metadata.continue;
    } while (token !== undefined && token !== '');
    return placed;
  }

  /** The pod as it is right now; undefined where it is gone, also where another has its name. */
  async #read(pod: PodInfo, signal: AbortSignal): Promise<Pod | undefined> {
    const { namespace = '', name = '', uid } = pod.pod.metadata;
    try {
      const actual = await this.#client.get(podResource, namespace, name, signal);
      return actual.metadata.uid === uid ? actual : undefined;
    } catch (error) {
      if (codeOf(error) === 404) return undefined;
      throw error;
    }
  }

  /**
   * Writes a status as long as the pod is one that it applies to: each write is for the version that was looked at, so
   * that one that arrives late cannot undo what happened since. False where the pod is gone, or another one by now.
   */
  async #writeStatus(
    pod: PodInfo,
    change: StatusChange,
    signal: AbortSignal,
    applies: (pod: Pod) => boolean,
  ): Promise<boolean> {
    let current: Pod | undefined = pod.pod;
    for (let attempt = 1; ; attempt++) {
      if (!applies(current)) return false;
      const body = statusPatch(current, change, this.#env.clock.now());
      if (!body) return true;
      const { namespace = '', name = '' } = current.metadata;
      try {
        const patch = { type: 'strategic', body } as const;
        await this.#client.patch(podResource, namespace, name, patch, signal, { subresource: 'status' });
        return true;
      } catch (error) {
        if (codeOf(error) === 404) return false;
        if (codeOf(error) !== 409 || attempt === STATUS_ATTEMPTS_MAX) throw error;
      }
      current = await this.#read(pod, signal);
      if (!current) return false;
    }
  }
}

/** The patch that a change needs; undefined where the status says so already. */
function statusPatch(pod: Pod, { condition, nominatedNode }: StatusChange, nowMs: number): JsonObject | undefined {
  const status: JsonObject = {};
  const old = pod.status?.conditions?.find(({ type }) => type === condition?.type);
  if (condition && !isSame(condition, old)) {
    const isTransition = old?.status !== condition.status;
    status.conditions = [{ ...condition, ...(isTransition ? { lastTransitionTime: formatTime(nowMs) } : {}) }];
  }
  if (nominatedNode !== undefined && nominatedNode !== (pod.status?.nominatedNodeName ?? ''))
    status.nominatedNodeName = nominatedNode === '' ? null : nominatedNode;
  if (Object.keys(status).length === 0) return undefined;
  const { uid = '', resourceVersion = '' } = pod.metadata;
  return { metadata: { uid, resourceVersion }, status };
}

function isSame(condition: PodCondition, old: PodCondition | undefined): boolean {
  return old?.status === condition.status && old.reason === condition.reason && old.message === condition.message;
}

function codeOf(error: unknown): number | undefined {
  return error instanceof ApiError ? error.code : undefined;
}

/** Whether the server has said no for good; all else may have been done, or may be done later. */
function isDefinite(error: unknown): boolean {
  const code = codeOf(error) ?? 0;
  return code >= 400 && code < 500 && code !== 408 && code !== 429;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
