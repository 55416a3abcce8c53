import { invalid } from '../../api/field-error.ts';
import type { KubeObject } from '../../api/meta.ts';
import { ApiError, badRequest, invalidObject, notFound, pathNotFound, type Status } from '../../api/status.ts';
import type { DeleteOptions, Registry, Target, WriteContext } from '../registry/contract.ts';
import { checkDeletePreconditions } from '../registry/deletion.ts';
import { chargeBudget, DisruptionBudgetAccounts, stillProcessed } from './disruption-charge.ts';
import { isPodReady, type Pod, setPodCondition } from './pod-conditions.ts';
import type { PodDisruptionBudget } from './disruption-budgets.ts';

/**
 * The eviction API: a deletion that asks the pod's disruption budget first. The order is upstream's and needs no
 * rollback: the budget is charged, then the pod is told why (DisruptionTarget), then it is deleted. Whatever fails in
 * between leaves a budget that allows too little until the disruption controller recounts it, never too much.
 */

interface Eviction extends KubeObject {
  deleteOptions?: DeleteOptions & {
    readonly dryRun?: readonly string[];
    readonly ignoreStoreReadErrorWithClusterBreakingPotential?: boolean;
  };
}

/** A request to evict a pod. */
export interface EvictionRequest {
  readonly registry: Registry;
  readonly context: WriteContext;
  readonly namespace: string;
  readonly name: string;
  /** A policy/v1 or policy/v1beta1 Eviction, already admitted. */
  readonly eviction: KubeObject;
  readonly nowMs: number;
}

interface Pending {
  readonly registry: Registry;
  readonly context: WriteContext;
  readonly target: Target;
  readonly options: DeleteOptions;
  readonly nowMs: number;
}

/** How often a pod that changes under our hands is looked at again. */
const ATTEMPTS_MAX = 20;
const API_VERSIONS: ReadonlySet<string> = new Set(['policy/v1', 'policy/v1beta1']);

/**
 * Evicts a pod, or throws: 429 with a DisruptionBudget cause when the budget does not allow it, 500 when more than one
 * budget covers the pod, 404 and 409 as a deletion would.
 */
export async function evictPod(request: EvictionRequest): Promise<Status> {
  const eviction = request.eviction as Eviction;
  checkEviction(eviction, request.name);
  const definition = request.registry.definition('', 'v1', 'pods');
  if (!definition) throw pathNotFound();
  const dryRun = request.context.dryRun || (eviction.deleteOptions?.dryRun ?? []).length > 0;
  const pending: Pending = {
    registry: request.registry,
    // Admission has seen the Eviction; upstream does not show it the writes that follow.
    context: { ...request.context, dryRun, isAdmitted: true, isUntracked: true },
    target: { definition, namespace: request.namespace, name: request.name },
    options: deleteOptionsOf(eviction),
    nowMs: request.nowMs,
  };
  const pod = await evictUnprotected(pending);
  if (pod) await evictProtected(pending, pod);
  return { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };
}

function checkEviction(eviction: Eviction, name: string): void {
  if (eviction.kind !== 'Eviction' || !API_VERSIONS.has(eviction.apiVersion)) {
    throw badRequest(`not a Eviction object: ${eviction.apiVersion}, Kind=${eviction.kind}`);
  }
  if (eviction.metadata?.name !== name) throw badRequest('name in URL does not match name in Eviction object');
  if (eviction.deleteOptions?.ignoreStoreReadErrorWithClusterBreakingPotential === true) {
    const field = 'deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential';
    throw invalidObject('policy', 'Eviction', name, [
      invalid(field, true, 'can not be set for pod eviction, try after removing the option'),
    ]);
  }
}

function deleteOptionsOf(eviction: Eviction): DeleteOptions {
  const { gracePeriodSeconds, propagationPolicy, preconditions } = eviction.deleteOptions ?? {};
  const { uid, resourceVersion } = preconditions ?? {};
  return {
    ...(typeof gracePeriodSeconds === 'number' ? { gracePeriodSeconds } : {}),
    ...(propagationPolicy ? { propagationPolicy } : {}),
    // An empty or null precondition is none.
    preconditions: { ...(uid ? { uid } : {}), ...(resourceVersion ? { resourceVersion } : {}) },
  };
}

/** Deletes a pod that no budget protects (not running yet, finished, or going anyway); answers the pod when one may. */
async function evictUnprotected(pending: Pending): Promise<Pod | undefined> {
  for (let attempt = 1; ; attempt++) {
    const pod = readPod(pending);
    if (!needsNoBudget(pod)) return pod;
    const { options } = pending;
    // A pending pod may become ready, and protected, at this very moment: delete only what was looked at.
    const isPinned = isPending(pod) && options.preconditions?.resourceVersion === undefined;
    try {
      await markAndDelete(pending, isPinned ? pinned(options, pod) : options);
      return undefined;
    } catch (error) {
      const canRetry = isConflict(error) && options.preconditions?.resourceVersion === undefined;
      if (!canRetry || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

function readPod({ registry, target }: Pending): Pod {
  const pod = registry.read(target);
  if (!pod) throw notFound(target.definition, target.name);
  return pod;
}

function isPending(pod: Pod): boolean {
  return pod.status?.phase === 'Pending' && pod.metadata.deletionTimestamp === undefined;
}

function needsNoBudget(pod: Pod): boolean {
  const phase = pod.status?.phase;
  if (phase === 'Succeeded' || phase === 'Failed' || phase === 'Pending') return true;
  return pod.metadata.deletionTimestamp !== undefined;
}

/** Charges the pod's budget, if it has one, and deletes the pod. */
async function evictProtected(pending: Pending, pod: Pod): Promise<void> {
  const lenient = await clearWithBudget(pending, pod);
  if (!lenient || pending.options.preconditions?.resourceVersion !== undefined) {
    return markAndDelete(pending, pending.options);
  }
  try {
    await markAndDelete(pending, pinned(pending.options, pod));
  } catch (error) {
    // It was let go as unhealthy and may have become healthy since: the client is to ask again.
    throw isConflict(error) ? stillProcessed(lenient) : error;
  }
}

/**
 * Charges the budget of a pod. Answers a budget only where nothing was charged because the pod is unhealthy and losing
 * it hurts nobody: then the pod must be deleted as it was seen here, or not at all.
 */
async function clearWithBudget(pending: Pending, pod: Pod): Promise<PodDisruptionBudget | undefined> {
  const accounts = DisruptionBudgetAccounts.of(pending.registry);
  for (let attempt = 1; ; attempt++) {
    const budgets = accounts.budgetsOf(pod);
    if (budgets.length > 1) {
      throw new ApiError(
        500,
        '',
        'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.',
      );
    }
    const budget = budgets[0];
    if (!budget) return undefined;
    if (!isPodReady(pod) && canLoseUnhealthy(budget)) return budget;
    try {
      await chargeBudget(accounts, budget, pending.target.name, pending.context.dryRun, pending.nowMs);
      return undefined;
    } catch (error) {
      // The budget went away meanwhile; a 404 would tell the client that the pod has.
      const isGone = error instanceof ApiError && error.code === 404;
      if (!isGone || attempt === ATTEMPTS_MAX) throw error;
    }
  }
}

function canLoseUnhealthy({ spec, status }: PodDisruptionBudget): boolean {
  if (spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow') return true;
  const desired = status?.desiredHealthy ?? 0;
  return desired > 0 && (status?.currentHealthy ?? 0) >= desired;
}

function pinned(options: DeleteOptions, pod: Pod): DeleteOptions {
  return { ...options, preconditions: { ...options.preconditions, resourceVersion: pod.metadata.resourceVersion } };
}

function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.code === 409;
}

/** Tells the pod why in one write and deletes it in the next, so that who sees the deletion has seen the reason. */
async function markAndDelete(pending: Pending, options: DeleteOptions): Promise<void> {
  const { registry, context, target, nowMs } = pending;
  let effective = options;
  if (!context.dryRun) {
    const marked = await registry.update(context, { ...target, subresource: 'status' }, (current: Pod) => {
      checkDeletePreconditions(target, current, options);
      const condition = {
        type: 'DisruptionTarget',
        status: 'True',
        reason: 'EvictionByEvictionAPI',
        message: 'Eviction API: evicting',
      };
      setPodCondition(current, condition, nowMs);
      return current;
    });
    // The version that we made ourselves is as good as the one that was asked for.
    if (options.preconditions?.resourceVersion !== undefined) effective = pinned(options, marked);
  }
  await registry.delete(context, target, effective);
}
