import type { JsonObject } from '../../api/meta.ts';
import { SELECTED_NODE } from '../../api/storage.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { errorText } from '../../kube/error-text.ts';
import { keyOf } from '../../kube/resource.ts';
import { compareVersions } from '../../kube/resource-version.ts';
import type { SelectableNode } from '../../migration/fit/node-selector.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import type { PodInfo } from '../../migration/fit/pod-info.ts';
import { isBound, reachOf, type VolumePlan } from '../../migration/fit/volume-plan.ts';
import { persistentVolumeClaims, persistentVolumes } from '../resources.ts';
import { reservation } from '../volumes/reservation.ts';

export interface VolumeBindingOptions {
  readonly env: Env;
  readonly client: Client;
  /** By `namespace/name`, as last heard of. */
  readonly claim: (key: string) => PersistentVolumeClaim | undefined;
  readonly volume: (name: string) => PersistentVolume | undefined;
}

/** As kube-scheduler has it: making a volume may take minutes. */
const BOUND_WITHIN_MS = 10 * 60_000;

/** What became of a claim: it is bound, or it is not yet, or it will not be, for this reason. */
type Standing = 'bound' | 'waiting' | { readonly failure: string };

/** A claim, and the version in which what was decided about it was written. */
interface Expected {
  readonly claim: PersistentVolumeClaim;
  /** The node that was written to it; undefined where it gets a volume that is there. */
  readonly writtenVersion: string | undefined;
}

/**
 * Carries out what was decided about a pod's volumes, before the pod is bound: sets volumes aside, asks for others to be
 * made where the pod will be, and waits until its claims have them.
 */
export class VolumeBinding {
  readonly #options: VolumeBindingOptions;
  /** By the claim that somebody waits for: what wakes them. */
  readonly #waiting = new Map<string, Set<AbortController>>();
  /** By the UID of pods that are gone. */
  readonly #cancellations = new Map<string, AbortController>();

  constructor(options: VolumeBindingOptions) {
    this.#options = options;
  }

  /** Undefined once all claims are bound, else why they are not. Rejects only when the signal aborts. */
  async bind(pod: PodInfo, node: SelectableNode, plan: VolumePlan, signal: AbortSignal): Promise<string | undefined> {
    const cancellation = new AbortController();
    this.#cancellations.set(pod.uid, cancellation);
    try {
      const expected = await this.#write(node, plan, signal);
      return await this.#bound(expected, node, cancellation.signal, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      return `binding volumes: ${errorText(error)}`;
    } finally {
      this.#cancellations.delete(pod.uid);
    }
  }

  /** Tells that there is news of a claim or of its volume. */
  notify(claimKey: string): void {
    for (const turn of this.#waiting.get(claimKey) ?? []) turn.abort();
  }

  /** Tells that a pod is gone, and waits for nothing any more. */
  cancel(podUid: string): void {
    this.#cancellations.get(podUid)?.abort();
  }

  /** Each write is for the version that was decided on: somebody else may have taken the volume. */
  async #write(node: SelectableNode, plan: VolumePlan, signal: AbortSignal): Promise<readonly Expected[]> {
    const { client } = this.#options;
    const expected: Expected[] = [];
    for (const { claim, volume } of plan.bindings) {
      if (volume.spec?.claimRef?.uid !== claim.metadata.uid) {
        const { metadata, spec } = reservation(volume, claim);
        const { uid = '', resourceVersion = '', annotations = {} } = metadata;
        const body = { metadata: { uid, resourceVersion, annotations }, spec: { claimRef: { ...spec?.claimRef } } };
        await client.patch(persistentVolumes, '', metadata.name ?? '', { type: 'merge', body }, signal);
      }
      expected.push({ claim, writtenVersion: undefined });
    }
    for (const claim of plan.provisions) {
      const { namespace = '', name = '', uid = '', resourceVersion = '', annotations } = claim.metadata;
      let writtenVersion = resourceVersion;
      if (this.#actual(claim)?.metadata.annotations?.[SELECTED_NODE] !== node.name) {
        // What was decided on may be what another pod's decision will make of the claim.
        const isWritten = annotations?.[SELECTED_NODE] === node.name;
        const version: JsonObject = isWritten ? {} : { resourceVersion };
        const body = { metadata: { uid, ...version, annotations: { [SELECTED_NODE]: node.name } } };
        const patch = { type: 'merge', body } as const;
        const written = await client.patch(persistentVolumeClaims, namespace, name, patch, signal);
        writtenVersion = written.metadata.resourceVersion ?? '';
      }
      expected.push({ claim, writtenVersion });
    }
    return expected;
  }

  async #bound(
    expected: readonly Expected[],
    node: SelectableNode,
    cancelled: AbortSignal,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { clock } = this.#options.env;
    const deadlineMs = clock.now() + BOUND_WITHIN_MS;
    const keys = expected.map(({ claim }) => keyOf(claim));
    for (;;) {
      const standings = expected.map((each) => this.#standing(each, node));
      for (const standing of standings) if (typeof standing === 'object') return standing.failure;
      if (!standings.includes('waiting')) return undefined;
      if (cancelled.aborted) return 'binding volumes: the pod is gone';
      if (clock.now() >= deadlineMs) return 'binding volumes: timed out waiting for the claims to be bound';
      await this.#change(keys, deadlineMs - clock.now(), [cancelled, signal]);
      signal.throwIfAborted();
    }
  }

  #actual(claim: PersistentVolumeClaim): PersistentVolumeClaim | undefined {
    const actual = this.#options.claim(keyOf(claim));
    return actual?.metadata.uid === claim.metadata.uid ? actual : undefined;
  }

  #standing({ claim, writtenVersion }: Expected, node: SelectableNode): Standing {
    const actual = this.#actual(claim);
    const key = keyOf(claim);
    if (!actual) return { failure: `binding volumes: claim ${key} is gone` };
    if (isBound(actual)) {
      const volume = this.#options.volume(actual.spec?.volumeName ?? '');
      if (!volume) return 'waiting';
      if (reachOf(volume)(node)) return 'bound';
      return {
        failure: `binding volumes: volume ${volume.metadata.name} of claim ${key} is not for node ${node.name}`,
      };
    }
    const isHeardOf =
      writtenVersion !== undefined && (compareVersions(actual.metadata.resourceVersion, writtenVersion) ?? -1) >= 0;
    if (isHeardOf && actual.metadata.annotations?.[SELECTED_NODE] !== node.name)
      return { failure: `binding volumes: no volume can be made for claim ${key} on node ${node.name}` };
    return 'waiting';
  }

  /** Waits for news of any of the claims, or the end of the time. */
  async #change(keys: readonly string[], timeMs: number, ends: readonly AbortSignal[]): Promise<void> {
    const turn = new AbortController();
    const wake = (): void => turn.abort();
    for (const key of keys) this.#waiting.set(key, (this.#waiting.get(key) ?? new Set()).add(turn));
    for (const end of ends) end.addEventListener('abort', wake, { once: true });
    try {
      await sleep(this.#options.env.clock, timeMs, turn.signal);
    } finally {
      for (const end of ends) end.removeEventListener('abort', wake);
      for (const key of keys) {
        const turns = this.#waiting.get(key);
        turns?.delete(turn);
        if (turns?.size === 0) this.#waiting.delete(key);
      }
    }
  }
}
