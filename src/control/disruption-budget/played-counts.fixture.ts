import type { JsonObject } from '../../api/meta.ts';
import type { Service } from '../../kube/service.ts';
import type { ControlContext } from '../context.ts';
import type { ControlScene } from '../control.fixture.ts';
import { disruptionBudgets } from '../resources.ts';

/** Plays the cluster's disruption controller, as far as migrations wait for it: every budget is counted at once. */
export const countBudgets =
  (scene: () => ControlScene) =>
  ({ informers }: ControlContext): Service => {
    informers.of(disruptionBudgets).onChange(({ type, object: { metadata, status } }) => {
      if (type === 'deleted' || status?.observedGeneration === metadata.generation) return;
      const counts = { disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 0, expectedPods: 0 };
      const counted: JsonObject = { status: { observedGeneration: metadata.generation ?? 0, ...counts } };
      // One that is gone by now needs no count.
      scene()
        .patch(disruptionBudgets, metadata.name ?? '', counted, 'status')
        .catch(() => undefined);
    });
    const run = (signal: AbortSignal): Promise<void> =>
      new Promise((resolve) => signal.addEventListener('abort', () => resolve(), { once: true }));
    return { name: 'played counts', run };
  };
