import type { Selector } from '../../machinery/selectors.ts';
import { type LabelledPod, soundSelector, withLabelKeys } from './affinity-term.ts';
import type { TopologySpreadConstraint } from './objects.ts';

/** A topology spread constraint, its defaults filled in. */
export interface SpreadConstraint {
  readonly skewMax: number;
  readonly topologyKey: string;
  readonly isRequired: boolean;
  readonly selector: Selector;
  /** With fewer domains than these the least loaded one counts as empty. */
  readonly domainsMin: number;
  readonly honorsNodeAffinity: boolean;
  readonly honorsTaints: boolean;
}

export function spreadConstraintOf(constraint: TopologySpreadConstraint, owner: LabelledPod): SpreadConstraint {
  return {
    skewMax: constraint.maxSkew,
    topologyKey: constraint.topologyKey,
    isRequired: constraint.whenUnsatisfiable !== 'ScheduleAnyway',
    selector: withLabelKeys(soundSelector(constraint.labelSelector), owner.labels, {
      matchLabelKeys: constraint.matchLabelKeys,
    }),
    domainsMin: constraint.minDomains ?? 1,
    honorsNodeAffinity: constraint.nodeAffinityPolicy !== 'Ignore',
    honorsTaints: constraint.nodeTaintsPolicy === 'Honor',
  };
}
