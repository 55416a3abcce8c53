import type { KubeObject } from '../../api/meta.ts';
import type { PodDisruptionBudget } from '../../cluster/disruption-budgets/objects.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Invariant, Unsettled } from '../invariant.ts';
import type { State } from '../observer.ts';

/** In the end every budget says what is true: how many of its pods are healthy, and how many may go. */
export function budgetsSettle(): Invariant {
  return {
    name: 'budgets-settle',
    unsettled: ({ state }) =>
      [...(state.list('poddisruptionbudgets.policy') as Iterable<PodDisruptionBudget>)].flatMap(
        (budget): Unsettled[] => {
          const what = untruth(budget, state);
          return what === undefined ? [] : [{ key: keyOf(budget), what }];
        },
      ),
  };
}

function untruth({ metadata, spec, status = {} }: PodDisruptionBudget, state: State): string | undefined {
  const { minAvailable } = spec ?? {};
  if (typeof minAvailable !== 'number') return undefined;
  const labels = Object.entries(spec?.selector?.matchLabels ?? {});
  const covered = [...state.list('pods')].filter(
    (pod) =>
      pod.metadata.namespace === metadata.namespace &&
      labels.every(([key, value]) => pod.metadata.labels?.[key] === value),
  );
  const currentHealthy = covered.filter(isHealthy).length;
  const disruptionsAllowed = covered.length > 0 ? Math.max(0, currentHealthy - minAvailable) : 0;
  const actual = {
    observedGeneration: metadata.generation,
    currentHealthy,
    desiredHealthy: minAvailable,
    disruptionsAllowed,
    notes: 0,
  };
  const said = {
    observedGeneration: status.observedGeneration,
    currentHealthy: status.currentHealthy,
    desiredHealthy: status.desiredHealthy,
    disruptionsAllowed: status.disruptionsAllowed,
    notes: Object.keys(status.disruptedPods ?? {}).length,
  };
  const [expected, found] = [JSON.stringify(actual), JSON.stringify(said)];
  return expected === found ? undefined : `says ${found}, and should say ${expected}`;
}

function isHealthy(pod: KubeObject): boolean {
  const { metadata, status } = pod as Pod;
  if (metadata.deletionTimestamp !== undefined) return false;
  return status?.conditions?.some((condition) => condition.type === 'Ready' && condition.status === 'True') ?? false;
}
