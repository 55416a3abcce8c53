import { errorMessage } from '../../api/error-message.ts';
import { formatTime, type KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import { ApiError } from '../../api/status.ts';
import type { Env, Timer } from '../../env/ports.ts';
import { clone } from '../../machinery/clone.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { View } from '../registry/contract.ts';
import { definitionsOf } from './definitions.ts';
import {
  applyDecision,
  decideNames,
  isEstablished,
  type NamesDecision,
  setCondition,
  type TakenNames,
} from './names.ts';
import { CLEANUP_FINALIZER, conditionOf, type CustomResourceDefinition } from './wire.ts';

/**
 * Keeps what is served in step with the CRDs in the store.
 *
 * Names are decided in memory, at once, in order of commits: a CRD whose names are free is served by the time its
 * create is answered. Its status is written right after, so nobody who waits for Established has to wait for a loop to
 * come round. What is in memory is recomputed from the store on start; nothing else has to survive.
 */

/** What the custom resources need from the rest of the server. */
export interface CustomResourcePorts {
  /** Of `customresourcedefinitions.apiextensions.k8s.io`. */
  readonly crds: View;
  /** Resources that no CRD can replace. */
  readonly builtins: readonly ResourceDefinition[];
  /** Every stored object of a custom resource. */
  objects(definition: ResourceDefinition): readonly StoredObject[];
  /** Deletes as a user would: admission, finalizers and all. */
  deleteObject(definition: ResourceDefinition, namespace: string, name: string): Promise<void>;
  /** Changes a CRD through its `status` subresource; `change` may run again when another write comes between. */
  updateStatus(name: string, change: (crd: KubeObject) => void): Promise<void>;
  removeFinalizer(name: string, finalizer: string): Promise<void>;
}

export interface StoredObject {
  /** Empty for cluster-scoped objects. */
  readonly namespace: string;
  readonly name: string;
  readonly terminating: boolean;
}

interface Served {
  readonly crd: CustomResourceDefinition;
  readonly decision: NamesDecision;
  /** Empty while its names are not accepted. */
  readonly definitions: readonly ResourceDefinition[];
}

/** Deletions under way at once: enough to fill a commit, few enough to leave room for others. */
const DELETIONS_AT_ONCE = 64;
/** How often objects that have finalizers of their own are looked at again. */
const CLEANUP_POLL_MS = 500;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 10_000;

export class CustomResources {
  readonly #env: Env;
  readonly #ports: CustomResourcePorts;
  readonly #served = new Map<string, Served>();
  readonly #listeners: (() => void)[] = [];
  readonly #queue = new Set<string>();
  readonly #timers = new Map<string, Timer>();
  readonly #failures = new Map<string, { count: number; message: string }>();
  #definitions: readonly ResourceDefinition[] = [];
  #wake: () => void = () => undefined;

  /** Takes in what is stored; from here on `definitions` is right. `run` writes statuses and cleans up. */
  constructor(env: Env, ports: CustomResourcePorts) {
    this.#env = env;
    this.#ports = ports;
    const stored = ports.crds.list() as readonly CustomResourceDefinition[];
    // Those that were established first keep their names, then first come, first served.
    const rank = (crd: CustomResourceDefinition): string =>
      `${conditionOf(crd, 'Established')?.status === 'True' ? 0 : 1} ${crd.metadata.creationTimestamp ?? ''}`;
    for (const crd of [...stored].sort((a, b) => (rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0))) this.#take(crd);
    this.#publish();
    ports.crds.onChange((crd, old) => this.#changed(crd as CustomResourceDefinition | undefined, old));
  }

  /** Every served version of every established CRD. The same objects as before for CRDs that did not change. */
  definitions(): readonly ResourceDefinition[] {
    return this.#definitions;
  }

  /** Calls back after `definitions` has changed. */
  onChange(listener: () => void): void {
    this.#listeners.push(listener);
  }

  /** Writes statuses and cleans up after deleted CRDs until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    signal.addEventListener('abort', () => this.#wake(), { once: true });
    while (!signal.aborted) {
      const [name] = this.#queue;
      if (name === undefined) {
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
        });
        continue;
      }
      this.#queue.delete(name);
      await this.#reconcile(name, signal);
    }
    for (const timer of this.#timers.values()) timer.cancel();
  }

  #changed(crd: CustomResourceDefinition | undefined, old: KubeObject | undefined): void {
    const name = crd?.metadata.name ?? old?.metadata.name ?? '';
    const before = this.#served.get(name);
    if (crd) this.#take(crd);
    else this.#served.delete(name);
    const group = (crd ?? (old as CustomResourceDefinition | undefined))?.spec?.group;
    const after = this.#served.get(name);
    // Names that this one no longer holds may be what another of its group waits for.
    if (!deepEqual(before?.decision.names, after?.decision.names)) {
      for (const each of this.#served.values()) {
        if (each.crd !== crd && each.crd.spec?.group === group && each.decision.conflict) this.#take(each.crd);
      }
    }
    this.#publish();
  }

  #take(crd: CustomResourceDefinition): void {
    const name = crd.metadata.name ?? '';
    const before = this.#served.get(name);
    const accepted = before?.decision.names ?? crd.status?.acceptedNames ?? {};
    const decision = decideNames(crd.spec?.names ?? {}, accepted, this.#takenBesides(crd));
    const definitions = isEstablished(crd, decision) ? this.#definitionsFor(crd, decision, before) : [];
    this.#served.set(name, { crd, decision, definitions });
    this.#enqueue(name);
  }

  /** Unchanged definitions stay the same objects, so that whatever is cached for them stays good. */
  #definitionsFor(
    crd: CustomResourceDefinition,
    decision: NamesDecision,
    before: Served | undefined,
  ): readonly ResourceDefinition[] {
    const isSame =
      before !== undefined &&
      before.definitions.length > 0 &&
      (before.crd.metadata.deletionTimestamp === undefined) === (crd.metadata.deletionTimestamp === undefined) &&
      deepEqual(before.decision.names, decision.names) &&
      deepEqual(before.crd.spec, crd.spec);
    return isSame ? before.definitions : definitionsOf({ ...crd, spec: { ...crd.spec, names: decision.names } });
  }

  #takenBesides(crd: CustomResourceDefinition): TakenNames {
    const resources = new Set<string>();
    const kinds = new Set<string>();
    for (const other of this.#ports.builtins) {
      if (other.group !== crd.spec?.group) continue;
      for (const name of [other.plural, other.singular, ...(other.shortNames ?? [])]) resources.add(name);
      kinds.add(other.kind).add(other.listKind);
    }
    for (const [name, { crd: other, decision }] of this.#served) {
      if (name === crd.metadata.name || other.spec?.group !== crd.spec?.group) continue;
      const { plural = '', singular = '', kind = '', listKind = '', shortNames = [] } = decision.names;
      for (const each of [plural, singular, ...shortNames]) resources.add(each);
      kinds.add(kind).add(listKind);
    }
    return { resources, kinds };
  }

  #publish(): void {
    const definitions = [...this.#served.values()].flatMap((served) => served.definitions);
    const isSame =
      definitions.length === this.#definitions.length &&
      definitions.every((definition, index) => definition === this.#definitions[index]);
    if (isSame) return;
    this.#definitions = definitions;
    for (const listener of this.#listeners) listener();
  }

  #enqueue(name: string): void {
    this.#timers.get(name)?.cancel();
    this.#timers.delete(name);
    this.#queue.add(name);
    this.#wake();
  }

  #enqueueAfter(name: string, delayMs: number): void {
    this.#timers.get(name)?.cancel();
    this.#timers.set(
      name,
      this.#env.clock.setTimer(() => this.#enqueue(name), delayMs),
    );
  }

  async #reconcile(name: string, signal: AbortSignal): Promise<void> {
    const served = this.#served.get(name);
    if (!served) return void this.#failures.delete(name);
    try {
      await this.#writeStatus(name, served);
      if (served.crd.metadata.deletionTimestamp !== undefined) await this.#cleanUp(name, served, signal);
      this.#failures.delete(name);
    } catch (error) {
      const count = (this.#failures.get(name)?.count ?? 0) + 1;
      const message = errorMessage(error);
      this.#failures.set(name, { count, message });
      this.#env.log.warn('custom resource definition not reconciled', { name, failures: count, error: message });
      this.#enqueueAfter(name, Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** Math.min(count, 10)));
    }
  }

  async #writeStatus(name: string, { crd, decision }: Served): Promise<void> {
    const now = formatTime(this.#env.clock.now());
    const failure = this.#failures.get(name)?.message;
    const change = (current: KubeObject): void => {
      applyDecision(current as CustomResourceDefinition, decision, now);
      if (current.metadata.deletionTimestamp === undefined) return;
      setCondition(
        current as CustomResourceDefinition,
        {
          type: 'Terminating',
          status: 'True',
          reason: failure === undefined ? 'InstanceDeletionInProgress' : 'InstanceDeletionFailed',
          message:
            failure === undefined
              ? 'CustomResource deletion is in progress'
              : `could not issue all deletes: ${failure}`,
        },
        now,
      );
    };
    const wanted = clone(crd);
    change(wanted);
    if (!deepEqual(wanted.status, crd.status)) await ignoreGone(this.#ports.updateStatus(name, change));
  }

  /** One round: everything not yet terminating is deleted, and when nothing is left the CRD may go. */
  async #cleanUp(name: string, { crd, definitions }: Served, signal: AbortSignal): Promise<void> {
    if (!crd.metadata.finalizers?.includes(CLEANUP_FINALIZER)) return;
    const definition = definitions[0];
    if (definition) {
      const waiting = this.#ports.objects(definition).filter((object) => !object.terminating);
      for (let index = 0; index < waiting.length && !signal.aborted; index += DELETIONS_AT_ONCE) {
        const batch = waiting.slice(index, index + DELETIONS_AT_ONCE);
        await Promise.all(
          batch.map((object) => ignoreGone(this.#ports.deleteObject(definition, object.namespace, object.name))),
        );
      }
      if (signal.aborted) return;
      if (this.#ports.objects(definition).length > 0) return this.#enqueueAfter(name, CLEANUP_POLL_MS);
    }
    await ignoreGone(this.#ports.removeFinalizer(name, CLEANUP_FINALIZER));
  }
}

/** What is gone already needs no deleting, and no status. */
async function ignoreGone(work: Promise<void>): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 404) throw error;
  }
}
