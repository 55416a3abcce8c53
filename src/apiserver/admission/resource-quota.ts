import { ApiError } from '../../api/status.ts';
import type { Clock } from '../../env/ports.ts';
import { hasDeadline } from '../../machinery/quota-scopes.ts';
import type { Amounts } from '../../machinery/pod-resources.ts';
import type { ResourceQuota } from '../../machinery/quota.ts';
import type { AdmissionAttributes, AdmissionPlugin, Registry } from '../registry/contract.ts';
import { serverContext } from '../registry/server-context.ts';
import { isResource, subresourceOf } from './attributes.ts';
import { type Charge, chargeOf, fit, resourceList, sumOf } from './quota-charge.ts';
import { usedOf } from './quota-usage.ts';

/**
 * Enforces ResourceQuotas. A request is charged to the status of every quota that covers it before its object is
 * stored, by compare-and-set: two requests can never both take the last slot. Requests that arrive while a charge of
 * their namespace is being written wait and are then charged together, so that a burst of n creates costs a few
 * writes, not n, and none of them loses a race. What a failed create leaves charged, and what a deletion frees, the
 * quota controller recounts; until it has, a quota is too strict, never too lax.
 */

/** Resources that are never stored, or were never counted: charging them would only fill quotas with ghosts. */
const IGNORED: ReadonlySet<string> = new Set([
  '/bindings',
  '/componentstatuses',
  '/events',
  'events.k8s.io/events',
  'authentication.k8s.io/tokenreviews',
  'authentication.k8s.io/selfsubjectreviews',
  'authorization.k8s.io/subjectaccessreviews',
  'authorization.k8s.io/selfsubjectaccessreviews',
  'authorization.k8s.io/localsubjectaccessreviews',
  'authorization.k8s.io/selfsubjectrulesreviews',
]);

interface Waiter {
  readonly charge: Charge;
  readonly settle: (error: ApiError | undefined) => void;
  refused: ApiError | undefined;
}

export class ResourceQuotaAdmission implements AdmissionPlugin {
  readonly name = 'ResourceQuota';
  readonly #registry: Registry;
  readonly #clock: Clock;
  /** Who waits in each namespace; a namespace is present exactly while its charges are being written. */
  readonly #waiting = new Map<string, Waiter[]>();

  constructor(registry: Registry, clock: Clock) {
    this.#registry = registry;
    this.#clock = clock;
  }

  handles(attributes: AdmissionAttributes): boolean {
    const { namespace } = attributes.target;
    return namespace !== '' && canCharge(attributes) && this.#quotas(namespace).length > 0;
  }

  async validate(attributes: AdmissionAttributes): Promise<void> {
    const charge = chargeOf(attributes, this.#clock.now());
    const refused = await new Promise<ApiError | undefined>((settle) => {
      const { namespace } = attributes.target;
      const waiter: Waiter = { charge, settle, refused: undefined };
      const queue = this.#waiting.get(namespace);
      if (queue) queue.push(waiter);
      else void this.#work(namespace, [waiter]);
    });
    if (refused) throw refused;
  }

  /** Charges batch after batch until nobody waits. Never rejects: a failure is the answer of those who waited. */
  async #work(namespace: string, first: readonly Waiter[]): Promise<void> {
    this.#waiting.set(namespace, []);
    for (let batch = first; batch.length > 0; batch = this.#waiting.get(namespace) ?? []) {
      this.#waiting.set(namespace, []);
      try {
        await this.#chargeBatch(namespace, batch);
      } catch (error) {
        for (const waiter of batch) waiter.refused ??= ApiError.from(error);
      }
      for (const waiter of batch) waiter.settle(waiter.refused);
    }
    this.#waiting.delete(namespace);
  }

  /** Refuses who fits no longer, then writes what the others take. */
  async #chargeBatch(namespace: string, batch: readonly Waiter[]): Promise<void> {
    const accounts = this.#quotas(namespace).map((quota) => ({
      quota,
      used: usedOf(this.#registry, quota, this.#clock.now()),
      payers: [] as Waiter[],
    }));
    for (const waiter of batch) {
      const added = attempt(waiter, () => accounts.map(({ quota, used }) => fit(quota, used, waiter.charge)));
      for (const [index, account] of accounts.entries()) {
        const more = added?.[index];
        if (!more || more.size === 0 || waiter.charge.attributes.context.dryRun) continue;
        account.used = sumOf(account.used, more);
        account.payers.push(waiter);
      }
    }
    for (const { quota, payers } of accounts) if (payers.length > 0) await this.#write(quota, payers);
  }

  /** Charges on the newest state, whatever it has become since: who does not fit there is refused there. */
  async #write(quota: ResourceQuota, payers: readonly Waiter[]): Promise<void> {
    const definition = this.#registry.definition('', 'v1', 'resourcequotas');
    if (!definition) return;
    const { namespace = '', name = '' } = quota.metadata;
    const solvent = payers.filter((payer) => payer.refused === undefined);
    const target = { definition, namespace, name, subresource: 'status' };
    try {
      await this.#registry.update(serverContext(), target, (current) => this.#charged(current, solvent));
    } catch (error) {
      const failure = ApiError.from(error);
      // A quota that was deleted meanwhile limits nobody any more.
      if (failure.code !== 404) for (const payer of solvent) payer.refused = failure;
    }
  }

  #charged(current: ResourceQuota, payers: readonly Waiter[]): ResourceQuota {
    let used: Amounts = usedOf(this.#registry, current, this.#clock.now());
    for (const payer of payers) {
      payer.refused = undefined;
      const added = attempt(payer, () => fit(current, used, payer.charge));
      if (added) used = sumOf(used, added);
    }
    return { ...current, status: { ...current.status, hard: { ...current.spec?.hard }, used: resourceList(used) } };
  }

  #quotas(namespace: string): readonly ResourceQuota[] {
    return this.#registry.view<ResourceQuota>('resourcequotas').list(namespace);
  }
}

/** Notes a refusal as the waiter's answer. */
function attempt<T>(waiter: Waiter, check: () => T): T | undefined {
  try {
    return check();
  } catch (error) {
    waiter.refused = ApiError.from(error);
    return undefined;
  }
}

/** Whether a request can raise the usage of anything. */
function canCharge(attributes: AdmissionAttributes): boolean {
  const { operation, target, object, oldObject } = attributes;
  if (subresourceOf(attributes) !== '') return false;
  if (IGNORED.has(`${target.definition.group}/${target.definition.plural}`)) return false;
  if (operation === 'CREATE') return true;
  if (operation !== 'UPDATE') return false;
  if (isResource(attributes, '', 'pods')) {
    // A pod's requests are fixed; only its deadline can move it from one scope to another.
    return object !== undefined && oldObject !== undefined && hasDeadline(object) !== hasDeadline(oldObject);
  }
  return isResource(attributes, '', 'services') || isResource(attributes, '', 'persistentvolumeclaims');
}
