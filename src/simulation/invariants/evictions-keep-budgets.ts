import type { KubeObject } from '../../api/meta.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import type { Invariant } from '../invariant.ts';
import type { Observation, State } from '../observer.ts';

/**
 * The eviction API takes no healthy pod that its budget needs. What others take (deletions, preemption, taints, lost
 * nodes) the budget does not forbid; those who count may hear of it late, so that evictions may meanwhile take as many
 * as were lost that way lately, but no more. Nor does a budget forbid what was granted before it said so.
 */

/** Longer than whoever counts may be behind: a watch that lags, a clock that is wrong, a process that is away. */
const LATELY_MS = 10 * 60_000;

const BUDGETS = 'poddisruptionbudgets.policy';

interface Budget extends KubeObject {
  spec?: { minAvailable?: number | string; selector?: { matchLabels?: Record<string, string> } };
}

export function evictionsKeepBudgets(): Invariant {
  /** When healthy pods were lost otherwise. */
  let losses: { readonly atMs: number; readonly pod: Pod }[] = [];
  /** Since which revision budgets say what they say, by their keys. */
  const saidSince = new Map<string, number>();
  return {
    name: 'evictions-keep-budgets',
    observe(observation, state) {
      if (observation.bucket === BUDGETS && isOtherSpec(observation))
        saidSince.set(observation.key, observation.revision);
      const pod = healthyBefore(observation);
      if (!pod) return undefined;
      losses = losses.filter(({ atMs }) => observation.atMs - atMs < LATELY_MS);
      if (!observation.isEviction) {
        losses.push({ atMs: observation.atMs, pod });
        return undefined;
      }
      for (const budget of state.list(BUDGETS) as Iterable<Budget>) {
        if (!covers(budget, pod) || (saidSince.get(keyOf(budget)) ?? 0) > grantedAt(pod)) continue;
        const lost = losses.filter((loss) => covers(budget, loss.pod)).length;
        const wrong = breach(budget, observation.key, lost, state);
        if (wrong !== undefined) return wrong;
      }
      return undefined;
    },
  };
}

function isOtherSpec({ object, previous }: Observation): boolean {
  return object?.metadata.generation !== previous?.metadata.generation;
}

/** The revision at which a pod was told that it is evicted, if that was the last that became of it. */
function grantedAt({ metadata, status }: Pod): number {
  const isTold = status?.conditions?.some(({ reason }) => reason === 'EvictionByEvictionAPI');
  return isTold ? Number(metadata.resourceVersion) : Infinity;
}

/** A pod that was healthy before the change and is not any more. */
function healthyBefore({ bucket, object, previous }: Observation): Pod | undefined {
  if (bucket !== 'pods' || !previous || !isHealthy(previous)) return undefined;
  return object && isHealthy(object) ? undefined : previous;
}

function breach(budget: Budget, key: string, lost: number, state: State): string | undefined {
  const { minAvailable } = budget.spec ?? {};
  if (typeof minAvailable !== 'number') return undefined;
  const healthy = [...state.list('pods')].filter((pod) => covers(budget, pod) && isHealthy(pod)).length;
  if (healthy + lost >= minAvailable) return undefined;
  return `pod ${key} was evicted though budget ${budget.metadata.name} needs ${minAvailable}: ${healthy} are left, ${lost} were lost lately`;
}

function covers(budget: Budget, pod: KubeObject): boolean {
  const labels = budget.spec?.selector?.matchLabels ?? {};
  return (
    budget.metadata.namespace === pod.metadata.namespace &&
    Object.entries(labels).every(([key, value]) => pod.metadata.labels?.[key] === value)
  );
}

function isHealthy(pod: Pod): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}
