import { formatTime, type KubeObject } from '../../api/meta.ts';
import { ApiError, forbiddenRequest, pathNotFound } from '../../api/status.ts';
import { setOwn } from '../../machinery/clone.ts';
import { serverContext } from '../registry/server-context.ts';
import type { Registry } from '../registry/contract.ts';
import { DisruptionBudgets, type PodDisruptionBudget } from './disruption-budgets.ts';
import { KeyedQueue } from './keyed-queue.ts';

/** Taking one disruption from a budget, by compare-and-set on its status. */

/** Evictions that the disruption controller has not confirmed; more means that there is none. */
const DISRUPTED_PODS_MAX = 2000;
const VIOLATION = "Cannot evict pod as it would violate the pod's disruption budget.";
/** When a client may ask again about a budget that is being recounted. */
const RETRY_AFTER_SECONDS = 10;

/** The budgets of one registry: found through an index, each charged by one eviction at a time. */
export class DisruptionBudgetAccounts {
  static readonly #ofRegistry = new WeakMap<object, DisruptionBudgetAccounts>();
  readonly registry: Registry;
  /** A drain evicts many pods of one budget at once; in line they pay one write each, in a crowd they would collide. */
  readonly queue = new KeyedQueue();
  readonly #budgets: DisruptionBudgets;

  /** The same one for the same registry each time. */
  static of(registry: Registry): DisruptionBudgetAccounts {
    let accounts = DisruptionBudgetAccounts.#ofRegistry.get(registry);
    if (!accounts)
      DisruptionBudgetAccounts.#ofRegistry.set(registry, (accounts = new DisruptionBudgetAccounts(registry)));
    return accounts;
  }

  constructor(registry: Registry) {
    this.registry = registry;
    this.#budgets = new DisruptionBudgets(registry.view<PodDisruptionBudget>('poddisruptionbudgets.policy'));
  }

  budgetsOf(pod: KubeObject): PodDisruptionBudget[] {
    return this.#budgets.matching(pod);
  }
}

/** Takes one disruption for the pod; a dry run only looks. Throws 429 where none is left, 404 where the budget is gone. */
export async function chargeBudget(
  accounts: DisruptionBudgetAccounts,
  budget: PodDisruptionBudget,
  podName: string,
  isDryRun: boolean,
  nowMs: number,
): Promise<void> {
  const { registry } = accounts;
  if (isDryRun) return checkBudget(budget);
  const definition = registry.definition('policy', 'v1', 'poddisruptionbudgets');
  if (!definition) throw pathNotFound();
  const { namespace = '', name = '' } = budget.metadata;
  const target = { definition, namespace, name, subresource: 'status' };
  await accounts.queue.run(`${namespace}/${name}`, () =>
    registry.update(serverContext(), target, (current) => charged(current, podName, nowMs)),
  );
}

/** 429 for a budget whose numbers are not to be relied on at this moment. */
export function stillProcessed({ metadata }: PodDisruptionBudget): ApiError {
  const message = `The disruption budget ${metadata.name} is still being processed by the server.`;
  return new ApiError(429, 'TooManyRequests', VIOLATION, {
    causes: [{ reason: 'DisruptionBudget', message }],
    retryAfterSeconds: RETRY_AFTER_SECONDS,
  });
}

/** Throws unless the budget allows a disruption. */
function checkBudget(budget: PodDisruptionBudget): void {
  const { metadata, status = {} } = budget;
  const name = metadata.name ?? '';
  const resource = { group: 'policy', plural: 'poddisruptionbudget' };
  if ((status.observedGeneration ?? 0) < (metadata.generation ?? 0)) throw stillProcessed(budget);
  const allowed = status.disruptionsAllowed ?? 0;
  if (allowed < 0) throw forbiddenRequest(resource, name, 'pdb disruptions allowed is negative');
  if (Object.keys(status.disruptedPods ?? {}).length > DISRUPTED_PODS_MAX) {
    throw forbiddenRequest(
      resource,
      name,
      'DisruptedPods map too big - too many evictions not confirmed by PDB controller',
    );
  }
  if (allowed > 0) return;
  const message = `The disruption budget ${name} needs ${status.desiredHealthy ?? 0} healthy pods and has ${status.currentHealthy ?? 0} currently`;
  throw new ApiError(429, 'TooManyRequests', VIOLATION, { causes: [{ reason: 'DisruptionBudget', message }] });
}

function charged(budget: PodDisruptionBudget, podName: string, nowMs: number): PodDisruptionBudget {
  checkBudget(budget);
  const status = { ...budget.status };
  status.disruptionsAllowed = (status.disruptionsAllowed ?? 0) - 1;
  // The controller must not count the pod as available while it is still there.
  status.disruptedPods = { ...status.disruptedPods };
  setOwn(status.disruptedPods, podName, formatTime(nowMs));
  if (status.disruptionsAllowed === 0)
    status.conditions = exhausted(status.conditions, status.observedGeneration, nowMs);
  return { ...budget, status };
}

/** The conditions with DisruptionAllowed False. */
function exhausted(
  conditions: Record<string, unknown>[] | undefined,
  observedGeneration: number | undefined,
  nowMs: number,
): Record<string, unknown>[] {
  const all = conditions ?? [];
  const old = all.find((each) => each['type'] === 'DisruptionAllowed');
  const updated = {
    type: 'DisruptionAllowed',
    status: 'False',
    observedGeneration: observedGeneration ?? 0,
    lastTransitionTime: (old?.['status'] === 'False' && old['lastTransitionTime']) || formatTime(nowMs),
    reason: 'InsufficientPods',
    message: '',
  };
  return old ? all.map((each) => (each === old ? updated : each)) : [...all, updated];
}
