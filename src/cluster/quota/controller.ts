import type { KubeObject } from '../../api/meta.ts';
import { ApiError, qualified, type ResourceRef } from '../../api/status.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer, InformerChange } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { addAmounts, type Amounts } from '../../machinery/pod-resources.ts';
import { type ResourceQuota, trackedNames, usageOf } from '../../machinery/quota.ts';
import { resourceQuotas } from '../resources.ts';
import { Charges } from './charges.ts';
import { countedBy, countOf, decide } from './decide.ts';
import { TrackedObjects } from './tracked-objects.ts';

export interface QuotaControllerOptions {
  readonly env: Env;
  readonly client: Client;
  readonly metrics: KubeMetrics;
  /** Both by namespace. */
  readonly quotas: Pick<Informer<ResourceQuota>, 'get' | 'list' | 'onChange' | 'byIndex'>;
  readonly pods: Informer<KubeObject>;
  /** Where a change may mean that other resources are served. */
  readonly definitions: Pick<Informer<KubeObject>, 'onChange'>;
}

/** How often everything is counted without a reason. */
const RESYNC_MS = 5 * 60_000;
const WORKERS = 5;

/** What all resources of a quota come to. */
interface Total {
  readonly amounts: Amounts;
  readonly untilMs: number;
  /** Resources that nobody can count now. */
  readonly unknown: readonly ResourceRef[];
}

/**
 * Recounts what quotas have used: admission only ever adds to it. Usage is lowered only once the last charge has
 * settled, and only on the word of what is stored from then on, or a quota would let in more than it allows. (A cache that
 * is newer than the charge does not do: one charge may be for several objects, each of which is stored a while later.)
 */
export class QuotaController implements Service {
  readonly name = 'resourcequota';
  readonly #options: QuotaControllerOptions;
  readonly #controller: Controller;
  readonly #objects: TrackedObjects;
  readonly #charges = new Charges();
  /** Quotas of which not everything could be counted. */
  readonly #incomplete = new Set<string>();

  constructor(options: QuotaControllerOptions) {
    this.#options = options;
    const { env, client, metrics, pods, definitions } = options;
    const reconcile = (key: string, signal: AbortSignal): Promise<Result | undefined> => this.#reconcile(key, signal);
    this.#controller = new Controller({ name: this.name, env, metrics, workers: WORKERS, reconcile });
    options.quotas.onChange((change) => this.#onQuota(change));
    this.#objects = new TrackedObjects({
      env,
      client,
      pods,
      onChange: (resource, change) => this.#onObject(resource, change),
    });
    definitions.onChange(() => {
      this.#objects.doubt();
      for (const key of this.#incomplete) this.#controller.enqueue(key);
    });
  }

  async run(signal: AbortSignal): Promise<void> {
    try {
      await Promise.all([this.#controller.run(signal), this.#resync(signal)]);
    } finally {
      await this.#objects.keep([]);
    }
  }

  #onQuota({ type, object, old, isInitial }: InformerChange<ResourceQuota>): void {
    const key = keyOf(object);
    if (type === 'deleted') {
      this.#charges.forget(key);
      this.#incomplete.delete(key);
      return;
    }
    this.#charges.observe(object, this.#options.env.clock.now(), type === 'added' && !isInitial);
    // Its usage is written by admission for every object: that alone is no reason to count.
    if (type === 'added' || !deepEqual(object.spec, old?.spec) || !deepEqual(object.status?.hard, object.spec?.hard))
      this.#controller.enqueue(key);
  }

  /** An object that is gone, or has come to use less or more, changes the quotas of its namespace that count it. */
  #onObject(resource: ResourceRef, { type, object, old }: InformerChange<KubeObject>): void {
    if (type === 'added') return;
    const { namespace = '' } = object.metadata;
    const quotas = this.#options.quotas.byIndex('namespace', namespace);
    if (quotas.length === 0) return;
    if (type === 'updated' && old && !this.#usesOtherwise(resource, object, old)) return;
    for (const quota of quotas) {
      if (trackedNames(resource, Object.keys(quota.spec?.hard ?? {})).length > 0)
        this.#controller.enqueue(keyOf(quota));
    }
  }

  #usesOtherwise(resource: ResourceRef, object: KubeObject, old: KubeObject): boolean {
    const nowMs = this.#options.env.clock.now();
    if ((object.metadata.deletionTimestamp === undefined) !== (old.metadata.deletionTimestamp === undefined))
      return true;
    const [before, after] = [usageOf(resource, old, nowMs), usageOf(resource, object, nowMs)];
    return before.size !== after.size || [...after].some(([name, { amount }]) => before.get(name)?.amount !== amount);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const { quotas, env } = this.#options;
    const quota = quotas.get(key);
    if (!quota) return undefined;
    let total = await this.#count(quota, 'known', signal);
    const settlesInMs = this.#charges.settlesInMs(key, env.clock.now());
    let decision = decide(quota, total.amounts, settlesInMs <= 0);
    if (decision.lowered.length > 0 && settlesInMs <= 0) {
      // Nothing new came meanwhile: it would be another version, and the write would be refused.
      total = await this.#count(quota, 'stored', signal);
      decision = decide(quota, total.amounts, true);
    }
    if (decision.status !== quota.status) await this.#write(quota, decision.status, signal);
    if (total.unknown.length > 0) this.#incomplete.add(key);
    else this.#incomplete.delete(key);
    const waitMs = settlesInMs > 0 && decision.lowered.length > 0 ? settlesInMs : Number.POSITIVE_INFINITY;
    return { requeueAfterMs: Math.min(waitMs, total.untilMs - env.clock.now()) };
  }

  /** Counts what the caches know, or what the server has stored. */
  async #count(quota: ResourceQuota, which: 'known' | 'stored', signal: AbortSignal): Promise<Total> {
    const { env } = this.#options;
    const { namespace = '' } = quota.metadata;
    const total: { amounts: Amounts; untilMs: number; unknown: ResourceRef[] } = {
      amounts: new Map(),
      untilMs: Number.POSITIVE_INFINITY,
      unknown: [],
    };
    for (const resource of countedBy(quota)) {
      const informer = await this.#objects.informerOf(resource, signal);
      if (!informer) {
        total.unknown.push(resource);
        continue;
      }
      const objects =
        which === 'known' ? informer.byIndex('namespace', namespace) : await informer.listNow({ namespace }, signal);
      const { amounts, untilMs } = countOf(quota, resource, objects, env.clock.now());
      addAmounts(total.amounts, amounts);
      total.untilMs = Math.min(total.untilMs, untilMs);
    }
    return total;
  }

  async #write(quota: ResourceQuota, status: ResourceQuota['status'], signal: AbortSignal): Promise<void> {
    const { client } = this.#options;
    try {
      const written = await client.update(resourceQuotas, { ...quota, status }, signal, { subresource: 'status' });
      this.#charges.wrote(keyOf(quota), written.metadata.resourceVersion);
    } catch (error) {
      if (!(error instanceof ApiError && error.code === 404)) throw error;
    }
  }

  /** The safety net: counts everything from time to time, and stops to watch what nobody counts any more. */
  async #resync(signal: AbortSignal): Promise<void> {
    const { env, quotas } = this.#options;
    while (!signal.aborted) {
      await sleep(env.clock, RESYNC_MS, signal);
      if (signal.aborted) return;
      const counted = new Map<string, ResourceRef>();
      for (const quota of quotas.list()) {
        this.#controller.enqueue(keyOf(quota));
        for (const resource of countedBy(quota)) counted.set(qualified(resource), resource);
      }
      await this.#objects.keep(counted.values());
    }
  }
}
